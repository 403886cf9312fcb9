"""Read chunks from the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from centgate.libdocs.index.tokenizer import normalize_name

SITE_FOLDER, REPOSITORY_FOLDER = "@site/", "@repository/"
"""Folders of the pages of a documentation site and of a repository in an index; no package has such ones."""
COLUMNS = "id, page, shown, heads, code, language, text, source_url, weight, trail, complete, usage"
_BY_ID = f"select {COLUMNS} from piece where id in ({{}})"
_CHUNKS_OF_NAMES = "select name, piece from name where key in ({})"
_NAMES = "select name, piece, inner from name where key in (?, ?) limit 80"


@dataclass(frozen=True, slots=True)
class ChunkRow:
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


@dataclass(frozen=True, slots=True)
class Definition:
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
