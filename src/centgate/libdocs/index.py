"""Index of one library's documentation: one SQLite file, written once, then only read."""

from __future__ import annotations

import math
import os
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from centgate.facts.libraries import Snippet
from centgate.libdocs import javascript_pieces, markdown_pieces, python_pieces, rst_pieces
from centgate.libdocs.documents import Document, Kind
from centgate.libdocs.duplicates import without_repeats, without_variants
from centgate.libdocs.includes import with_includes
from centgate.libdocs.pieces import Piece, titled
from centgate.libdocs.python_exports import public_names, under_public_names
from centgate.libdocs.ranking import ranked
from centgate.libdocs.rows import COLUMNS, Row, definitions, rows
from centgate.libdocs.sections import page_name
from centgate.libdocs.snippets import snippets_within
from centgate.libdocs.topics import topic_of
from centgate.libdocs.weights import README, is_business, opening, weighed
from centgate.libdocs.words import LONGEST, WORD, expanded, key, page_words, stems
from centgate.text import format_timestamp

MAX_CHUNKS = 20_000
"""Maximum number of chunks of one library."""
MIN_GUIDE_PAGES = 50
"""Number of prose pages above which a library has documentation separate from its code."""
FORMAT = "1"
"""Version of the file format; an index in another format is not used and is built again."""
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
_SPLITTERS: Mapping[Kind, Callable[[Document], list[Piece]]] = {
    "markdown": markdown_pieces.pieces,
    "rst": rst_pieces.pieces,
    "text": rst_pieces.pieces,
    "python": python_pieces.pieces,
    "javascript": javascript_pieces.pieces,
    "typescript": javascript_pieces.pieces,
}
_TABLES = """
pragma journal_mode = off;
pragma synchronous = off;
pragma page_size = 8192;
create table about (key text primary key, value text not null) without rowid;
create table piece (
    id integer primary key, page text not null, shown text not null, heads text not null,
    code text, language text, text text, source_url text, weight real not null, opening integer
);
create table name (key text not null, name text not null, piece integer not null, inner integer not null);
create virtual table words using fts5 (
    trail, title, path, body, content = '', tokenize = "porter unicode61 tokenchars '_'"
);
"""
_INSERT_CHUNK = (
    "insert into piece values (:id, :page, :shown, :heads, :code, :language, :text, :url, :weight, :opening)"
)
_INSERT_WORDS = "insert into words (rowid, trail, title, path, body) values (?, ?, ?, ?, ?)"
_INTRODUCTORY_PAGES = f"select {COLUMNS} from piece where opening is not null order by opening, id limit ?"
_WELL_EXPLAINED = (
    f"select {COLUMNS} from piece where code is not null and text is not null"
    f" order by weight desc, abs(length(text) + length(code) - {IDEAL_LENGTH}), id limit ?"
)
_BEST_WEIGHT = f"select {COLUMNS} from piece order by weight desc, id limit ?"


@dataclass(frozen=True, slots=True)
class Built:
    """Result of building an index."""

    pieces: int
    with_code: int


def build(
    file: Path, documents: Iterable[Document], about: Mapping[str, str], *, seconds: float = math.inf
) -> Built:
    """Write the index of a library. The file appears only when it is complete.

    `about` is stored in the index. Its `name` is not used as a search term, and folders of major versions
    before its `version` have a lower weight. After `seconds` the index is completed with what it has, and the
    reason is stored as `incomplete`.
    """
    deadline = time.monotonic() + seconds
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    os.close(handle)
    try:
        with closing(sqlite3.connect(temporary)) as database:
            built = _write_index(database, pieces_of(list(documents), about), about, deadline)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return built


def search(file: Path, topic: str | None, budget: int) -> list[Snippet]:
    """Return the snippets that answer a topic, best first, with at most `budget` tokens together; empty for
    no match.

    Without a topic, and for one about the library as a whole, returns an introduction. Raises sqlite3.Error
    if the file is not an index.
    """
    with closing(_open_read_only(file)) as database:
        if topic is None or not topic.strip():
            return snippets_within(_introduction(database), budget)
        name = database.execute("select value from about where key = 'name'").fetchone()
        query = topic_of(topic, name[0] if name else "")
        introductory = (
            snippets_within(_introduction(database), budget) if query.terms and query.is_general else []
        )
        return introductory or snippets_within(ranked(database, query), budget)


