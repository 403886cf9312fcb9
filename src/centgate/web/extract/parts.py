"""Part of a page's Markdown from an offset, with the links in it.

Addresses take up to half of a page. In a page that is too long for one response they are replaced by numbers
(`[text][3]`), and listed beside the text with these numbers as labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

from centgate.web.extract.truncate import classify_line, cut, find_open_code, find_open_fence
from centgate.web.results import WebPage

MAX_LINKS = 1000
"""Links of one part; it ends before the next one."""
MAX_LINK_TEXT = 200
MAX_RAW_TEXT = 1000
"""Characters of which a link's text is made: brackets can be nested, so that each text has all others."""
MAX_FENCE_INDENT = 3
"""Spaces before a fence above which it would be a line of an indented code block (CommonMark 4.5)."""
_TOKEN = re.compile(r"\\.|`[^`\n]+`|!?\[|\]\((https?://[^()\s]+)\)|\]\[(\d{1,10})\]|\]")
"""What begins or ends a link or a code span in a line. `int` refuses numbers of more than 4,300 digits."""
_OWN_LABEL = re.compile(r"\[(\d{1,9})\]")
"""Number in brackets, which may be a label of the page's own."""


class PageLink(Struct, frozen=True):
    """Link or image in a text."""

    text: str
    url: str
    is_image: bool
    label: str | None
    """Number that stands in the text for the address; None if the address itself does."""


class PagePart(Struct, frozen=True):
    """Part of a page's Markdown."""

    text: str
    next_offset: int | None
    """Offset of the part that follows; None if this is the last one that was read."""
    truncated: bool
    """True if the page goes on after this part."""
    length: int | None
    """Characters of the page with its addresses; None if the source gave only its beginning."""
    links: tuple[PageLink, ...]
    content_hash: str | None
    """SHA-256 of the page's whole Markdown, hexadecimal; None if only its beginning was read."""


EMPTY_PART = PagePart("", None, truncated=False, length=None, links=(), content_hash=None)


def take_part(page: WebPage, offset: int, max_length: int) -> PagePart:
    """Return at most `max_length` characters of a page from an offset; empty if it ends before.

    Offsets count in the text with numbers for addresses, if the page has more than `max_length` characters.
    A part ends as `truncate` ends a text, and opens the code block in which it begins. With more than
    `MAX_LINKS` links it ends before, at the latest after the last link within the limit.
    """
    is_complete = page.length == len(page.markdown)
    markdown, urls, is_whole = page.markdown, dict[int, str](), True
    if len(markdown) > max_length:
        markdown, urls, is_whole = _number_addresses(markdown, offset + max_length)
    text, end = _cut(markdown, offset, max_length)
    if (excess := _find_links_end(text, urls)) is not None:
        text, end = _cut_links(markdown, offset, excess)
    is_last = is_whole and end >= len(markdown)
    return PagePart(
        text=text,
        next_offset=None if is_last else end,
        truncated=not is_last or not is_complete,
        length=page.length,
        links=tuple(_list_links(text, urls)),
        content_hash=sha256(page.markdown.encode()).hexdigest() if is_complete else None,
    )


def describe_missing_part(page: WebPage, part: PagePart, offset: int) -> str | None:
    """Return a warning if a page that was read ends before an offset; None if the part has text."""
    if part.text or not offset:
        return None
    if page.length is None or page.length > len(page.markdown):
        end = f"only {len(page.markdown):,} characters of the page were read"
    else:
        end = f"the whole page has {page.length:,} characters with its addresses"
    return f"there is no text from the offset {offset:,} on: {end}, and `nextOffset` is null at their end"


def _cut(markdown: str, offset: int, max_length: int) -> tuple[str, int]:
    """Return the part from an offset, and the offset of what follows it."""
    opening = _open_block(markdown, offset)
    rest = opening + markdown[offset:]
    text, kept = cut(rest, max_length)
    if kept == len(rest):
        return rest, len(markdown)
    if kept <= len(opening):  # nothing but an empty block fits
        text, kept = rest[:max_length], max_length
    end = offset + kept - len(opening)
    newlines = 1 if find_open_fence(markdown[:end]) else max_length  # empty lines of code are part of it
    while newlines and end < len(markdown) and markdown[end] == "\n":
        end, newlines = end + 1, newlines - 1
    return text, end


