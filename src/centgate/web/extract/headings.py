"""Headings: the one with which a part of a page begins, and what stands under it by its words."""

from __future__ import annotations

import re

from centgate.web.extract.dom import Element, extract_beginning
from centgate.web.extract.elements import HEADING_LEVELS
from centgate.web.extract.text_density import TextDensity

_NON_LETTERS = re.compile(r"[\W_]+")
_REFERENCE_HEADING = re.compile(
    "seealso|references|externallinks|furtherreading|sources|footnotes|notes|bibliography|literatur|weblinks|"
    "einzelnachweise|r\u00e9f\u00e9rences|liensexternes|learnmore|nextsteps|resources|whatsnext"
)
_PROMOTION_HEADING = re.compile(
    "^(?:related|recommended|popular|trending|latest|share|follow|tags|comments|more(?:stories|news|from|on)|"
    "readmore|readnext|readalso|alsoread|youmay|youmight|mostread|dontmiss|advert|sponsored|newsletter|subscribe)"
)
_MAX_LINKED_HEADINGS, _MAX_WRAPPERS = 1, 4
"""Linked headings in a section, and elements around its first heading."""


def reduce_to_letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _NON_LETTERS.sub("", text.lower())


def is_promotion_heading(letters: str) -> bool:
    """True for a heading, reduced to letters, under which links lead to other texts of the site."""
    return _PROMOTION_HEADING.search(letters) is not None


def is_reference_heading(letters: str) -> bool:
    """True for a heading, reduced to letters, under which links are content."""
    return _REFERENCE_HEADING.fullmatch(letters) is not None


def lists_texts(element: Element, heading: Element | None, weights: TextDensity) -> bool:
    """True if an element has several headings that are links, besides its own."""
    linked = (each for each in element.iter("h2", "h3", "h4") if weights.link_share(each) > 0.5)
    return sum(1 for each in linked if each is not heading) > _MAX_LINKED_HEADINGS


def find_first_heading_tag(element: Element) -> str:
    """Return the tag of the heading with which an element begins; empty without one."""
    heading = find_first_heading(element)
    return "" if heading is None else heading.tag


def find_first_heading(element: Element) -> Element | None:
    """Return the heading with which an element begins; None if it begins with other text."""
    part = element
    for _ in range(_MAX_WRAPPERS):
        if part.text and part.text.strip():
            return None
        first = next((each for each in part if extract_beginning(each, 1)), None)
        if first is None or first.tag in HEADING_LEVELS:
            return first
        part = first
    return None
