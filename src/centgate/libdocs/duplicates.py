"""Pieces that say the same again: variants of one example, copies for other versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from zlib import crc32

from centgate.libdocs.documents import Document
from centgate.libdocs.pieces import Piece

ALIKE = 0.82
"""Share of two pieces' words that are in both, above which the second is left out."""
COMPARED = 30
"""Pieces of one title that each further one is compared with."""
_EXAMPLE = re.compile(r"^(?P<name>.+?)(?P<plain>_non)?(?P<annotated>_an)?(?:_py(?P<python>\d+))?\.py$")
_WORD = re.compile(r"\w+")
_NUMBERS = re.compile(r"[\d_\W]+")


def without_repeats(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The first of each that are alike; only those of like titles are compared."""
    same: set[int] = set()
    titled: dict[tuple[str, str], list[frozenset[str]]] = {}
    for piece in pieces:
        words = _WORD.findall(f"{piece.code or ''} {piece.text or ''}")
        mark = (
            crc32(" ".join(words).encode()) if len(words) > 3 else crc32(repr((piece.title, words)).encode())
        )
        if mark in same:
            continue
        same.add(mark)
        title = piece.names[-1] if piece.names else _NUMBERS.sub("", piece.title.lower())
        group = titled.setdefault((title.lower(), _folder(piece)), [])
        found = frozenset(words)
        if any(_are_alike(found, each) for each in group):
            continue
        if len(group) < COMPARED:
            group.append(found)
        yield piece


def without_variants(documents: Iterable[Document]) -> list[Document]:
    """With one of each example that is there for several versions: annotated, for the newest Python."""
    best: dict[str, tuple[tuple[bool, bool, int], Document]] = {}
    for document in documents:
        name = _EXAMPLE.match(document.path) if document.kind == "python" else None
        family = f"{name['name']}.py" if name else document.path
        newness = (
            (not name["plain"], bool(name["annotated"]), int(name["python"] or 0))
            if name
            else (True, False, 0)
        )
        if family not in best or newness > best[family][0]:
            best[family] = (newness, document)
    return [document for _, document in best.values()]


def _folder(piece: Piece) -> str:
    """Where pieces of one title vary: a folder of examples; declarations anywhere."""
    return piece.path.rsplit("/", 1)[0] if not piece.names else ""


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < ALIKE * max(len(one), len(other)):
        return False
    return len(one & other) >= ALIKE * len(one | other)
