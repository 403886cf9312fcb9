"""Remove what a page does not show, by the attributes, styles and common class names of its elements.

Text that an animation fades in, that a wide window shows or that only screen readers skip is visible, and so
is what the tabs and the titles of a page open.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice

from lxml import etree

from centgate.web.extract.content_blocks import reduce_to_letters
from centgate.web.extract.dom import (
    Element,
    extract_beginning,
    find_ancestors,
    find_neighbours,
    remove_element,
)
from centgate.web.extract.elements import has_blocks
from centgate.web.extract.panels import find_panels
from centgate.web.extract.text_density import TextDensity

MIN_FADED_SHARE = 0.2
"""Share of the page's text from which on transparent text is text that fades in."""
MAX_UNSPOKEN_TEXT = 200
"""Characters of a text that screen readers skip, above which it is a part that the page shows later."""
MAX_UNSPOKEN_ELEMENTS = 50
"""Elements in such a text, or in one beside it."""
MAX_PANEL_LEVELS = 3
"""Levels of panels within panels that are read."""
MAX_NEIGHBOURS = 3
"""Elements on each side in which such a text is looked for."""
_CSS_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?|\\|/\*.*?(?:\*/|\Z)", re.DOTALL)
"""An escaped character, the mark of one that stands for itself, or a comment in a style."""
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|"
    r"(?<![-\w])(?:left|top|right)\s*:\s*-(?:\d{4}|\d{3}(?![\d.]{0,9}%))|(?<![-\w])text-indent\s*:\s*-\d{3}|"
    r"(?:(?<![-\w])bottom|margin-left)\s*:\s*-\d{4}|"
    r"clip\s*:\s*rect|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|(?:circle|ellipse)\(\s*0)|"
    r"content-visibility\s*:\s*hidden|filter\s*:\s*opacity\(\s*0(?!\.?\d*[1-9])|"
    r"(?<![-\w])scale\s*:\s*0(?!\.?\d*[1-9])|transform\s*:[^;]{0,80}(?:scale(?:3d)?\(\s*0(?!\.?\d*[1-9])|"
    # carousels move their slides by thousands of pixels
    r"translate[^;]{0,80}-(?:\d{5}|9999|\d{4}r?em))",
    re.IGNORECASE,
)
_NO_SIZE = re.compile(
    r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*(?:0(?:%|[a-z]{2,4})?|1(?:px)?)\s*(?:;|$|!)", re.IGNORECASE
)
_CUT_OFF = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip|auto|scroll)", re.IGNORECASE)
_PADDED = re.compile(
    r"padding[-\w]{0,20}\s*:[^;]{0,80}?(?:\d\d(?:\.\d{1,9})?\s*(?:%|vw)|calc\(|var\()", re.IGNORECASE
)
"""Boxes of a fixed ratio have no height of their own, and show what is in them in their padding."""
_MOVED = re.compile(r"(?<![-\w])(?:left|top|right)\s*:\s*-\d{3}(?:\.\d{1,9})?%", re.IGNORECASE)
_OUT_OF_FLOW = re.compile(r"position\s*:\s*(?:absolute|fixed)", re.IGNORECASE)
_WIDER_THAN_PARENT = re.compile(r"(?<![-\w])width\s*:\s*[2-9]\d{2}\d{0,4}(?:\.\d{1,9})?%", re.IGNORECASE)
"""Rows of slides, which a carousel moves by the width of a slide."""
_INHERITED_STYLES = (
    (
        re.compile(r"(?<![-\w])visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE),
        re.compile(r"(?<![-\w])visibility\s*:\s*visible", re.IGNORECASE),
    ),
    (
        re.compile(r"font-size\s*:\s*(?:0(?![.\d]*[1-9])|(?:0?\.\d+|1)px)", re.IGNORECASE),
        re.compile(
            r"(?:font-size\s*:\s*|(?<![-\w])font\s*:[^;]{0,80}?)(?<![\d.])"
            r"(?:(?:[2-9]|\d\d)\d{0,3}(?:\.\d{1,9})?(?:px|pt)|\d{0,4}\.?\d{1,9}rem|(?:xx?-)?(?:small|large)|medium)",
            re.IGNORECASE,
        ),
    ),
)
"""Styles that hide the text of an element, and those by which elements in it are shown all the same."""
_INVISIBLE_COLOUR = re.compile(
    r"(?<![-\w])color\s*:\s*(?:transparent|rgba\([^();]*,\s*0(?:\.0*)?\s*\))", re.IGNORECASE
)
_CLIPPED_BACKGROUND = re.compile(r"background-clip\s*:\s*text", re.IGNORECASE)
"""The background is shown through the letters, such as a gradient."""
_COLOUR = re.compile(r"(?:^|[;\s])(color|background)(?:-color)?\s*:\s*([^;!]{1,40})", re.IGNORECASE)
_COLOUR_NAMES = {
    "white": "#ffffff",
    "rgb(255,255,255)": "#ffffff",
    "black": "#000000",
    "rgb(0,0,0)": "#000000",
}
_TRANSPARENT = re.compile(r"opacity\s*:\s*0(?!\.?\d*[1-9])", re.IGNORECASE)
_ANIMATION = re.compile(r"transform|transition|animation|translate", re.IGNORECASE)
"""Text that fades in is visible text of the page."""
_ABOVE_PAGE = re.compile(r"position\s*:\s*(?:absolute|fixed)|pointer-events\s*:\s*none", re.IGNORECASE)
"""Transparent parts that cover others: windows and menus that are opened."""
_HIDDEN_CLASS = re.compile(
    r"(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text|screenreader-only|u-hidden|is-hidden|d-none|"
    r"display-none|hidden|a11y-hidden|element-invisible|mw-editsection)(?:\s|$)"
)
_VISIBLE_CLASS = re.compile(
    r"(?:^|\s)(?:\w+:(?:d-)?|d-\w+-)(?:block|contents|flex|flow-root|grid|inline|inline-(?:block|flex|grid|table)|"
    r"list-item|table|table-(?:caption|cell|column|row|row-group|header-group|footer-group))(?:\s|$)"
)
_ICON_CLASS = re.compile(
    r"icon|symbol|material|glyph|arrow|chevron|caret|bullet|separator|divider|anchor|line-?no|line-?number|"
    r"katex|mathjax|mjx|(?:^|\s)fa[bsrl]?(?:\s|-|$)",
    re.IGNORECASE,
)
"""Classes of symbols, whose text is the name of a picture."""


def drop_hidden(root: Element) -> None:
    """Remove elements hidden by attribute, style or common class names."""
    elements = [each for each in root.iterdescendants(etree.Element) if each.attrib and not _is_frame(each)]
    styles = {each: style for each in elements if (style := _read_style(each))}
    for hiding, showing in _INHERITED_STYLES:
        _drop_unless_shown(styles, hiding, showing)
    faded = _find_faded(root, styles)
    opened = set[Element]()
    parts = [root]
    for level in range(MAX_PANEL_LEVELS + 1):
        hidden = [each for part in parts for each in _find_outer_hidden(part, styles, faded, opened)]
        parts = find_panels(root, hidden) if level < MAX_PANEL_LEVELS else []
        opened.update(parts)
        for element in hidden:
            if element not in opened:
                remove_element(element)


def _find_outer_hidden(
    root: Element, styles: Mapping[Element, str], faded: Mapping[Element, bool], opened: set[Element]
) -> list[Element]:
    """Return the hidden elements that are in no other one, without those that a reader opens."""
    hidden: list[Element] = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if not element.attrib or _is_frame(element) or element in opened:
            continue
        if _is_hidden(element, styles.get(element, "")) or not faded.get(element, True):
            hidden.append(element)
            walk.skip_subtree()
    return hidden


def _is_frame(element: Element) -> bool:
    return element.tag in ("html", "head", "body")


def _drop_unless_shown(
    styles: Mapping[Element, str], hiding: re.Pattern[str], showing: re.Pattern[str]
) -> None:
    """Remove what an inherited style hides, except the elements in it that have another style."""
    hidden = [element for element, style in styles.items() if hiding.search(style)]
    if not hidden:
        return
    shown = {
        element for element, style in styles.items() if showing.search(style) and not hiding.search(style)
    }
    around = find_ancestors(shown)
    pruned: set[Element] = set()
    for element in hidden:
        if element not in around:
            remove_element(element)
        elif element not in pruned:
            pruned.update(_prune_hidden(element, shown, around))


def _prune_hidden(element: Element, shown: set[Element], around: set[Element]) -> Iterator[Element]:
    """Remove the text of an element that is not in a shown one; yields the elements that are left."""
    stack = [element]
    while stack:
        part = stack.pop()
        part.text = None
        for child in list(part):
            if child in shown or child in around:
                child.tail = None
                stack += [] if child in shown else [child]
            else:
                part.remove(child)
        yield part


def _find_faded(root: Element, styles: Mapping[Element, str]) -> dict[Element, bool]:
    """Return the transparent elements, and whether they are parts of the page that fade in.

    Those are parts with a heading, and all of them if they hold much of the page's text.
    """
    transparent = [
        each for each, style in styles.items() if _TRANSPARENT.search(style) and not _ANIMATION.search(style)
    ]
    if not transparent:
        return {}
    weights, faded = TextDensity(root), set(transparent)
    outer = [each for each in transparent if not any(around in faded for around in each.iterancestors())]
    share = sum(map(weights.text_length, outer)) / max(1, weights.text_length(root))
    return {
        each: not _ABOVE_PAGE.search(styles[each]) and (share >= MIN_FADED_SHARE or _has_heading(each))
        for each in transparent
    }


def _has_heading(element: Element) -> bool:
    return next(element.iter("h1", "h2", "h3"), None) is not None


def _is_hidden(element: Element, style: str) -> bool:
    """True if an element's own attributes hide it, whatever is around it."""
    hidden = element.get("hidden")
    if hidden is not None and hidden != "until-found":
        return element.tag != "math"
    if element.get("aria-hidden") == "true" and next(element.iter("main", "article", "h1"), None) is None:
        if element.tag == "math":  # a whole page is marked so while a dialog is open, and is visible
            return False
        if not _is_unspoken_text(element):
            return True
    if style and (_HIDDEN_STYLE.search(style) or _is_cut_off(style) or _is_moved_out(style)):
        return True
    if style and _INVISIBLE_COLOUR.search(style) and not _CLIPPED_BACKGROUND.search(style):
        return True
    if style and "background" in style and _is_background_coloured(style):
        return True
    return _has_hidden_class(element)


def _is_cut_off(style: str) -> bool:
    """True if an element has no size, and what is in it is not shown beside it."""
    if not _NO_SIZE.search(style):
        return False
    return _CUT_OFF.search(style) is not None and not _PADDED.search(style)


def _is_moved_out(style: str) -> bool:
    """True if an element is moved out of what is around it, by a part of the other's size."""
    if not _MOVED.search(style) or not _OUT_OF_FLOW.search(style):
        return False
    return not _WIDER_THAN_PARENT.search(style)


def _has_hidden_class(element: Element) -> bool:
    classes = element.get("class") or ""
    return bool(_HIDDEN_CLASS.search(classes)) and not _VISIBLE_CLASS.search(classes)


def _is_unspoken_text(element: Element) -> bool:
    """True if a text that screen readers skip is visible, and does not stand beside itself.

    It is a text in a line, or one beside another that only screen readers read, such as a price.
    """
    if _has_many_elements(element):
        return False
    text = extract_beginning(element, MAX_UNSPOKEN_TEXT + 1)
    letters = reduce_to_letters(text)
    if not letters or len(text) > MAX_UNSPOKEN_TEXT or has_blocks(element):
        return False
    if _ICON_CLASS.search(element.get("class") or "") or _is_in_code(element):
        return False
    neighbours = find_neighbours(element, MAX_NEIGHBOURS)
    spoken = [each for each in neighbours if _has_hidden_class(each)]
    if element.tag != "span" and not spoken:
        return False
    return not any(_has_text(each, letters) for each in neighbours if each not in spoken)


def _is_in_code(element: Element) -> bool:
    return next(element.iterancestors("pre", "code"), None) is not None


def _has_many_elements(element: Element) -> bool:
    return next(islice(element.iter(), MAX_UNSPOKEN_ELEMENTS, None), None) is not None


def _has_text(element: Element, letters: str) -> bool:
    """True if an element has a text of these letters, or is a formula, of which the text is a drawing."""
    if any(each.tag == "math" for each in islice(element.iter(), MAX_UNSPOKEN_ELEMENTS)):
        return True
    if _has_many_elements(element):
        return False
    text = extract_beginning(element, MAX_UNSPOKEN_TEXT)
    return len(text) <= MAX_UNSPOKEN_TEXT and reduce_to_letters(text) == letters


def _read_style(element: Element) -> str:
    """Return the style of an element, without escapes and comments; empty without one."""
    style = element.get("style") or ""
    if "\\" in style or "/*" in style:
        return _CSS_ESCAPE.sub(lambda match: _decode_escape(match[1]), style)
    return style


def _decode_escape(digits: str | None) -> str:
    """Return the character of an escape's hexadecimal digits; empty for a comment."""
    code = int(digits, 16) if digits else 0
    return chr(code) if 0 < code <= sys.maxunicode else ""


def _is_background_coloured(style: str) -> bool:
    """True if text and background have the same colour."""
    colours = {name.lower(): _normalize_colour(value) for name, value in _COLOUR.findall(style)}
    return "color" in colours and colours["color"] == colours.get("background")


def _normalize_colour(value: str) -> str:
    colour = "".join(value.lower().split())
    if len(colour) == 4 and colour[0] == "#":
        return "#" + "".join(digit * 2 for digit in colour[1:])
    return _COLOUR_NAMES.get(colour, colour)
