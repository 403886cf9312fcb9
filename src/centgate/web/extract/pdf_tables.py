"""Keep the columns of tables in a PDF, of which a page's text has the cells of each row but no empty ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Struct

MIN_COLUMNS, MIN_ROWS = 3, 3
MAX_COLUMNS, MAX_TABLES = 50, 50
"""Columns of a table and tables of a page above which they stay as they are: each costs time by its place."""
MAX_CELL_LENGTH = 60
"""Characters of a cell above which rows are lines of prose."""
MAX_DISTANCE, MIN_DISTANCE_FACTOR = 16, 1.5
"""Characters between a cell and its column in the widest row; how many times as far the next one must be."""
MAX_LINES_ABOVE = 2
"""Lines above a table that look like rows, such as a number and a title."""
_CELL = re.compile(r"\S+(?: \S+)*")
"""A cell of a line that is laid out with spaces: at least two of them stand between cells."""
_SHORT_LINE = re.compile(r"\S+(?: \S+){0,15}")


class _Cell(Struct, frozen=True):
    start: int
    end: int
    """Columns of characters, the second exclusive."""
    text: str


def may_have_table(text: str) -> bool:
    """True if a page has as many short lines after each other as a table has rows."""
    count = 0
    for line in text.split("\n"):
        count = count + 1 if _SHORT_LINE.fullmatch(line) else 0
        if count >= MIN_ROWS:
            return True
    return False


def insert_tables(text: str, escaped: str, layout: str) -> str:
    """Return a page with Markdown in place of its tables that have empty cells.

    `escaped` is its text as Markdown, line by line, and `layout` has spaces for the distances between its
    parts. A table stays as it is unless each of its rows is a line of the text, and each of its cells is
    below one of the widest row or close to it.
    """
    letters = ["".join(line.split()) for line in text.split("\n")]
    lines = escaped.split("\n")
    for rows in islice(_find_tables(layout), MAX_TABLES):
        table = _find_aligned_rows(rows)
        if not table or all(all(row) for row in table):
            continue
        place = _find_lines(letters, ["".join("".join(row).split()) for row in table])
        if place is not None:
            # one item per line stays, so that the places of later ones are the same
            lines[place : place + len(table)] = ["\n".join(["", *_render_rows(table), ""])] + [""] * (
                len(table) - 1
            )
    return "\n".join(lines)


def _find_tables(layout: str) -> Iterator[list[list[_Cell]]]:
    """Yield runs of lines of which most have several cells; one blank line may stand between two rows."""
    rows: list[list[_Cell]] = []
    blank = 0
    for line in [*layout.split("\n"), "", ""]:
        cells = [_Cell(match.start(), match.end(), match[0]) for match in _CELL.finditer(line)]
        blank = 0 if cells else blank + 1
        if cells and all(len(cell.text) <= MAX_CELL_LENGTH for cell in cells) and (rows or len(cells) > 1):
            rows.append(cells)
        elif rows and (cells or blank > 1):
            yield _trim_end(rows)
            rows = []


def _trim_end(rows: list[list[_Cell]]) -> list[list[_Cell]]:
    """Remove lines of one cell at the left after the last row, such as text below the table."""
    left = min(row[0].start for row in rows)
    end = len(rows)
    while end and len(rows[end - 1]) == 1 and rows[end - 1][0].start <= left:
        end -= 1
    return rows[:end]


def _find_aligned_rows(rows: Sequence[Sequence[_Cell]]) -> list[list[str]] | None:
    """Return the cells of a table by column, without lines above it that are none of its rows."""
    tables = (_align_rows(rows[skipped:]) for skipped in range(MAX_LINES_ABOVE + 1))
    return next(filter(None, tables), None)


def _align_rows(rows: Sequence[Sequence[_Cell]]) -> list[list[str]] | None:
    """Return the cells of each row by column; None if they are not in the columns of the widest rows."""
    width = max(map(len, rows), default=0)
    if not MIN_COLUMNS <= width <= MAX_COLUMNS or sum(len(row) > 1 for row in rows) < MIN_ROWS:
        return None
    widest = [row for row in rows if len(row) == width]
    spans = [
        (min(cell.start for cell in column), max(cell.end for cell in column))
        for column in zip(*widest, strict=True)
    ]
    if any(left[1] > right[0] for left, right in pairwise(spans)):
        return None
    table: list[list[str]] = []
    for row in rows:
        numbers = [_find_column(cell, spans) for cell in row]
        if None in numbers or len(set(numbers)) < len(numbers):
            return None
        texts = dict(zip(numbers, (cell.text for cell in row), strict=True))
        table.append([texts.get(number, "") for number in range(width)])
    return table


def _find_column(cell: _Cell, spans: Sequence[tuple[int, int]]) -> int | None:
    """Return the column that a cell is below, or by far the nearest one; None if two could be meant.

    Numbers at the right of a wide column can be beside its short name.
    """
    distances = [max(start - cell.end, cell.start - end, -1) for start, end in spans]
    nearest, second = sorted(range(len(spans)), key=distances.__getitem__)[:2]
    is_clear = max(0, distances[nearest]) * MIN_DISTANCE_FACTOR <= distances[second]
    return nearest if is_clear and distances[nearest] <= MAX_DISTANCE else None


def _find_lines(letters: Sequence[str], rows: list[str]) -> int | None:
    """Return the place of lines with the letters of these rows; None if they are not after each other."""
    places = (
        n
        for n in range(len(letters) - len(rows) + 1)
        if letters[n] == rows[0] and letters[n : n + len(rows)] == rows
    )
    return next(places, None)


def _render_rows(table: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table whose header is the first row."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
    return [lines[0], "|" + " --- |" * len(table[0]), *lines[1:]]
