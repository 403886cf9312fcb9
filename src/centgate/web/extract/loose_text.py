"""Turn text that stands directly beside blocks or images into paragraphs.

Content is chosen by blocks, and such text belongs to none: it would be lost with its division.
"""

from __future__ import annotations

from collections.abc import Container

from lxml import etree

from centgate.web.extract.dom import Element
from centgate.web.extract.elements import BLOCK_TAGS, NON_TEXT_TAGS, name_set

_DIVISIONS = name_set("div section article main center blockquote body td figure form fieldset details aside")
_INLINE_TAGS = name_set("span font b strong i em u small big ins del")
"""Inline elements: in pages made by hand some have blocks inside, and text beside them."""
_OWN_BLOCKS = BLOCK_TAGS | {"img", "picture"}


def wrap_loose_text(body: Element) -> None:
    """Wrap each run of text and inline elements beside a block or an image in a `p`."""
    holders = _find_holders(body)
    for element in [body, *body.iterdescendants(*_DIVISIONS, *_INLINE_TAGS)]:
        if element.tag in _INLINE_TAGS and element not in holders:
            continue
        if any(_is_block(child, holders) for child in element):
            _wrap_runs(element, holders)


def _find_holders(body: Element) -> set[Element]:
    """Return the elements that contain block elements."""
    holders: set[Element] = set()
    for block in body.iterdescendants(*BLOCK_TAGS):
        for each in block.iterancestors():
            if each in holders:
                break
            holders.add(each)
    return holders


def _is_block(element: Element, holders: Container[Element]) -> bool:
    return element.tag in _OWN_BLOCKS or element in holders


def _wrap_runs(element: Element, holders: Container[Element]) -> None:
    run = _Run(element, None, element.text)
    for child in list(element):
        if _is_block(child, holders) or child.tag in NON_TEXT_TAGS:
            run.close()
            run = _Run(element, child, child.tail)
        else:
            run.children.append(child)
    run.close()


class _Run:
    """Text and inline elements between two blocks."""

    def __init__(self, parent: Element, before: Element | None, text: str | None) -> None:
        """Start a run after the element `before`, or at the start of its parent."""
        self._parent, self._before, self._text = parent, before, text
        self.children: list[Element] = []

    def close(self) -> None:
        """Move the run into a `p`, if it has text."""
        if not self._has_text():
            return
        paragraph = etree.Element("p")
        paragraph.text = self._text
        if self._before is None:
            self._parent.text = None
            self._parent.insert(0, paragraph)
        else:
            self._before.tail = None
            self._before.addnext(paragraph)
        paragraph.extend(self.children)

    def _has_text(self) -> bool:
        if self._text and self._text.strip():
            return True
        return any(
            (child.tail and child.tail.strip()) or any(str(text).strip() for text in child.itertext())
            for child in self.children
        )
