"""What a site sent as Markdown; hostile until then, so it is done in a process of its own.

The server names `read` and takes what it gives, but never runs it: the larger parsers are imported where they
are used, so that it need not carry them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from centgate.pages.addresses import base_of
from centgate.pages.cutting import cut
from centgate.pages.decoding import decoded
from centgate.pages.document import MOST_BYTES, body_of, drop_unseen, parsed
from centgate.pages.elements import text_in
from centgate.pages.kinds import LANGUAGES, Kind, kind_of, media_type
from centgate.pages.main_content import main_content
from centgate.pages.markdown import markdown_of
from centgate.pages.marks import fenced
from centgate.pages.metadata import Metadata, metadata_of
from centgate.pages.plaintext import json_text, markdown_text, text_of, title_of
from centgate.pages.walls import is_wall, leads_to, needs_scripts, says_missing
from centgate.text import cleaned, legible

MOST_MARKDOWN = 400_000
LEAST_MAIN = 100
"""Characters under which a page's main content is doubted."""
_CUT = f"the page is longer than {MOST_BYTES >> 20} MB, and only its beginning was read"
_WHOLE = "the main content could not be told from the rest of the page, so all of the page is given"
_MISSING = "the page says that there is no page at this address"
_HIDDEN = "the page hides its text until its scripts have run; it is given all the same"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a body says."""

    kind: Kind
    markdown: str
    """At most `MOST_MARKDOWN` characters."""
    metadata: Metadata = field(default_factory=Metadata)
    warnings: tuple[str, ...] = ()
    """What a reader should know of how it was read, as sentences."""
    needs_scripts: bool = False
    """Whether the page is made by its scripts, which were not run."""
    blocked: bool = False
    """Whether it is a bot check or a refusal in place of the page."""
    leads_to: str | None = None
    """Where the page sends its reader at once."""
    length: int = 0
    """Characters of the whole Markdown."""


def read(body: bytes, content_type: str | None, url: str, only_main_content: bool) -> Reading:  # noqa: FBT001
    """A body as Markdown. `content_type` is the header as it came; `url` is where the body came from.

    Raises Unsupported for what is no text, and Unreadable for a PDF whose text cannot be had.
    """
    reading = _read(body, content_type, url, only_main_content=only_main_content)
    markdown, _ = cut(reading.markdown, MOST_MARKDOWN)
    return replace(reading, markdown=markdown, length=len(reading.markdown))


def _read(body: bytes, content_type: str | None, url: str, *, only_main_content: bool) -> Reading:
    kind = kind_of(body, content_type, urlsplit(url).path)
    if kind == "pdf":
        from centgate.pages.pdf import pdf_of

        markdown, metadata, warnings = pdf_of(body)
        return Reading("pdf", markdown, metadata, warnings)
    warnings = (_CUT,) if len(body) > MOST_BYTES else ()
    body = body[:MOST_BYTES]
    if kind == "feed":
        from centgate.pages.feeds import feed_of

        if feed := feed_of(body, content_type, url):
            return Reading("feed", feed[0], feed[1], (*warnings, *feed[2]))
    text = decoded(body, content_type)
    if kind == "html":
        return _html(text, url, warnings, only_main_content=only_main_content)
    return _text(kind, text, content_type, url, warnings)


def _text(kind: Kind, text: str, content_type: str | None, url: str, warnings: tuple[str, ...]) -> Reading:
    if kind == "json":
        return Reading("json", json_text(text), warnings=warnings)
    if kind == "markdown":
        markdown = markdown_text(text, url)
        return Reading("markdown", markdown, Metadata(title=cleaned(title_of(markdown), 300)), warnings)
    if kind == "text":
        return Reading("text", text_of(text), warnings=warnings)
    language = LANGUAGES.get(media_type(content_type).partition("/")[2], "") if kind == "code" else "xml"
    return Reading(
        kind, fenced(legible(text).strip("\n"), language) if text.strip() else "", warnings=warnings
    )


def _html(text: str, url: str, warnings: tuple[str, ...], *, only_main_content: bool) -> Reading:
    root = parsed(text)
    if root is None:
        return Reading("html", "", warnings=warnings)
    base = base_of(root, url)
    metadata = metadata_of(root, base)
    drop_unseen(root)
    shown = " ".join(text_in(body_of(root)).split())
    if is_wall(text.encode(), metadata.title, shown):
        return Reading("html", shown, metadata, warnings, blocked=True)
    if says_missing(metadata.title, shown):
        warnings += (_MISSING,)
    onward = leads_to(root, base, shown)
    shell = needs_scripts(root, shown)
    if shell:
        warnings += (f"the page is made by its scripts, and only {len(shown)} characters stand in its HTML",)
    main = markdown_of(
        main_content(body_of(root)) if only_main_content and not shell else body_of(root), base
    )
    if only_main_content and len(main) < min(LEAST_MAIN, len(shown) // 3):
        main, doubt = _whole(text, base)
        warnings += doubt
    if not main:
        main, late = _even_hidden(text, base)
        warnings += late
    return Reading("html", main, metadata, warnings, needs_scripts=shell, leads_to=onward)


def _whole(text: str, base: str) -> tuple[str, tuple[str, ...]]:
    """All of a page whose main content holds next to nothing of it."""
    root = parsed(text)
    if root is None:
        return "", ()
    drop_unseen(root)
    return markdown_of(body_of(root), base), (_WHOLE,)


def _even_hidden(text: str, base: str) -> tuple[str, tuple[str, ...]]:
    """What a page has although it shows nothing."""
    root = parsed(text)
    shown = markdown_of(body_of(root), base) if root is not None else ""
    return shown, (_HIDDEN,) if shown else ()
