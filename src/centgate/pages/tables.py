"""The rows of a page's tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from centgate.pages.document import Element

MOST_INNER = 3
"""Tables in the cells of another that is one of data."""


def rows_of(table: Element) -> Iterator[list[Element]]:
    """The cells of each row, but not of tables inside."""
    for part in table:
        if part.tag == "tr":
            yield _row(part)
        elif part.tag in ("thead", "tbody", "tfoot"):
            yield from (_row(row) for row in part if row.tag == "tr")


def _row(row: Element) -> list[Element]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def is_header(row: list[Element]) -> bool:
    """Whether a row names the columns."""
    return bool(row) and all(cell.tag == "th" for cell in row)


def is_layout(table: Element, rows: list[list[Element]]) -> bool:
    """Whether a table only arranges: it holds headings, blocks of code or tables, or is one cell wide.

    A table whose columns are named is one of data, although it holds a few others.
    """
    if table.get("role") in ("presentation", "none") or max(map(len, rows), default=0) < 2:
        return True
    if next(table.iterdescendants("pre", "h1", "h2", "h3"), None) is not None:
        return True
    inner = sum(1 for _ in islice(table.iterdescendants("table"), MOST_INNER + 1))
    return inner > (MOST_INNER if is_header(rows[0]) else 0)


def whole(text: str | None, otherwise: int) -> int:
    """The number in an attribute."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else otherwise
