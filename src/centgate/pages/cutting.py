"""Markdown cut to a length, where its blocks end."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator

_FENCE = re.compile(r"([ >]*(?:(?:[-*+]|\d{1,9}[.)]) +)*)(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"[ >]*#{1,6}(?: |$)")
_LEVELS = 6
"""Of headings, so many may stand under one another."""
_ITEM = re.compile(r"[ >]*(?:[-*+]|\d{1,9}[.)]) ")
_ROW = re.compile(r"[ >]*\|")
_RULE = re.compile(r"[ >]*\|[ \t:|-]+")
_PIECE = re.compile(r"\\.|`[^`\n]+`|!?\[|\]\([^()\s]*\)|\]|\n")
"""What decides where links and code in a line begin and end."""
_LONGEST_LINK = 8192
_ENOUGH = 0.5
"""A cut between blocks keeps at least this share of what may be kept; else the cut is inside of one."""


def cut(markdown: str, most: int) -> tuple[str, bool]:
    """At most `most` characters of a text, and whether it was cut.

    Ends with a paragraph, an item, a row or a line of code, never with a heading alone; inside of a paragraph
    only where that is too long, and then between words and not in a link. Code that is cut is closed.
    """
    if len(markdown) <= most:
        return markdown, False
    at, closing = max(
        (each for each in _ends(markdown[: most + 1], most) if _fits(*each, most)), default=(0, "")
    )
    best = _settled(markdown[:at] + closing)
    if len(best) >= most * _ENOUGH:
        return best, True
    return max(_inside(markdown, most), best, key=len), True


def _fits(end: int, closing: str, most: int) -> bool:
    return end + len(closing) <= most


def _ends(window: str, most: int) -> Iterator[tuple[int, str]]:
    """Where a block ends that is whole in the window, and what must follow there."""
    at, fence, before = 0, "", ""
    for line in window.split("\n"):
        end = at - 1
        if end > 0 and fence:
            yield end, "" if before == "closing" else "\n" + fence
        elif end > 0 and _begins(line, before):
            yield end, ""
        if before == "closing":
            fence = ""
        before, fence = _read(line, fence)
        at += len(line) + 1
    if at - 1 <= most:
        yield at - 1, ""


def _begins(line: str, before: str) -> bool:
    """Whether a line is the beginning of something after a line of that kind."""
    if not line.strip(" >") or before == "closing" or _ITEM.match(line) or _fence(line):
        return True
    return before == "row" and _ROW.match(line) is not None and not _RULE.fullmatch(line)


def _fence(line: str) -> re.Match[str] | None:
    return _FENCE.match(line) if "```" in line or "~~~" in line else None


def _read(line: str, fence: str) -> tuple[str, str]:
    """What kind of line it is, and the fence of the code it is in."""
    mark = _fence(line)
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
    return ("row" if _ROW.match(line) else "text"), ""


def _open_fence(text: str) -> str:
    """The fence that is open at the end of a text."""
    kind, fence = "", ""
    for line in text.split("\n"):
        kind, fence = _read(line, "" if kind == "closing" else fence)
    return "" if kind == "closing" else fence


def _settled(text: str) -> str:
    """Without what says nothing at an end: headings with nothing under them, heads of tables, empty code.

    More headings than one can stand under another are a list, which stays.
    """
    lines = text.rstrip().split("\n")
    headings = 0
    while lines:
        if (len(lines) > 1 and (mark := _fence(lines[-2])) and lines[-1].strip(" >") == mark[2]) or (
            _RULE.fullmatch(lines[-1]) and len(lines) > 1
        ):
            del lines[-2:]
        elif _HEADING.match(lines[-1]) or not lines[-1].strip(" >"):
            headings += bool(_HEADING.match(lines.pop()))
            if headings > _LEVELS:
                return text.rstrip()
        else:
            break
    return "\n".join(lines)


def _inside(markdown: str, most: int) -> str:
    """The beginning of a text whose block is too long: up to a line, a word, or a character of it."""
    links = _links(markdown[: most + _LONGEST_LINK])
    for boundary in ("\n", " "):
        at = _boundary(markdown, boundary, most, links)
        text = _closed(markdown[:at], most)
        if len(text) >= most * _ENOUGH:
            return text
    at = _before_link(most, links) or most
    while at > 1 and (unicodedata.combining(markdown[at]) or markdown[at] in "\u200d\ufe0f"):
        at -= 1
    return _closed(markdown[:at], most)


def _links(text: str) -> list[tuple[int, int]]:
    """Where links, images and code in a line begin and end, one after another, in one pass."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for piece in _PIECE.finditer(text):
        mark = piece[0]
        if mark[0] == "`":
            found.append(piece.span())
        elif mark == "\n":
            opened.clear()
        elif mark in ("[", "!["):
            opened.append(piece.start())
        elif mark[0] == "]" and opened:
            start = opened.pop()
            if mark != "]":
                while found and found[-1][0] > start:  # an image in a link
                    found.pop()
                found.append((start, piece.end()))
    return found


def _boundary(markdown: str, boundary: str, most: int, links: list[tuple[int, int]]) -> int:
    at = markdown.rfind(boundary, 0, most + 1)
    while at > 0 and (start := _before_link(at, links)) != at:
        at = markdown.rfind(boundary, 0, start + 1)
    return max(at, 0)


def _before_link(at: int, links: list[tuple[int, int]]) -> int:
    """A place before the link that this place is in."""
    before = bisect_left(links, (at, 0)) - 1
    return links[before][0] if before >= 0 and at < links[before][1] else at


def _closed(text: str, most: int) -> str:
    """A text whose last code is closed, within the length."""
    text = text.rstrip()
    if fence := _open_fence(text):
        room = most - len(fence) - 1
        text = text[:room].rstrip() + "\n" + fence if room > 0 else ""
        return _settled(text) if _open_fence(text) == "" else ""
    return _settled(text)
