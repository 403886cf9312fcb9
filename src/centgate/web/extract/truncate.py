"""Truncate Markdown at the end of a block."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator

_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
"""Language of code, as it stands after a fence."""
_FENCE = re.compile(r"([ >]*(?:(?:[-*+]|\d{1,9}[.)]) +)*)(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"[ >]*#{1,6}(?: |$)")
_HEADING_LEVELS = 6
"""Number of heading levels, hence of headings that can directly follow one another."""
_LIST_ITEM = re.compile(r"[ >]*(?:[-*+]|\d{1,9}[.)]) ")
_TABLE_ROW = re.compile(r"[ >]*\|")
_TABLE_RULE = re.compile(r"[ >]*\|[ \t:|-]+")
_INLINE_TOKEN = re.compile(r"\\.|`[^`\n]+`|!?\[|\]\([^()\s]*\)|\]\[\d+\]|\]|\n")
"""Tokens that begin or end links and code spans in a line."""
_MAX_LINK_LENGTH = 8192
_MIN_SHARE = 0.5
"""Minimum share of the allowed length that a cut between blocks must keep; below it a block is cut."""


def truncate(markdown: str, max_length: int) -> tuple[str, bool]:
    """Return the beginning of a text as `cut` cuts it, and True if it was truncated."""
    text, kept = cut(markdown, max_length)
    return text, kept < len(markdown)


def cut(markdown: str, max_length: int) -> tuple[str, int]:
    """Return at most `max_length` characters of a text, and how many of its characters they are.

    The result ends with a paragraph, a list item, a row or a line of code, never with a lone heading. A
    paragraph is cut only if it is too long, between words and outside links. Truncated code gets its fence,
    which does not count.
    """
    if len(markdown) <= max_length:
        return markdown, len(markdown)
    end, closing = max(
        (
            each
            for each in _block_ends(markdown[: max_length + 1], max_length)
            if _is_within(*each, max_length)
        ),
        default=(0, ""),
    )
    result = _end_text(markdown[:end], closing)
    if len(result[0]) >= max_length * _MIN_SHARE:
        return result
    return max(_truncate_block(markdown, max_length), result, key=lambda each: len(each[0]))


def _end_text(text: str, closing: str) -> tuple[str, int]:
    """Return a text with its closing fence and without dangling ends, and how much of it is the text."""
    ended = _trim_dangling(text + closing)
    has_closing = bool(closing) and len(ended) == len(text) + len(closing)
    return ended, len(text) if has_closing else len(ended)


def _is_within(end: int, closing: str, max_length: int) -> bool:
    return end + len(closing) <= max_length


def _block_ends(window: str, max_length: int) -> Iterator[tuple[int, str]]:
    """Yield the end of each block that is complete in the window, and the text that must follow it."""
    offset, fence, before = 0, "", ""
    for line in window.split("\n"):
        end = offset - 1
        if end > 0 and fence:
            yield end, "" if before == "closing" else "\n" + fence
        elif end > 0 and _starts_block(line, before):
            yield end, ""
        if before == "closing":
            fence = ""
        before, fence = classify_line(line, fence)
        offset += len(line) + 1
    if offset - 1 <= max_length:
        yield offset - 1, ""


def _starts_block(line: str, before: str) -> bool:
    """True if a line starts a new block after a line of the kind `before`."""
    if not line.strip(" >") or before == "closing" or _LIST_ITEM.match(line) or _match_fence(line):
        return True
    return before == "row" and _TABLE_ROW.match(line) is not None and not _TABLE_RULE.fullmatch(line)


def _match_fence(line: str) -> re.Match[str] | None:
    return _FENCE.match(line) if "```" in line or "~~~" in line else None


def classify_line(line: str, fence: str) -> tuple[str, str]:
    """Return the kind of a line (text, row, code, closing) and the fence of the code it is in."""
    mark = _match_fence(line)
    if fence:
        closes = (
            mark
            and not mark[3].strip()
            and not mark[1].strip(" >")
            and mark[2].startswith(fence.lstrip(" >"))
        )
        return ("closing" if closes else "code"), fence
    if mark:
        return "code", re.sub("[^ >]", " ", mark[1]) + mark[2]
    return ("row" if _TABLE_ROW.match(line) else "text"), ""


def find_open_fence(text: str) -> str:
    """Return the fence that is still open at the end of a text; empty if none."""
    return find_open_code(text)[0]


def find_open_code(text: str) -> tuple[str, str]:
    """Return the fence that is still open at the end of a text, and the language after it; empty if none."""
    kind, fence, opening = "", "", ""
    for line in text.split("\n"):
        outside = "" if kind == "closing" else fence
        kind, fence = classify_line(line, outside)
        opening = line if fence and not outside else opening
    if kind == "closing" or not fence:
        return "", ""
    mark = _match_fence(opening)
    language = _LANGUAGE.match(mark[3].strip()) if mark else None
    return fence, language[0] if language else ""


def _trim_dangling(text: str) -> str:
    """Remove dangling ends: headings with nothing under them, table headers without rows, empty code.

    More headings in a row than there are levels form a list, which stays.
    """
    lines = text.rstrip().split("\n")
    headings = 0
    while lines:
        if (len(lines) > 1 and (mark := _match_fence(lines[-2])) and lines[-1].strip(" >") == mark[2]) or (
            _TABLE_RULE.fullmatch(lines[-1]) and len(lines) > 1
        ):
            del lines[-2:]
        elif _HEADING.match(lines[-1]) or not lines[-1].strip(" >"):
            headings += bool(_HEADING.match(lines.pop()))
            if headings > _HEADING_LEVELS:
                return text.rstrip()
        else:
            break
    return "\n".join(lines)


def _truncate_block(markdown: str, max_length: int) -> tuple[str, int]:
    """Cut inside a block that is too long: after a line, else a word, else a character."""
    links = _link_spans(markdown[: max_length + _MAX_LINK_LENGTH])
    for boundary in ("\n", " "):
        position = _find_boundary(markdown, boundary, max_length, links)
        result = _close_code(markdown[:position], max_length)
        if len(result[0]) >= max_length * _MIN_SHARE:
            return result
    position = _skip_link_backwards(max_length, links) or max_length
    while position > 1 and (
        unicodedata.combining(markdown[position])
        or markdown[position] in "\u200d\ufe0f"
        or markdown[position - 1] == "\u200d"  # it joins the character behind it
    ):
        position -= 1
    return _close_code(markdown[:position], max_length)


def _link_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of links, images and code in their order, in one pass."""
    spans: list[tuple[int, int]] = []
    open_brackets: list[int] = []
    for token in _INLINE_TOKEN.finditer(text):
        symbol = token[0]
        if symbol[0] == "`":
            spans.append(token.span())
        elif symbol == "\n":
            open_brackets.clear()
        elif symbol in ("[", "!["):
            open_brackets.append(token.start())
        elif symbol[0] == "]" and open_brackets:
            start = open_brackets.pop()
            if symbol != "]":
                while spans and spans[-1][0] > start:  # an image in a link
                    spans.pop()
                spans.append((start, token.end()))
    return spans


def _find_boundary(markdown: str, boundary: str, max_length: int, links: list[tuple[int, int]]) -> int:
    position = markdown.rfind(boundary, 0, max_length + 1)
    while position > 0 and (start := _skip_link_backwards(position, links)) != position:
        position = markdown.rfind(boundary, 0, start + 1)
    return max(position, 0)


def _skip_link_backwards(position: int, links: list[tuple[int, int]]) -> int:
    """Return the start of the link that contains a position, or the position itself."""
    index = bisect_left(links, (position, 0)) - 1
    return links[index][0] if index >= 0 and position < links[index][1] else position


def _close_code(text: str, max_length: int) -> tuple[str, int]:
    """Close the last code block of a text, within the length; also return how much of it is the text."""
    text = text.rstrip()
    fence = find_open_fence(text)
    if not fence:
        return _end_text(text, "")
    available = max_length - len(fence) - 1
    text = text[:available].rstrip() if available > 0 else ""
    closing = "\n" + fence
    return _end_text(text, closing) if text and not find_open_fence(text + closing) else ("", 0)
