"""Split long text into parts that can be shown; cut long code at readable places."""

from __future__ import annotations

import re

_HASH = frozenset(("python", "bash", "shell", "console", "yaml", "toml", "ruby", "dockerfile", "ini"))
_BLANKS = re.compile(r"\n{3,}")
_BLANK = re.compile(r"\n[ \t]*\n")


def split_text(text: str, limit: int) -> list[str]:
    """Split a text into parts of at most `limit` characters: between paragraphs, else lines, else words."""
    parts: list[str] = []
    for paragraph in _BLANK.split(text):
        for part in _split_paragraph(paragraph.strip("\n"), limit):
            if parts and len(parts[-1]) + len(part) + 2 <= limit:
                parts[-1] += "\n\n" + part
            elif part.strip():
                parts.append(part)
    return parts


def trim_blank_lines(text: str) -> str:
    """Remove trailing spaces and repeated empty lines."""
    return _BLANKS.sub("\n\n", "\n".join(map(str.rstrip, text.split("\n")))).strip()


def split_code(code: str, limit: int) -> list[str]:
    """Split code into parts of at most about `limit` characters, before unindented lines or at empty ones."""
    lines = code.split("\n")
    parts: list[str] = []
    while lines:
        end = _part_end(lines, limit)
        parts.append("\n".join(lines[:end]).strip("\n"))
        lines = lines[end:]
    return [part for part in parts if part.strip()]


def _part_end(lines: list[str], limit: int) -> int:
    """Return the number of lines in the first part."""
    size = end = unindented = empty = 0
    while end < len(lines) and (size + len(lines[end]) < limit or not end):
        size += len(lines[end]) + 1
        if end and not lines[end].strip():
            following = lines[end + 1] if end + 1 < len(lines) else ""
            empty = end + 1
            unindented = end + 1 if following[:1].strip() not in ("", "}", ")", "]") else unindented
        end += 1
    if end == len(lines):
        return end
    return max(unindented if unindented > end // 3 else 0, empty if unindented <= end // 3 else 0) or end


def cut_code(code: str, limit: int, language: str | None) -> str:
    """Cut code to at most about `limit` characters. A comment at its end says how much was removed."""
    if len(code) <= limit:
        return code
    lines = code[:limit].split("\n")
    lines = lines[:-1] or lines
    line_count = len(lines)
    for end in range(line_count, line_count // 2, -1):
        # before an unindented line that follows an empty one: between two definitions
        if end < line_count and not lines[end - 1].strip() and lines[end][:1].strip():
            line_count = end
            break
    removed = code.count("\n") + 1 - line_count
    mark = "#" if language in _HASH else "--" if language == "sql" else "//"
    note = f"{mark} ... cut: {removed} more lines" if removed > 0 else f"{mark} ... cut"
    return "\n".join(lines[:line_count]).rstrip() + f"\n{note}"


def _split_paragraph(paragraph: str, limit: int) -> list[str]:
    if len(paragraph) <= limit:
        return [paragraph]
    parts: list[str] = []
    rest = paragraph
    while len(rest) > limit:
        position = max(rest.rfind("\n", limit // 2, limit), rest.rfind(". ", limit // 2, limit) + 1)
        if position <= 0:
            position = rest.rfind(" ", limit // 2, limit)
        position = position if position > 0 else limit
        parts.append(rest[:position].rstrip())
        rest = rest[position:].lstrip("\n") if rest[position] == "\n" else rest[position:].lstrip(" ")
    return [*parts, rest] if rest.strip() else parts
