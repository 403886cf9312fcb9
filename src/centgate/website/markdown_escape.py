"""Escape untrusted text for Markdown: as a name, a line, a table cell, or code."""

from __future__ import annotations

import re

_SYNTAX_CHARACTERS = re.compile(r"[\[\]<>`|\\*#\x00-\x1f\x7f]+")
_CODE_OR_SYNTAX = re.compile(r"(`[^`]*`)|[\[\]\\]|<(?=[A-Za-z/!?])")
_BLOCK_START = re.compile(r"[#>+*=~|-]")


def escape_name(text: str) -> str:
    """Return text on one line, without characters that are syntax in Markdown or HTML."""
    return " ".join(_SYNTAX_CHARACTERS.sub(" ", text).split())


def escape_line(text: str) -> str:
    """Return text on one line, escaped so that it starts no block, link, image or tag; keeps code spans."""
    flat = re.sub("`{2,}", "`", " ".join(text.split()))
    marked = _CODE_OR_SYNTAX.sub(lambda found: found[1] or f"\\{found[0]}", flat)
    return f"\\{marked}" if _BLOCK_START.match(marked) else marked


def escape_cell(text: str) -> str:
    """Return text for a table cell: on one line, with `|` escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def inline_code(text: str) -> str:
    """Return text as inline code, with enough backticks around it."""
    text = re.sub(r"[\r\n]+", " ", text)
    marks = "`" * (_longest_backticks(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def code_block(text: str, language: str) -> str:
    """Return text as a code block whose fence does not occur in it."""
    marks = "`" * max(3, _longest_backticks(text) + 1)
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"


def external_link(label: str, url: str) -> str:
    """Return a link to an external page; only the label if the URL is not HTTP(S)."""
    label = escape_name(label)
    return f"[{label}]({url})" if re.fullmatch(r"https?://[^\s<>()\[\]`|\\\"']+", url) else label


def _longest_backticks(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)
