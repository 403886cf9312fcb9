"""Headings by what stands under them, in any design."""

from __future__ import annotations

import re

_NON_LETTERS = re.compile(r"[\W_]+")
_REFERENCE_HEADING = re.compile(
    "seealso|references|externallinks|furtherreading|sources|footnotes|notes|bibliography|literatur|weblinks|"
    "einzelnachweise|r\u00e9f\u00e9rences|liensexternes|learnmore|nextsteps|resources|whatsnext"
)
_PROMOTION_HEADING = re.compile(
    "^(?:related|recommended|popular|trending|latest|share|follow|tags|comments|more(?:stories|news|from|on)|"
    "readmore|readnext|readalso|alsoread|youmay|youmight|mostread|dontmiss|advert|sponsored|newsletter|subscribe)"
)


def reduce_to_letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _NON_LETTERS.sub("", text.lower())


def is_promotion_heading(letters: str) -> bool:
    """True for a heading, reduced to letters, under which links lead to other texts of the site."""
    return _PROMOTION_HEADING.search(letters) is not None


def is_reference_heading(letters: str) -> bool:
    """True for a heading, reduced to letters, under which links are content."""
    return _REFERENCE_HEADING.fullmatch(letters) is not None
