"""Find what explains a declaration elsewhere in the index: a call, its class, the fields of its options."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from centgate.libdocs.index.code_names import find_called_classes, find_parameter_types, has_call
from centgate.libdocs.index.rows import ChunkRow, find_chunks_of_names, find_matches, read_chunks
from centgate.libdocs.index.tokenizer import split_identifier
from centgate.libdocs.index.usage import OPTIONS_NAME
from centgate.libdocs.parse.documents import is_test

MIN_WEIGHT = 0.5
"""Minimum weight of an example: what is not meant for users has less, and tests, which are taken last."""
MAX_EXAMPLE = 350
MAX_OWNER = 200
MAX_FIELDS = 260
"""Maximum tokens of an example, of the class of a member, and of the fields of a type."""
MAX_MATCHES = 60
# fmt: off
_GENERAL_PARTS = frozenset((
    "args", "base", "client", "config", "configuration", "init", "input", "options", "params", "props",
    "type",
))
"""Words in the name of a class that code seldom has which uses its members."""
# fmt: on


class DeclarationPart(Struct, frozen=True):
    """A chunk that explains a declaration."""

    row: ChunkRow
    label: str
    """Names the place it is from, or the type that it declares."""
    max_tokens: int


def find_usage(
    database: sqlite3.Connection, row: ChunkRow, names: Sequence[str], ranked: Sequence[int]
) -> Iterator[DeclarationPart]:
    """Yield examples of what a chunk declares, then the class of a member and what takes options.

    `ranked` are the IDs of the chunks that answer the question: examples among these come first.
    """
    name = min(names, key=len)
    owner = max(names, key=len).rpartition(".")[0].rpartition(".")[2]
    parts = [part for part in split_identifier(owner) if part not in _GENERAL_PARTS] if owner else []
    for each in _read_matches(database, name, parts, ranked):
        is_example = each.shows_call and (each.weight >= MIN_WEIGHT or is_test(each.page))
        if not is_example or not has_call(each.code or "", name, member=bool(owner)):
            continue
        if not owner or not _calls_namesake(database, each.code or "", name, owner):
            yield _from_place(each, MAX_EXAMPLE)
    of_type = owner or name
    for each in _read_matches(database, of_type, (), ranked) if owner or OPTIONS_NAME.search(name) else ():
        if owner and each.page == row.page and _shows_owner(each, owner):
            yield _from_place(each, MAX_OWNER)
        elif _takes_options(each, of_type):
            yield _from_place(each, MAX_EXAMPLE)


def find_fields(database: sqlite3.Connection, row: ChunkRow) -> Iterator[DeclarationPart]:
    """Yield the fields of the options that a declaration of TypeScript takes."""
    names = [
        name
        for name in find_parameter_types(_declaration(row))
        if OPTIONS_NAME.search(name) and name not in row.title.split(".")
    ]
    definitions = find_chunks_of_names(database, names) if names else []
    rows = {each.id: each for each in read_chunks(database, {number for _, number in definitions})}
    for name in names:
        found = [rows[number] for each, number in definitions if each == name]
        found = [each for each in found if _has_fields(each, name)]
        # packages that are read together, and files of one package, may have types of the same name
        shared = [_count_common_folders(each.page, row.page) for each in found]
        nearest = [each for each, count in zip(found, shared, strict=True) if count == max(shared)]
        if len({each.code for each in nearest}) == 1:
            yield DeclarationPart(nearest[0], f"`{name}`", MAX_FIELDS)


def _read_matches(
    database: sqlite3.Connection, name: str, others: Collection[str], ranked: Sequence[int]
) -> list[ChunkRow]:
    """Return the chunks with code that have a name and any of the other words; tests last."""
    ids = find_matches(database, name, others, MAX_MATCHES)
    places = {number: place for place, number in reversed(list(enumerate((*ranked, *ids))))}
    found = [each for each in read_chunks(database, ids) if each.code]
    return sorted(found, key=lambda each: (is_test(each.page), places[each.id]))


def _calls_namesake(database: sqlite3.Connection, code: str, name: str, owner: str) -> bool:
    """True if code calls a member of other classes only, which define one of this name themselves.

    Others have it from their base class.
    """
    called = {f"{each}.{name}" for each in find_called_classes(code, name)}
    if not called or f"{owner}.{name}" in called:
        return False
    return called == {each for each, _ in find_chunks_of_names(database, called)}


def _from_place(row: ChunkRow, max_tokens: int) -> DeclarationPart:
    place = f"{row.title} ({row.source_url})" if row.source_url else row.title
    return DeclarationPart(row, f"From {place}", max_tokens)


def _shows_owner(row: ChunkRow, owner: str) -> bool:
    """True if a chunk declares a class with its constructor, or an interface with its fields."""
    if row.title.rpartition(".")[2] != owner:
        return False
    return _has_fields(row, owner) or bool(re.search(r"\b(?:__init__|constructor)\(", _declaration(row)))


def _takes_options(row: ChunkRow, owner: str) -> bool:
    """True if a chunk declares a function or a class with a parameter of this type of options."""
    if not OPTIONS_NAME.search(owner) or row.title.rpartition(".")[2] == owner:
        return False
    declaration = _declaration(row)
    return owner in find_parameter_types(declaration) and bool(
        re.search(r"\b(?:function|class) ", declaration)
    )


def _declaration(row: ChunkRow) -> str:
    """Return the code of a chunk without the example that follows it."""
    return (row.code or "").partition("\n\n")[0]


def _has_fields(row: ChunkRow, name: str) -> bool:
    """True if a chunk declares a type of TypeScript with its fields."""
    return re.search(rf"\b(?:interface|type)\s+{name}\b[^\n]*\{{\n", row.code or "") is not None


def _count_common_folders(one: str, other: str) -> int:
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
