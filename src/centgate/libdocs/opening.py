"""What introduces a library: its README, first steps, and what their code uses."""

from __future__ import annotations

import sqlite3
from collections import Counter

from centgate.libdocs.rows import COLUMNS, Row, definitions, rows
from centgate.libdocs.words import LONGEST, WORD, key

MOST = 60
"""Pieces that are looked at."""
TELLING = 70
"""Characters of prose below which it introduces nothing."""
WORDS = 120
"""Words of the README's code that are looked up."""
TELLS_MOST = 700
"""Characters of a piece that explains something and leaves room for others."""
ENOUGH = 30
"""Pieces of introductory pages that make looking further needless."""
_OPENING = f"select {COLUMNS} from piece where opening is not null order by opening, id limit ?"
_EXPLAINED = (
    f"select {COLUMNS} from piece where code is not null and text is not null"
    f" order by weight desc, abs(length(text) + length(code) - {TELLS_MOST}), id limit ?"
)
_ELSE = f"select {COLUMNS} from piece order by weight desc, id limit ?"


def introduction(database: sqlite3.Connection) -> list[Row]:
    """The README's beginning, its examples and first steps, prose, what those use, what is best explained."""
    told = [row for row in _read(database, _OPENING) if row.code or len(row.text or "") > TELLING]
    first = told[:1]
    ordered = [*first, *(row for row in told if row.code and row not in first)]
    ordered += [row for row in told if row not in ordered]
    if len(ordered) < ENOUGH:
        ordered += _used(database, ordered)
    if len(ordered) < ENOUGH:
        ordered += _read(database, _EXPLAINED)
    return list(dict.fromkeys(ordered)) or _read(database, _ELSE)


def _read(database: sqlite3.Connection, query: str) -> list[Row]:
    return [Row(*row) for row in database.execute(query, (MOST,))]


def _used(database: sqlite3.Connection, told: list[Row]) -> list[Row]:
    """What defines the names that occur in others' code, the most used first."""
    words = Counter(word for row in told for word in WORD.findall(row.code or "") if 2 < len(word) < LONGEST)
    found: dict[int, None] = {}
    for word, _ in words.most_common(WORDS):
        for definition in definitions(database, key(word), key(word)):
            if definition.name == word and not definition.is_inner and len(found) < ENOUGH:
                found[definition.piece] = None
    by_id = {row.id: row for row in rows(database, found)}
    return [by_id[piece] for piece in found]
