"""Read chunks from the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import NamedTuple

from msgspec import Struct

from centgate.libdocs.index.tokenizer import WORD, normalize_name
from centgate.libdocs.parse.chunk import PART_OF_CODE

COLUMNS = "id, page, shown, heads, code, language, text, source_url, weight, trail, complete, usage"
_BY_ID = f"select {COLUMNS} from piece where id in ({{}})"
_CHUNKS_OF_NAMES = "select name, piece from name where key in ({})"
_NAMES = "select name, piece, inner from name where key in (?, ?) limit 80"
_CODE_BEFORE = (
    "select code, language, trail from piece"
    " where id between ? and ? and page = ? and code is not null order by id desc"
)
_OWN_NAMES = "select name from name where key in (?, ?) and piece = ?"
_MATCHES = "select rowid from words where words match ? order by bm25(words, 6.0, 4.0, 5.0, 1.0) limit ?"


class ChunkRow(Struct, frozen=True):
    """A chunk in the index."""

    id: int
    page: str
    """Path of its file."""
    title: str
    """Its title, which stands alone."""
    heading_stems: str
    """Stems of its own heading, then of that and the heading above it, separated by `|`."""
    code: str | None
    language: str | None
    text: str | None
    source_url: str | None
    weight: float
    trail: str
    """Its headings, outermost first, one a line."""
    complete: int | None
    shows_call: int
    """1 if the code shows a call in its context, not only declarations; else 0."""


class CodeBefore(NamedTuple):
    """Code of an earlier chunk on a page."""

    code: str
    language: str | None
    trail: str


class Definition(Struct, frozen=True):
    """A name and the chunk that defines it."""

    name: str
    chunk_id: int
    is_inner: bool
    """True if the name is only the last part of a dotted name."""


def read_chunks(database: sqlite3.Connection, chunk_ids: Iterable[int]) -> list[ChunkRow]:
    """Return the chunks with these IDs, in any order."""
    id_list = ",".join(map(str, chunk_ids))
    return [ChunkRow(*row) for row in database.execute(_BY_ID.format(id_list))]


def find_definitions(database: sqlite3.Connection, one: str, other: str) -> list[Definition]:
    """Return the definitions of a name under either of two keys."""
    rows = database.execute(_NAMES, (one, other))
    return [Definition(name, chunk_id, bool(inner)) for name, chunk_id, inner in rows]


def find_chunks_of_names(database: sqlite3.Connection, names: Collection[str]) -> list[tuple[str, int]]:
    """Return those of the names that the library defines, each with the ID of a chunk that defines it."""
    keys = {normalize_name(name) for name in names}
    rows = database.execute(_CHUNKS_OF_NAMES.format(",".join("?" * len(keys))), tuple(keys))
    return [(name, chunk_id) for name, chunk_id in rows if name in names]


def find_own_names(database: sqlite3.Connection, row: ChunkRow) -> list[str]:
    """Return the names that a chunk defines, by its title: `Session.execute` and `execute`."""
    *owners, last = row.title.rpartition(" > ")[2].split(".")
    keys = (normalize_name(last), normalize_name("".join([*owners[-1:], last])))
    return [name for (name,) in database.execute(_OWN_NAMES, (*keys, row.id))]


def find_matches(database: sqlite3.Connection, name: str, others: Collection[str], limit: int) -> list[int]:
    """Return the IDs of chunks that have a name, and one of the other words if there are any, best first."""
    expression = " ".join(f'"{word}"' for word in WORD.findall(name))
    if not expression:
        return []
    if others:
        alternatives = " OR ".join(f'"{word}"' for word in others)
        expression = f"({expression}) AND ({alternatives})"
    return [number for (number,) in database.execute(_MATCHES, (expression, limit))]


def find_code_before(database: sqlite3.Connection, row: ChunkRow, distance: int) -> list[CodeBefore]:
    """Return the code of the chunks before a chunk on its page, the nearest first."""
    found = database.execute(_CODE_BEFORE, (row.id - distance, row.id - 1, row.page))
    return [CodeBefore(*each) for each in found]


def section_trail(trail: str) -> str:
    """Return the headings of a section, the same for all parts of a long example."""
    return PART_OF_CODE.sub("", trail)
