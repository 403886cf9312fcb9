"""RSS and Atom as Markdown: the feed's title, and its entries with links, dates and summaries."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from time import strftime, struct_time
from typing import Any, cast

import feedparser

from centgate.pages.addresses import absolute
from centgate.pages.cutting import cut
from centgate.pages.document import body_of, drop_unseen, parsed, text_of
from centgate.pages.markdown import markdown_of
from centgate.pages.marks import tidy
from centgate.pages.metadata import LONGEST_DESCRIPTION, LONGEST_NAME, LONGEST_TITLE, Metadata
from centgate.readings import at, items
from centgate.text import cleaned

MOST_ENTRIES = 200
_ENTRY_END = re.compile(rb"</(?:\w+:)?(?:item|entry)\s*>", re.IGNORECASE)
LONGEST_ENTRY = 4000
"""Characters of an entry's own text."""


def feed_of(body: bytes, content_type: str | None, url: str) -> tuple[str, Metadata, tuple[str, ...]] | None:
    """Markdown, metadata and what to know of it; None when the body is no feed after all."""
    body, more = _shortened(body)
    told = cast(Any, feedparser).parse(
        io.BytesIO(body),  # never bytes: they would be tried as the name of a file
        response_headers={"content-type": content_type or "application/xml", "content-location": url},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    feed, entries = cast(dict[str, Any], told.feed), cast(list[dict[str, Any]], told.entries)
    if not told.version and not entries:
        return None
    metadata = _metadata(feed, url)
    parts = [f"# {metadata.title}"] if metadata.title else []
    parts += [metadata.description] if metadata.description else []
    parts += [part for entry in entries[:MOST_ENTRIES] for part in _entry(entry, url)]
    warnings = (f"the feed has {more} further entries that were not read",) if more > 0 else ()
    return tidy("\n\n".join(parts)), metadata, warnings


def _shortened(body: bytes) -> tuple[bytes, int]:
    """A feed with its first entries alone, and how many there are beside them."""
    ends = [found.end() for found in _ENTRY_END.finditer(body)]
    if len(ends) <= MOST_ENTRIES:
        return body[: ends[-1] + 64 * 1024 if ends else 256 * 1024], 0
    start = body[:4096].lower()
    close = (
        b"</feed>" if b"<feed" in start else b"</rdf:RDF>" if b"<rdf:rdf" in start else b"</channel></rss>"
    )
    return body[: ends[MOST_ENTRIES - 1]] + close, len(ends) - MOST_ENTRIES


def _metadata(feed: dict[str, Any], url: str) -> Metadata:
    return Metadata(
        title=cleaned(_plain(feed.get("title")), LONGEST_TITLE),
        description=cleaned(_plain(feed.get("subtitle")), LONGEST_DESCRIPTION),
        language=cleaned(feed.get("language"), 20),
        canonical=absolute(url, feed.get("link")),
        author=cleaned(_plain(feed.get("author")), LONGEST_NAME),
        published=_moment(feed.get("published_parsed")),
        modified=_moment(feed.get("updated_parsed")),
    )


def _entry(entry: dict[str, Any], url: str) -> Iterator[str]:
    title = cleaned(_plain(entry.get("title")), LONGEST_TITLE) or "Untitled"
    link = absolute(url, entry.get("link"))
    bare = title.replace("[", "\\[").replace("]", "\\]")
    yield f"## [{bare}]({link})" if link else f"## {title}"
    when = _moment(entry.get("published_parsed")) or _moment(entry.get("updated_parsed"))
    about = [said for said in (when, cleaned(_plain(entry.get("author")), LONGEST_NAME)) if said]
    if about:
        yield ", ".join(about)
    texts = [entry.get("summary"), *(at(each, "value") for each in items(entry.get("content")))]
    if text := next((each for each in texts if isinstance(each, str) and each), None):
        yield from filter(None, [_html(text, link or url)])


def _html(text: str, base: str) -> str:
    """An entry's text, cut where it is an article of its own; headings in it stand below the entry's."""
    root = parsed(text[: LONGEST_ENTRY * 8])
    if root is None:
        return ""
    drop_unseen(root)
    markdown, was_cut = cut(markdown_of(body_of(root), base), LONGEST_ENTRY)
    lines = (
        "##" + line if line.startswith("#") and " " in line[:5] else line for line in markdown.split("\n")
    )
    return "\n".join(lines) + ("\n\n\u2026" if was_cut else "")


def _plain(text: Any) -> str | None:
    """A title without the tags that some feeds put in it."""
    if not isinstance(text, str) or "<" not in text:
        return text if isinstance(text, str) else None
    root = parsed(text[: LONGEST_DESCRIPTION * 4])
    return text_of(root) if root is not None else None


def _moment(told: Any) -> str | None:
    return strftime("%Y-%m-%dT%H:%M:%SZ", told) if isinstance(told, struct_time) and told[0] > 1900 else None
