"""Convert RSS and Atom to Markdown: the feed's title, and its entries with links, dates and texts."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from time import strftime, struct_time
from typing import Any, cast

import feedparser

from centgate.coercion import as_list, as_text, get_path
from centgate.sanitize import clean_line
from centgate.web.extract.dom import extract_all_text, find_body, parse_html
from centgate.web.extract.hidden import drop_hidden
from centgate.web.extract.links import resolve_link
from centgate.web.extract.markdown import render_markdown
from centgate.web.extract.markdown_inline import escape_text
from centgate.web.extract.markdown_syntax import escape_block_starts, normalize_markdown
from centgate.web.extract.metadata import (
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    MAX_TITLE_LENGTH,
    DocumentMetadata,
)
from centgate.web.extract.truncate import classify_line

MAX_ENTRIES = 200
_LINK_MARKS = re.compile(r"([\\\[\]])")
_ENTRY_END = re.compile(rb"</(?:\w+:)?(?:item|entry)\s*>", re.IGNORECASE)


def convert_feed(
    body: bytes, content_type: str | None, url: str
) -> tuple[str, DocumentMetadata, tuple[str, ...]] | None:
    """Return Markdown, metadata and warnings; None if the body is not a feed."""
    body, omitted = _limit_entries(body)
    parsed_feed = cast(Any, feedparser).parse(
        io.BytesIO(body),  # never bytes: feedparser would try them as a file name
        response_headers={"content-type": content_type or "application/xml", "content-location": url},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    feed, entries = cast(dict[str, Any], parsed_feed.feed), cast(list[dict[str, Any]], parsed_feed.entries)
    if not parsed_feed.version and not entries:
        return None
    metadata = _read_metadata(feed, url)
    parts = [f"# {_escape_line(metadata.title)}"] if metadata.title else []
    parts += [_escape_line(metadata.description)] if metadata.description else []
    parts += [part for entry in entries[:MAX_ENTRIES] for part in _format_entry(entry, url)]
    warnings = (f"the feed has {omitted} further entries that were not read",) if omitted > 0 else ()
    return normalize_markdown("\n\n".join(parts)), metadata, warnings


def _limit_entries(body: bytes) -> tuple[bytes, int]:
    """Return a feed with its first entries only, and the number of entries removed."""
    ends = [match.end() for match in _ENTRY_END.finditer(body)]
    if len(ends) <= MAX_ENTRIES:
        return body[: ends[-1] + 64 * 1024 if ends else 256 * 1024], 0
    beginning = body[:4096].lower()
    close = (
        b"</feed>"
        if b"<feed" in beginning
        else b"</rdf:RDF>"
        if b"<rdf:rdf" in beginning
        else b"</channel></rss>"
    )
    return body[: ends[MAX_ENTRIES - 1]] + close, len(ends) - MAX_ENTRIES


def _read_metadata(feed: dict[str, Any], url: str) -> DocumentMetadata:
    return DocumentMetadata(
        title=clean_line(_read_line(feed, "title"), MAX_TITLE_LENGTH),
        description=clean_line(_read_line(feed, "subtitle"), MAX_DESCRIPTION_LENGTH),
        language=clean_line(feed.get("language"), 20),
        canonical=resolve_link(url, feed.get("link")),
        author=clean_line(_strip_tags(feed.get("author")), MAX_NAME_LENGTH),
        published=_format_time(feed.get("published_parsed")),
        modified=_format_time(feed.get("updated_parsed")),
    )


def _format_entry(entry: dict[str, Any], url: str) -> Iterator[str]:
    title = _escape_line(clean_line(_read_line(entry, "title"), MAX_TITLE_LENGTH) or "Untitled")
    link = resolve_link(url, entry.get("link"))
    yield f"## [{title}]({link})" if link else f"## {title}"
    time = _format_time(entry.get("published_parsed")) or _format_time(entry.get("updated_parsed"))
    byline = [part for part in (time, clean_line(_strip_tags(entry.get("author")), MAX_NAME_LENGTH)) if part]
    if byline:
        yield ", ".join(byline)
    texts = [entry.get("summary_detail"), *as_list(entry.get("content"))]
    longest = max(texts, key=lambda each: len(as_text(get_path(each, "value")) or ""))
    if text := as_text(get_path(longest, "value")):
        yield _convert_text(text) if _is_plain(longest) else _convert_html(text, link or url)


def _is_plain(text: Any) -> bool:
    """True for a text that is not HTML: by its own type in Atom, by its looks in RSS."""
    return get_path(text, "type") == "text/plain"


def _convert_text(text: str) -> str:
    return escape_block_starts("\n".join(_escape_line(line).strip() for line in text.splitlines()))


def _escape_line(text: str) -> str:
    """Escape a line that has no markup, so that it makes no link and ends none."""
    return escape_text(_LINK_MARKS.sub(r"\\\1", text))


def _convert_html(text: str, base: str) -> str:
    """Convert an entry's HTML; its headings are placed below the entry's."""
    root = parse_html(text)
    if root is None:
        return ""
    drop_hidden(root)
    return _lower_headings(render_markdown(find_body(root), base))


def _lower_headings(markdown: str) -> str:
    lines: list[str] = []
    kind, fence = "", ""
    for line in markdown.split("\n"):
        kind, fence = classify_line(line, "" if kind == "closing" else fence)
        is_heading = kind == "text" and line.startswith("#") and " " in line[:5]
        lines.append("##" + line if is_heading else line)
    return "\n".join(lines)


def _read_line(source: dict[str, Any], name: str) -> str | None:
    """Return a line of a feed or an entry, such as its title, without tags."""
    text = source.get(name)
    return as_text(text) if _is_plain(source.get(f"{name}_detail")) else _strip_tags(text)


def _strip_tags(text: Any) -> str | None:
    """Remove the tags that some feeds put in a title."""
    if not isinstance(text, str) or "<" not in text:
        return text if isinstance(text, str) else None
    root = parse_html(text[: MAX_DESCRIPTION_LENGTH * 4])
    return extract_all_text(root) if root is not None else None


def _format_time(value: Any) -> str | None:
    return (
        strftime("%Y-%m-%dT%H:%M:%SZ", value) if isinstance(value, struct_time) and value[0] > 1900 else None
    )
