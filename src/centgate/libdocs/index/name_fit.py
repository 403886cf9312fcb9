"""Compare a question with the names that code calls: with their words, and with what documents them."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from centgate.libdocs.index.query import QueryTerm
from centgate.libdocs.index.rows import ChunkRow, find_chunks_of_names
from centgate.libdocs.index.tokenizer import MAX_WORD_LENGTH, stem_words

MAX_SUMMARY = 300
"""Characters of a documentation's first sentence that are compared."""
_CALL = re.compile(r"(?<![\w$])([A-Za-z_$][\w$]*)\s*(?=\()|<([A-Z]\w*)|@(\w+)")
_ARGUMENT = re.compile(r"\b([A-Za-z_]\w*)\s*[=:](?!=)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


class QuestionFit:
    """Comparison of words with the terms of a question."""

    def __init__(self, shares: dict[QueryTerm, float]) -> None:
        """`shares` has the share of each term in the question; their sum is 1."""
        self._shares = shares
        self._terms = {
            stem: term for term in reversed(shares) for form in term.forms for stem in stem_words(form)
        }

    def measure(self, stems: Sequence[str]) -> float:
        """Return the harmonic mean of the share of the question that is in the words, and of the reverse."""
        common = [self._terms[stem] for stem in stems if stem in self._terms]
        if not common:
            return 0.0
        recall, precision = sum(self._shares[term] for term in set(common)), len(common) / len(stems)
        return 2 * recall * precision / (recall + precision)


class NameFit(Struct, frozen=True):
    """Fit of a question with the names in the code of one chunk, from 0 to 1."""

    words: float
    """Best fit of the words of a name that the code calls or passes as an argument."""
    documentation: float
    """Best fit of what documents a name that the code calls and does not define."""


def measure_name_fits(
    database: sqlite3.Connection, first: Iterable[ChunkRow], rows: Iterable[ChunkRow], fit: QuestionFit
) -> dict[int, NameFit]:
    """Return the fits of the first chunks.

    What documents a name is the first sentence of any of the rows that define it.
    """
    called = {row.id: _find_names(_CALL, row.code) for row in first}
    arguments = {row.id: _find_names(_ARGUMENT, row.code) for row in first}
    texts = {row.id: row.text or "" for row in rows}
    definitions = defaultdict[str, list[int]](list)
    for name, chunk_id in find_chunks_of_names(database, frozenset[str]().union(*called.values())):
        definitions[name].append(chunk_id)
    documented = {
        name: max(
            (fit.measure(_summary_stems(texts[each])) for each in chunk_ids if each in texts), default=0.0
        )
        for name, chunk_ids in definitions.items()
    }
    return {
        chunk_id: NameFit(
            max((fit.measure(stem_words(name)) for name in names | arguments[chunk_id]), default=0.0),
            max(
                (documented[name] for name in names & documented.keys() if chunk_id not in definitions[name]),
                default=0.0,
            ),
        )
        for chunk_id, names in called.items()
    }


def _find_names(pattern: re.Pattern[str], code: str | None) -> frozenset[str]:
    names = ("".join(groups) for groups in pattern.findall(code or ""))
    return frozenset(name for name in names if 2 < len(name) <= MAX_WORD_LENGTH)


def _summary_stems(text: str) -> list[str]:
    return stem_words(_SENTENCE_END.split(text.strip(), maxsplit=1)[0][:MAX_SUMMARY])
