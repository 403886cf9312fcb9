"""Rank the pages of a site: by a search with BM25, else by their place in the site."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import unquote

from msgspec import Struct

from centgate.web.sitemap.urls import PageUrl

MAX_TERMS = 16
MAX_TOKENS = 40
"""Maximum number of words of one page's URL and title that count."""
MAX_COMPARISONS = 2_000_000
"""Pairs of a term and a word above which only exact matches count."""
MAX_LEVELS = 12
"""Levels of folders, below which all pages are of one."""
SECTION_SHARE, FOLDER_SHARE = 10, 5
"""Pages of one section of a site, and of one folder, that are listed before those of the others."""
_AFFIXED = re.compile("[^\u0000-\u052f\u1e00-\u1fff\u2c60-\u2c7f\ua640-\ua69f\ua720-\ua7ff]")
"""Letters that are not Latin, Greek or Cyrillic.

Words of other scripts may have no spaces between them, as in Thai and Chinese, or other words attached to
their front, as in Arabic and Hebrew.
"""
PREFIX_WEIGHT = 0.6
STEM_WEIGHT = 0.3
"""Weights of `price` for `prices`, and of `pricing` for `prices`, where an exact match weighs 1."""
SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""k1 and b of BM25, at their usual values."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TOKEN = re.compile(r"[^\W_]+")
_NUMBERED = re.compile(r"([a-z]{2,})(\d+)")
"""Name with its number, such as `erc20`, which others write `erc-20`."""
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about all an and are as at be by can do for from how i in is it my of on or page pages site that "
        "the this to was what when where which who why with www http https com html htm",
    )
)


def tokenize(text: str) -> list[str]:
    """Split a text into words in lower case; `camelCase`, `kebab-case` and `erc20` are split as well."""
    words = [word.lower() for word in _TOKEN.findall(_HUMP.sub(" ", text))]
    return [part for word in words for part in _split_number(word)]


def _split_number(word: str) -> tuple[str, ...]:
    match = _NUMBERED.fullmatch(word) if word[-1].isdigit() else None
    return (match[1], match[2]) if match else (word,)


def page_words(url: PageUrl, title: str | None) -> list[str]:
    """Return the searchable words of a page."""
    path = unquote(url.path) if "%" in url.path else url.path
    query = unquote(url.query)
    return tokenize(f"{path} {query} {title or ''}")[:MAX_TOKENS]


