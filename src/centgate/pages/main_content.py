"""The part of a page that is its content.

Reference pages keep their structure: what is left of a page after its boilerplate is their content. Articles
are found by trafilatura, which is better at prose; since it loses structure on the way, its text only tells
which of the page's own elements to keep.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from centgate.pages.boilerplate import drop_beside, drop_boilerplate, drop_consent, drop_link_lists
from centgate.pages.code import drop_labels
from centgate.pages.document import Element, depth_of, found_by, remove, text_of
from centgate.pages.elements import BLOCKS, HEADINGS
from centgate.pages.weights import Weights

MOST_ELEMENTS = 12_000
"""Beyond this a page is not asked about its prose, which takes seconds."""
MOST_WEIGHED, MOST_NESTED = 60_000, 200
"""Beyond this nothing but its tags tells what a page's content is."""
REFERENCE_CODE, REFERENCE_ROWS, REFERENCE_TERMS = 2, 8, 6
LEAST_PROSE, MOST_PROSE = 200, 300_000
_CONTAINERS = (
    "//main | //*[@role='main']",
    "//*[@itemprop='articleBody']",
    "//article",
    "//*[@id='content' or @id='main' or @id='main-content' or @id='mw-content-text' or "
    "@id='readme' or @id='article'"
    " or @id='bodyContent']",
    "//*[contains(concat(' ', @class, ' '), ' entry-content ') or contains(concat(' ', @class, ' "
    "'), ' post-content ')"
    " or contains(concat(' ', @class, ' '), ' article-body ') or contains(concat(' ', @class, ' "
    "'), ' markdown-body ')"
    " or contains(concat(' ', @class, ' '), ' post-body ') or contains(concat(' ', @class, ' '), "
    "' main-content ')"
    " or contains(concat(' ', @class, ' '), ' page-content ') or contains(concat(' ', @class, ' "
    "'), ' content ')]",
)
_LEAST_SHARE = 0.4
"""Of the page's remaining text, what a container must hold to be the content."""
_WHOLE = frozenset({"pre", "p", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "figcaption"})
_COMPOUND = frozenset({"ul", "ol", "dl", "table"})
"""Blocks that are kept or left out as they are."""
_INNER = (*(BLOCKS - {"html", "body"}), "img")
_NO_WORDS = re.compile(r"[\W_]+")
_SOURCES = re.compile(
    "seealso|references|externallinks|furtherreading|sources|footnotes|notes|bibliography|literatur|weblinks|"
    "einzelnachweise|r\u00e9f\u00e9rences|liensexternes|learnmore|nextsteps|resources|whatsnext"
)
"""Headings, as letters, under which links are content."""
SURE = 20
"""Letters of a block that are not found in a page's prose by chance."""
LINE = 60
"""Letters of a line that may stand between a heading and its text: a date, an author."""
LEAD = 5
"""Such lines, and pictures, that may stand there."""
PIECE = 24
"""Letters of which a text is looked for, where it is not found whole."""


def main_content(body: Element) -> Element:
    """What is left of a body, which is changed, when only its content is kept."""
    count = sum(1 for _ in islice(body.iter(), MOST_WEIGHED))
    if count == MOST_WEIGHED or depth_of(body, MOST_NESTED) == MOST_NESTED:
        return _tagged(body)
    drop_consent(body)
    drop_labels(body)
    weights = Weights(body)
    original = copy.deepcopy(body) if count < MOST_ELEMENTS else None
    drop_boilerplate(body, weights)
    drop_beside(body, Weights(body))
    weights = Weights(body)
    part = _container(body, weights)
    if part is body:
        drop_link_lists(body, weights)
    if original is None or _is_reference(part):
        return _with_title(part, body)
    return _prose(body, part, original, weights)


def _tagged(body: Element) -> Element:
    for element in list(body.iter("nav", "footer", "aside")):
        remove(element)
    mains = list(islice(body.iter("main"), 2))
    return mains[0] if len(mains) == 1 else body


def _is_reference(part: Element) -> bool:
    counts = {"pre": REFERENCE_CODE, "tr": REFERENCE_ROWS, "dt": REFERENCE_TERMS}
    return any(len(list(part.iter(tag))) >= least for tag, least in counts.items())


def _container(body: Element, weights: Weights) -> Element:
    """The element that says that it is the content and holds enough text to be it."""
    least = weights.text(body) * _LEAST_SHARE
    for path in _CONTAINERS:
        found = found_by(body, path)
        if found and weights.text(largest := max(found, key=weights.text)) >= max(least, 1):
            return largest
    return body


def _with_title(part: Element, body: Element) -> Element:
    """A part, with the page's one h1 in front when that stands before it."""
    titles = list(body.iter("h1"))
    if part is body or len(titles) != 1 or part in titles[0].iterancestors() or list(part.iter("h1")):
        return part
    title = copy.deepcopy(titles[0])
    title.tail = part.text
    part.text = None
    part.insert(0, title)
    return part


def _prose(body: Element, part: Element, original: Element, weights: Weights) -> Element:
    """The elements whose text trafilatura takes for the page's; the part when it finds too little of it."""
    text = _trafilatura(original)
    least = min(LEAST_PROSE, weights.text(part) // 2)
    few = len(text) < weights.text(part) * 0.25 and weights.in_links(part) < 0.3
    if len(text) < least or few:
        return _with_title(part, body)
    kept = copy.deepcopy(body)
    if not _keep_only(kept, _NO_WORDS.sub("", text.lower())):
        return _with_title(part, body)
    return kept


def _trafilatura(original: Element) -> str:
    from trafilatura import extract

    html = etree.Element("html")
    html.append(original)
    try:
        found = extract(
            etree.tostring(html, encoding="unicode", method="html"),
            fast=True,
            include_comments=False,
            include_formatting=False,
            output_format="txt",
        )
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        AssertionError,
        etree.LxmlError,
    ):
        return ""  # what it was not ready for, the page itself still has
    return (found or "")[:MOST_PROSE]


