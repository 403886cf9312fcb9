"""Parse the declarations of a style as far as they decide whether an element is visible.

Source: https://www.w3.org/TR/css-cascade-4/ and css-syntax-3. Of a property that is declared twice the last
valid value counts, and one that is marked as important before all others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from centgate.web.extract.elements import name_set

_TOKEN = re.compile(
    r"""/\*.*?(?:\*/|\Z)|("(?:[^"\\\n]|\\.)*(?:"|\Z)|'(?:[^'\\\n]|\\.)*(?:'|\Z))|"""
    r"""(\burl\(\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')?[^)]*(?:\)|\Z))|\\([0-9a-fA-F]{1,6})?\s?""",
    re.DOTALL | re.IGNORECASE,
)
"""A comment, a string, an address, or an escape with its hexadecimal digits."""
MAX_CACHED_STYLE = 500
"""Characters of a style whose result is kept: long ones of one page must not fill the memory of the next."""
_SIMPLE_CALC = re.compile(r"calc\(\s*([-+]?[\d.]{1,20}[a-z%]{0,4})\s*\)")
_FONT_SIZE = re.compile(
    r"(?:^|\s)((?:\d{0,9}\.)?\d{1,9}(?:px|pt|pc|r?em|ex|ch|v[wh]|%)|0|(?:xx?-)?(?:small|large)|medium|smaller|larger)"
    r"(?=$|[\s/])"
)
"""Size in the shorthand `font`; a number without a unit is a weight."""
_GLOBAL_VALUES = r"inherit|initial|unset|revert|var\(.*|"
_BOXES = "block|flex|grid|table|box|inline|flex-box|flexbox|inline-box|inline-flex|inline-grid"
_LENGTH = re.compile(rf"(?:{_GLOBAL_VALUES}auto|none|[-+]?[\d.]|(?:calc|min|max|clamp)\()")
_COLOUR_VALUE = re.compile(
    rf"(?:{_GLOBAL_VALUES}currentcolor|transparent|#[0-9a-f]{{3,8}}$|(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color)a?\(|"
    r"(?:black|white|silver|gr[ae]y|maroon|red|purple|fuchsia|green|lime|olive|yellow|navy|blue|teal|aqua|orange)$)"
)
_VALID_VALUES = {
    "display": re.compile(
        rf"(?:{_GLOBAL_VALUES}none|contents|list-item|flow-root|inline-(?:block|table)|table-[a-z-]+|"
        rf"(?:-webkit-|-ms-|-moz-)?(?:{_BOXES}))$"
    ),
    "visibility": re.compile(rf"(?:{_GLOBAL_VALUES}visible|hidden|collapse)$"),
    "position": re.compile(rf"(?:{_GLOBAL_VALUES}static|relative|absolute|fixed|(?:-webkit-)?sticky)$"),
    "font-size": re.compile(
        rf"(?:{_GLOBAL_VALUES}[\d.]|(?:calc|min|max|clamp)\(|(?:x{{1,3}}-)?(?:small|large)|medium)"
    ),
    "opacity": re.compile(rf"(?:{_GLOBAL_VALUES}[-+]?[\d.]|calc\()"),
    "color": _COLOUR_VALUE,
    "background-color": _COLOUR_VALUE,
}
"""Values that are certainly valid: others may be ignored by browsers, so that the earlier one counts."""
_LENGTH_NAMES = name_set("left top right bottom text-indent margin-left width height max-width max-height")
_OTHER_NAMES = name_set(
    "clip clip-path -webkit-clip-path content-visibility filter -webkit-filter scale translate overflow "
    "overflow-x overflow-y background background-clip -webkit-background-clip animation-name pointer-events"
)
_LOGICAL_NAMES = {
    "inset-inline-start": "left",
    "inset-inline-end": "right",
    "inset-block-start": "top",
    "inset-block-end": "bottom",
    "margin-inline-start": "margin-left",
}
_SHORTHANDS = {
    "inset": ("top", "right", "bottom", "left"),
    "inset-inline": ("left", "right"),
    "inset-block": ("top", "bottom"),
}
_SIDE_VALUES = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 1), 4: (0, 1, 2, 3)}
"""Number of the value of each side, by the number of values in a shorthand."""
HIDDEN_SIZE = re.compile(r"font-size:(?:0(?![.\d]*[1-9])|(?:0?\.\d+|1)p[xt]|0?\.[01]\d*r?em|1?\d(?:\.\d+)?%)")
"""Size at which text cannot be seen, in a normalized style."""
OUT_OF_FLOW = re.compile(r"position:(?:absolute|fixed)")
"""Position of an element that is no part of the text around it, in a normalized style."""
_ANIMATED_NAMES = ("transform", "transition", "animation", "-duration", "will-change")
_READ_NAMES = (
    {"font"}
    | frozenset(_VALID_VALUES)
    | _LENGTH_NAMES
    | _OTHER_NAMES
    | set(_LOGICAL_NAMES)
    | set(_SHORTHANDS)
)


