"""Kinds of HTML elements, and the text in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Literal

from lxml import etree

from centgate.sanitize import strip_invisible
from centgate.web.extract.dom import Element, extract_all_text, extract_beginning, remove_element


def name_set(text: str) -> frozenset[str]:
    """Return the names in a whitespace-separated list as a set."""
    return frozenset(text.split())


MAX_DEPTH = 120
"""Nesting depth up to which elements are distinguished; deeper content is read as text."""
NON_TEXT_TAGS = name_set(
    "script style template noscript head title meta link base svg canvas object embed applet audio video "
    "iframe map area source track param datalist select textarea input button progress meter rp frame "
    "frameset noframes dialog"
)
"""Elements without text of the page, or with content that only a browser can use."""
BLOCK_TAGS = name_set(
    "address article aside blockquote body center dd details dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section "
    "summary table tbody td tfoot th thead tr caption ul"
)
HEADING_LEVELS = {f"h{level}": level for level in range(1, 7)}
TITLE_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "th")
_LABELLED_INPUTS = frozenset({"submit", "button", "reset"})
_MAX_QUESTION = 300
_MIN_ANSWER = 40
"""Characters of a block of text that may be the answer to the question above it."""
_MAX_BOXES = 5
_ANSWER_TAGS = name_set("article blockquote dd div dl ol p section table ul")
MIN_DRAWN_TEXT, MIN_DRAWN_WORD = 20, 3
"""Characters of a drawing, and on average of each text in it, from which on they are text of the page."""
_UNDRAWN_TAGS = name_set("defs symbol metadata title desc style script clippath mask pattern marker")
_UNDRAWN_ATTRIBUTES = {
    "display": ("none",),
    "visibility": ("hidden", "collapse"),
    "opacity": ("0", "0.0", "0%"),
    "fill-opacity": ("0", "0.0", "0%"),
    "fill": ("none", "transparent"),
    "font-size": ("0", "0px"),
    "width": ("0", "0px"),
    "height": ("0", "0px"),
}
"""Attributes of a drawing or its parts by whose values nothing is seen of their text."""
PRESERVED_SPACE = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
_COLLAPSED_LINES = re.compile(r"white-space\s*:\s*(?:normal|nowrap)", re.IGNORECASE)
_LINE_FEED = re.compile(r"\n\s*")
_UNBROKEN_TAGS = NON_TEXT_TAGS | {"pre", "code", "math"}
"""Elements without lines of text, or with lines of code."""
_READ_ALOUD = re.compile(r"(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text)(?:\s|$)")
_CELL_PARTS = name_set("svg title path use g i span div em b p")
_MAX_SYMBOL_NAME = 40
MAX_LINE_BREAKS = 20_000
"""Maximum number of line breaks that are kept in a page by its styles."""
_SKIPPED_TAGS = ("script", "style", "template", "noscript", "button")


def extract_text(element: Element) -> str:
    """Return all text in an element, at any depth, without scripts, styles and buttons."""
    if next(element.iter(*_SKIPPED_TAGS), None) is None:
        return extract_all_text(element)
    skipped = {inner for each in element.iter(*_SKIPPED_TAGS) for inner in each.iter()}
    parts: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end")):
        text = each.text if event == "start" else each.tail if each is not element else None
        is_skipped = each in skipped and (event == "start" or each.getparent() in skipped)
        parts.append("" if is_skipped else text or "")
    return "".join(parts)


def has_readable_text(element: Element) -> bool:
    """True if an element has visible text, or a picture with a text by its author."""
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, each in walk:
        if event == "end":
            text = each.tail if each is not element else None
        elif each.tag in NON_TEXT_TAGS:
            text = None
            walk.skip_subtree()
        elif each.tag == "img":
            text = None if is_tracking_pixel(each) else each.get("alt") or each.get("title")
        else:
            text = each.get("alttext") if each.tag == "math" else each.text
        if text and strip_invisible(text).strip():
            return True
    return False


def is_tracking_pixel(image: Element) -> bool:
    """True for a picture that is too small to be seen."""
    return any((image.get(side) or "").strip() in ("0", "1", "2", "1px") for side in ("width", "height"))


def has_blocks(element: Element) -> bool:
    """True if an element contains block elements."""
    return len(element) > 0 and next(element.iterdescendants(*BLOCK_TAGS), None) is not None


def show_controls(body: Element, *, only_main_content: bool) -> None:
    """Turn controls into text: all of them, or only those with content of the page.

    That is titles, cards, open dialogs and questions: pages with questions and answers have the questions in
    buttons that open the answers.
    """
    answered = _find_answered(body) if only_main_content else set[Element]()
    for element in list(body.iter("button", "dialog", "input")):
        if next(element.iterancestors("pre"), None) is not None:
            continue
        if element.tag == "button" and has_blocks(element):  # a card or a row that can be chosen
            element.tag = "div"
        elif element.tag == "button" and (not only_main_content or element in answered or _is_title(element)):
            _show_button(element)
        elif element.tag == "dialog" and element.get("open") is not None:
            element.tag = "div"
        elif only_main_content:
            continue
        elif element.tag == "input" and (element.get("type") or "").lower() in _LABELLED_INPUTS:
            element.text, element.tag = element.get("value"), "span"


def show_drawings(body: Element) -> dict[Element, str]:
    """Turn drawings with text, such as charts, into captions of it; empty all others and return their texts.

    Browsers show the title of a drawing only beside a pointer. Symbols in links and buttons are no captions.
    """
    symbols: dict[Element, str] = {}
    walk = etree.iterwalk(body, events=("start",), tag="svg")
    drawings: list[Element] = []
    for _, drawing in walk:
        drawings.append(drawing)
        walk.skip_subtree()
    for drawing in drawings:
        texts = _read_drawn_texts(drawing)
        drawing[:] = []
        drawing.text = None
        length = sum(map(len, texts))
        is_symbol = next(drawing.iterancestors("a", "button", "nav"), None) is not None
        if not is_symbol and length >= max(MIN_DRAWN_TEXT, MIN_DRAWN_WORD * len(texts)):
            drawing.tag, drawing.text = "figcaption", ", ".join(texts)
            drawing.attrib.clear()
        elif texts:
            symbols[drawing] = ", ".join(texts)
    return symbols


def name_cell_symbols(body: Element) -> None:
    """Write the name of its symbol into each table cell without text: comparisons consist of such cells."""
    for cell in body.iter("td"):
        if len(cell) and (name := _find_symbol_name(cell)):
            cell[:] = []
            cell.text = name


def _find_symbol_name(cell: Element) -> str | None:
    """Return the name that screen readers give to the symbol of a cell; None if there is other content."""
    names: list[str] = []
    for part in cell.iter():
        if part is not cell and (part.tag not in _CELL_PARTS or _is_toggled(part)):
            return None
        is_name = part.tag == "title" or _READ_ALOUD.search(part.get("class") or "") is not None
        text = " ".join((part.text or "").split())
        if (text and not is_name) or (part.tail or "").strip():
            return None
        names += filter(None, (text, part.get("aria-label"), part.get("title")))
    return names[0] if names and len(names[0]) <= _MAX_SYMBOL_NAME else None


def _is_toggled(part: Element) -> bool:
    return part.get("hidden") is not None or "display" in (part.get("style") or "")


def show_symbols(symbols: Mapping[Element, str]) -> None:
    """Turn drawings that are no captions into words of their line."""
    for drawing, text in symbols.items():
        drawing.tag, drawing.text = "span", f" {text} "
        drawing.attrib.clear()


def _read_drawn_texts(drawing: Element) -> list[str]:
    """Return the texts of a drawing in order; one that is drawn twice, as its edge and as itself, once."""
    texts: list[str] = []
    walk = etree.iterwalk(drawing, events=("start",))
    for _, part in walk:
        if part.tag in _UNDRAWN_TAGS or _is_undrawn(part):
            walk.skip_subtree()
            continue
        if part.tag not in ("text", "foreignobject"):
            continue
        walk.skip_subtree()
        for hidden in [each for each in part.iterdescendants() if _is_undrawn(each)]:
            remove_element(hidden)
        for line in part.iter("tspan", "br", *BLOCK_TAGS):
            if line.tag != "tspan" or line.get("dy") or line.get("y"):
                line.text = f" {line.text or ''}"
        texts.append(" ".join(extract_text(part).split()))
    return [text for text, _ in groupby(filter(None, texts))]


def _is_undrawn(part: Element) -> bool:
    """True for a part of a drawing that its own attributes hide."""
    return any(part.get(name) in values for name, values in _UNDRAWN_ATTRIBUTES.items())


def show_line_breaks(body: Element) -> None:
    """Turn the line feeds that a style preserves into line breaks, outside of code."""
    walk = etree.iterwalk(body, events=("start",))
    parts: list[Element] = []
    for _, element in walk:
        if element.tag in _UNBROKEN_TAGS:
            walk.skip_subtree()
        elif element.attrib and PRESERVED_SPACE.search(element.get("style") or ""):
            walk.skip_subtree()
            parts.append(element)
    left = MAX_LINE_BREAKS
    for part in parts:
        for text in _find_preserved_texts(part):
            left -= _break_lines(*text, limit=left) if left else 0


def _find_preserved_texts(part: Element) -> list[tuple[Element, Literal["text", "tail"]]]:
    """Return where the texts of several lines are: each is the `text` or the `tail` of an element."""
    texts: list[tuple[Element, Literal["text", "tail"]]] = []
    walk = etree.iterwalk(part, events=("start",))
    for _, element in walk:
        if element.tag in _UNBROKEN_TAGS or _COLLAPSED_LINES.search(element.get("style") or ""):
            walk.skip_subtree()
        elif "\n" in (element.text or ""):
            texts.append((element, "text"))
        if element is not part and "\n" in (element.tail or ""):
            texts.append((element, "tail"))
    return texts


def _break_lines(element: Element, place: Literal["text", "tail"], *, limit: int) -> int:
    """Insert at most `limit` line breaks between the lines of a text; returns their number."""
    text = (element.text if place == "text" else element.tail) or ""
    first, *lines = _LINE_FEED.split(text, maxsplit=limit)
    setattr(element, place, None)
    for line in reversed(lines):
        line_break = etree.Element("br")
        line_break.tail = f"\n{line}"
        if place == "text":
            element.insert(0, line_break)
        else:
            element.addnext(line_break)
    setattr(element, place, first)
    return len(lines)


def _find_answered(body: Element) -> set[Element]:
    """Return the buttons with questions above their answers, in pages that do not say what a button opens.

    There are several of a kind in one list; a single one asks the reader, as "Was this page helpful?" does.
    """
    lists: dict[tuple[Element | None, str, str], list[Element]] = {}
    for button in body.iter("button"):
        entry = _find_entry(button)
        if entry is not None and _is_question(button) and _stands_above_text(button):
            kind = (entry.getparent(), entry.tag, " ".join((entry.get("class") or "").split()[:1]))
            lists.setdefault(kind, []).append(button)
    return {button for buttons in lists.values() if len(buttons) > 1 for button in buttons}


def _find_entry(button: Element) -> Element | None:
    """Return the element of a button and its answer, with the boxes that hold nothing else."""
    entry = button.getparent()
    for _ in range(_MAX_BOXES):
        if entry is None or entry.getnext() is not None or entry.getprevious() is not None:
            break
        parent = entry.getparent()
        entry = entry if parent is None else parent
    return entry


def _stands_above_text(button: Element) -> bool:
    """True if a block of text follows."""
    following = button.getnext()
    if following is None or following.tag not in _ANSWER_TAGS or (button.tail or "").strip():
        return False
    return len(extract_beginning(following, _MIN_ANSWER)) >= _MIN_ANSWER


def _is_title(button: Element) -> bool:
    """True if a button is in a title, or opens the answer to the question that it holds."""
    if next(button.iterancestors(*TITLE_TAGS), None) is not None:
        return True
    has_state = button.get("aria-expanded") is not None or button.get("aria-controls") is not None
    return has_state and _is_question(button)


def _is_question(button: Element) -> bool:
    return extract_beginning(button, _MAX_QUESTION).endswith("?")


def _show_button(button: Element) -> None:
    in_title = next(button.iterancestors(*TITLE_TAGS), None) is not None
    button.tag = "span" if in_title or button.get("aria-expanded") is None else "p"
    button.tail = " " + (button.tail or "")
