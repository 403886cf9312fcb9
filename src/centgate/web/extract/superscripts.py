"""Mark raised and lowered text with `^` and `_` where it would read as a part of the text beside it.

Footnotes, ordinals, words and chemical formulas read well as they are, and get no mark.
"""

from __future__ import annotations

import re

from centgate.web.extract.dom import Element, extract_all_text, extract_beginning
from centgate.web.extract.elements import BLOCK_TAGS, NON_TEXT_TAGS, extract_text, name_set
from centgate.web.extract.formulas import bracket_script

MAX_LENGTH = 40
"""Characters of a raised or lowered text above which it is a sentence."""
MAX_BASE, MAX_STEPS = 12, 6
"""Characters before it that are read, and elements that are searched for them."""
_EXPONENT = re.compile(r"[-+\u2212]?\d{1,4}|n")
"""Exponents wherever they stand, also after an image."""
_TERM_END = re.compile(r"[^\W_]\Z|[)\]}]\Z")
_VARIABLE_END = re.compile(r"(?:\A|[\W\d_])[^\W\d_]\Z|[\d)\]}]\Z")
"""A letter alone, a number or a bracket. Letters raised after a word are its note."""
_ATOM_END = re.compile(r"[A-Z][a-z]?(?:\d*[)\]])?\Z")
_ATOM_COUNT = re.compile(r"\d+(?:\.\d+)?(?:-?eq?)?(?:\s?\((?:g|l|s|aq)\))?")
"""Number of atoms, also with an equivalent or a state of matter."""
_CHARGE = re.compile(r"\d*[-+\u2212]")
_PROSE = re.compile(r"[^\W\d_]{4}|[^\W\d_]{3}\s|\]\(|`")
"""A word, a link, or code."""
_SUFFIX_START = re.compile(r"[.,:\xb0\xba\[]")
"""Beginning of cents, minutes, degrees and notes."""
_ORDINALS = name_set(
    "st nd rd th er re \xe8re ere e \xe8me eme me nde de ste te ta to ra ro da do mo va vo o a \xaa os "
    "as r h am pm tm sm"
)
"""Endings of ordinals and abbreviations in several languages, hours, and trade marks."""
_LINE_ENDS = BLOCK_TAGS | {"br", "img"}


def mark_superscript(element: Element, rendered: str) -> str:
    """Return a raised text, marked if it is an exponent; `rendered` is its Markdown."""
    text, base = _read_script(element, rendered), _read_base(element)
    if _is_numerator(element, text):
        return f" {text}" if base[-1:].isdigit() else text
    if not _EXPONENT.fullmatch(text) and not (_TERM_END.search(base) and _is_exponent(text, base)):
        return rendered
    script, after = bracket_script(text), _read_next(element)
    is_joined = (script[-1].isdigit() and after.isdigit()) or (script[-1].isalpha() and after.isalpha())
    return f"^{script} " if is_joined else f"^{script}"


def mark_subscript(element: Element, rendered: str) -> str:
    """Return a lowered text, marked if it would read as a part of what is around it."""
    text, base, after = _read_script(element, rendered), _read_base(element), _read_next(element)
    if not _TERM_END.search(base) or not _is_index(text):
        return rendered
    if _ATOM_END.search(base) and _ATOM_COUNT.fullmatch(text) and not after.isdigit():
        return rendered
    continues_number = text.isdigit() and not base[-1].isalpha()
    if len(text) < 2 and not after.isalnum() and not continues_number:
        return rendered
    return f"_{bracket_script(text)} " if after.isalnum() else f"_{bracket_script(text)}"


def _is_exponent(text: str, base: str) -> bool:
    if not _has_letters_or_digits(text) or _PROSE.search(text) or _SUFFIX_START.match(text):
        return False
    if text.lower().strip(".") in _ORDINALS or (_CHARGE.fullmatch(text) and base[-1].isalpha()):
        return False
    if text.isalpha() and base[-1].isdigit() and len(text) > 1:  # a unit
        return False
    if not text.startswith("(") and any(map(str.isdigit, text)):
        return True
    return _VARIABLE_END.search(base) is not None and not (text.isalpha() and len(text) > 2)


def _is_index(text: str) -> bool:
    if not _has_letters_or_digits(text) or "](" in text or "`" in text:
        return False
    return not text.startswith(("(", "[")) and not (" " in text and _PROSE.search(text))


def _has_letters_or_digits(text: str) -> bool:
    return len(text) <= MAX_LENGTH and any(map(str.isalnum, text))


def _is_numerator(element: Element, text: str) -> bool:
    """True for the number above the line of a fraction that is written by raising and lowering."""
    after = element.getnext()
    if after is None or after.tag != "sub" or not text.isdigit():
        return False
    return (element.tail or "").strip() in ("/", "\u2044", "\u2215")


def _read_script(element: Element, rendered: str) -> str:
    """Return a raised or lowered text on one line, without emphasis, which is common for variables."""
    text = " ".join(rendered.split())
    return text if "*" not in text or "*" in extract_text(element) else text.replace("*", "")


def _read_base(element: Element) -> str:
    """Return the end of what stands before an element in its line, outside of a link around it."""
    text = ""
    for _ in range(MAX_STEPS):
        before, parent = element.getprevious(), element.getparent()
        if before is not None:
            text = (before.tail or "") + text
            if before.tag in _LINE_ENDS:
                break
            if before.tag not in NON_TEXT_TAGS and len(text) < MAX_BASE:
                text = extract_all_text(before) + text
            element = before
        elif parent is not None:
            text = (parent.text or "") + text
            element = parent
        if len(text) >= MAX_BASE or parent is None or element.tag in _LINE_ENDS or element.tag == "a":
            break
    return text[-MAX_BASE:]


def _read_next(element: Element) -> str:
    """Return the character that follows an element; empty at the end of its line.

    Also empty if another superscript or subscript follows."""
    if element.tail:
        return element.tail[0]
    after = element.getnext()
    if after is None or after.tag in _LINE_ENDS or after.tag in NON_TEXT_TAGS or after.tag in ("sup", "sub"):
        return ""
    return extract_beginning(after, 1)[:1]
