"""Read the index: find pages by words, with BM25 over weighted fields and freshness.

Queries are built term by term; the engine's query language, with its wildcards and expressions, is not used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from msgspec import DecodeError, Struct
from tantivy import DocAddress, Index, Occur, Query, Schema, SchemaBuilder, Searcher

from centgate.files import Fingerprint, find_fingerprint
from centgate.web.index.page import IndexedPage, unpack_page
from centgate.web.index.passages import find_passage
from centgate.web.index.words import STEMMERS, STOP_WORDS, split_query, stem_words
from centgate.web.writing_systems import HANGUL

FORMAT = "pages-1"
"""Folder of the index within the folder of settings; a new format gets another one."""
MAX_QUERY_WORDS = 16
"""Words of a query that count: the rarest of them."""
CANDIDATES = 60
"""Pages that are compared by freshness and by site, best first by their words."""
MIN_MATCH_SHARE = 0.6
"""Share of the words of a query of three or more that a page must contain; of shorter ones all.

Words that are too common (`COMMON_SHARE`) count as contained, unless the query has no others.
"""
TITLE_BOOST = 0.8
"""Weight of a word's score in the title, in addition to its score in the whole page."""
PARTICLE_TIE = 0.3
"""Share of the scores of a Korean word's other choices: its ending may be no particle but a part of it."""
COMMON_SHARE = 0.15
"""Share of all pages from which a word is too common to find pages by."""
FRESHNESS_WEIGHT, FRESHNESS_DAYS = 0.25, 365
"""Share added to the score of a page of today, and the days in which it halves."""
FUSION_OFFSET = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): it evens out the first ranks."""
MAX_PER_SITE = 3
"""Pages of one host among the first ones while other hosts match."""

T = TypeVar("T")
Unit = tuple[tuple[str, ...], ...]


class IndexUnreadable(Exception):
    """The index is missing, damaged or of another format; the message is a clause."""


class PageMatch(Struct, frozen=True):
    """Page that matches a query."""

    page: IndexedPage
    score: float
    passage: str | None
    """Text that shows why it matches; None if only its title or address does."""


class IndexSummary(Struct, frozen=True):
    """Content of the index as a whole."""

    pages: int
    languages: tuple[str, ...]


class _OpenIndex(Struct, frozen=True):
    """One version of the index, as of a commit of its writer."""

    schema: Schema
    searcher: Searcher
    languages: tuple[str, ...]


class _QueryWord(Struct, frozen=True):
    """Word of a query, as the choices of stems that a page must contain."""

    choices: Sequence[Sequence[str]]
    frequency: int
    """Number of pages that contain it, by its most frequent choice."""


def build_schema() -> Schema:
    """Build the schema. Frequencies are kept without positions: passages are found in the text."""
    builder = SchemaBuilder()
    for name in ("key", "site", "language"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("day", fast=True)
    builder.add_unsigned_field("vector", indexed=True)
    builder.add_bytes_field("page", stored=True)
    return builder.build()


class PageIndex:
    """Index in a folder, which another process may change at any time. Safe for threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FORMAT
        self._lock = Lock()
        self._open: _OpenIndex | None = None
        self._fingerprint: Fingerprint = None
        self._parts: tuple[Fingerprint, bool] = (None, False)

    @property
    def exists(self) -> bool:
        """True if there is an index, readable or not."""
        return self._meta_file.exists()

    @property
    def has_pages(self) -> bool:
        """True if there is an index that has a page, or that is damaged. It is not opened."""
        fingerprint = find_fingerprint(self._meta_file)
        if fingerprint != self._parts[0]:
            self._parts = (fingerprint, _has_parts(self._meta_file))
        return self._parts[1]

    @property
    def summary(self) -> IndexSummary:
        """Number of pages, and their languages. Raises IndexUnreadable."""
        opened = self._load()
        return IndexSummary(opened.searcher.num_docs, opened.languages)

    def search(
        self, query: str, limit: int, *, near: Sequence[int] = (), today: int | None = None
    ) -> list[PageMatch]:
        """Return at most `limit` pages, best first. Raises IndexUnreadable.

        `near` are ids of vectors, nearest first: pages found by meaning, whose ranks are fused with those by
        words. `today` is the number of days since 1970, by default of the clock.
        """
        opened = self._load()
        return _guard(lambda: _Search(opened, query, today or _today()).run(limit, near))

    def find_page(self, vector: int) -> IndexedPage | None:
        """Return the page that a vector stands for; None if it has changed since. Raises IndexUnreadable."""
        opened = self._load()
        return _guard(lambda: _Search(opened, "", 0).find_page(vector))

    @property
    def _meta_file(self) -> Path:
        return self.folder / "meta.json"

    def _load(self) -> _OpenIndex:
        """Return the newest version; the last good one if the newest cannot be opened."""
        with self._lock:
            fingerprint = find_fingerprint(self._meta_file)
            if self._open is None or fingerprint != self._fingerprint:
                try:
                    opened = _guard(lambda: _open_index(self.folder))
                except IndexUnreadable:
                    if self._open is None:
                        raise
                    return self._open
                self._open, self._fingerprint = opened, fingerprint
            return self._open


