"""Measure the text, and its share in links, of each element of a page."""

from __future__ import annotations

from collections.abc import Container

from centgate.web.extract.dom import Element
from centgate.web.extract.elements import BLOCK_TAGS, has_blocks, name_set

MIN_PARAGRAPH = 80
"""Unlinked characters of a paragraph; shorter blocks may be labels."""

_IGNORED_TAGS = name_set("script style template noscript head title option select textarea button svg")


class TextDensity:
    """Text lengths of each element, without white space at the ends; computed in one pass."""

    def __init__(self, root: Element) -> None:
        self._elements = list(root.iter())  # lxml reuses the identity of an element that is not referenced
        self._text: dict[Element, int] = {}
        self._links: dict[Element, int] = {}
        for element in reversed(self._elements):
            self._measure(element)

    def _measure(self, element: Element) -> None:
        if element.tag in _IGNORED_TAGS:
            text = links = 0
        else:
            text = self._text.get(element, 0) + _text_size(element.text)
            links = text if _is_link(element) else self._links.get(element, 0)
        self._text[element], self._links[element] = text, links
        parent = element.getparent()
        if parent is not None:
            self._text[parent] = self._text.get(parent, 0) + text + _text_size(element.tail)
            self._links[parent] = self._links.get(parent, 0) + links

    def text_length(self, element: Element) -> int:
        """Return the characters of text in an element."""
        return self._text.get(element, 0)

    def unlinked_length(self, element: Element) -> int:
        """Return the characters of text outside links."""
        return self._text.get(element, 0) - self._links.get(element, 0)

    def link_share(self, element: Element) -> float:
        """Return the share of an element's text that is in links, 0 to 1."""
        return self._links.get(element, 0) / max(1, self._text.get(element, 0))


def measure_prose(root: Element, skipped: Container[Element] = ()) -> int:
    """Return the unlinked characters in the paragraphs of an element, without those of `skipped`."""
    weights = TextDensity(root)
    return sum(
        length
        for block in root.iter(*BLOCK_TAGS)
        if block not in skipped
        and (length := weights.unlinked_length(block)) >= MIN_PARAGRAPH
        and not has_blocks(block)
    )


def _is_link(element: Element) -> bool:
    """True for a link; an anchor that has a name and no address, and does nothing, is the target of one.

    XHTML closes such an anchor in its tag. HTML does not, so that the anchor holds the text that follows.
    """
    if element.tag != "a" or _is_contact(element):
        return False
    if element.get("href") is not None or not (element.get("id") or element.get("name")):
        return True
    return any(str(name) in ("role", "ng-click") or str(name).startswith("on") for name in element.attrib)


def _is_contact(link: Element) -> bool:
    """True for a mail address or telephone number: it is a fact of the page, and leads to no other one."""
    return (link.get("href") or "").lstrip()[:7].lower().startswith(("mailto:", "tel:"))


def _text_size(text: str | None) -> int:
    return len(text.strip()) if text else 0
