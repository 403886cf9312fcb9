"""How much text, and how much of it in links, each element of a page holds."""

from __future__ import annotations

from centgate.pages.document import Element
from centgate.pages.elements import names

_UNCOUNTED = names("script style template noscript head title option select textarea button svg")


class Weights:
    """Characters in each element, without white space at their ends; made in one pass."""

    def __init__(self, root: Element) -> None:
        self._kept = list(root.iter())  # lxml forgets what an element is called by when nobody holds it
        self._text: dict[Element, int] = {}
        self._links: dict[Element, int] = {}
        for element in reversed(self._kept):
            self._weigh(element)

    def _weigh(self, element: Element) -> None:
        if element.tag in _UNCOUNTED:
            text = links = 0
        else:
            text = self._text.get(element, 0) + _length(element.text)
            links = text if element.tag == "a" else self._links.get(element, 0)
        self._text[element], self._links[element] = text, links
        parent = element.getparent()
        if parent is not None:
            self._text[parent] = self._text.get(parent, 0) + text + _length(element.tail)
            self._links[parent] = self._links.get(parent, 0) + links

    def text(self, element: Element) -> int:
        """Characters of text in an element."""
        return self._text.get(element, 0)

    def prose(self, element: Element) -> int:
        """Characters of text that are in no link."""
        return self._text.get(element, 0) - self._links.get(element, 0)

    def in_links(self, element: Element) -> float:
        """The share of an element's text that is in links, 0 to 1."""
        return self._links.get(element, 0) / max(1, self._text.get(element, 0))


def _length(text: str | None) -> int:
    return len(text.strip()) if text else 0
