"""Choose the passage of a page that best shows why it matches a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from centgate.web.index.words import drop_accents
from centgate.web.writing_systems import HANGUL, UNSPACED

PASSAGE_LENGTH = 300
"""Maximum characters of a passage."""
MAX_MATCHES = 500
"""Matches of a page that are compared."""
MIN_STEM_LENGTH = 4
"""Length from which a term is matched without its last letter, since stems are not always beginnings."""
_SENTENCE_END = re.compile(r"[.!?\u3002\n]\s*")
_ALEFS = str.maketrans(dict.fromkeys("\u0622\u0623\u0625", "\u0627"))
"""Forms of the letter alef, which the stems of Arabic words do not distinguish."""
_ARABIC_PREFIX = (
    "(?:[\u0648\u0641]?(?:[\u0628\u0643]?\u0627\u0644|\u0644\u0644)|[\u0648\u0641\u0628\u0643\u0644])?"
)
"""Conjunctions, prepositions and the article that are written as one word with an Arabic noun."""
_ARABIC = re.compile("[\u0621-\u064a]")
_LEAD_LENGTH = 80
"""Characters before the first match within which the passage begins at a sentence."""


def find_passage(text: str, weights: Mapping[str, float]) -> str | None:
    """Return the passage that contains the most weight of distinct terms; None if none occurs.

    `weights` are the terms of the query, as stems in lower case, with their weights.
    """
    matches = _find_terms(text, weights)
    if not matches:
        return None
    start = _choose_window(matches, weights)
    begin = _sentence_start(text, start)
    end = min(len(text), begin + PASSAGE_LENGTH)
    return _trim_words(text, begin, end)


def find_beginning(text: str) -> str:
    """Return the first passage of a page, for one that no term of the query occurs in."""
    return _trim_words(text, 0, min(len(text), PASSAGE_LENGTH))


def _find_terms(text: str, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    pattern, terms = _compile_terms(tuple(sorted(weights)))
    matches: list[tuple[int, str]] = []
    for match in pattern.finditer(drop_accents(text).translate(_ALEFS)):
        found = match[match.lastindex or 0]
        if term := terms.get(found.lower()):  # not for letters that match only without their case
            matches.append((match.start(), term))
        if len(matches) == MAX_MATCHES:
            break
    return matches


@lru_cache(maxsize=64)
def _compile_terms(terms: Sequence[str]) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Return a pattern for words that begin like a term, and the terms by their beginnings.

    Terms of languages that are written without spaces may stand anywhere, and so may pairs of Korean
    syllables.
    """
    # a beginning that two terms have, or that is a term itself, stands for neither
    cut = Counter(terms) + Counter(term[:-1] for term in terms)
    starts = {
        term if len(term) < MIN_STEM_LENGTH or cut[term[:-1]] > 1 else term[:-1]: term for term in terms
    }
    ordered = sorted(starts, key=len, reverse=True)
    spaced = "|".join(re.escape(start) for start in ordered if not _is_inner(start))
    unspaced = "|".join(re.escape(start) for start in ordered if _is_inner(start))
    prefix = _ARABIC_PREFIX if _ARABIC.search(spaced) else ""
    parts = [rf"(?<![^\W_]){prefix}({spaced})" if spaced else "", unspaced]
    return re.compile("|".join(filter(None, parts)), re.IGNORECASE), starts


def _is_inner(start: str) -> bool:
    return bool(UNSPACED.match(start) or (len(start) > 1 and HANGUL.match(start)))


def _choose_window(matches: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> int:
    """Return the start of the window whose distinct terms weigh the most, the first of equal ones."""
    best, best_start, first = -1.0, matches[0][0], 0
    counts: dict[str, int] = {}
    weight = 0.0
    for position, term in matches:
        counts[term] = counts.get(term, 0) + 1
        weight += weights[term] if counts[term] == 1 else 0.0
        while position - matches[first][0] > PASSAGE_LENGTH - _LEAD_LENGTH:
            left = matches[first][1]
            counts[left] -= 1
            weight -= 0.0 if counts[left] else weights[left]
            first += 1
        if weight > best + 1e-9:
            best, best_start = weight, matches[first][0]
    return best_start


def _sentence_start(text: str, position: int) -> int:
    """Return the start of the sentence around a position, or of a word if the sentence is long."""
    low = max(0, position - _LEAD_LENGTH)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, low, position)]
    if low == 0 and not ends:
        return 0
    if ends:
        return ends[-1]
    space = text.find(" ", low, position)
    return position if space < 0 else space + 1


def _trim_words(text: str, begin: int, end: int) -> str:
    passage = text[begin:end]
    if end < len(text) and not text[end].isspace() and " " in passage:
        passage = passage[: passage.rindex(" ")]
    opening, closing = (
        "\u2026" if begin and not _ends_sentence(text, begin) else "",
        "\u2026" if end < len(text) else "",
    )
    return f"{opening}{' '.join(passage.split())}{closing}"


def _ends_sentence(text: str, begin: int) -> bool:
    return text[:begin].rstrip(" ")[-1:] in ".!?\u3002\n"
