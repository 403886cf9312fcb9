"""The index of one library's documentation: one SQLite file, written once, then only read."""

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
from centgate.text import timestamp

MOST = 20_000
"""Pieces of one library."""
GUIDED = 50
"""Pages of prose from which a library is documented apart from its code."""
FORMAT = "1"
"""Of the file; another one cannot be searched and is built anew."""
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
_PIECES: Mapping[Kind, Callable[[Document], list[Piece]]] = {
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
_PIECE = (
    "insert into piece values (:id, :page, :shown, :heads, :code, :language, :text, :url, :weight, :opening)"
)
_WORDS = "insert into words (rowid, trail, title, path, body) values (?, ?, ?, ?, ?)"
_OPENING = f"select {COLUMNS} from piece where opening is not null order by opening, id limit ?"
_EXPLAINED = (
    f"select {COLUMNS} from piece where code is not null and text is not null"
    f" order by weight desc, abs(length(text) + length(code) - {IDEAL_LENGTH}), id limit ?"
)
_BEST_WEIGHT = f"select {COLUMNS} from piece order by weight desc, id limit ?"


@dataclass(frozen=True, slots=True)
class Built:
    """What came of a package."""

    pieces: int
    with_code: int


def build(
    file: Path, documents: Iterable[Document], about: Mapping[str, str], *, seconds: float = math.inf
) -> Built:
    """Write the index of a library; the file is there whole or not at all.

    `about` is kept; its `name` is no word to search by, and folders of major versions before its `version`
    count less. After so many seconds it is finished with what it has, which is then said as `incomplete`.
    """
    until = time.monotonic() + seconds
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    os.close(handle)
    try:
        with closing(sqlite3.connect(temporary)) as database:
            built = _written(database, pieces_of(list(documents), about), about, until)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return built


def search(file: Path, topic: str | None, budget: int) -> list[Snippet]:
    """The snippets that answer a topic, best first, of at most `budget` tokens together; empty for no match.

    Without a topic, and for one that asks about the library as a whole: an introduction. Raises sqlite3.Error
    for a file that is not an index.
    """
    with closing(_opened(file)) as database:
        if topic is None or not topic.strip():
            return snippets_within(_introduction(database), budget)
        name = database.execute("select value from about where key = 'name'").fetchone()
        asked = topic_of(topic, name[0] if name else "")
        general = snippets_within(_introduction(database), budget) if asked.terms and asked.is_general else []
        return general or snippets_within(ranked(database, asked), budget)


def about(file: Path) -> Mapping[str, str]:
    """What was known when it was built, and `snippet_count`, `pieces`, `built_at`, `format`.

    Raises sqlite3.Error for a file that is not an index.
    """
    with closing(_opened(file)) as database:
        return dict(database.execute("select key, value from about"))


def pieces_of(documents: list[Document], about: Mapping[str, str]) -> Iterator[Piece]:
    """The pieces of a library in the order of its documents, each said once."""
    by_path = {document.path: document for document in documents}
    found = (
        piece
        for document in without_variants(documents)
        for piece in _PIECES[document.kind](with_includes(document, by_path))
    )
    public = under_public_names(found, public_names(documents))
    guided = sum(document.kind in ("markdown", "rst") for document in documents) >= GUIDED
    return islice(without_repeats(weighed(piece, about, guided=guided) for piece in public), MOST)


def _introduction(database: sqlite3.Connection) -> list[Row]:
    """Return the README's beginning, its examples, first steps and prose, what those use, good explanations."""
    introductory = [
        row for row in _read_rows(database, _OPENING) if row.code or len(row.text or "") > MIN_PROSE
    ]
    first = introductory[:1]
    ordered = [*first, *(row for row in introductory if row.code and row not in first)]
    ordered += [row for row in introductory if row not in ordered]
    if len(ordered) < ENOUGH:
        ordered += _find_used_definitions(database, ordered)
    if len(ordered) < ENOUGH:
        ordered += _read_rows(database, _EXPLAINED)
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
    return [by_id[piece] for piece in found]


def _written(
    database: sqlite3.Connection, pieces: Iterable[Piece], about: Mapping[str, str], until: float
) -> Built:
    database.executescript(_TABLES)
    total = with_code = 0
    told = dict(about)
    for total, piece in enumerate(pieces, 1):
        with_code += piece.code is not None
        _insert(database, total, piece, about.get("name", ""))
        if time.monotonic() > until:
            told.setdefault("incomplete", "not all of it could be read in the time there is")
            break
    database.execute("create index name_key on name (key)")
    counted = {
        "pieces": f"{total}",
        "snippet_count": f"{with_code}",
        "built_at": timestamp(),
        "format": FORMAT,
    }
    database.executemany("insert into about values (?, ?)", ({**told, **counted}).items())
    database.execute("insert into words (words) values ('optimize')")
    database.commit()
    return Built(total, with_code)


def _insert(database: sqlite3.Connection, number: int, piece: Piece, library: str) -> None:
    trail = " > ".join(piece.breadcrumb)
    above = piece.breadcrumb[-1] if piece.breadcrumb else ""
    values = {
        "id": number,
        "page": piece.path,
        "shown": _shown(piece, library),
        "heads": f"{' '.join(stems(piece.title))}|{' '.join(stems(f'{above} {piece.title}'))}",
        "code": piece.code,
        "language": piece.language,
        "text": piece.text,
        "url": piece.source_url,
        "weight": piece.weight,
        "opening": None if is_business(piece) else opening(piece),
    }
    database.execute(_PIECE, values)
    body = expanded(f"{piece.text or ''}\n{piece.code or ''}")
    words = (expanded(trail), expanded(piece.title), page_words(piece.path), body)
    database.execute(_WORDS, (number, *words))
    database.executemany("insert into name values (?, ?, ?, ?)", _names(number, piece))


def _shown(piece: Piece, library: str) -> str:
    """Its title; in a README, whose headings are such as Usage, below the library's name."""
    title = titled(piece)
    if opening(piece) != README or key(library) in key(title):
        return title
    return library if title == page_name(piece.path) else f"{library} > {title}"


def _names(number: int, piece: Piece) -> Iterator[tuple[str, str, int, bool]]:
    for name in piece.names:
        yield key(name), name, number, len(piece.names) > 1 and name == piece.names[-1]


def _opened(file: Path) -> sqlite3.Connection:
    # never written again once it has its name, so SQLite need not look for changes or locks
    return sqlite3.connect(f"file:{quote(os.fspath(file))}?mode=ro&immutable=1", uri=True)