@dataclass(slots=True)
class _Leaf:
    """A block of a page: a paragraph, a heading, an image, a whole list or table."""

    element: Element
    key: str
    """Its letters and figures, in lower case."""
    linked: float
    """The share of its text that is in links."""
    found: bool


def _keep_only(body: Element, letters: str) -> bool:
    """Remove the blocks whose text is not in another, given as letters; False when none is.

    What stands between blocks that are found stays where it belongs to them: headings of theirs, images,
    tables, code, and paragraphs beside them that are no links.
    """
    weights = Weights(body)
    leaves = [_leaf(element, letters, weights) for element in _units(body)]
    sure = [
        at for at, leaf in enumerate(leaves) if leaf.found and len(leaf.key) >= SURE and leaf.linked < 0.8
    ]
    if not sure:
        return False
    beside = {leaves[at].element.getparent() for at in sure}
    inner = _reach(leaves, sure[0], sure[-1], beside)
    kept = [leaf.found or _belongs(leaf, beside) for leaf in leaves]
    kept = [keep and at in inner for at, keep in enumerate(kept)]
    _keep_headings(leaves, kept, inner)
    alive = {each for leaf, keep in zip(leaves, kept, strict=True) if keep for each in _line(leaf.element)}
    _prune(body, alive, {leaf.element for leaf in leaves})
    return True


def _leaf(element: Element, letters: str, weights: Weights) -> _Leaf:
    key = _NO_WORDS.sub("", text_of(element).lower())
    return _Leaf(element, key, weights.in_links(element), _is_in(key, letters))


def _units(element: Element) -> Iterator[Element]:
    """The blocks of a page in their order."""
    for child in element:
        tag = child.tag
        if tag == "img" or tag in _WHOLE or (tag in _COMPOUND and not _arranges(child)):
            yield child
        elif next(child.iterdescendants(*_INNER), None) is not None:
            yield from _units(child)
        elif tag in BLOCKS:
            yield child


def _arranges(element: Element) -> bool:
    """Whether a list or table only arranges a page."""
    return next(element.iterdescendants("h1", "h2", "h3", "table", "article", "section"), None) is not None


def _is_in(key: str, letters: str) -> bool:
    """Whether most of a text stands in another."""
    if not key or len(key) < PIECE * 2 or key in letters:
        return bool(key) and key in letters
    pieces = [key[at : at + PIECE] for at in range(0, len(key) - PIECE, PIECE)]
    return sum(piece in letters for piece in pieces) >= len(pieces) * 0.6


def _reach(leaves: list[_Leaf], first: int, last: int, beside: set[Element | None]) -> range:
    """From the first sure block to the last, with what is found or belongs to them right before and after."""
    while (before := _leading(leaves, first)) is not None:
        first = before
    sources = False
    for at in range(last + 1, len(leaves)):
        leaf = leaves[at]
        if leaf.element.getparent() not in beside:
            break
        if leaf.element.tag in HEADINGS:
            sources = _SOURCES.fullmatch(leaf.key) is not None
        elif leaf.linked >= 0.5 and not sources:
            break
        elif leaf.found or sources or _belongs(leaf, beside):
            leaf.found, last = True, at
    return range(first, last + 1)


def _leading(leaves: list[_Leaf], first: int) -> int | None:
    """Where what leads up to a block begins: a heading or text that is found, a line between them or not."""
    for at in range(first - 1, max(first - 1 - LEAD, -1), -1):
        leaf = leaves[at]
        if leaf.element.tag in HEADINGS or (leaf.found and leaf.linked < 0.5):
            return at
        if len(leaf.key) > LINE or leaf.linked >= 0.5:
            return None
    return None


def _belongs(leaf: _Leaf, beside: set[Element | None]) -> bool:
    tag = leaf.element.tag
    if tag in HEADINGS:
        return False
    if tag in _COMPOUND or tag in ("pre", "blockquote", "img", "figcaption"):
        return leaf.linked < 0.5
    return leaf.linked < 0.5 and bool(leaf.key) and leaf.element.getparent() in beside


def _keep_headings(leaves: list[_Leaf], kept: list[bool], inner: range) -> None:
    """Keep the headings that have something under them, and the title before it all."""
    under = False
    for at in reversed(range(inner.stop)):
        if leaves[at].element.tag in HEADINGS:
            kept[at] = under and at in inner
            under = under and leaves[at].element.tag != "h1"
            under = False if kept[at] else under
        under = under or kept[at]
    title = next((at for at in range(inner.start, -1, -1) if leaves[at].element.tag == "h1"), None)
    if title is not None:
        kept[title] = True


def _line(element: Element) -> Iterator[Element]:
    yield element
    yield from element.iterancestors()


def _prune(element: Element, alive: set[Element], leaves: set[Element]) -> None:
    for child in list(element):
        if child.tag == "br":
            continue
        if child not in alive:
            if child in leaves or child.tag in BLOCKS or len(child):
                remove(child)
        elif child not in leaves:
            _prune(child, alive, leaves)