class _Search:
    """One search in one version of the index."""

    def __init__(self, opened: _OpenIndex, query: str, today: int) -> None:
        self._schema, self._searcher, self._languages = opened.schema, opened.searcher, opened.languages
        self._today = today
        self._words = self._choose_words(split_query(query))

    def run(self, limit: int, near: Sequence[int]) -> list[PageMatch]:
        ranked = self._find_by_words(max(CANDIDATES, limit))
        if near:
            by_meaning = [address for each in near if (address := self._find_vector(each))]
            ranked = _fuse_ranks([[address for _, address in ranked], by_meaning])
        read = ((score, self._read_page(address)) for score, address in ranked)
        weights = self._passage_weights()
        return [
            PageMatch(page, score, find_passage(page.text, weights))
            for score, page in _spread_sites(read, limit)
        ]

    def find_page(self, vector: int) -> IndexedPage | None:
        address = self._find_vector(vector)
        return self._read_page(address) if address else None

    def _find_by_words(self, count: int) -> list[tuple[float, DocAddress]]:
        query = self._build_query()
        if query is None:
            return []
        found = self._searcher.search(query, count, count=False).hits
        return self._rank_by_freshness([(float(score), address) for score, address in found])

    def _find_vector(self, vector: int) -> DocAddress | None:
        query = Query.term_query(self._schema, "vector", vector, "basic")
        hits = self._searcher.search(query, 1, count=False).hits
        return hits[0][1] if hits else None

    def _choose_words(self, units: Sequence[Unit]) -> list[_QueryWord]:
        """Return the words to search for: without stop words if others remain, at most the rarest ones."""
        significant = [unit for unit in units if unit[0][0] not in STOP_WORDS] or list(units)
        words = [self._read_word(unit) for unit in significant[: 4 * MAX_QUERY_WORDS]]
        if len(words) > MAX_QUERY_WORDS:
            words = sorted(words, key=lambda word: word.frequency or math.inf)[:MAX_QUERY_WORDS]
        return words

    def _read_word(self, unit: Unit) -> _QueryWord:
        choices = dict.fromkeys(
            tuple(stem_words(choice, language)) for choice in unit for language in self._languages
        )
        frequency = max(
            (min(map(self._frequency_of, choice), default=0) for choice in choices),
            default=0,
        )
        return _QueryWord(list(choices), frequency)

    def _frequency_of(self, stem: str) -> int:
        return self._searcher.doc_freq("words", stem)

    def _build_query(self) -> Query | None:
        """Return the query; None if no page can contain enough of its words."""
        known = [word for word in self._words if word.frequency]
        count = len(self._words)
        required = count if count < 3 else math.ceil(count * MIN_MATCH_SHARE)
        if not known or len(known) < required:
            return None
        finding, others = self._split_common(known)
        required -= len(others)
        clauses = [(Occur.Should, self._word_query(word, "words")) for word in finding]
        matching = Query.boolean_query(clauses, max(1, required))
        scored = [(Occur.Should, self._word_query(word, "words")) for word in others]
        titles = [
            (Occur.Should, Query.boost_query(self._word_query(word, "title"), TITLE_BOOST))
            for word in finding
        ]
        return Query.boolean_query([(Occur.Must, matching), *scored, *titles])

    def _split_common(self, words: Sequence[_QueryWord]) -> tuple[list[_QueryWord], list[_QueryWord]]:
        """Split words into those to find pages by and those that are on too many pages.

        The common ones only add to the score, and count as found; without any other all are needed.
        """
        bound = self._searcher.num_docs * COMMON_SHARE
        rare = [word for word in words if word.frequency <= bound]
        return (rare, [word for word in words if word.frequency > bound]) if rare else (list(words), [])

    def _word_query(self, word: _QueryWord, field: str) -> Query:
        choices = [self._choice_query(choice, field) for choice in word.choices if choice]
        if len(choices) == 1:
            return choices[0]
        is_korean = any(HANGUL.search(stem) for stem in word.choices[0])
        return Query.disjunction_max_query(choices, PARTICLE_TIE if is_korean else None)

    def _choice_query(self, stems: Sequence[str], field: str) -> Query:
        terms = [Query.term_query(self._schema, field, stem, "freq") for stem in stems]
        if len(terms) == 1:
            return terms[0]
        together = Query.boolean_query([(Occur.Must, term) for term in terms])
        return Query.boost_query(together, 1 / len(terms))

    def _rank_by_freshness(self, found: Sequence[tuple[float, DocAddress]]) -> list[tuple[float, DocAddress]]:
        days = self._searcher.fast_field_values("day", [address for _, address in found])
        ranked = [
            (score * self._freshness(day), address) for (score, address), day in zip(found, days, strict=True)
        ]
        return sorted(ranked, key=lambda each: -each[0])  # a stable sort

    def _freshness(self, day: float | None) -> float:
        """Return the factor for a page of a day; pages without a date get none of the addition."""
        age = self._today - day if day else math.inf
        return 1 + FRESHNESS_WEIGHT * 0.5 ** (max(0, age) / FRESHNESS_DAYS)

    def _read_page(self, address: DocAddress) -> IndexedPage:
        return unpack_page(self._searcher.doc(address)["page"][0])

    def _passage_weights(self) -> dict[str, float]:
        total = self._searcher.num_docs
        return {
            stem: math.log(1 + total / (1 + word.frequency))
            for word in self._words
            for choice in word.choices
            for stem in choice
        }


