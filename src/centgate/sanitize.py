"""Sanitize untrusted text, such as names and notes from chains and directories.

Agents read the responses, so a token's name can be a prompt injection or contain hidden text. Invisible
characters are removed and the length is limited; the visible wording is not changed.
"""

from __future__ import annotations

import re
import unicodedata

MAX_NAME_LENGTH = 64
"""Maximum length of a name or symbol in characters."""
_INVISIBLE_CATEGORIES = frozenset("CZ")  # control, format (bidi, zero width), private, unassigned; separators
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f")
"""Letters and marks without a visible glyph."""


_LINE_END = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_INVISIBLE_PATTERN = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    "|(?<![\u0370-\uffff\U00010000-\U000dffff])[\u200c\u200d]"
    "|[\u200c\u200d](?![\u0370-\u200b\u200e-\uffff\U00010000-\U000dffff])"
)
"""Control, bidi, tag, filler and private characters, variation selectors, joiners without a function."""


def clean_line(text: str | None, max_length: int = MAX_NAME_LENGTH) -> str | None:
    """Return one line without invisible characters, at most `max_length` long; None if it is empty."""
    if text is None:
        return None
    start = text[: max_length * 16]
    plain = start.isascii() and start.isprintable()
    line = " ".join((start if plain else "".join(map(_visible_or_space, start))).split())
    if len(line) > max_length:
        line = line[: max_length - 1].rstrip() + "\u2026"
    return line or None


def quote_line(text: str | None, max_length: int = MAX_NAME_LENGTH) -> str | None:
    """Return one line in double quotes, for a stranger's text within a sentence; None if it is empty."""
    line = clean_line(text, max_length)
    return None if line is None else '"' + line.replace('"', "'") + '"'


def strip_invisible(text: str) -> str:
    """Remove invisible characters from a text of several lines: control, bidi and tag characters.

    Keeps line feeds and tabs, and joiners between non-Latin letters, where they change how a word or an
    emoji is displayed. Other line ends become line feeds.
    """
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE_PATTERN.sub("", _LINE_END.sub("\n", text))


def has_invisible(text: str) -> bool:
    """True if a text contains invisible characters other than plain spaces."""
    return any(_visible_or_space(character) != character for character in text)


def _visible_or_space(character: str) -> str:
    if character == " ":
        return " "
    category = unicodedata.category(character)
    if category[0] == "Z" or character in "\t\n\r":
        return " "
    if category[0] in _INVISIBLE_CATEGORIES or character in _FILLERS or 0xFE00 <= ord(character) <= 0xFE0F:
        return ""
    return character
