"""Pieces as the index keeps them, read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

COLUMNS = "id, page, shown, heads, code, language, text, source_url, weight"
_BY_ID = f"select {COLUMNS} from piece where id in ({{}})"
_NAMES = "select name, piece, inner from name where key in (?, ?) limit 80"


@dataclass(frozen=True, slots=True)
class Row:
    """A piece in the index."""

    id: int
    page: str
    """The path of its file."""
    shown: str
    """Its title, to stand alone."""
    heads: str
    """The stems of its own heading, then those of the heading above it too; divided by `|`."""
    code: str | None
    language: str | None
    text: str | None
    source_url: str | None
    weight: float


@dataclass(frozen=True, slots=True)
class Definition:
    """Which piece defines a name."""

    name: str
    piece: int
    is_inner: bool
    """Whether the name is only the last part of a dotted one."""


def rows(database: sqlite3.Connection, numbers: Iterable[int]) -> list[Row]:
    """The pieces of these numbers, in any order."""
    listed = ",".join(map(str, numbers))
    return [Row(*row) for row in database.execute(_BY_ID.format(listed))]


def definitions(database: sqlite3.Connection, one: str, other: str) -> list[Definition]:
    """The pieces that define a name, looked for under two keys."""
    found = database.execute(_NAMES, (one, other))
    return [Definition(name, piece, bool(inner)) for name, piece, inner in found]
