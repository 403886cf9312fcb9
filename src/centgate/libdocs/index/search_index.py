"""Index of one library's documentation: one SQLite file, written once, then only read."""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from centgate.files import replace_file
from centgate.libdocs.index.boosts import README_RANK, apply_boosts, introduction_rank, is_about_project
from centgate.libdocs.index.completion import complete_chunks
from centgate.libdocs.index.dedupe import drop_repeats, drop_variants
from centgate.libdocs.index.index_file import FORMAT, open_read_only
from centgate.libdocs.index.query import parse_query
from centgate.libdocs.index.ranking import rank_chunks
from centgate.libdocs.index.rows import COLUMNS, ChunkRow, find_definitions, read_chunks
from centgate.libdocs.index.snippets import take_snippets
from centgate.libdocs.index.tokenizer import (
    MAX_WORD_LENGTH,
    WORD,
    append_identifier_parts,
    normalize_name,
    path_words,
    stem_words,
)
from centgate.libdocs.index.usage import shows_call
from centgate.libdocs.libraries import DocSnippet
from centgate.libdocs.parse import go, javascript, markdown, python, rst, rust
from centgate.libdocs.parse.chunk import PART_OF_CODE, Chunk, standalone_title
from centgate.libdocs.parse.documents import FileKind, PackageDocument
from centgate.libdocs.parse.includes import expand_includes
from centgate.libdocs.parse.js_exports import collect_exports, lower_internals
from centgate.libdocs.parse.python_exports import collect_imports, use_public_names
from centgate.libdocs.parse.sections import page_name
from centgate.timestamps import format_timestamp

MAX_CHUNKS = 20_000
"""Maximum number of chunks of one library."""
MIN_GUIDE_PAGES = 50
"""Number of prose pages above which a library has documentation separate from its code."""
MAX_INTRODUCTION = 60
"""Chunks read for each step of an introduction."""
MIN_PROSE = 70
"""Minimum characters of prose in an introductory chunk without code."""
MAX_LOOKUPS = 120
"""Words of the README's code that are looked up."""
IDEAL_LENGTH = 700
"""Characters of a chunk that explains something and leaves room for others."""
ENOUGH = 30
"""Introductory chunks that make further lookups unnecessary."""
T = TypeVar("T")
_SPLITTERS: Mapping[FileKind, Callable[[PackageDocument], list[Chunk]]] = {
    "markdown": markdown.split_markdown,
    "rst": rst.split_rst,
    "text": rst.split_rst,
    "python": python.split_python,
    "rust": rust.split_rust,
    "go": go.split_go,
    "javascript": javascript.split_javascript,
    "typescript": javascript.split_javascript,
}
_TABLES = """
pragma journal_mode = off;
pragma synchronous = off;
pragma page_size = 8192;
create table about (key text primary key, value text not null) without rowid;
create table piece (
    id integer primary key, page text not null, shown text not null, heads text not null,
    code text, language text, text text, source_url text, weight real not null, opening integer,
    trail text not null, complete integer, usage integer not null
);
create table name (key text not null, name text not null, piece integer not null, inner integer not null);
create virtual table words using fts5 (
    trail, title, path, body, content = '', tokenize = "porter unicode61 tokenchars '_'"
);
"""
_INSERT_CHUNK = (
    "insert into piece values (:id, :page, :shown, :heads, :code, :language, :text, :url, :weight, :opening,"
    " :trail, :complete, :usage)"
)
_INSERT_WORDS = "insert into words (rowid, trail, title, path, body) values (?, ?, ?, ?, ?)"
_INTRODUCTORY_PAGES = f"select {COLUMNS} from piece where opening is not null order by opening, id limit ?"
_WELL_EXPLAINED = (
    f"select {COLUMNS} from piece where code is not null and text is not null"
    f" order by weight desc, abs(length(text) + length(code) - {IDEAL_LENGTH}), id limit ?"
)
_BEST_WEIGHT = f"select {COLUMNS} from piece order by weight desc, id limit ?"


