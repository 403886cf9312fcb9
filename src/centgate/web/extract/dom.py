"""Parse HTML into a tree, and search, measure and prune it."""

from __future__ import annotations

import re
from itertools import islice
from typing import cast

from lxml import etree
from lxml.etree import _Element  # pyright: ignore[reportPrivateUsage] - the name in the stubs
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from centgate.web.extract.shadow_roots import open_shadow_roots
from centgate.web.extract.streamed_html import insert_streamed_parts, is_streamed

Element = _Element
"""An element of a parsed page."""

MAX_BYTES = 2 << 20
MAX_TAG_LENGTH = 32 * 1024
MAX_BROWSER_DEPTH = 1000
"""Open elements up to which a document is read like in a browser; the time grows with their square."""
MAX_BROWSER_OPTIONS = 5_000
"""Options of a field up to which a document is read like in a browser; the time grows with their square."""
MAX_GROWTH, MIN_GROWN_LENGTH = 3, 100_000
"""Factor and length up to which a document may grow by the end tags and elements that a browser adds."""
MAX_FRAME_LENGTH = 200_000
MAX_INVISIBLE_SIZE = 1
"""Width or height in pixels up to which a frame shows nothing."""
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)")
"""Number at the beginning of a size; browsers ignore what follows it, such as a unit."""
_LONG_VALUE = re.compile(r"""=\s*(?:"[^"<>]{4096,}"|'[^'<>]{4096,}')""")
_LONG_TAG = re.compile(rf"<([a-zA-Z][\w:-]*)[^>]{{{MAX_TAG_LENGTH},}}")
_STRUCTURE = re.compile(
    r"</?(?!(?:h[1-6]|p|br|title|meta|script|style|head|pre)\b)[a-zA-Z][^<>]*>", re.IGNORECASE
)
_VOID_TAG = re.compile(r"</?(?:source|track|wbr|keygen|menuitem)\b[^<>]{0,4096}>", re.IGNORECASE)
"""Void elements that the parser does not know: it would nest all that follows inside them."""
_EMPTY_ELEMENT = re.compile(
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)(?![\w:.-]))([a-zA-Z][\w:.-]*)"
    r"(\s[^<>]*)?/>",
    re.IGNORECASE,
)
"""`<script src="a.js"/>`: complete in XML, an open element in HTML."""
_NESTING_TAG = re.compile(
    r"<(/?)(?!(?:p|li|dt|dd|tr|td|th|option|area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)[a-zA-Z]",
    re.IGNORECASE,
)
_SELECT_TAG = re.compile(r"</?select\b", re.IGNORECASE)
_OPTION_TAG = re.compile(r"<option\b", re.IGNORECASE)
_INVALID_CHARACTERS = re.compile("[\0\ud800-\udfff]")


def parse_html(text: str) -> Element | None:
    """Parse a document into the tree that a browser builds; None if nothing is left of it.

    Drops long attribute values, and all attributes of tags longer than any real one: a parser's time grows
    with the square of their number, as it does with the depth and with the options of a field. Documents
    with too many are read by libxml2's own rules, and flattened if they are too deep for it as well.
    """
    text = _VOID_TAG.sub("", text)
    text = _LONG_TAG.sub(r"<\1", _LONG_VALUE.sub('=""', _INVALID_CHARACTERS.sub("", text)))
    is_quick = _estimate_depth(text) <= MAX_BROWSER_DEPTH and _count_options(text) <= MAX_BROWSER_OPTIONS
    browser_text = _normalize_structure(text) if is_quick else text
    root, too_deep = _parse_tree(browser_text)
    if too_deep:
        root, _ = _parse_tree(_STRUCTURE.sub("\n", text))
    if root is not None:
        _open_inline_frames(root)
    return root


def close_empty_elements(text: str) -> str:
    """Return a document in XML with end tags for its empty elements, as `parse_html` needs them."""
    return _EMPTY_ELEMENT.sub(r"<\1\2></\1>", text)


def _normalize_structure(text: str) -> str:
    """Return the HTML of the tree that the HTML standard's parser builds, with all its end tags.

    libxml2 ignores some end tags: after `<button><div>Menu</button>` it puts the rest of the page into the
    button. What it reads here has no such places left. A document that multiplies its elements is returned
    unchanged.
    """
    try:
        html = LexborHTMLParser(text).html or ""
    except SelectolaxError:  # it needs more memory than the sandbox has
        return text
    return html if len(html) <= MAX_GROWTH * len(text) + MIN_GROWN_LENGTH else text


