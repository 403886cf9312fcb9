"""Names that look like a protected one without sharing its letters: `metamask.io` with a Cyrillic a."""

# ruff: noqa: RUF001 - letters that are taken for others are what this is about

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from centgate.phishing.lookalikes import Lookalikes, compared, form
from centgate.phishing.rules import Rules

# Letters that may stand in a domain name and read like Latin ones once accents are taken off: confusables of
# Unicode (https://www.unicode.org/reports/tr39/), and the small capitals and hooked letters of imitators.
READS_LIKE: Final = {
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
LATIN: Final = str.maketrans({other: latin for latin, others in READS_LIKE.items() for other in others})


class Protected:
    """The names worth imitating: those that lists allow, and above all those of their fuzzylists."""

    def __init__(self, lists: Iterable[Rules]) -> None:
        self.whole: dict[str, str] = {}
        self.lookalikes: list[Lookalikes] = []
        for rules in lists:
            for name in (*rules.fuzzylist, *rules.allowlist):
                self.whole.setdefault(skeleton(name), name)
            forms = [(skeleton(form(name)), name) for name in rules.fuzzylist]
            self.lookalikes.append(Lookalikes(forms, rules.tolerance))

    def read_as(self, domain: str) -> str | None:
        """The protected name that a domain, given in Unicode, is read as; none for one in ASCII."""
        suffix = domain
        while not suffix.isascii():
            if name := self.whole.get(skeleton(suffix)):
                return name
            suffix = suffix.partition(".")[2]
        if compared(domain).isascii():
            return None
        read = skeleton(domain)
        return next(filter(None, (names.imitated_by(read) for names in self.lookalikes)), None)


def skeleton(text: str) -> str:
    """The text in plain Latin letters, as far as its letters read like some."""
    bare = "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))
    return bare.translate(LATIN).replace("rn", "m").replace("vv", "w")
