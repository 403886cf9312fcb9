"""Kinds of HTML elements, and the text in them."""

from __future__ import annotations

from lxml import etree

from centgate.web.extract.dom import Element, extract_all_text


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


def has_blocks(element: Element) -> bool:
    """True if an element contains block elements."""
    return len(element) > 0 and next(element.iterdescendants(*BLOCK_TAGS), None) is not None
