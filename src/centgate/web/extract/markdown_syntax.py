"""Markdown syntax: fences, block starts, blank lines."""

from __future__ import annotations

import re

from centgate.sanitize import strip_invisible

BACKTICKS = re.compile("`+")
_BLOCK_START = re.compile(r"^(#{1,6}(?= |$)|[-+*](?= |$)|>|```|~~~|\||=+$|-+$|:(?= ))", re.MULTILINE)
_NUMBER_START = re.compile(r"^(\d{1,9})([.)])(?= |$)", re.MULTILINE)
_FENCE = re.compile(r"^[ >]*(?:(?:[-*+]|\d{1,9}[.)]) +)*(`{3,}|~{3,})")


def normalize_markdown(markdown: str) -> str:
    """Remove invisible characters, trailing spaces and runs of blank lines; code keeps its blank lines."""
    lines: list[str] = []
    fence: str | None = None
    for line in strip_invisible(markdown).split("\n"):
        line = line.rstrip()
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and fence and mark[1].startswith(fence) and line.lstrip(" >") == mark[1]:
            fence = None
        elif not line and fence is None and (not lines or not lines[-1]):
            continue
        lines.append(line)
    return "\n".join(lines).strip("\n")


def format_code_block(code: str, language: str) -> str:
    """Return a code block whose fence is longer than any in the code."""
    longest = max((len(run) for run in BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def escape_block_starts(text: str) -> str:
    """Escape text so that Markdown reads it as a paragraph and nothing else."""
    return _NUMBER_START.sub(r"\1\\\2", _BLOCK_START.sub(r"\\\1", text))


def indent_lines(block: str, prefix: str) -> str:
    """Indent the lines of a block."""
    return "\n".join(prefix + line if line else line for line in block.split("\n"))


def trim_rules(blocks: list[str]) -> list[str]:
    """Remove horizontal rules at either end, and repeated ones."""
    trimmed_blocks: list[str] = []
    for block in blocks:
        if block != "---" or (trimmed_blocks and trimmed_blocks[-1] != "---"):
            trimmed_blocks.append(block)
    if trimmed_blocks and trimmed_blocks[-1] == "---":
        trimmed_blocks.pop()
    return trimmed_blocks
