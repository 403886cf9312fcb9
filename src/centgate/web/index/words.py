"""Split texts and queries into words, and reduce words to stems by their language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from centgate.web.writing_systems import HANGUL, UNSPACED

MAX_WORD_LENGTH = 40
"""Maximum characters of an indexed word, enough for a hash or an address without its prefix."""
DEFAULT_LANGUAGE = "en"
"""Language of pages that state none: most documentation is in English."""
STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
"""Snowball stemmers by language; words of other languages are kept as they are."""
# fmt: off
STOP_WORDS = frozenset((
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or",
    "our", "should", "so", "that", "the", "their", "them", "there", "these", "they", "this", "to", "us",
    "was", "we", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
    "das", "de", "der", "die", "ein", "eine", "el", "en", "es", "et", "fur", "im", "ist", "la", "las",
    "le", "les", "los", "mit", "que", "um", "un", "una", "und", "une", "von", "wie", "zu",
))
"""Words of questions that hardly any page is about: English, and some of its neighbours."""
# fmt: on
_LETTER = "(?:[^\\W_]|[\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0e4e])"
"""Letters and digits, and the vowel signs that Python counts as neither."""
_WORD = re.compile(rf"{_LETTER}+(?:[_.'\u2019-]{_LETTER}+)*")
"""Words with what joins them: `EIP-3009`, `snake_case`, `next.js`."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|(?:[^\W\dA-Za-z_]|[\u0591-\u0e4e])+")
_ACCENT = re.compile("[\u0300-\u036f]")
_LAST_ACCENTED = 0x1FFF
"""Last character that may be a letter with accents in one: Latin, Greek and Cyrillic are before it."""
_PARTICLES = frozenset(
    """
    은 는 이 가 을 를 의 에 로 와 과 도 만 나 랑 들 인 뿐 에서 에게 한테 께서 에는 에도 으로 로서
    로써 로는 로도 까지 부터 마다 처럼 보다 조차 마저 밖에 대로 만큼 이나 이란 이라 라는 라고 이고
    하고 이며 이랑 와의 과의 와는 과는 들은 들이 들을 들의 들도 이다 이면 에서는 에서도 에서의
    에게는 으로는 으로도 으로서 으로써 까지는 부터는 이라는 이라고 이라면 입니다 들에게 들에서
    """.split()  # noqa: SIM905 - one a line would fill a page
)
_ENDINGS = frozenset(
    """
    하다 하는 하기 하고 하여 하면 하며 하지 하려면 하려고 한다 합니다 했다 했습니다 해서 해야 하세요
    되다 되는 되어 되면 된다 됩니다 됐다 한 할 해 된 될
    """.split()  # noqa: SIM905 - one a line would fill a page
)
_SUFFIX = re.compile(rf"(?<=..)(?:{'|'.join(sorted(_PARTICLES | _ENDINGS, key=len, reverse=True))})\Z")
"""Particle or ending of a word of which at least two syllables remain."""
_MAX_PARTS = 12
"""Parts of one compound that are indexed; longer ones are data."""


def base_language(tag: str | None) -> str:
    """Return the language of a tag such as `en-US`; the default one without a tag."""
    language = (tag or DEFAULT_LANGUAGE).partition("-")[0].lower()
    return {"nb": "no", "nn": "no"}.get(language, language)


def split_text(text: str) -> list[str]:
    """Return the words of a text in lower case without accents: compounds whole, then in their parts."""
    return [term for word in _find_words(text) for term in _word_terms(word)]


def split_query(query: str) -> list[tuple[tuple[str, ...], ...]]:
    """Return the distinct words of a query; each is a choice of terms that a page must contain together.

    A compound is found whole or in its parts: `useEffect` as `useeffect`, or as `use` and `effect`. A Korean
    word is found by the pairs of its syllables, with or without its particle, inside of other words.
    """
    units: dict[tuple[tuple[str, ...], ...], None] = {}
    for word in _find_words(query):
        if UNSPACED.search(word):
            terms = _word_terms(word)
            units |= dict.fromkeys(((term,),) for term in terms if term not in _PARTICLES)
        elif HANGUL.search(word):
            units.setdefault(_choose_korean_terms(word))
        else:
            whole, *parts = _word_terms(word)
            units.setdefault(((whole,), tuple(parts)) if parts else ((whole,),))
    return list(units)