def _cut_links(markdown: str, offset: int, length: int) -> tuple[str, int]:
    """Return the part whose last link ends at `length`, and the offset of what follows it."""
    text, end = _cut(markdown, offset, length)
    if len(text) >= length / 2:
        return text, end
    opening = _open_block(markdown, offset)  # a link around many others does not stay whole
    end = offset + length - len(opening)
    return opening + markdown[offset:end], end


def _open_block(markdown: str, offset: int) -> str:
    """Return the line that opens the code block in which an offset is; empty outside of code."""
    fence, language = find_open_code(markdown[:offset])
    is_deep = len(fence) - len(fence.lstrip()) > MAX_FENCE_INDENT
    return f"{fence.strip() if is_deep else fence}{language}\n" if fence else ""


def _number_addresses(markdown: str, end: int) -> tuple[str, dict[int, str], bool]:
    """Return more than the first `end` characters of the text with numbers in place of its addresses.

    With them the addresses by number, and whether this is the whole text. Numbers begin above those that
    the page has in brackets itself, so that none of its labels leads elsewhere.
    """
    first = 1 + max((int(label) for label in _OWN_LABEL.findall(markdown)), default=0)
    numbers: dict[str, int] = {}
    lines, length = list[str](), 0
    source = _classify_lines(markdown)
    for line, is_text in source:
        lines.append(_number_line(line, numbers, first) if is_text else line)
        length += len(lines[-1]) + 1
        if length > end + 1:
            break
    urls = {number: url for url, number in numbers.items()}
    return "\n".join(lines), urls, next(source, None) is None


def _number_line(line: str, numbers: dict[str, int], first: int) -> str:
    """Replace the addresses of links that begin in the line; a link that begins before keeps its address."""
    open_links = 0

    def number_address(match: re.Match[str]) -> str:
        nonlocal open_links
        symbol, url = match[0], match[1]
        if symbol in ("[", "!["):
            open_links += 1
        elif symbol[0] == "]" and open_links:
            open_links -= 1
            if url:
                return f"][{numbers.setdefault(url, first + len(numbers))}]"
        return symbol

    return _TOKEN.sub(number_address, line)


def _find_links_end(text: str, urls: Mapping[int, str]) -> int | None:
    """Return the end of the last link before the one beyond `MAX_LINKS`; None if there is none."""
    seen: set[tuple[str, bool]] = set()
    place = last_end = 0
    for line, is_text in _classify_lines(text):
        for link, end in _iter_line_links(line, urls) if is_text else ():
            seen.add((link.url, link.is_image))
            if len(seen) > MAX_LINKS:
                return last_end
            last_end = place + end
        place += len(line) + 1
    return None


def _list_links(text: str, urls: Mapping[int, str]) -> Iterator[PageLink]:
    """Yield each link and image once, in their order. `urls` are the addresses by their number."""
    seen: set[tuple[str, bool]] = set()
    for line, is_text in _classify_lines(text):
        for link, _ in _iter_line_links(line, urls) if is_text else ():
            if (link.url, link.is_image) not in seen:
                seen.add((link.url, link.is_image))
                yield link


def _iter_line_links(line: str, urls: Mapping[int, str]) -> Iterator[tuple[PageLink, int]]:
    """Yield each link of a line, and the place where it ends."""
    starts: list[re.Match[str]] = []
    for token in _TOKEN.finditer(line):
        symbol = token[0]
        if symbol in ("[", "!["):
            starts.append(token)
        elif symbol[0] == "]" and starts:
            start = starts.pop()
            url = token[1] or urls.get(int(token[2] or 0))
            if url:
                end = min(token.start(), start.end() + MAX_RAW_TEXT)
                text = " ".join(line[start.end() : end].split())[:MAX_LINK_TEXT]
                yield PageLink(text, url, start[0] == "![", token[2]), token.end()


def _classify_lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is text and no code."""
    kind, fence = "", ""
    for line in markdown.split("\n"):
        kind, fence = classify_line(line, "" if kind == "closing" else fence)
        yield line, kind in ("text", "row")
