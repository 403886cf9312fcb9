"""Markdown's own marks: fences, what begins a block, runs of blank lines."""

from __future__ import annotations

import re

from centgate.text import legible

TICKS = re.compile("`+")
_BLOCK_START = re.compile(r"^(#{1,6}(?= |$)|[-+*](?= |$)|>|```|~~~|\||=+$|-+$|:(?= ))", re.MULTILINE)
_NUMBER_START = re.compile(r"^(\d{1,9})([.)])(?= |$)", re.MULTILINE)
_FENCE = re.compile(r"^[ >]*(?:(?:[-*+]|\d{1,9}[.)]) +)*(`{3,}|~{3,})")


def tidy(markdown: str) -> str:
    """Legible Markdown without trailing spaces and runs of blank lines; code keeps its blank lines."""
    lines: list[str] = []
    fence: str | None = None
    for line in legible(markdown).split("\n"):
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


def fenced(code: str, language: str = "") -> str:
    """A code block; its fence is longer than any in the code."""
    longest = max((len(run) for run in TICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def plain(text: str) -> str:
    """Text as a paragraph that Markdown reads as nothing else."""
    return _NUMBER_START.sub(r"\1\\\2", _BLOCK_START.sub(r"\\\1", text))


def indented(block: str, by: str) -> str:
    """A block whose lines stand further in."""
    return "\n".join(by + line if line else line for line in block.split("\n"))


def trimmed(blocks: list[str]) -> list[str]:
    """Without rules at either end, and without one after another."""
    kept: list[str] = []
    for block in blocks:
        if block != "---" or (kept and kept[-1] != "---"):
            kept.append(block)
    if kept and kept[-1] == "---":
        kept.pop()
    return kept
