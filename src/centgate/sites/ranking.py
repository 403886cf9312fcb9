"""Which pages of a site come first: by the words of a search, else as the site is built."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import unquote

from centgate.sites.site import Address

MOST_TERMS = 16
MOST_TOKENS = 40
"""Words of one page's address and title that count."""
MOST_COMPARISONS = 2_000_000
"""Beyond so many pairs of a term and a word only exact words count."""
PART_OF_A_WORD = 0.6
SAME_BEGINNING = 0.3
"""What `price` counts for `prices`, and `pricing` for `prices`, where an exact word counts 1."""
SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""k1 and b of BM25, at their usual values."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TOKEN = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about all an and are as at be by can do for from how i in is it my of on or page pages site that "
        "the this to was what when where which who why with www http https com html htm",
    )
)


def tokens(text: str) -> list[str]:
    """The words of a text in lower case; those of `camelCase` and `kebab-case` count singly."""
    return [word.lower() for word in _TOKEN.findall(_HUMP.sub(" ", text))]


def words_of(address: Address, title: str | None) -> list[str]:
    """The words a page is found by."""
    path = unquote(address.path) if "%" in address.path else address.path
    query = unquote(address.query)
    return tokens(f"{path} {query} {title or ''}")[:MOST_TOKENS]


def relevance(search: str, documents: Sequence[Sequence[str]]) -> list[float]:
    """How well each document, given as its words, answers a search, by BM25; 0 where nothing matches."""
    terms = _terms(search)
    near = _nearness(terms, {word for document in documents for word in document})
    found = [
        _frequencies(document, near) if not near.keys().isdisjoint(document) else {} for document in documents
    ]
    containing = Counter(term for each in found for term in each)
    rarity = {term: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for term, n in containing.items()}
    usual = sum(map(len, documents)) / max(1, len(documents)) or 1.0
    return [
        sum(rarity[term] * _saturated(often, len(document) / usual) for term, often in each.items())
        for each, document in zip(found, documents, strict=True)
    ]


def place(address: Address, asked: Address) -> tuple[int, int]:
    """Where a page stands in the site, to sort by: what is below the asked one first, then the shallow."""
    segments, folder = address.segments, _folder(asked)
    shared = next((n for n, (a, b) in enumerate(zip(segments, folder, strict=False)) if a != b), None)
    if shared is None:
        shared = min(len(segments), len(folder))
    return -shared, len(segments) + bool(address.query)


def _folder(asked: Address) -> list[str]:
    """The segments below which its subtree lies: a file is one page of its folder."""
    segments = asked.segments
    return segments[:-1] if segments and "." in segments[-1] and not asked.path.endswith("/") else segments


def _terms(search: str) -> list[str]:
    """What a search asks for; its stop words only when it is made of nothing else."""
    said = list(dict.fromkeys(tokens(search)))
    return ([word for word in said if word not in _STOP_WORDS] or said)[:MOST_TERMS]


def _nearness(terms: Sequence[str], vocabulary: set[str]) -> dict[str, list[tuple[str, float]]]:
    """For each word that stands for any of the terms: which, and how well."""
    if len(terms) * len(vocabulary) > MOST_COMPARISONS:
        return {term: [(term, 1.0)] for term in terms}
    near: dict[str, list[tuple[str, float]]] = {}
    for term in terms:
        for word in vocabulary:
            if weight := _closeness(term, word):
                near.setdefault(word, []).append((term, weight))
    return near


def _closeness(term: str, word: str) -> float:
    """How well a word stands for a term, from 0 to 1."""
    if term == word:
        return 1.0
    if term.isdigit():
        return 0.0
    if not term.isascii():  # scripts without spaces between words
        return PART_OF_A_WORD if term in word else 0.0
    if term[:3] != word[:3] or min(len(term), len(word)) < 3:
        return 0.0
    if word.startswith(term) or term.startswith(word):
        return PART_OF_A_WORD
    short = min(len(term), len(word))
    beginning = max(4, -(-short * 2 // 3))
    return SAME_BEGINNING if short >= beginning and term[:beginning] == word[:beginning] else 0.0


def _frequencies(document: Sequence[str], near: dict[str, list[tuple[str, float]]]) -> dict[str, float]:
    """How often each term stands in a document."""
    often: dict[str, float] = {}
    for word in document:
        for term, weight in near.get(word, ()):
            often[term] = often.get(term, 0.0) + weight
    return often


def _saturated(often: float, length: float) -> float:
    """A frequency as BM25 counts it; `length` is the document's, where 1 is usual."""
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length)
    return often * (SATURATION + 1) / (often + norm)