class IndexCounts(Struct, frozen=True):
    """Result of building an index."""

    chunks: int
    with_code: int


def write_index(
    file: Path,
    documents: Iterable[PackageDocument],
    metadata: Mapping[str, str],
    *,
    entries: Sequence[str] = (),
    max_seconds: float = math.inf,
) -> IndexCounts:
    """Write the index of a library. The file appears only when it is complete.

    `metadata` is stored in the index. Its `name` is not used as a search term, and folders of major versions
    before its `version` have a lower weight. `entries` are the entry points of npm packages. After
    `max_seconds` the index is completed with what it has, and the reason is stored as `incomplete`.
    """
    deadline = time.monotonic() + max_seconds
    with replace_file(file) as part, closing(sqlite3.connect(part)) as database:
        chunks = collect_chunks(list(documents), metadata, entries, deadline=deadline)
        return _write_index(database, chunks, metadata, deadline)


def search(file: Path, topic: str | None, budget: int) -> list[DocSnippet]:
    """Return the snippets that answer a topic, best first, with at most `budget` tokens together; empty for
    no match.

    Without a topic, and for one about the library as a whole, returns an introduction. Raises sqlite3.Error
    if the file is not an index.
    """
    with closing(open_read_only(file)) as database:
        if topic is None or not topic.strip():
            return take_snippets(_introduction(database), budget)
        name = database.execute("select value from about where key = 'name'").fetchone()
        query = parse_query(topic, name[0] if name else "")
        introductory = (
            take_snippets(_introduction(database), budget) if query.terms and query.is_general else []
        )
        if introductory:
            return introductory
        return take_snippets(complete_chunks(database, rank_chunks(database, query), budget), budget)


def collect_chunks(
    documents: list[PackageDocument],
    metadata: Mapping[str, str],
    entries: Sequence[str],
    *,
    deadline: float,
) -> Iterator[Chunk]:
    """Yield the chunks of a library in the order of its documents, without repetitions.

    Ends at `deadline`, in seconds of the monotonic clock, also while no document or chunk adds anything.
    """
    by_path = {document.path: document for document in documents}
    chunks = (
        chunk
        for document in _until(deadline, drop_variants(documents))
        for chunk in _SPLITTERS[document.kind](expand_includes(document, by_path))
    )
    public_chunks = use_public_names(chunks, collect_imports(documents))
    public_chunks = lower_internals(public_chunks, collect_exports(documents, entries))
    has_guides = sum(document.kind in ("markdown", "rst") for document in documents) >= MIN_GUIDE_PAGES
    boosted_chunks = (apply_boosts(chunk, metadata, has_guides=has_guides) for chunk in public_chunks)
    return islice(drop_repeats(_until(deadline, boosted_chunks)), MAX_CHUNKS)


def _until(deadline: float, items: Iterable[T]) -> Iterator[T]:
    """Yield items, the last of which is the first after a time of the monotonic clock."""
    for item in items:
        yield item
        if time.monotonic() > deadline:
            return


def _introduction(database: sqlite3.Connection) -> list[ChunkRow]:
    """Return the start of the README, its examples, first steps, prose, what those use, and good
    explanations.
    """
    introductory = [
        row
        for row in _read_rows(database, _INTRODUCTORY_PAGES)
        if row.code or len(row.text or "") > MIN_PROSE
    ]
    first = introductory[:1]
    ordered = [*first, *(row for row in introductory if row.code and row not in first)]
    ordered += [row for row in introductory if row not in ordered]
    if len(ordered) < ENOUGH:
        ordered += _find_used_definitions(database, ordered)
    if len(ordered) < ENOUGH:
        ordered += _read_rows(database, _WELL_EXPLAINED)
    return list(dict.fromkeys(ordered)) or _read_rows(database, _BEST_WEIGHT)


