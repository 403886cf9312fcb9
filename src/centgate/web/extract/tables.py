"""Read the rows of a page's tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from centgate.web.extract.dom import Element

MAX_NESTED_TABLES = 3
"""Maximum number of nested tables in a data table."""


def iter_rows(table: Element) -> Iterator[list[Element]]:
    """Yield the cells of each row, without those of nested tables."""
    for part in table:
        if part.tag == "tr":
            yield _row_cells(part)
        elif part.tag in ("thead", "tbody", "tfoot"):
            yield from (_row_cells(row) for row in part if row.tag == "tr")


def _row_cells(row: Element) -> list[Element]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def is_header_row(row: list[Element]) -> bool:
    """True if a row names the columns."""
    return bool(row) and all(cell.tag == "th" for cell in row)


def is_layout_table(table: Element, rows: list[list[Element]]) -> bool:
    """True if a table is only layout: it holds headings, code blocks or tables, or is one cell wide.

    A table with named columns is a data table, even with a few nested tables.
    """
    if table.get("role") in ("presentation", "none") or max(map(len, rows), default=0) < 2:
        return True
    if next(table.iterdescendants("pre", "h1", "h2", "h3"), None) is not None:
        return True
    nested = sum(1 for _ in islice(table.iterdescendants("table"), MAX_NESTED_TABLES + 1))
    return nested > (MAX_NESTED_TABLES if is_header_row(rows[0]) else 0)


def parse_integer(text: str | None, default: int) -> int:
    """Parse the non-negative integer of an attribute."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else default
