"""Parse a question about a library: words to look up, and names that may be the library's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from centgate.libdocs.index.tokenizer import (
    GENERAL_WORDS,
    MAX_WORD_LENGTH,
    STOP_WORDS,
    SYNONYMS,
    WORD,
    is_compound,
    normalize_name,
    split_identifier,
    stem_words,
)

MAX_QUESTION_LENGTH = 500
"""Characters of a question that are read."""
MAX_WORDS = 14
MAX_NAMES = 24
DOTTED_NAME_BOOST = 3.0
"""Boost of the chunk that defines a name written with its owner: `app.get`."""
NAME_BOOST = 2.4
"""Boost of the chunk that defines a name written as a name: `Depends`, `get()`."""
WORD_PAIR_BOOST = NAME_BOOST
"""Boost if two adjacent words form the name, in any spelling: these are seldom found by chance."""
WORD_BOOST = 1.5
"""Boost if a plain word is also the name."""
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+")


class QueryTerm(Struct, frozen=True):
    """One word of a question, in every form that counts as the word."""

    forms: tuple[str, ...]
    """In lower case; the first is the written form."""
    parts: tuple[str, ...] = ()
    """Parts of an identifier, for a library that does not have the whole identifier."""


class DocsQuery(Struct, frozen=True):
    """A parsed question."""

    terms: tuple[QueryTerm, ...]
    names: Mapping[str, float]
    """Possible names of things in the library, with their boosts."""
    identifiers: tuple[str, ...]
    """Words that are written like identifiers: `useEffect`, `create_engine`, `Depends`."""
    stems: frozenset[str]
    """Stems of all words but articles, prepositions and the like."""

    @property
    def words(self) -> frozenset[str]:
        """The words as written, in lower case."""
        return frozenset(term.forms[0] for term in self.terms)

    @property
    def is_general(self) -> bool:
        """True if the question is about the library as a whole."""
        return all(term.forms[0] in GENERAL_WORDS for term in self.terms)


def parse_query(question: str, library: str) -> DocsQuery:
    """Parse a question. Stop words and the library's name are dropped, unless nothing else is left."""
    question_text = question[:MAX_QUESTION_LENGTH]
    words = [word for word in WORD.findall(question_text) if len(word) <= MAX_WORD_LENGTH][: MAX_WORDS * 3]
    own = {normalize_name(library), normalize_name(library.rsplit("/", 1)[-1])}
    others = [word for word in words if normalize_name(word) not in own]
    keywords = [word for word in others if word.lower() not in STOP_WORDS] or others or words
    terms = {word.lower(): _term(word) for word in keywords}
    plain = _find_plain_capitals(question_text, words) if len(keywords) > 1 else frozenset[str]()
    names = _candidate_names(question_text, words, plain, single=len(keywords) == 1)
    return DocsQuery(
        tuple(terms.values())[:MAX_WORDS],
        names,
        tuple(name for name in names if _is_identifier(name) and name not in plain),
        frozenset(stem_words(" ".join(others))),
    )


def _term(word: str) -> QueryTerm:
    lower = word.lower()
    return QueryTerm(
        (lower, *SYNONYMS.get(lower, ())), tuple(split_identifier(word)) if is_compound(word) else ()
    )


def _find_plain_capitals(question: str, words: list[str]) -> frozenset[str]:
    """Return the words whose capitals do not make them names: acronyms, and the first of a sentence."""
    plain = [word for word in words if word.isupper()] + [word for word in words[:1] if word.istitle()]
    return frozenset(
        word
        for word in plain
        if word.isalpha() and f"{word}(" not in question and f"`{word}`" not in question
    )


def _candidate_names(
    question: str, words: list[str], plain: frozenset[str], *, single: bool
) -> Mapping[str, float]:
    names = dict.fromkeys(
        (name for name in _DOTTED.findall(question) if len(name) <= MAX_WORD_LENGTH), DOTTED_NAME_BOOST
    )
    owners = {part for name in names for part in name.split(".")}
    for word in words:
        has_name_form = not word.islower() and word not in plain
        is_name = word not in owners and (has_name_form or "_" in word or f"{word}(" in question)
        if is_name or single or word not in STOP_WORDS:
            names.setdefault(word, NAME_BOOST if is_name else WORD_BOOST)
    for one, other in _adjacent_words(words):
        has_keyword = not {one.lower(), other.lower()} <= STOP_WORDS
        names.setdefault(f"{one} {other}", WORD_PAIR_BOOST if has_keyword else WORD_BOOST)
    return dict(list(names.items())[:MAX_NAMES])


def _adjacent_words(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield words that may form a name: neighbours, also those that only words such as articles separate."""
    keywords = [word for word in words if word.lower() not in STOP_WORDS]
    yield from dict.fromkeys((*pairwise(words), *pairwise(keywords)))


def _is_identifier(name: str) -> bool:
    return len(name) > 2 and " " not in name and ("_" in name or "." in name or not name.islower())
