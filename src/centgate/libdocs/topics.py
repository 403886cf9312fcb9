"""What a question about a library asks for: words to look up, and names that may be the library's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from centgate.libdocs.words import (
    GENERAL,
    LONGEST,
    STOP_WORDS,
    SYNONYMS,
    WORD,
    is_compound,
    key,
    parts,
    stems,
)

LONGEST_QUESTION = 500
"""Characters of a question that are read."""
MOST_WORDS = 14
MOST_NAMES = 24
DOTTED = 3.0
"""How much more the piece that defines a name counts when it was written with its owner: `app.get`."""
NAMED = 2.4
"""How much more the piece that defines a name counts when it was written as a name: `Depends`, `get()`."""
PAIRED = 1.7
"""When two words side by side make the name."""
WORDED = 1.5
"""When a plain word is the name as well."""
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+")


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a question, in every form that counts as it."""

    forms: tuple[str, ...]
    """In lower case; the first is what was written."""
    parts: tuple[str, ...] = ()
    """Of a written identifier, for when it is not known as a whole."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A question taken apart."""

    terms: tuple[Term, ...]
    names: Mapping[str, float]
    """What may name something in the library, with how much that counts."""
    identifiers: tuple[str, ...]
    """What was written as only names are: `useEffect`, `create_engine`, `Depends`."""
    stems: frozenset[str]
    """Of all that was written, small words too."""

    @property
    def is_general(self) -> bool:
        """Whether it asks about the library as a whole."""
        return all(term.forms[0] in GENERAL for term in self.terms)


def topic_of(question: str, library: str) -> Topic:
    """A question without its small words and without the library's own name, unless nothing else is left."""
    asked = question[:LONGEST_QUESTION]
    written = [word for word in WORD.findall(asked) if len(word) <= LONGEST][: MOST_WORDS * 3]
    own = {key(library), key(library.rsplit("/", 1)[-1])}
    others = [word for word in written if key(word) not in own]
    telling = [word for word in others if word.lower() not in STOP_WORDS] or others or written
    terms = {word.lower(): _term(word) for word in telling}
    names = _names(asked, written, single=len(telling) == 1)
    return Topic(
        tuple(terms.values())[:MOST_WORDS],
        names,
        tuple(name for name in names if _is_identifier(name)),
        frozenset(stems(" ".join(others))),
    )


def _term(word: str) -> Term:
    lower = word.lower()
    return Term((lower, *SYNONYMS.get(lower, ())), tuple(parts(word)) if is_compound(word) else ())


def _names(asked: str, written: list[str], *, single: bool) -> Mapping[str, float]:
    names = dict.fromkeys((name for name in _DOTTED.findall(asked) if len(name) <= LONGEST), DOTTED)
    owners = {part for name in names for part in name.split(".")}
    for word in written:
        called = word not in owners and (not word.islower() or "_" in word or f"{word}(" in asked)
        if called or single or word not in STOP_WORDS:
            names.setdefault(word, NAMED if called else WORDED)
    for one, other in pairwise(written):
        names.setdefault(f"{one} {other}", PAIRED)
    return dict(list(names.items())[:MOST_NAMES])


def _is_identifier(name: str) -> bool:
    return len(name) > 2 and " " not in name and ("_" in name or "." in name or not name.islower())