def about(file: Path) -> Mapping[str, str]:
    """Return the metadata from the build, and `snippet_count`, `pieces`, `built_at` and `format`.

    Raises sqlite3.Error if the file is not an index.
    """
    with closing(_open_read_only(file)) as database:
        return dict(database.execute("select key, value from about"))


def pieces_of(documents: list[Document], about: Mapping[str, str]) -> Iterator[Piece]:
    """Yield the chunks of a library in the order of its documents, without repetitions."""
    by_path = {document.path: document for document in documents}
    chunks = (
        chunk
        for document in without_variants(documents)
        for chunk in _SPLITTERS[document.kind](with_includes(document, by_path))
    )
    public_chunks = under_public_names(chunks, public_names(documents))
    has_guides = sum(document.kind in ("markdown", "rst") for document in documents) >= MIN_GUIDE_PAGES
    return islice(
        without_repeats(weighed(chunk, about, guided=has_guides) for chunk in public_chunks), MAX_CHUNKS
    )


def _introduction(database: sqlite3.Connection) -> list[Row]:
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


def _read_rows(database: sqlite3.Connection, query: str) -> list[Row]:
    return [Row(*row) for row in database.execute(query, (MAX_INTRODUCTION,))]


def _find_used_definitions(database: sqlite3.Connection, users: list[Row]) -> list[Row]:
    """Return the definitions of names that occur in other chunks' code, most used first."""
    words = Counter(word for row in users for word in WORD.findall(row.code or "") if 2 < len(word) < LONGEST)
    found: dict[int, None] = {}
    for word, _ in words.most_common(MAX_LOOKUPS):
        for definition in definitions(database, key(word), key(word)):
            if definition.name == word and not definition.is_inner and len(found) < ENOUGH:
                found[definition.piece] = None
    by_id = {row.id: row for row in rows(database, found)}
    return [by_id[chunk] for chunk in found]


def _write_index(
    database: sqlite3.Connection, chunks: Iterable[Piece], metadata: Mapping[str, str], deadline: float
) -> Built:
    database.executescript(_TABLES)
    total = with_code = 0
    stored_metadata = dict(metadata)
    for total, chunk in enumerate(chunks, 1):
        with_code += chunk.code is not None
        _insert(database, total, chunk, metadata.get("name", ""))
        if time.monotonic() > deadline:
            stored_metadata.setdefault("incomplete", "not all of it could be read within the time limit")
            break
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
    return Built(total, with_code)


def _insert(database: sqlite3.Connection, number: int, chunk: Piece, library: str) -> None:
    trail = " > ".join(chunk.breadcrumb)
    above = chunk.breadcrumb[-1] if chunk.breadcrumb else ""
    values = {
        "id": number,
        "page": chunk.path,
        "shown": _display_title(chunk, library),
        "heads": f"{' '.join(stems(chunk.title))}|{' '.join(stems(f'{above} {chunk.title}'))}",
        "code": chunk.code,
        "language": chunk.language,
        "text": chunk.text,
        "url": chunk.source_url,
        "weight": chunk.weight,
        "opening": None if is_business(chunk) else opening(chunk),
    }
    database.execute(_INSERT_CHUNK, values)
    body = expanded(f"{chunk.text or ''}\n{chunk.code or ''}")
    words = (expanded(trail), expanded(chunk.title), page_words(chunk.path), body)
    database.execute(_INSERT_WORDS, (number, *words))
    database.executemany("insert into name values (?, ?, ?, ?)", _definition_rows(number, chunk))


def _display_title(chunk: Piece, library: str) -> str:
    """Return its title. In a README, which has headings such as Usage, the library's name precedes it."""
    title = titled(chunk)
    if opening(chunk) != README or key(library) in key(title):
        return title
    return library if title == page_name(chunk.path) else f"{library} > {title}"


def _definition_rows(number: int, chunk: Piece) -> Iterator[tuple[str, str, int, bool]]:
    for name in chunk.names:
        yield key(name), name, number, len(chunk.names) > 1 and name == chunk.names[-1]


def _open_read_only(file: Path) -> sqlite3.Connection:
    # a finished file never changes, so SQLite need not check for changes or locks
    return sqlite3.connect(f"file:{quote(os.fspath(file))}?mode=ro&immutable=1", uri=True)
