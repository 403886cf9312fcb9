"""What kinds of elements a page is made of, and the text in them."""

from __future__ import annotations

from lxml import etree

from centgate.pages.document import Element, text_of


def names(text: str) -> frozenset[str]:
    """Names that are written one after another."""
    return frozenset(text.split())


DEEPEST = 120
"""Elements inside one another that are told apart; what lies deeper is text."""
UNSHOWN = names(
    "script style template noscript head title meta link base svg canvas object embed applet audio video "
    "iframe map area source track param datalist select textarea input button progress meter rp frame "
    "frameset noframes dialog"
)
"""Elements that hold no text of the page, or what only a browser can work with."""
BLOCKS = names(
    "address article aside blockquote body center dd details dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section "
    "summary table tbody td tfoot th thead tr caption ul"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SILENT = ("script", "style", "template", "noscript", "button")


def text_in(element: Element) -> str:
    """All text in an element, however deep it lies, but for scripts, styles and buttons."""
    if next(element.iter(*_SILENT), None) is None:
        return text_of(element)
    silent = {inner for each in element.iter(*_SILENT) for inner in each.iter()}
    parts: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end")):
        own = each.text if event == "start" else each.tail if each is not element else None
        unseen = each in silent and (event == "start" or each.getparent() in silent)
        parts.append("" if unseen else own or "")
    return "".join(parts)


def holds_blocks(element: Element) -> bool:
    """Whether more than a line of text lies in an element."""
    return len(element) > 0 and next(element.iterdescendants(*BLOCKS), None) is not None
