"""Long text into parts of a size that can be shown; long code cut where it can be read."""

from __future__ import annotations

import re

_HASH = frozenset(("python", "bash", "shell", "console", "yaml", "toml", "ruby", "dockerfile", "ini"))
_BLANK = re.compile(r"\n[ \t]*\n")


def text_parts(text: str, most: int) -> list[str]:
    """A text at most `most` characters at a time, divided between paragraphs, else lines, else words."""
    parts: list[str] = []
    for paragraph in _BLANK.split(text):
        for chunk in _chunks(paragraph.strip("\n"), most):
            if parts and len(parts[-1]) + len(chunk) + 2 <= most:
                parts[-1] += "\n\n" + chunk
            elif chunk.strip():
                parts.append(chunk)
    return parts


def code_parts(code: str, most: int) -> list[str]:
    """Code at most about `most` characters at a time, divided before lines at the margin or at empty ones."""
    lines = code.split("\n")
    parts: list[str] = []
    while lines:
        end = _part_end(lines, most)
        parts.append("\n".join(lines[:end]).strip("\n"))
        lines = lines[end:]
    return [part for part in parts if part.strip()]


def _part_end(lines: list[str], most: int) -> int:
    """How many of the lines make a part."""
    size = end = margin = empty = 0
    while end < len(lines) and (size + len(lines[end]) < most or not end):
        size += len(lines[end]) + 1
        if end and not lines[end].strip():
            following = lines[end + 1] if end + 1 < len(lines) else ""
            empty = end + 1
            margin = end + 1 if following[:1].strip() not in ("", "}", ")", "]") else margin
        end += 1
    if end == len(lines):
        return end
    return max(margin if margin > end // 3 else 0, empty if margin <= end // 3 else 0) or end


def code_cut(code: str, most: int, language: str | None) -> str:
    """Code of at most about `most` characters; what was left out is said in a comment at its end."""
    if len(code) <= most:
        return code
    shown = code[:most].split("\n")
    shown = shown[:-1] or shown
    kept = len(shown)
    for end in range(kept, kept // 2, -1):
        # before a line at the margin that follows an empty one: between two definitions
        if end < kept and not shown[end - 1].strip() and shown[end][:1].strip():
            kept = end
            break
    left = code.count("\n") + 1 - kept
    mark = "#" if language in _HASH else "--" if language == "sql" else "//"
    note = f"{mark} ... cut: {left} more lines" if left > 0 else f"{mark} ... cut"
    return "\n".join(shown[:kept]).rstrip() + f"\n{note}"


def _chunks(paragraph: str, most: int) -> list[str]:
    if len(paragraph) <= most:
        return [paragraph]
    chunks: list[str] = []
    rest = paragraph
    while len(rest) > most:
        cut = max(rest.rfind("\n", most // 2, most), rest.rfind(". ", most // 2, most) + 1)
        if cut <= 0:
            cut = rest.rfind(" ", most // 2, most)
        cut = cut if cut > 0 else most
        chunks.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip("\n") if rest[cut] == "\n" else rest[cut:].lstrip(" ")
    return [*chunks, rest] if rest.strip() else chunks
