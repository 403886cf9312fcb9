"""Find names that look like a protected one without its letters: `metamask.io` with a Cyrillic a."""

# ruff: noqa: RUF001 - the tables need letters that look like others

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from centgate.phishing.lookalikes import LookalikeIndex, comparable_part, strip_last_label
from centgate.phishing.rules import PhishingRules

# Letters that are allowed in a domain name and read like Latin ones without their accents: confusables of
# Unicode (https://www.unicode.org/reports/tr39/), and the small capitals and hooked letters of imitators.
LATIN_LOOKALIKES: Final = {
    "a": "аɑαᴀ",
    "ae": "æӕ",
    "b": "ьвƅɓʙßβҍ",
    "c": "сϲᴄⲥƈ",
    "d": "ԁɗđɖժᴅ",
    "e": "еҽєεɛəҿэᴇǝ",
    "f": "ƒքꞙғ",
    "g": "ɡցɢǥɠգ",
    "h": "һհħɦнʜ",
    "i": "іıιɩɪɨ",
    "j": "јϳʝɉ",
    "k": "κкқҝƙĸҟӄᴋ",
    "l": "ӏłɫɭƚןاʟ1ⳑ",
    "m": "мɱᴍ",
    "n": "пηոռɴŋɲƞɳ",
    "o": "оοσօөøɵסᴏ0ዐ๐",
    "oe": "œ",
    "p": "рρƿþⲣᴘ",
    "q": "ԛզʠ",
    "r": "гᴦɾɼɽɍⲅʀ",
    "s": "ѕꜱƽʂ",
    "t": "тτŧƭʈᴛ",
    "u": "υսʋцџμᴜʉ",
    "v": "νѵᴠט",
    "w": "ѡԝաωшɯᴡщ",
    "x": "хχҳ",
    "y": "уүγყɏʏƴұ",
    "z": "ᴢʐƶȥ",
    "3": "зɜӡ",
}
LATIN_TABLE: Final = str.maketrans(
    {other: latin for latin, others in LATIN_LOOKALIKES.items() for other in others}
)

_RESEMBLING_SCRIPTS: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"})
"""Scripts with letters that look alike, as the names of Unicode's letters begin."""


def mixes_scripts(domain: str) -> bool:
    """True if a label has letters of two scripts that look alike, which no language does.

    Browsers show such a name in its ASCII form (Unicode Technical Standard 39, "Mixed-Script Detection").
    """
    return any(len(_find_scripts(label)) > 1 for label in domain.split(".") if not label.isascii())


def _find_scripts(label: str) -> set[str]:
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in label if letter.isalpha()}
    return scripts & _RESEMBLING_SCRIPTS


class HomographIndex:
    """Index of the names worth imitating: those of allowlists and, most of all, of fuzzylists."""

    def __init__(self, lists: Iterable[PhishingRules]) -> None:
        self.by_skeleton: dict[str, str] = {}
        self.lookalikes: list[LookalikeIndex] = []
        for rules in lists:
            for name in (*rules.fuzzylist, *rules.allowlist):
                self.by_skeleton.setdefault(skeleton(name), name)
            forms = [(skeleton(strip_last_label(name)), name) for name in rules.fuzzylist]
            self.lookalikes.append(LookalikeIndex(forms, rules.tolerance))

    def find_imitated(self, domain: str) -> str | None:
        """Return the protected name that a Unicode domain resembles; None for an ASCII domain."""
        suffix = domain
        while not suffix.isascii():
            if name := self.by_skeleton.get(skeleton(suffix)):
                return name
            suffix = suffix.partition(".")[2]
        if comparable_part(domain).isascii():
            return None
        domain_skeleton = skeleton(domain)
        return next(filter(None, (names.find_imitated(domain_skeleton) for names in self.lookalikes)), None)


def skeleton(text: str) -> str:
    """Return the text in plain Latin letters, as far as its letters resemble Latin ones."""
    return strip_marks(text).translate(LATIN_TABLE).replace("rn", "m").replace("vv", "w")


def strip_marks(text: str) -> str:
    """Remove accents and strokes."""
    return "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))
