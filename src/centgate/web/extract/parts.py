"""Part of a page's Markdown from an offset, with the links in it.

Addresses take up to half of a page. In a page that is too long for one response they are replaced by numbers
(`[text][3]`), and listed beside the text with these numbers as labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from centgate.web.extract.truncate import classify_line, find_open_fence, truncate
from centgate.web.results import WebPage

MAX_LINKS = 300
"""Links listed for one part."""
MAX_LINK_TEXT = 200
_TOKEN = re.compile(r"\\.|`[^`\n]+`|!?\[|\]\((https?://[^()\s]+)\)|\]\[(\d+)\]|\]")
"""What begins or ends a link or a code span in a line."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """Link or image in a text."""

    text: str
    url: str
    is_image: bool
    label: str | None
    """Number that stands in the text for the address; None if the address itself does."""


@dataclass(frozen=True, slots=True)
class PagePart:
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


def take_part(page: WebPage, offset: int, max_length: int) -> PagePart:
    """Return at most `max_length` characters of a page from an offset; empty if it ends before.

    Offsets count in the text with numbers for addresses, if the page has more than `max_length` characters.
    A part ends as `truncate` ends a text, and opens the code block in which it begins.
    """
    is_complete = page.length == len(page.markdown)
    markdown, urls, is_whole = page.markdown, list[str](), True
    if len(markdown) > max_length:
        markdown, urls, is_whole = _number_addresses(markdown, offset + max_length)
    text, end = _cut(markdown, offset, max_length)
    is_last = is_whole and end >= len(markdown)
    return PagePart(
        text=text,
        next_offset=None if is_last else end,
        truncated=not is_last or not is_complete,
        length=page.length,
        links=tuple(islice(_list_links(text, urls), MAX_LINKS)),
        content_hash=sha256(page.markdown.encode()).hexdigest() if is_complete else None,
    )


def _cut(markdown: str, offset: int, max_length: int) -> tuple[str, int]:
    """Return the part from an offset, and the offset of what follows it."""
    fence = find_open_fence(markdown[:offset])
    opening = f"{fence.strip()}\n" if fence else ""
    rest = opening + markdown[offset:]
    text, is_cut = truncate(rest, max_length)
    if not is_cut:
        return rest, len(markdown)
    kept = _common_length(text, rest)
    if kept <= len(opening):  # nothing but an empty block fits
        text, kept = rest[:max_length], max_length
    end = offset + kept - len(opening)
    while end < len(markdown) and markdown[end] == "\n":
        end += 1
    return text, end


def _common_length(first: str, second: str) -> int:
    """Return the number of characters that two texts have in common at their beginnings."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(first), len(second)))


def _number_addresses(markdown: str, end: int) -> tuple[str, list[str], bool]:
    """Return more than the first `end` characters of the text with numbers in place of its addresses.

    With them the addresses in the order of their numbers, and whether this is the whole text.
    """
    numbers: dict[str, int] = {}

    def number_address(match: re.Match[str]) -> str:
        url = match[1]
        return f"][{numbers.setdefault(url, len(numbers) + 1)}]" if url else match[0]

    lines, length = list[str](), 0
    source = _classify_lines(markdown)
    for line, is_text in source:
        lines.append(_TOKEN.sub(number_address, line) if is_text else line)
        length += len(lines[-1]) + 1
        if length > end + 1:
            break
    return "\n".join(lines), list(numbers), next(source, None) is None


def _list_links(text: str, urls: list[str]) -> Iterator[PageLink]:
    """Yield each link and image once, in their order. `urls` are the addresses by their number, from 1."""
    seen: set[tuple[str, bool]] = set()
    for line, is_text in _classify_lines(text):
        for link in _iter_line_links(line, urls) if is_text else ():
            if (link.url, link.is_image) not in seen:
                seen.add((link.url, link.is_image))
                yield link


def _iter_line_links(line: str, urls: list[str]) -> Iterator[PageLink]:
    starts: list[re.Match[str]] = []
    for token in _TOKEN.finditer(line):
        symbol = token[0]
        if symbol in ("[", "!["):
            starts.append(token)
        elif symbol[0] == "]" and starts:
            start = starts.pop()
            number = int(token[2] or 0)
            url = token[1] or (urls[number - 1] if 0 < number <= len(urls) else None)
            if url:
                text = " ".join(line[start.end() : token.start()].split())[:MAX_LINK_TEXT]
                yield PageLink(text, url, start[0] == "![", token[2])


def _classify_lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is text and no code."""
    kind, fence = "", ""
    for line in markdown.split("\n"):
        kind, fence = classify_line(line, "" if kind == "closing" else fence)
        yield line, kind in ("text", "row")
