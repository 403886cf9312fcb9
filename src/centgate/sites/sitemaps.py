"""What a sitemap names, in each of the forms of https://www.sitemaps.org/protocol.html: XML, text, feeds.

All of it runs on what strangers sent, so it belongs in a sandbox. The tree is built whole: clearing elements
while lxml still parses has ended the process.
"""

from __future__ import annotations

import gzip
import html
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lxml import etree
from lxml.etree import _Element as Element  # pyright: ignore[reportPrivateUsage] - named so by its stubs

from centgate.sites.site import LONGEST_URL, Entry, joined

MOST_BYTES = 5 << 20
"""What is read of one sitemap, decoded; the protocol allows ten times as much."""
MOST_ENTRIES = 50_000
"""The protocol's own limit for one file."""
LONGEST_TITLE = 1000
LONGEST_SUMMARY = 4000
_LONE_AMPERSAND = re.compile(rb"&(?!#?\w{1,30};)")
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one file names: pages, or further sitemaps."""

    pages: tuple[Entry, ...] = ()
    further: tuple[str, ...] = ()


def parse(body: bytes, url: str) -> Sitemap | None:
    """The sitemap that a body holds; None when it holds none.

    `url` is its own address, which relative ones start from. Its form is told from the body alone: servers
    label sitemaps as anything. What is damaged or too long still gives what stands before the damage.
    """
    if body.startswith(b"\x1f\x8b"):
        body = inflated(body)
    body = (body if len(body) <= MOST_BYTES else _whole(body[:MOST_BYTES])).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not body.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        return _listed(body)
    root = _tree(body)
    return None if root is None else _read(root, url)


def inflated(body: bytes) -> bytes:
    """A gzip file's content, `MOST_BYTES` at most, up to where it is damaged."""
    found = io.BytesIO()
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        try:
            while (left := MOST_BYTES - found.tell()) > 0:
                if not (chunk := file.read1(left)):
                    return found.getvalue()
                found.write(chunk)
        except (OSError, EOFError, zlib.error):
            pass  # what came out before counts
    return _whole(found.getvalue())


def _whole(body: bytes) -> bytes:
    """What is cut off without the line or element in which it is: half an address is a wrong one."""
    return body[: max(body.rfind(b">"), body.rfind(b"\n")) + 1]


def _listed(body: bytes) -> Sitemap | None:
    """A list of addresses, one a line."""
    lines = (line.strip() for line in body.decode("utf-8", "replace").splitlines())
    urls = (line for line in lines if line.startswith(("http://", "https://")) and len(line) <= LONGEST_URL)
    pages = tuple(map(Entry, islice(urls, MOST_ENTRIES)))
    return Sitemap(pages) if pages else None


def _tree(body: bytes) -> Element | None:
    """The root of an XML document, also of one that is cut off or has lone ampersands."""
    try:
        return etree.fromstring(body, _parser(recover=False))
    except etree.XMLSyntaxError:
        pass
    try:
        return etree.fromstring(_LONE_AMPERSAND.sub(b"&amp;", _whole(body)), _parser(recover=True))
    except etree.XMLSyntaxError:
        return None


def _parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )


def _read(root: Element, url: str) -> Sitemap | None:
    match _name(root):
        case "urlset":
            return Sitemap(_pages((Entry(loc) for loc in _locations(root, "url")), url))
        case "sitemapindex":
            further = (joined(url, loc) for loc in _locations(root, "sitemap"))
            return Sitemap(further=tuple(islice(filter(None, further), MOST_ENTRIES)))
        case "rss":
            channels = _children(root, "channel")
            return Sitemap(_pages((each for channel in channels for each in _items(channel)), url))
        case "RDF":  # RSS 1.0: the items stand beside the channel
            return Sitemap(_pages(_items(root), url))
        case "feed":
            return Sitemap(_pages(_posts(root), url))
        case _:
            return None


def _pages(entries: Iterable[Entry], base: str) -> tuple[Entry, ...]:
    """Entries with absolute addresses, as many as are kept."""
    return tuple(islice(filter(None, (_absolute(each, base) for each in entries)), MOST_ENTRIES))


def _absolute(entry: Entry, base: str) -> Entry | None:
    if entry.url.startswith(("http://", "https://")):
        return entry if len(entry.url) <= LONGEST_URL else None
    url = joined(base, entry.url)
    return Entry(url, entry.title, entry.description) if url else None


def _locations(root: Element, kind: str) -> Iterator[str]:
    """The `loc` of each child; those of images and videos stand a level below."""
    for each in _children(root, kind):
        if loc := _text(each, "loc"):
            yield loc


def _items(parent: Element) -> Iterator[Entry]:
    """The items of an RSS channel; a `guid` is a link unless it says that it is none."""
    for item in _children(parent, "item"):
        permalinks = [each for each in _children(item, "guid") if each.get("isPermaLink") != "false"]
        link = _text(item, "link") or next((each.text for each in permalinks), None)
        if link:
            yield Entry(
                link.strip(), _plain(_text(item, "title"), LONGEST_TITLE), _summary(item, "description")
            )


def _posts(feed: Element) -> Iterator[Entry]:
    """The entries of an Atom feed, RFC 4287: a link without a `rel` is the page itself."""
    for post in _children(feed, "entry"):
        links = [each for each in _children(post, "link") if each.get("rel", "alternate") == "alternate"]
        if links and (link := links[0].get("href")):
            yield Entry(link.strip(), _plain(_text(post, "title"), LONGEST_TITLE), _summary(post, "summary"))


def _summary(item: Element, name: str) -> str | None:
    return _plain(_text(item, name), LONGEST_SUMMARY)


def _plain(text: str | None, longest: int) -> str | None:
    """Text out of what may be HTML, as the titles and summaries of feeds are."""
    if text is None or not ("<" in text or "&" in text):
        return text[:longest] if text else None
    return html.unescape(_TAG.sub(" ", text[:longest])).strip() or None


def _children(parent: Element, name: str) -> Iterator[Element]:
    return (child for child in parent if _name(child) == name)


def _text(parent: Element, name: str) -> str | None:
    """The text of a child without children: an entity that is not replaced is one."""
    for child in _children(parent, name):
        if len(child) == 0 and child.text and (text := child.text.strip()):
            return text
    return None


def _name(element: Element) -> str:
    """The local name; empty for what is no element."""
    tag: Any = element.tag  # a function where it is an entity
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
