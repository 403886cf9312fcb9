"""Read text as people see it: in the Latin letters that its characters are confused with.

Data: Unicode's confusables (https://www.unicode.org/reports/tr39/), from the package confusable-homoglyphs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

_SEPARATOR_CATEGORIES = frozenset("ZPM")
"""First letters of the Unicode categories of spaces, punctuation and combining marks."""
_SEPARATORS = frozenset("$")


def to_latin(text: str) -> str:
    """Return the text with each character that is confused with a Latin letter or digit replaced by it."""
    return text if text.isascii() else text.translate(_latin_table())


def is_latin_lookalike(character: str) -> bool:
    """Return True if a character is confused with a Latin letter or digit."""
    return ord(character) in _latin_table()


def join_letters(text: str) -> str:
    """Return the letters, digits and mathematical signs of a text, without what is drawn between them."""
    return "".join(character for character in text if not _is_separator(character))


def _is_separator(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in _SEPARATOR_CATEGORIES or category in ("Sk", "Lm", "Cf") or character in _SEPARATORS


@cache
def _latin_table() -> Mapping[int, str]:
    """Return the ASCII letter or digit by code point, of all characters that have one."""
    # its data takes 60 ms to load
    from confusable_homoglyphs import confusables

    data = cast(dict[str, list[dict[str, Any]]], confusables.confusables_data)
    return {
        ord(character): latin
        for character, lookalikes in data.items()
        if len(character) == 1 and not character.isascii()
        if (latin := _first_latin(lookalikes))
    }


def _first_latin(lookalikes: list[dict[str, Any]]) -> str | None:
    """Return the first letter or digit among the lookalikes; a stroke or accent over it does not count."""
    letters = (unicodedata.normalize("NFKD", each["c"])[:1] for each in lookalikes)
    return next((letter for letter in letters if letter.isascii() and letter.isalnum()), None)
