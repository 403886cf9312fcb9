"""Remove what a page does not show, by the attributes, styles, style sheets and class names of its elements.

Text that an animation fades in, that a wide window shows or that only screen readers skip is visible, and so
is what the tabs and the titles of a page open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from lxml import etree

from centgate.web.extract.dom import (
    Element,
    extract_beginning,
    find_ancestors,
    find_neighbours,
    remove_element,
)
from centgate.web.extract.elements import has_blocks
from centgate.web.extract.headings import reduce_to_letters
from centgate.web.extract.panels import find_panels
from centgate.web.extract.styles import HIDDEN_SIZE, OUT_OF_FLOW, normalize_style
from centgate.web.extract.stylesheets import apply_sheets
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
_HIDDEN_STYLE = re.compile(
    r"display:none|(?<![-\w])(?:left|top|right):-\d{4}|text-indent:-\d{3}|"
    r"(?:(?<![-\w])bottom|margin-left):-\d{4}|"
    r"clip:rect|clip-path:(?:inset\(\s*(?:50|100)%|(?:circle|ellipse)\(\s*0)|"
    r"clip-path:polygon\(\s*(?:[a-z]+\s*,\s*)?([^,()]{1,20}?)\s*(?:,\s*\1\s*)+\)|"
    r"content-visibility:hidden|filter:[^;]{0,80}?opacity\(\s*0(?!\.?\d*[1-9])|"
    r"(?<![-\w])scale:0(?!\.?\d*[1-9])|transform:[^;]{0,80}(?:scale(?:3d)?\(\s*0(?!\.?\d*[1-9])|"
    # carousels move their slides by thousands of pixels
    r"translate[^;]{0,80}-(?:\d{5}|9999|\d{4}r?em))|translate:[^;]{0,80}-(?:\d{5}|9999|\d{4}r?em)"
)
_MOVED_FROM_PAGE = re.compile(r"(?<![-\w])(?:left|top|right):-\d{3}(?![\d.]{0,9}%)")
"""Offsets that move an element out of the window, if it is no part of the text around it."""
_NO_SIZE = re.compile(r"(?:^|;)(?:max-)?(?:width|height):(?:0(?:%|[a-z]{2,4})?|1(?:px)?)\s*(?:;|$)")
_CUT_OFF = re.compile(r"overflow(?:-[xy])?:(?:hidden|clip|auto|scroll)")
_PADDED = re.compile(r"padding[-\w]{0,20}:[^;]{0,80}?(?:\d\d(?:\.\d{1,9})?\s*(?:%|vw)|calc\(|var\()")
"""Boxes of a fixed ratio have no height of their own, and show what is in them in their padding."""
_MOVED = re.compile(r"(?<![-\w])(?:left|top|right):-\d{3}(?:\.\d{1,9})?%")
_WIDER_THAN_PARENT = re.compile(r"(?<![-\w])width:[2-9]\d{2}\d{0,4}(?:\.\d{1,9})?%")
"""Rows of slides, which a carousel moves by the width of a slide."""
_INHERITED_STYLES = (
    (
        re.compile(r"(?<![-\w])visibility:(?:hidden|collapse)"),
        re.compile(r"(?<![-\w])visibility:visible"),
    ),
    (
        HIDDEN_SIZE,
        re.compile(
            r"font-size:(?:(?:[2-9]|\d\d)\d{0,3}(?:\.\d{1,9})?(?:px|pt)|"
            r"\d{0,4}\.?\d{1,9}rem|(?:xx?-)?(?:small|large)|medium)"
        ),
    ),
)
"""Styles that hide the text of an element, and those by which elements in it are shown all the same."""
_INVISIBLE_COLOUR = re.compile(
    r"(?<![-\w])color:(?:transparent|#(?:[\da-f]{3}0|[\da-f]{6}00)(?![\da-f])|"
    r"[a-z]{2,5}\((?:(?:[^(),;/]{1,40},){3}|[^(),;/]{1,80}/)\s*(?:0{1,9}(?:\.0{0,9})?|\.0{1,9})%?\s*\))"
)
_CLIPPED_BACKGROUND = re.compile(r"background-clip:text")
"""The background is shown through the letters, such as a gradient."""
_COLOUR = re.compile(r"(?:^|;)(color|background)(?:-color)?:([^;]{1,40})")
_COLOUR_NAMES = {
    "white": "#ffffff",
    "rgb(255,255,255)": "#ffffff",
    "black": "#000000",
    "rgb(0,0,0)": "#000000",
}
_UNEQUAL_COLOURS = frozenset({"inherit", "initial", "unset", "revert", "revert-layer"})
"""Values that mean another colour for the text than for its background."""
_TRANSPARENT = re.compile(r"(?<![-\w])opacity:(?:0(?!\.?\d*[1-9])|0?\.0|\d(?:\.\d{1,9})?%)")
_ANIMATION = re.compile(r"transform|transition|animation|translate")
"""Text that fades in is visible text of the page."""
_ABOVE_PAGE = re.compile(r"position:(?:absolute|fixed)|pointer-events:none")
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
    written = ((each, each.get("style")) for each in elements)
    styles = {each: style for each, text in written if text and (style := normalize_style(text))}
    apply_sheets(root, styles)
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
        if not (element.attrib or element in styles) or _is_frame(element) or element in opened:
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
    if element.get("popover") is not None:  # it is closed until a button opens it
        return True
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
    """True if an element is moved out of the window, or out of what is around it by a part of its size."""
    if not OUT_OF_FLOW.search(style):  # relative offsets are seen in the text around
        return False
    if _MOVED_FROM_PAGE.search(style):
        return True
    return _MOVED.search(style) is not None and not _WIDER_THAN_PARENT.search(style)


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


def _is_background_coloured(style: str) -> bool:
    """True if text and background have the same colour."""
    colours = {name: _normalize_colour(value) for name, value in _COLOUR.findall(style)}
    colour = colours.get("color")
    return colour is not None and colour == colours.get("background") and colour not in _UNEQUAL_COLOURS


def _normalize_colour(value: str) -> str:
    colour = "".join(value.split())
    if len(colour) == 4 and colour[0] == "#":
        return "#" + "".join(digit * 2 for digit in colour[1:])
    return _COLOUR_NAMES.get(colour, colour)