def _fuse_ranks(rankings: Iterable[Sequence[DocAddress]]) -> list[tuple[float, DocAddress]]:
    """Return the pages of several rankings, by the sum of the reciprocals of their ranks."""
    scores: dict[tuple[int, int], float] = {}
    addresses: dict[tuple[int, int], DocAddress] = {}
    for ranking in rankings:
        for rank, address in enumerate(ranking, 1):
            place = (address.segment_ord, address.doc)
            addresses.setdefault(place, address)
            scores[place] = scores.get(place, 0.0) + 1 / (FUSION_OFFSET + rank)
    return [(scores[place], addresses[place]) for place in sorted(scores, key=lambda each: -scores[each])]


def _spread_sites(read: Iterable[tuple[float, IndexedPage]], limit: int) -> list[tuple[float, IndexedPage]]:
    """Return the first pages, of which no host has more than `MAX_PER_SITE` while others match."""
    first: list[tuple[float, IndexedPage]] = []
    more: list[tuple[float, IndexedPage]] = []
    counts: dict[str, int] = {}
    for score, page in read:
        host = page.url.split("/", 3)[2]
        counts[host] = counts.get(host, 0) + 1
        (first if counts[host] <= MAX_PER_SITE else more).append((score, page))
        if len(first) == limit:
            break
    return [*first, *more][:limit]


def _open_index(folder: Path) -> _OpenIndex:
    index = Index.open(str(folder))
    searcher = index.searcher()
    counts: Mapping[str, int] = {name: searcher.doc_freq("language", name) for name in (*STEMMERS, "")}
    ranked = sorted(filter(counts.get, counts), key=lambda name: -counts[name])
    return _OpenIndex(index.schema, searcher, tuple(ranked) or ("en",))


def _has_parts(meta_file: Path) -> bool:
    """True if the file of an index names a part of it with pages that are not deleted."""
    try:
        return any(map(_count_pages, json.loads(meta_file.read_bytes())["segments"]))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, LookupError, TypeError):
        return True  # whoever opens the index learns that it is damaged


def _count_pages(part: Any) -> int:
    deletes = part["deletes"]
    return part["max_doc"] - (deletes["num_deleted_docs"] if deletes else 0)


def _guard(action: Callable[[], T]) -> T:
    """Run an action of the engine. Raises IndexUnreadable for damaged files, also where the engine panics."""
    try:
        return action()
    except (ValueError, OSError, LookupError, DecodeError) as error:
        raise IndexUnreadable(f"the index cannot be read: {str(error)[:200]}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # the binding derives it from BaseException
            raise IndexUnreadable("the index is damaged") from error
        raise


def _today() -> int:
    return int(datetime.now(UTC).timestamp() // 86_400)