def _read_rows(database: sqlite3.Connection, query: str) -> list[ChunkRow]:
    return [ChunkRow(*row) for row in database.execute(query, (MAX_INTRODUCTION,))]


def _find_used_definitions(database: sqlite3.Connection, users: list[ChunkRow]) -> list[ChunkRow]:
    """Return the definitions of names that occur in other chunks' code, most used first."""
    words = Counter(
        word for row in users for word in WORD.findall(row.code or "") if 2 < len(word) < MAX_WORD_LENGTH
    )
    found: dict[int, None] = {}
    for word, _ in words.most_common(MAX_LOOKUPS):
        for definition in find_definitions(database, normalize_name(word), normalize_name(word)):
            if definition.name == word and not definition.is_inner and len(found) < ENOUGH:
                found[definition.chunk_id] = None
    by_id = {row.id: row for row in read_chunks(database, found)}
    return [by_id[chunk] for chunk in found]


def _write_index(
    database: sqlite3.Connection, chunks: Iterable[Chunk], metadata: Mapping[str, str], deadline: float
) -> IndexCounts:
    database.executescript(_TABLES)
    total = with_code = 0
    stored_metadata = dict(metadata)
    for total, chunk in enumerate(chunks, 1):
        with_code += chunk.code is not None
        _insert(database, total, chunk, metadata.get("name", ""))
        if time.monotonic() > deadline:
            break
    if time.monotonic() > deadline:
        stored_metadata.setdefault("incomplete", "not all of it could be read within the time limit")
    database.execute("create index name_key on name (key)")
    statistics = {
        "pieces": f"{total}",
        "snippet_count": f"{with_code}",
        "built_at": format_timestamp(),
        "format": FORMAT,
    }
    database.executemany("insert into about values (?, ?)", ({**stored_metadata, **statistics}).items())
    database.execute("insert into words (words) values ('optimize')")
    database.commit()
    return IndexCounts(total, with_code)


def _insert(database: sqlite3.Connection, number: int, chunk: Chunk, library: str) -> None:
    trail = " > ".join(chunk.breadcrumb)
    above = chunk.breadcrumb[-1] if chunk.breadcrumb else ""
    title = PART_OF_CODE.sub("", chunk.title)
    values = {
        "id": number,
        "page": chunk.path,
        "shown": _display_title(chunk, library),
        "heads": f"{' '.join(stem_words(title))}|{' '.join(stem_words(f'{above} {title}'))}",
        "code": chunk.code,
        "language": chunk.language,
        "text": chunk.text,
        "url": chunk.source_url,
        "weight": chunk.weight,
        "trail": "\n".join(dict.fromkeys((*chunk.breadcrumb, chunk.title))),
        "complete": chunk.complete,
        "usage": shows_call(chunk.path, chunk.code, chunk.names),
        "opening": None if is_about_project(chunk) else introduction_rank(chunk),
    }
    database.execute(_INSERT_CHUNK, values)
    body = append_identifier_parts(f"{chunk.text or ''}\n{chunk.code or ''}")
    words = (
        append_identifier_parts(trail),
        append_identifier_parts(title),
        path_words(chunk.path),
        body,
    )
    database.execute(_INSERT_WORDS, (number, *words))
    database.executemany("insert into name values (?, ?, ?, ?)", _definition_rows(number, chunk))


def _display_title(chunk: Chunk, library: str) -> str:
    """Return its title. In a README, which has headings such as Usage, the library's name precedes it."""
    title = standalone_title(chunk)
    if introduction_rank(chunk) != README_RANK or normalize_name(library) in normalize_name(title):
        return title
    return library if title == page_name(chunk.path) else f"{library} > {title}"


def _definition_rows(number: int, chunk: Chunk) -> Iterator[tuple[str, str, int, bool]]:
    for name in chunk.names:
        yield normalize_name(name), name, number, len(chunk.names) > 1 and name == chunk.names[-1]
