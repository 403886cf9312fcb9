"""Parse sitemaps in each form of https://www.sitemaps.org/protocol.html: XML, text, feeds.

The input is hostile, so this must run in a sandbox. The tree is built completely: clearing elements while
lxml still parses has crashed the process.
"""

from __future__ import annotations

import dataclasses
import gzip
import html
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from lxml import etree
from lxml.etree import _Element as Element  # pyright: ignore[reportPrivateUsage] - the name in the stubs
from msgspec import Struct
from msgspec.structs import replace

from centgate.web.extract.metadata import normalize_email_time, normalize_time
from centgate.web.fetch.url import MAX_URL_LENGTH, join_url
from centgate.web.sitemap.urls import PageEntry

MAX_BYTES = 5 << 20
"""Maximum decoded size of one sitemap; the protocol allows ten times as much."""
MAX_ENTRIES = 50_000
"""Limit of the protocol for one file."""
MAX_ALTERNATES = 50
"""Languages of one page."""
MAX_TITLE_LENGTH = 1000
MAX_SUMMARY_LENGTH = 4000
_LONE_AMPERSAND = re.compile(rb"&(?!#?\w{1,30};)")
_TAG = re.compile(r"<[^<>]*>")
_END_TAG = re.compile(rb"</(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|RDF|feed)\s*>")


