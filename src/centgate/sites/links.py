"""The links of one HTML page, with what they are called; hostile like the page, so made in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lxml import etree
from lxml.etree import _Element as Element  # pyright: ignore[reportPrivateUsage] - named so by its stubs

from centgate.pages.decoding import decoded
from centgate.sites.site import LONGEST_URL, Entry, joined

MOST_LINKS = 5000
LONGEST_TEXT = 1000
_SAYS_NOTHING = re.compile(
    r"(?:\W|\d)*|https?://.*|skip to .*"
    r"|(?:(?:click|see|view|read|learn|find out|show|load|continue) )?"
    r"(?:here|more|all|details|link|this|next|prev(?:ious)?|back|reading|permalink)\W*",
    re.IGNORECASE,
)
"""Names of links that tell nothing of where they lead."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What one page says of itself, and the pages it links to, in its order, each as often as it does."""

    page: Entry
    links: tuple[Entry, ...] = ()


def links(body: bytes, content_type: str | None, url: str) -> PageLinks:
    """The http and https links of a page, absolute, with the text that is their name as `title`.

    `url` is where the page was found after redirects; its `base` element counts. Links that a page's scripts
    would make are not seen.
    """
    root = _tree(body, content_type)
    if root is None:
        return PageLinks(Entry(url))
    base = next(
        (joined(url, found.get("href", "").strip()) for found in root.iter("base") if found.get("href")), url
    )
    named = (_link(anchor, base or url) for anchor in root.iter("a", "area"))
    return PageLinks(_itself(root, url), tuple(islice(filter(None, named), MOST_LINKS)))


def _tree(body: bytes, content_type: str | None) -> Element | None:
    text = decoded(body, content_type).replace("\0", "")
    try:
        return etree.fromstring(text.encode(), etree.HTMLParser(encoding="utf-8", huge_tree=False))
    except etree.XMLSyntaxError:
        return None  # there is nothing in it


def _itself(root: Element, url: str) -> Entry:
    titles = (_written(title) for title in root.iter("title"))
    told = {
        (meta.get("name") or meta.get("property") or "").lower(): meta.get("content", "")[
            :LONGEST_TEXT
        ].strip()
        for meta in islice(root.iter("meta"), 200)
    }
    title = next(filter(None, titles), None) or told.get("og:title")
    return Entry(url, title or None, told.get("description") or told.get("og:description") or None)


def _link(anchor: Element, base: str) -> Entry | None:
    href = anchor.get("href", "").strip()
    if not href or href.startswith("#") or len(href) > LONGEST_URL:
        return None
    url = joined(base, href)
    return Entry(url, _called(anchor)) if url and url.startswith(("http://", "https://")) else None


def _called(anchor: Element) -> str | None:
    """The first of a link's names that says something."""
    return next((name for name in _names(anchor) if name and not _SAYS_NOTHING.fullmatch(name)), None)


def _names(anchor: Element) -> Iterator[str]:
    yield _written(anchor)
    yield from (anchor.get(name, "").strip()[:LONGEST_TEXT] for name in ("aria-label", "title", "alt"))
    yield from (image.get("alt", "").strip()[:LONGEST_TEXT] for image in anchor.iter("img"))


def _written(element: Element) -> str:
    """The text in an element, in one line."""
    parts, length = list[str](), 0
    for part in element.itertext():
        parts.append(str(part)[:LONGEST_TEXT])
        length += len(parts[-1])
        if length >= LONGEST_TEXT:
            break
    return " ".join(" ".join(parts).split())[:LONGEST_TEXT]