def stem_words(words: Iterable[str], language: str) -> list[str]:
    """Return the stems of words by a language; in another number of words if some are too long."""
    analyzer = _open_stemmer(STEMMERS.get(language))
    return analyzer.analyze(" ".join(words))


def _find_words(text: str) -> list[str]:
    return _WORD.findall(_fold_accents(text))


def _fold_accents(text: str) -> str:
    """Return a text with compatible characters unified, and without accents."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))


def drop_accents(text: str) -> str:
    """Return a text of the same length, in which letters with accents are replaced by those without."""
    if text.isascii():
        return text
    letters, pattern = _open_accented_letters()
    return pattern.sub(lambda match: letters[match[0]], text)


@cache
def _open_accented_letters() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """Return the letters with accents with those without, and a pattern for them."""
    letters: dict[str, str] = {}
    for code in range(0x80, _LAST_ACCENTED + 1):
        base = _ACCENT.sub("", unicodedata.normalize("NFKD", chr(code)))
        if len(base) == 1 and base != chr(code):
            letters[chr(code)] = base
    return letters, re.compile(f"[{''.join(map(re.escape, letters))}]")


def _word_terms(word: str) -> Sequence[str]:
    """Return the terms of one word: itself without joints, then its parts if it is a compound.

    Of Korean words also the pairs of syllables, and a single syllable that a particle is attached to.
    """
    if UNSPACED.search(word):
        return _pair_letters(word)
    parts = [part.lower() for part in _PART.findall(word)]
    whole = "".join(parts) or word.lower()
    terms = [whole[:MAX_WORD_LENGTH]]
    if len(parts) > _MAX_PARTS:
        return terms
    if len(parts) > 1:
        terms += [part[:MAX_WORD_LENGTH] for part in parts]
    if len(whole) > 1 and whole[1:] in _PARTICLES:
        terms.append(whole[0])
    return [*terms, *(pair for part in parts for pair in _pair_syllables(part))]


def _pair_syllables(part: str) -> list[str]:
    """Return the pairs of neighbouring syllables of a Korean part of more than two; empty for others."""
    return ["".join(pair) for pair in pairwise(part)] if len(part) > 2 and HANGUL.fullmatch(part) else []


def _choose_korean_terms(word: str) -> tuple[tuple[str, ...], ...]:
    """Return the choices of terms for a word with Korean syllables.

    It is found as it is, by its pairs, and by those of what its particles are attached to.
    """
    parts = [part.lower() for part in _PART.findall(word)]
    choices = [("".join(parts)[:MAX_WORD_LENGTH],)]
    if len(parts) <= _MAX_PARTS:
        choices += [tuple(_part_terms(each)) for each in _drop_suffixes(parts)]
    return tuple(dict.fromkeys(choices))


def _drop_suffixes(parts: list[str]) -> Iterator[list[str]]:
    """Yield the parts of a word, then without its particles, the last of which first."""
    yield parts
    *others, last = parts
    if others and last in _PARTICLES:
        yield others
    while (shorter := _SUFFIX.sub("", last)) != last:
        last = shorter
        yield [*others, last]


def _part_terms(parts: Iterable[str]) -> Iterator[str]:
    """Yield the terms that together stand for the parts of a word."""
    for part in parts:
        yield from _pair_syllables(part) or [part[:MAX_WORD_LENGTH]]


def _pair_letters(word: str) -> list[str]:
    """Return the pairs of neighbouring letters of unspaced runs, and the words between them."""
    terms: list[str] = []
    for run in UNSPACED.findall(word):
        terms += ["".join(pair) for pair in pairwise(run)] or [run]
    return terms + [term for each in UNSPACED.sub(" ", word).split() for term in _word_terms(each)]


@cache
def _open_stemmer(name: str | None) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.whitespace())
    return (builder.filter(Filter.stemmer(name)) if name else builder).build()