def normalize_style(style: str) -> str:
    """Return the declarations of a style that may hide an element, such as `display:none;left:0`.

    Each property stands once, with its value in lower case and without addresses and strings. The sides of
    `inset`, as for text from left to right, and the size in `font` are properties of their own.
    """
    return _normalize_short(style) if len(style) <= MAX_CACHED_STYLE else _normalize(style)


@lru_cache(maxsize=1024)
def _normalize_short(style: str) -> str:
    return _normalize(style)


def _normalize(style: str) -> str:
    values: dict[str, str] = {}
    important = set[str]()
    for name, value, is_important in _parse_declarations(style):
        if name in important and not is_important:
            continue
        if name in values and is_important == (name in important) and not _is_valid(name, value):
            continue
        if is_important:
            important.add(name)
        values.pop(name, None)
        values[name] = value
    return ";".join(f"{name}:{value}" for name, value in values.items())


def _parse_declarations(style: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name, value and importance of the declarations that are read."""
    if "\\" in style or "/*" in style or "(" in style or '"' in style or "'" in style:
        style = clean_css(style)
    for part in style.lower().split(";"):
        name, _, value = part.partition(":")
        name = name.strip()
        if name in _READ_NAMES or name.startswith("padding") or name.endswith(_ANIMATED_NAMES):
            value, mark, _ = value.partition("!")
            for each, its_value in _expand(name, value.strip()):
                yield each, its_value, "important" in part and bool(mark)


def clean_css(text: str) -> str:
    """Return CSS without comments and escapes, and with empty strings and addresses."""
    return _TOKEN.sub(_replace_token, text)


def _replace_token(match: re.Match[str]) -> str:
    if match[1]:
        return '""'
    if match[2]:
        return "url()"
    return _decode_escape(match[3]) if match[3] else ""


def _decode_escape(digits: str) -> str:
    """Return the character of an escape's hexadecimal digits; one that no name has is replaced."""
    code = int(digits, 16)
    character = chr(code) if 0 < code <= sys.maxunicode else "_"
    return character if character.isalnum() or character == "-" else "_"


def _expand(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield the properties for which a declaration stands."""
    if "calc(" in value:
        value = _SIMPLE_CALC.sub(r"\1", value)
    if name == "font":
        size = _FONT_SIZE.search(value.partition('"')[0])
        if size:
            yield "font-size", size[1]
    elif name in _SHORTHANDS:
        sides, values = _SHORTHANDS[name], value.split()[:4]
        for side, which in zip(sides, _SIDE_VALUES.get(len(values), ()), strict=False):
            yield side, values[which]
    else:
        yield _LOGICAL_NAMES.get(name, name), value


def _is_valid(name: str, value: str) -> bool:
    """True if a value is certainly valid."""
    if name in _LENGTH_NAMES:
        return _LENGTH.match(value) is not None
    pattern = _VALID_VALUES.get(name)
    return bool(value) if pattern is None else pattern.match(value) is not None
