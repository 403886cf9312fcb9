"""Write formulas as text: TeX between dollar signs, or MathML with marks for fractions, powers and roots.

Without those marks a fraction or a power reads as another number.
"""

from __future__ import annotations

import re

from centgate.web.extract.dom import Element, remove_element
from centgate.web.extract.elements import MAX_DEPTH, extract_text

_SPACES = re.compile(r"[ \t\r\n\f\xa0]+")
_INVISIBLE_OPERATORS = re.compile("[\u2061-\u2064]")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|\S")
_SIGNED_TOKEN = re.compile(r"[-+\u2212]?(?:\d+(?:\.\d+)?|[^\W\d_]+)|\d+[-+\u2212]|\S")
"""A number or a name, also with a sign; the charge of an ion; a symbol."""
_ACCENTS = frozenset(
    "\u2032\u2033\u2034'\xb0\u2218\xaf\u02c9\u203e~\u02dc^\u02c6\u2192\u20d7\u02d9\xa8_\u23de\u23df"
)
"""Primes, degrees, and marks over or under a letter: they read well beside it."""
_SCRIPT_MARKS = {
    "msup": "^",
    "msub": "_",
    "msubsup": "_^",
    "mover": "^",
    "munder": "_",
    "munderover": "_^",
}
_NO_LINE = re.compile(r"0(?:\.0*)?(?:[a-z]{2}|%)?")
"""Thickness of the line of a fraction that is none, but a binomial coefficient."""
_TEX_SCRIPT = re.compile(r"\s*math/tex\s*(?:;\s*mode\s*=\s*(display)\s*)?(?:;|\Z)", re.IGNORECASE)
_DRAWN_CLASS = re.compile(r"(?:^|\s)(?:MathJax|mjx)", re.IGNORECASE)
"""Class of what MathJax draws, or shows until it has drawn, before the script with the formula."""


def show_tex_scripts(root: Element) -> None:
    """Turn the scripts in which pages for MathJax have their formulas into text between dollar signs."""
    for script in list(root.iter("script")):
        match = _TEX_SCRIPT.match(script.get("type") or "")
        if match is None or not (script.text or "").strip():
            continue
        _drop_drawn(script)
        mark = "$$" if match[1] else "$"
        script.text = f"{mark}{clean_tex(script.text or '')}{mark}"
        script.tag = "div" if match[1] else "span"
        script.attrib.clear()


def _drop_drawn(script: Element) -> None:
    """Remove the drawings of a formula right before its script."""
    before = script.getprevious()
    while before is not None and _DRAWN_CLASS.search(before.get("class") or ""):
        if (before.tail or "").strip():
            return
        remove_element(before)
        before = script.getprevious()


def read_formula(element: Element) -> str:
    """Return a formula as TeX between dollar signs if the page has it, else as text."""
    for note in element.iter("annotation", "{*}annotation"):
        if "tex" in (note.get("encoding") or "").lower() and note.text:
            return f"${clean_tex(note.text)}$"
    return element.get("alttext") or _SPACES.sub(" ", _write(element, 0))


def clean_tex(tex: str) -> str:
    """Return TeX on one line. A space after `<` means nothing in TeX, and keeps it from beginning a tag."""
    return re.sub("<(?=[a-zA-Z/!?])", "< ", _SPACES.sub(" ", tex)).strip()


def bracket_script(text: str) -> str:
    """Put a raised or lowered text in brackets, unless it is one number or name or has them."""
    return text if _SIGNED_TOKEN.fullmatch(text) or _is_bracketed(text) else f"({text})"


def _write(element: Element, depth: int) -> str:
    if depth > MAX_DEPTH or (not len(element) and element.tag != "msqrt"):
        return _INVISIBLE_OPERATORS.sub("", extract_text(element))
    tag, parts = element.tag, len(element)
    if tag == "semantics":  # what follows its first child is the same formula in other notations
        return _write(element[0], depth + 1)
    if tag == "msqrt":
        return f"sqrt({_write_row(element, depth).strip()})"
    if tag == "mfrac" and parts == 2:
        return _write_fraction(element, depth)
    if tag == "mroot" and parts == 2:
        base, index = _write_children(element, depth)
        return f"root({index})({base})"
    if tag in _SCRIPT_MARKS and parts == len(_SCRIPT_MARKS[tag]) + 1:
        base, *scripts = _write_children(element, depth)
        return _bracket(base) + "".join(map(_write_script, _SCRIPT_MARKS[tag], scripts))
    return _write_row(element, depth)


def _write_children(element: Element, depth: int) -> list[str]:
    return [_write(child, depth + 1).strip() for child in element]


def _write_fraction(element: Element, depth: int) -> str:
    above, below = _write_children(element, depth)
    if _NO_LINE.fullmatch(element.get("linethickness") or ""):
        return f"({above} choose {below})"
    return f"{_bracket(above)}/{_bracket(below)}"


def _write_script(mark: str, script: str) -> str:
    if not script or script in _ACCENTS:
        return script
    return mark + bracket_script(script)


def _write_row(element: Element, depth: int) -> str:
    """Write the parts of a row one after another, with a space where two of them would read as one."""
    row = element.text or ""
    after_structure = False
    for child in element:
        part = _write(child, depth + 1)
        is_structure = child.tag == "mfrac" or child.tag in _SCRIPT_MARKS
        if (after_structure or child.tag == "mfrac") and row[-1:].isalnum() and part[:1].isalnum():
            row += " "
        row += part + (child.tail or "")
        after_structure = is_structure if part else after_structure
    return row


def _bracket(text: str) -> str:
    return text if not text or _TOKEN.fullmatch(text) or _is_bracketed(text) else f"({text})"


def _is_bracketed(text: str) -> bool:
    """True if the first bracket of a text is closed by its last character."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at == len(text) - 1
    return False
