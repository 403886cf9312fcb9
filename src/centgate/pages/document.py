"""HTML as a tree, without what is not shown."""

from __future__ import annotations

import re
from typing import cast

from lxml import etree
from lxml.etree import _Element  # pyright: ignore[reportPrivateUsage] - named so by its stubs

Element = _Element
"""An element of a parsed page."""

MOST_BYTES = 2 << 20
LONGEST_TAG = 32 * 1024
_LONG_VALUE = re.compile(r"""=\s*(?:"[^"<>]{4096,}"|'[^'<>]{4096,}')""")
_LONG_TAG = re.compile(rf"<([a-zA-Z][\w:-]*)[^>]{{{LONGEST_TAG},}}")
_STRUCTURE = re.compile(
    r"</?(?!(?:h[1-6]|p|br|title|meta|script|style|head|pre)\b)[a-zA-Z][^<>]*>", re.IGNORECASE
)
_NEVER_CLOSED = re.compile(r"</?(?:source|track|wbr|keygen|menuitem)\b[^<>]{0,4096}>", re.IGNORECASE)
"""Elements without an end, which the parser does not know: it would put all that follows inside of them."""
_NULS = re.compile("[\0\ud800-\udfff]")
_UNSEEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*(?:0(?![.\d]*[1-9])|(?:0?\.\d+|1)px)|"
    r"(?<![-\w])(?:left|top|text-indent|right)\s*:\s*-\d{3,}|margin-left\s*:\s*-\d{4,}|"
    r"clip\s*:\s*rect|clip-path\s*:\s*inset\(\s*(?:50|100)%|"
    r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*[01](?:px)?\s*(?:;|$|!)|"
    r"(?<![-\w])color\s*:\s*(?:transparent|rgba\([^();]*,\s*0(?:\.0*)?\s*\))",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"(?:^|[;\s])(color|background)(?:-color)?\s*:\s*([^;!]{1,40})", re.IGNORECASE)
_COLOUR_NAMES = {
    "white": "#ffffff",
    "rgb(255,255,255)": "#ffffff",
    "black": "#000000",
    "rgb(0,0,0)": "#000000",
}
_TRANSPARENT = re.compile(r"opacity\s*:\s*0(?!\.?\d*[1-9])", re.IGNORECASE)
_MOVING = re.compile(r"transform|transition|animation|translate", re.IGNORECASE)
"""What is about to fade in is text of the page."""
_UNSEEN_CLASS = re.compile(
    r"(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text|screenreader-only|u-hidden|is-hidden|d-none|"
    r"display-none|hidden|a11y-hidden|element-invisible|mw-editsection)(?:\s|$)"
)
_SHOWN_CLASS = re.compile(
    r"(?:^|\s)\w+:(?:d-)?(?:block|flex|grid|inline|inline-block|table)(?:\s|$)|d-\w+-(?:block|flex)"
)


def parsed(text: str) -> Element | None:
    """The document, also one that is broken, odd or very deep; None where nothing is left of it.

    Long values of attributes are dropped, and all attributes of tags that are longer than any real one: the
    parser's time grows with the square of their number. What is nested too deep for the parser is read flat.
    """
    text = _NEVER_CLOSED.sub("", text)
    text = _LONG_TAG.sub(r"<\1", _LONG_VALUE.sub('=""', _NULS.sub("", text)))
    root, deep = _tree(text)
    if deep:
        root, _ = _tree(_STRUCTURE.sub("\n", text))
    return root


def _tree(text: str) -> tuple[Element | None, bool]:
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode(), parser)
    except (etree.LxmlError, ValueError, AssertionError):
        return None, False
    deep = any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log)
    return cast("Element | None", root), deep


def body_of(root: Element) -> Element:
    """The body of a document; all of it where it has none."""
    body = root.find("body")
    return root if body is None else body


def drop_unseen(root: Element) -> None:
    """Remove what a reader of the page would not see: hidden by attribute, style or the usual classes."""
    for element in list(root.iterdescendants(etree.Element)):
        if element.tag in ("head", "body") or not element.attrib:
            continue
        if is_unseen(element):
            remove(element)


def is_unseen(element: Element) -> bool:
    """Whether an element says of itself that it is not shown."""
    hidden, style, names = element.get("hidden"), element.get("style"), element.get("class")
    if (hidden is not None and hidden != "until-found") or element.get("aria-hidden") == "true":
        return element.tag != "math"
    if style and (_UNSEEN_STYLE.search(style) or (_TRANSPARENT.search(style) and not _MOVING.search(style))):
        return True
    if style and "background" in style and _is_one_colour(style):
        return True
    return bool(names and _UNSEEN_CLASS.search(names) and not _SHOWN_CLASS.search(names))


def _is_one_colour(style: str) -> bool:
    """Whether text has the colour of what is behind it."""
    said = {name.lower(): _colour(value) for name, value in _COLOUR.findall(style)}
    return "color" in said and said["color"] == said.get("background")


def _colour(value: str) -> str:
    colour = "".join(value.lower().split())
    if len(colour) == 4 and colour[0] == "#":
        return "#" + "".join(digit * 2 for digit in colour[1:])
    return _COLOUR_NAMES.get(colour, colour)


def remove(element: Element) -> None:
    """Take an element out of its tree; the text after it stays."""
    parent = element.getparent()
    if parent is None:
        return
    if tail := element.tail:
        before = element.getprevious()
        if before is None:
            parent.text = (parent.text or "") + tail
        else:
            before.tail = (before.tail or "") + tail
    parent.remove(element)


def text_of(element: Element) -> str:
    """All text in an element, scripts and all."""
    return "".join(map(str, element.itertext()))


def beginning_of(element: Element, most: int) -> str:
    """The first characters of an element's text, not much more than `most`, without white space around."""
    text = ""
    for part in element.itertext():
        text = (text + str(part)).lstrip()
        if len(text) > most:
            break
    return text.rstrip()


def depth_of(root: Element, most: int) -> int:
    """How many elements lie inside one another at most, counted up to `most`."""
    depths = {root: 0}
    for element in root.iterdescendants():
        parent = element.getparent()
        depths[element] = depth = depths[parent] + 1 if parent in depths else 1
        if depth >= most:
            return most
    return max(depths.values())


def found_by(root: Element, path: str) -> list[Element]:
    """The elements that an XPath finds."""
    return cast("list[Element]", root.xpath(path))