def score_relevance(search: str, documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each document, given as its words, for a search; 0 without a match."""
    terms = _search_terms(search)
    matches = _match_words(terms, {word for document in documents for word in document})
    frequencies = [
        _term_frequencies(document, matches) if not matches.keys().isdisjoint(document) else {}
        for document in documents
    ]
    containing = Counter(term for each in frequencies for term in each)
    rarity = {term: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for term, n in containing.items()}
    average_length = sum(map(len, documents)) / max(1, len(documents)) or 1.0
    return [
        sum(
            rarity[term] * _saturate_frequency(frequency, len(document) / average_length)
            for term, frequency in each.items()
        )
        for each, document in zip(frequencies, documents, strict=True)
    ]


def site_position(url: PageUrl, requested: PageUrl) -> tuple[int, int]:
    """Return a sort key by place in the site: pages below the requested one first, then by depth."""
    segments, folder = url.segments, _folder_segments(requested)
    shared = next((n for n, (a, b) in enumerate(zip(segments, folder, strict=False)) if a != b), None)
    if shared is None:
        shared = min(len(segments), len(folder))
    return -shared, len(segments) + bool(url.query)


def spread_over_folders(urls: Sequence[PageUrl], start: PageUrl) -> list[int]:
    """Return the positions of pages in an order in which no folder takes all the first places.

    Pages below the start page come first. Among them, and then among the others, each section and each folder
    gives some pages, from the top downwards, before any gives its next ones.
    """
    groups: dict[int, list[_PlacedPage]] = {}
    for number, url in enumerate(urls):
        shared, depth = site_position(url, start)
        groups.setdefault(shared, []).append(_PlacedPage(depth, number, url.segments[-shared:-1]))
    return [
        page.number
        for shared in sorted(groups)
        for page in _take_turns(sorted(groups[shared], key=_depth_and_number), 0, SECTION_SHARE)
    ]


class _PlacedPage(Struct, frozen=True):
    depth: int
    number: int
    folder: Sequence[str]
    """Segments of its folder's path, below what the start page shares."""


def _depth_and_number(page: _PlacedPage) -> tuple[int, int]:
    return page.depth, page.number


def _take_turns(pages: list[_PlacedPage], level: int, share: int) -> list[_PlacedPage]:
    """Order pages of one folder, which is so many levels deep: at each turn `share` of each folder in it.

    A folder in which all pages are gives no turns: what it contains does.
    """
    own: list[_PlacedPage] = []
    folders: dict[str, list[_PlacedPage]] = {}
    for page in pages:
        is_below = level < min(len(page.folder), MAX_LEVELS)
        (folders.setdefault(page.folder[level], []) if is_below else own).append(page)
    if not folders:
        return own
    if not own and len(folders) == 1:
        return _take_turns(pages, level + 1, share)
    ordered = [(own, FOLDER_SHARE)]
    ordered += [(_take_turns(each, level + 1, FOLDER_SHARE), share) for each in folders.values()]
    turns = [
        (position // each_share, *_depth_and_number(page), page)
        for each, each_share in ordered
        for position, page in enumerate(each)
    ]
    return [page for *_, page in sorted(turns, key=lambda turn: turn[:3])]


def _folder_segments(requested: PageUrl) -> list[str]:
    """Return the path segments of a page's subtree: a file belongs to its folder."""
    segments = requested.segments
    return (
        segments[:-1] if segments and "." in segments[-1] and not requested.path.endswith("/") else segments
    )


def _search_terms(search: str) -> list[str]:
    """Return the terms of a search; stop words only if there are no other words."""
    words = list(dict.fromkeys(tokenize(search)))
    return ([word for word in words if word not in _STOP_WORDS] or words)[:MAX_TERMS]


def _match_words(terms: Sequence[str], vocabulary: set[str]) -> dict[str, list[tuple[str, float]]]:
    """Return, for each word that matches any term, the terms with their weights."""
    if len(terms) * len(vocabulary) > MAX_COMPARISONS:
        return {term: [(term, 1.0)] for term in terms}
    matches: dict[str, list[tuple[str, float]]] = {}
    for term in terms:
        for word in vocabulary:
            if weight := _match_weight(term, word):
                matches.setdefault(word, []).append((term, weight))
    return matches


def _match_weight(term: str, word: str) -> float:
    """Return the weight of a word as a match for a term, 0 to 1."""
    if term == word:
        return 1.0
    if term.isdigit():
        return 0.0
    if _AFFIXED.search(term):
        return PREFIX_WEIGHT if term in word else 0.0
    if term[:3] != word[:3] or min(len(term), len(word)) < 3:
        return 0.0
    if word.startswith(term) or term.startswith(word):
        return PREFIX_WEIGHT
    shorter = min(len(term), len(word))
    prefix = max(4, -(-shorter * 2 // 3))
    return STEM_WEIGHT if shorter >= prefix and term[:prefix] == word[:prefix] else 0.0


def _term_frequencies(
    document: Sequence[str], matches: dict[str, list[tuple[str, float]]]
) -> dict[str, float]:
    """Return the weighted frequency of each term in a document."""
    frequencies: dict[str, float] = {}
    for word in document:
        for term, weight in matches.get(word, ()):
            frequencies[term] = frequencies.get(term, 0.0) + weight
    return frequencies


def _saturate_frequency(frequency: float, length: float) -> float:
    """Apply the BM25 saturation to a frequency; `length` is relative to the average document."""
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length)
    return frequency * (SATURATION + 1) / (frequency + norm)
