"""Words of others as Markdown that stays what it is: a name, a line, a cell of a table, code."""

from __future__ import annotations

import re

_MARKS = re.compile(r"[\[\]<>`|\\*#\x00-\x1f\x7f]+")
_CODE_OR_MARK = re.compile(r"(`[^`]*`)|[\[\]\\]|<(?=[A-Za-z/!?])")
_BLOCK = re.compile(r"[#>+*=~|-]")


def name(text: str) -> str:
    """Text without what Markdown and HTML would read as marks, on one line."""
    return " ".join(_MARKS.sub(" ", text).split())


def line(text: str) -> str:
    """Text on one line, which begins no block, link, picture or tag; code in it stays code."""
    flat = re.sub("`{2,}", "`", " ".join(text.split()))
    marked = _CODE_OR_MARK.sub(lambda found: found[1] or f"\\{found[0]}", flat)
    return f"\\{marked}" if _BLOCK.match(marked) else marked


def cell(text: str) -> str:
    """Text that may stand in a cell of a table: on one line, its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Text as code inside a line, whatever backticks it has."""
    text = re.sub(r"[\r\n]+", " ", text)
    marks = "`" * (_longest(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def fenced(text: str, language: str) -> str:
    """Text as a block of code, which nothing in it ends."""
    marks = "`" * max(3, _longest(text) + 1)
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"


def outside(label: str, url: str) -> str:
    """A link to somebody else's page; the label alone where the address is none of the web's."""
    label = name(label)
    return f"[{label}]({url})" if re.fullmatch(r"https?://[^\s<>()\[\]`|\\\"']+", url) else label


def _longest(text: str) -> int:
    """The length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)
