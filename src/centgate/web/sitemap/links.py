"""Extract the links of one HTML page with their names. The input is hostile, so this runs in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from lxml import etree
from lxml.etree import _Element as Element  # pyright: ignore[reportPrivateUsage] - the name in the stubs
from msgspec import Struct
from msgspec.structs import replace

from centgate.web.extract.charset import decode_text
from centgate.web.extract.interstitials import find_refresh_target
from centgate.web.fetch.url import MAX_URL_LENGTH, join_url
from centgate.web.sitemap.urls import PageEntry

MAX_LINKS = 5000
MAX_LINKS_BESIDE_REFRESH = 3
"""Links of a page that only leads to another, such as the one for browsers that do not follow `refresh`."""
MAX_TEXT_LENGTH = 1000
MAX_ALTERNATES = 50
"""Languages of one page."""
_GENERIC_NAME = re.compile(
    r"(?:\W|\d)*|https?://.*|skip to .*"
    r"|(?:(?:click|see|view|read|learn|find out|show|load|continue) )?"
    r"(?:here|more|all|details|link|this|next|prev(?:ious)?|back|reading|permalink)\W*",
    re.IGNORECASE,
)
"""Link names that do not describe the target."""


class PageLinks(Struct, frozen=True):
    """Entry of one page, and of the pages it links to, in document order with repetitions."""

    page: PageEntry
    links: tuple[PageEntry, ...] = ()
    refresh_target: str | None = None
    """Page that it leads to at once, if it has hardly a link itself."""


def extract_links(body: bytes, content_type: str | None, url: str) -> PageLinks:
    """Return the http and https links of a page, absolute, with their text as `title`.

    `url` is the page's URL after redirects; its `base` element applies. Links that a page's scripts would add
    are not included.
    """
    root = _parse_tree(body, content_type)
    if root is None:
        return PageLinks(PageEntry(url))
    base = next(
        (
            join_url(url, element.get("href", "").strip())
            for element in root.iter("base")
            if element.get("href")
        ),
        url,
    )
    entries = (_read_link(anchor, base or url) for anchor in root.iter("a", "area"))
    page = replace(_read_page_entry(root, url), alternates=_find_alternates(root, base or url))
    links = tuple(islice(filter(None, entries), MAX_LINKS))
    leads_on = len(links) <= MAX_LINKS_BESIDE_REFRESH
    return PageLinks(page, links, find_refresh_target(root, base or url, "") if leads_on else None)


def _parse_tree(body: bytes, content_type: str | None) -> Element | None:
    text = decode_text(body, content_type).replace("\0", "")
    try:
        return etree.fromstring(text.encode(), etree.HTMLParser(encoding="utf-8", huge_tree=False))
    except etree.XMLSyntaxError:
        return None  # the document is empty


def _read_page_entry(root: Element, url: str) -> PageEntry:
    titles = (_element_text(title) for title in root.iter("title"))
    metas = {
        (meta.get("name") or meta.get("property") or "").lower(): meta.get("content", "")[
            :MAX_TEXT_LENGTH
        ].strip()
        for meta in islice(root.iter("meta"), 200)
    }
    title = next(filter(None, titles), None) or metas.get("og:title")
    return PageEntry(url, title or None, metas.get("description") or metas.get("og:description") or None)


def _find_alternates(root: Element, base: str) -> tuple[str, ...]:
    """Return the addresses of the page in each language, by its `link` elements with `hreflang`."""
    links = (link for link in root.iter("link") if link.get("hreflang") and "alternate" in _rels_of(link))
    urls = (join_url(base, link.get("href", "").strip()) for link in islice(links, MAX_ALTERNATES))
    return tuple(url for url in urls if url and url.startswith(("http://", "https://")))


def _rels_of(link: Element) -> list[str]:
    return link.get("rel", "").lower().split()


def _read_link(anchor: Element, base: str) -> PageEntry | None:
    href = anchor.get("href", "").strip()
    if not href or href.startswith("#") or len(href) > MAX_URL_LENGTH:
        return None
    url = join_url(base, href)
    return (
        PageEntry(url, _link_name(anchor), source="link")
        if url and url.startswith(("http://", "https://"))
        else None
    )


def _link_name(anchor: Element) -> str | None:
    """Return the first descriptive name of a link; None without one."""
    return next(
        (name for name in _candidate_names(anchor) if name and not _GENERIC_NAME.fullmatch(name)), None
    )


def _candidate_names(anchor: Element) -> Iterator[str]:
    yield _element_text(anchor)
    yield from (anchor.get(name, "").strip()[:MAX_TEXT_LENGTH] for name in ("aria-label", "title", "alt"))
    yield from (image.get("alt", "").strip()[:MAX_TEXT_LENGTH] for image in anchor.iter("img"))


def _element_text(element: Element) -> str:
    """Return the text of an element on one line."""
    parts, length = list[str](), 0
    for part in element.itertext():
        parts.append(str(part)[:MAX_TEXT_LENGTH])
        length += len(parts[-1])
        if length >= MAX_TEXT_LENGTH:
            break
    return " ".join(" ".join(parts).split())[:MAX_TEXT_LENGTH]