class ChildSitemap(Struct, frozen=True):
    """Sitemap that an index names."""

    url: str
    modified: str | None = None
    """Time of its last change, ISO 8601; None if the index does not state it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sitemap:
    """Content of one file: pages, or further sitemaps."""

    pages: tuple[PageEntry, ...] = ()
    child_sitemaps: tuple[ChildSitemap, ...] = ()
    is_cut: bool = False
    """True if only its beginning was read, as it is damaged or too long."""
    size: int = dataclasses.field(default=0, compare=False)
    """Bytes that were parsed."""


def parse_sitemap(body: bytes, url: str) -> Sitemap | None:
    """Parse a body as a sitemap; None if it is not one.

    `url` is its own URL, which relative ones are resolved against. The form is detected from the body alone:
    servers send sitemaps with any content type. A damaged or too long body gives its first entries.
    """
    is_cut = len(body) > MAX_BYTES
    if body.startswith(b"\x1f\x8b"):
        body, is_cut = inflate_gzip(body)
    body = (body if len(body) <= MAX_BYTES else _drop_partial_end(body[:MAX_BYTES])).lstrip(
        b"\xef\xbb\xbf \t\r\n"
    )
    if not body.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        sitemap = _parse_text(body)
    else:
        # a file can be whole though what follows it, or its checksum, is damaged
        root, is_complete = _parse_xml(body)
        is_cut = not is_complete
        sitemap = None if root is None else _read_root(root, url)
    return dataclasses.replace(sitemap, is_cut=is_cut, size=len(body)) if sitemap else None


def inflate_gzip(body: bytes) -> tuple[bytes, bool]:
    """Decompress a gzip file, up to `MAX_BYTES` or the first damage; True if there is more of it."""
    output = io.BytesIO()
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        try:
            while (remaining := MAX_BYTES - output.tell()) > 0:
                if not (chunk := file.read1(remaining)):
                    return output.getvalue(), False
                output.write(chunk)
        except (OSError, EOFError, zlib.error):
            pass  # keep the output before the damage
    return _drop_partial_end(output.getvalue()), True


def _drop_partial_end(body: bytes) -> bytes:
    """Drop the incomplete last line or element of a truncated body: half a URL is a wrong one."""
    return body[: max(body.rfind(b">"), body.rfind(b"\n")) + 1]


def _parse_text(body: bytes) -> Sitemap | None:
    """Parse a list of URLs, one per line."""
    lines = (line.strip() for line in body.decode("utf-8", "replace").splitlines())
    urls = (
        line for line in lines if line.startswith(("http://", "https://")) and len(line) <= MAX_URL_LENGTH
    )
    pages = tuple(PageEntry(url, source="sitemap") for url in islice(urls, MAX_ENTRIES))
    return Sitemap(pages) if pages else None


def _parse_xml(body: bytes) -> tuple[Element | None, bool]:
    """Return the root of an XML document, also of one with lone ampersands; False if its end is missing."""
    try:
        return etree.fromstring(body, _create_parser(recover=False)), True
    except etree.XMLSyntaxError:
        pass
    try:
        root = etree.fromstring(
            _LONE_AMPERSAND.sub(b"&amp;", _drop_partial_end(body)), _create_parser(recover=True)
        )
    except etree.XMLSyntaxError:
        return None, False
    return root, _END_TAG.search(body) is not None


def _create_parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )


def _read_root(root: Element, url: str) -> Sitemap | None:
    match _local_name(root):
        case "urlset":
            return Sitemap(_absolute_entries(_iter_url_entries(root), url))
        case "sitemapindex":
            return Sitemap(child_sitemaps=tuple(islice(_iter_child_sitemaps(root, url), MAX_ENTRIES)))
        case "rss":
            channels = _children_named(root, "channel")
            return Sitemap(
                _absolute_entries((each for channel in channels for each in _iter_rss_items(channel)), url)
            )
        case "RDF":  # RSS 1.0: the items are siblings of the channel
            return Sitemap(_absolute_entries(_iter_rss_items(root), url))
        case "feed":
            return Sitemap(_absolute_entries(_iter_atom_entries(root), url))
        case _:
            return None


def _absolute_entries(entries: Iterable[PageEntry], base: str) -> tuple[PageEntry, ...]:
    """Return the entries with absolute URLs, up to the limit."""
    return tuple(islice(filter(None, (_resolve_entry(each, base) for each in entries)), MAX_ENTRIES))


def _resolve_entry(entry: PageEntry, base: str) -> PageEntry | None:
    if entry.url.startswith(("http://", "https://")):
        return entry if len(entry.url) <= MAX_URL_LENGTH else None
    url = join_url(base, entry.url)
    return replace(entry, url=url) if url else None


def _iter_url_entries(root: Element) -> Iterator[PageEntry]:
    """Yield the pages of a `urlset`, with their other languages as Google's extension states them.

    https://developers.google.com/search/docs/specialty/international/localized-versions#sitemap
    """
    for each in _children_named(root, "url"):
        if loc := _child_text(each, "loc"):
            links = [link for link in _children_named(each, "link") if link.get("hreflang")]
            hrefs = (link.get("href", "").strip() for link in links[:MAX_ALTERNATES])
            alternates = tuple(href for href in hrefs if href.startswith("http"))
            modified = normalize_time(_child_text(each, "lastmod"))
            yield PageEntry(loc, modified=modified, source="sitemap", alternates=alternates)


def _iter_child_sitemaps(root: Element, base: str) -> Iterator[ChildSitemap]:
    """Yield the sitemaps of an index."""
    for each in _children_named(root, "sitemap"):
        if (loc := _child_text(each, "loc")) and (url := join_url(base, loc)):
            yield ChildSitemap(url, normalize_time(_child_text(each, "lastmod")))


def _iter_rss_items(parent: Element) -> Iterator[PageEntry]:
    """Yield the items of an RSS channel; a `guid` is a link unless its `isPermaLink` is false."""
    for item in _children_named(parent, "item"):
        permalinks = [each for each in _children_named(item, "guid") if each.get("isPermaLink") != "false"]
        link = _child_text(item, "link") or next((each.text for each in permalinks), None)
        if link:
            yield PageEntry(
                link.strip(),
                _strip_html(_child_text(item, "title"), MAX_TITLE_LENGTH),
                _read_summary(item, "description"),
                _read_item_time(item),
                "feed",
            )


def _read_item_time(item: Element) -> str | None:
    """Return the time of an RSS item: `pubDate`, or `date` of Dublin Core."""
    return normalize_email_time(_child_text(item, "pubDate")) or normalize_time(_child_text(item, "date"))


def _iter_atom_entries(feed: Element) -> Iterator[PageEntry]:
    """Yield the entries of an Atom feed, RFC 4287: a link without a `rel` is the page itself."""
    for entry in _children_named(feed, "entry"):
        links = [
            each for each in _children_named(entry, "link") if each.get("rel", "alternate") == "alternate"
        ]
        if links and (link := links[0].get("href")):
            yield PageEntry(
                link.strip(),
                _strip_html(_child_text(entry, "title"), MAX_TITLE_LENGTH),
                _read_summary(entry, "summary"),
                normalize_time(_child_text(entry, "updated") or _child_text(entry, "published")),
                "feed",
            )


def _read_summary(item: Element, name: str) -> str | None:
    return _strip_html(_child_text(item, name), MAX_SUMMARY_LENGTH)


def _strip_html(text: str | None, max_length: int) -> str | None:
    """Remove HTML from a text, since titles and summaries of feeds may contain it."""
    if text is None or not ("<" in text or "&" in text):
        return text[:max_length] if text else None
    return html.unescape(_TAG.sub(" ", text[:max_length])).strip() or None


def _children_named(parent: Element, name: str) -> Iterator[Element]:
    return (child for child in parent if _local_name(child) == name)


def _child_text(parent: Element, name: str) -> str | None:
    """Return the text of the first child without children of its own (an unresolved entity is one)."""
    for child in _children_named(parent, name):
        if len(child) == 0 and child.text and (text := child.text.strip()):
            return text
    return None


def _local_name(element: Element) -> str:
    """Return the local name; empty for nodes that are not elements."""
    tag: Any = element.tag  # a function for an entity
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
