"""Values of the index, and the plain text that is made of a page's Markdown."""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec
from msgspec import Struct

from centgate.web.sitemap.urls import parse_page_url

MAX_TEXT_LENGTH = 60_000
"""Characters of a page's text that are kept."""
MAX_HEADINGS_LENGTH = 2_000
"""Characters of all headings of a page that count as headings."""
MAX_TITLE_LENGTH = 300
MIN_TEXT_LENGTH = 40
"""Characters below which a page is not worth finding."""
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$", re.MULTILINE)
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,500})\]\([^()\s]{0,2048}\)")
_LINK = re.compile(r"\[([^\[\]\n]{0,500})\]\([^()\s]{0,2048}\)")
_LINE_MARK = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]+|[-*+][ \t]+|\d{1,9}[.)][ \t]+|`{3,}.*$|~{3,}.*$|[-=|: ]{3,}$)?"
)
_EMPHASIS = re.compile(r"(?<!\w)\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?!\w)|`+|\\(?=[^\w\s])")
"""Marks of emphasis and code. Underscores stay: most are parts of names, such as `__init__`."""


class IndexedPage(Struct, frozen=True):
    """Page as it is kept in the index."""

    url: str
    site: str
    """Address of the site that it was found on."""
    title: str | None
    text: str
    """Plain text, a line for each paragraph."""
    headings: str
    language: str | None
    """BCP 47, as the page states it."""
    fetched: str
    """ISO 8601."""
    published: str | None = None
    """ISO 8601, as precise as the page states it."""
    description: str | None = None
    site_name: str | None = None
    image: str | None = None
    modified: str | None = None
    """Time of the last change, as `published`; it counts for the freshness, and is not kept."""

    @property
    def content_hash(self) -> str:
        """SHA-256 of its text, in which any white space is one space."""
        return sha256(" ".join(self.text.split()).encode("utf-8", "replace")).hexdigest()


def pack_page(page: IndexedPage) -> bytes:
    """Pack a page for the index, without what is in its fields: the headings and the time of its change."""
    return msgspec.msgpack.encode(
        (
            *(page.url, page.site, page.title, page.text, page.language, page.fetched),
            *(page.published, page.description, page.site_name, page.image),
        )
    )


def unpack_page(packed: bytes) -> IndexedPage:
    """Unpack a page. Raises msgspec.DecodeError for anything else."""
    kind = tuple[str, str, str | None, str, str | None, str, str | None, str | None, str | None, str | None]
    url, site, title, text, language, fetched, *others = msgspec.msgpack.decode(packed, type=kind)
    return IndexedPage(url, site, title, text, "", language, fetched, *others)


def page_key(url: str) -> str | None:
    """Return the key of a page, the same for spellings of one address; None for an invalid one."""
    parsed = parse_page_url(url)
    return "|".join(parsed.key) if parsed else None


def plain_text(markdown: str) -> str:
    """Return the text of Markdown without marks, a line for each paragraph."""
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", markdown[: 4 * MAX_TEXT_LENGTH]))
    lines = (" ".join(_EMPHASIS.sub("", _LINE_MARK.sub("", line)).split()) for line in text.split("\n"))
    return "\n".join(filter(None, lines))[:MAX_TEXT_LENGTH]


def find_headings(markdown: str) -> str:
    """Return the headings of Markdown, a line for each."""
    found = (
        plain_text(each[:MAX_TITLE_LENGTH]) for each in _HEADING.findall(markdown[: 4 * MAX_TEXT_LENGTH])
    )
    return "\n".join(filter(None, found))[:MAX_HEADINGS_LENGTH]
