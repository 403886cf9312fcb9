"""Find the panels of a page that a reader opens: those of its tabs, and the answers under its questions.

Source: https://www.w3.org/WAI/ARIA/apg/patterns/tabs/ and /accordion/. Closed `details` are read as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from lxml import etree

from centgate.web.extract.dom import Element, extract_beginning
from centgate.web.extract.elements import TITLE_TAGS, name_set

MAX_CONTROLS = 500
"""Tabs, lists of tabs and headings that are followed."""
MAX_CONTROLLED = 4
"""Panels of one control."""
MAX_QUESTION = 300
_PANEL_ROLES = name_set("tabpanel region group")
_PANEL_TAGS = name_set("div section article dd li ul ol p table")


def find_panels(root: Element, hidden: Sequence[Element]) -> list[Element]:
    """Return the hidden elements that a visible tab, title or question opens.

    `hidden` are the outermost ones. A panel of tabs needs no name: it is beside or below the list of tabs.
    """
    if not hidden:
        return []
    closed = set(hidden)
    controls = (each for each in root.iter(etree.Element) if _is_control(each))
    visible = [each for each in islice(controls, MAX_CONTROLS) if not _is_inside(each, closed)]
    names = {name for each in visible if _opens_content(each) for name in _list_controlled(each)}
    homes = {each.getparent() for each in visible if each.get("role") == "tablist"}
    return [
        each for each in hidden if _is_panel(each) and (each.get("id") in names or _is_beside(each, homes))
    ]


def _is_control(element: Element) -> bool:
    return element.get("aria-controls") is not None or element.get("role") == "tablist"


def _is_inside(element: Element, closed: set[Element]) -> bool:
    return element in closed or any(each in closed for each in element.iterancestors())


def _opens_content(control: Element) -> bool:
    """True for a tab, a control in a title, and a question; other controls open menus and windows."""
    if control.get("role") == "tab" or next(control.iterancestors(*TITLE_TAGS), None) is not None:
        return True
    return extract_beginning(control, MAX_QUESTION).endswith("?")


def _list_controlled(control: Element) -> Iterator[str]:
    return islice(iter((control.get("aria-controls") or "").split()), MAX_CONTROLLED)


def _is_panel(element: Element) -> bool:
    return element.tag in _PANEL_TAGS and element.get("role", "region") in _PANEL_ROLES


def _is_beside(element: Element, homes: set[Element | None]) -> bool:
    """True for a panel of tabs whose list stands beside it, or beside what is around it."""
    if element.get("role") != "tabpanel":
        return False
    return any(each in homes for each in islice(element.iterancestors(), 2))
