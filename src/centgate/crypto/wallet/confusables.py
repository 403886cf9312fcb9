"""Read text as people see it: letters of other alphabets in Latin ones, letters drawn apart as words. No I/O.

The letters are Unicode's confusables (UTS #39), from the data of the package confusable-homoglyphs. The data
is read without importing the package, which would keep 18 MB in memory for the 2,000 characters used here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import ascii_uppercase
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from centgate.phishing.homograph import LATIN_TABLE, strip_marks

DOTS: Final = ".\u00b7\u3002"
"""Full stop, middle dot and ideographic full stop: what Unicode gives for all characters like dots."""
_SIGNS: Final = {
    "\u20ac": "E",
    "\u20bf": "B",
    "\u20a9": "W",
    "\u0e3f": "B",
    "\u039e": "E",
    "\u00a2": "c",
    "\u20a6": "N",
    "\u20b3": "A",
    "\u20b5": "C",
    "\u20b8": "T",
}
"""Signs that are drawn as letters of symbols; Unicode has no Latin letter for them."""
_ENCLOSED_ALPHABETS: Final = (0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
"""First code points of alphabets in brackets, squares and circles, and of the letters that make up flags.

Unicode's confusables lack them, and most have no compatibility form.
"""
_ENCLOSED: Final = {
    start + place: letter for start in _ENCLOSED_ALPHABETS for place, letter in enumerate(ascii_uppercase)
}
_OWN_SCRIPTS: Final = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""Scripts that honest words have together with Latin letters, in Unicode's names of characters."""
_WIDELY_MIXED: Final = ("CYRILLIC", "GREEK")
_NOTATION: Final = frozenset("αβγδεμσω")
"""Greek letters that honest names use: alpha, micro."""
_HOOKED: Final = {code: latin for code, latin in LATIN_TABLE.items() if code > 127}
"""Small capitals and hooked letters of imitators, which Unicode's data lacks."""
_APART = re.compile(r"(?<!\S)(?:\S ){2,}\S(?!\S)")
"""Three or more single characters with one space between; two spaces are the end of a word."""


class _Confusable(Struct):
    c: str


@cache
def confusable_table() -> Mapping[int, str]:
    """Return the ASCII text or middle dot that a character looks like, by code point; read at first use."""
    content = files("confusable_homoglyphs").joinpath("confusables.json").read_bytes()
    listed = msgspec.json.decode(content, type=dict[str, list[_Confusable]])
    table: dict[int, str] = {}
    for character, others in listed.items():
        if len(character) == 1 and not character.isascii():
            forms = (strip_marks(other.c) for other in others)
            if form := next((form for form in forms if form.isascii() or form in DOTS), None):
                table[ord(character)] = form
    return MappingProxyType(table | _ENCLOSED | {ord(sign): letter for sign, letter in _SIGNS.items()})


def fold_confusables(text: str) -> str:
    """Return a text in ASCII letters, as far as its letters look like them; case is kept.

    Letters with accents become plain ones, and so do the small capitals and hooked letters of imitators.
    """
    if text.isascii():
        return text
    table = confusable_table()
    # compatibility forms take some letters away from the Latin ones that they look like, and give others
    folded = unicodedata.normalize("NFKC", text.translate(table)).translate(table)
    return strip_marks(folded).translate(_HOOKED)


def join_spaced_letters(text: str) -> str:
    """Join letters drawn apart: `U S D C` is USDC."""
    return _APART.sub(lambda found: found[0].replace(" ", ""), text)


def has_mixed_alphabets(text: str) -> bool:
    """True if letters that look like Latin ones are mixed with Latin ones.

    Cyrillic and Greek letters are searched in the whole text, those of other alphabets only within a word: a
    name may have a word of another language beside a Latin one.
    """
    if text.isascii():
        return False
    if _has_latin(text) and any(_is_imitation(letter, _WIDELY_MIXED) for letter in text):
        return True
    return any(_has_latin(word) and any(map(_is_imitation, word)) for word in text.split())


def _has_latin(text: str) -> bool:
    return any(letter.isascii() and letter.isalpha() for letter in text)


def _is_imitation(letter: str, scripts: tuple[str, ...] = ()) -> bool:
    """True for a letter of another alphabet, or of one of these scripts, that looks like a Latin one."""
    if letter.isascii() or letter in _NOTATION or unicodedata.category(letter)[0] != "L":
        return False
    name = unicodedata.name(letter, "")
    if not (name.startswith(scripts) if scripts else name and not name.startswith(_OWN_SCRIPTS)):
        return False
    return confusable_table().get(ord(letter), "").isalnum() or ord(letter) in _HOOKED