def _estimate_depth(text: str) -> int:
    """Return the greatest number of open elements, without those whose end tags may be left out."""
    if text.count("<") <= MAX_BROWSER_DEPTH:
        return 0
    depth = deepest = 0
    for match in _NESTING_TAG.finditer(text):
        depth += -1 if match[1] else 1
        depth = max(depth, 0)
        deepest = max(deepest, depth)
    return deepest


def _count_options(text: str) -> int:
    """Return the greatest number of options of one field."""
    return max(len(_OPTION_TAG.findall(part)) for part in _SELECT_TAG.split(text))


def _parse_tree(text: str) -> tuple[Element | None, bool]:
    streamed = is_streamed(text)
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=not streamed, remove_pis=True)
    try:
        root = cast("Element | None", etree.fromstring(text.encode(), parser))
    except (etree.LxmlError, ValueError, AssertionError):
        return None, False
    too_deep = any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log)
    if root is not None:
        if streamed:
            insert_streamed_parts(root)
        open_shadow_roots(root)
    return root, too_deep


def _open_inline_frames(root: Element) -> None:
    """Turn frames with a document of their own in `srcdoc`, which browsers show, into ordinary elements."""
    for frame in list(root.iter("iframe")):
        document = frame.get("srcdoc")
        if not document or _is_invisible(frame):
            continue
        content = _parse_tree(document)[0] if len(document) <= MAX_FRAME_LENGTH else None
        if content is not None:
            del frame.attrib["srcdoc"]
            frame.tag, frame.text = "div", None
            frame[:] = [find_body(content)]
            frame[0].tag = "div"


def _is_invisible(frame: Element) -> bool:
    """True if a frame's width or height leaves nothing of it to be seen."""
    sizes = [_SIZE.match(frame.get(name) or "") for name in ("width", "height")]
    return any(size and float(size[1]) <= MAX_INVISIBLE_SIZE for size in sizes)


def find_body(root: Element) -> Element:
    """Return the body of a document, or its root if it has none."""
    body = root.find("body")
    return root if body is None else body


def find_container(body: Element) -> Element | None:
    """Return the page's only `main`, or its only `article` if it has no `main`; None without such a one."""
    for tag in ("main", "article"):
        found = list(islice(body.iter(tag), 2))
        if found:
            return found[0] if len(found) == 1 else None
    return None


def remove_element(element: Element) -> None:
    """Remove an element from its tree; the text after it stays."""
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


def find_ancestors(elements: set[Element]) -> set[Element]:
    """Return all elements around some elements, each visited once."""
    found: set[Element] = set()
    for element in elements:
        for each in element.iterancestors():
            if each in found:
                break
            found.add(each)
    return found


def find_neighbours(element: Element, limit: int) -> list[Element]:
    """Return at most `limit` elements before and as many after an element, the nearest first."""
    before, after = element.itersiblings(preceding=True), element.itersiblings()
    return [*islice(before, limit), *islice(after, limit)]


def extract_all_text(element: Element) -> str:
    """Return all text in an element, scripts included."""
    return "".join(map(str, element.itertext()))


def extract_beginning(element: Element, min_length: int) -> str:
    """Return the stripped beginning of an element's text, not much longer than `min_length`."""
    parts: list[str] = []
    length = 0
    for text in element.itertext():
        part = str(text) if parts else str(text).lstrip()
        if part:
            parts.append(part)
            length += len(part)
        if length > min_length:
            break
    return "".join(parts).rstrip()


def measure_depth(root: Element, limit: int) -> int:
    """Return the nesting depth of a tree, counted up to `limit`."""
    depths = {root: 0}
    for element in root.iterdescendants():
        parent = element.getparent()
        depths[element] = depth = depths[parent] + 1 if parent in depths else 1
        if depth >= limit:
            return limit
    return max(depths.values())


def find_by_xpath(root: Element, path: str) -> list[Element]:
    """Return the elements that match an XPath."""
    return cast("list[Element]", root.xpath(path))
