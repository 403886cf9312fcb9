"""Remove what readers wrote below an article."""

from __future__ import annotations

import re

from lxml import etree

from centgate.web.extract.dom import Element, find_by_xpath, remove_element
from centgate.web.extract.text_density import measure_prose

_SECTION = re.compile(
    r"(?:\w+[-_])?(?:comments?|commentaires|comentarios|commenti|kommentare|reacties)"
    r"(?:[-_]?(?:area|block|box|container|feed|form|list|module|section|thread|widget|wrap|wrapper))?"
    r"|(?:comment[-_])?respond|disqus_thread|forum",
    re.IGNORECASE,
)
"""Name of a part with comments, or with the form for a new one."""
_BLOG = (
    "//form[contains(@id, 'comment') or contains(@class, 'comment')]//textarea"
    " | //ol[contains(@class, 'commentlist') or contains(@class, 'comment-list')]"
)
"""What blogs have for comments, and discussions have not."""
_MIN_ARTICLE = 200
"""Unlinked characters in paragraphs that a page has without its comments."""


def drop_comments(body: Element, *, is_article: bool) -> None:
    """Remove the comments of a page that says that it is an article, or has comments as blogs have them.

    They stay if little else is there: a discussion is the content of its page.
    """
    if not is_article and not find_by_xpath(body, _BLOG):
        return
    sections = _find_sections(body)
    inside = {inner for section in sections for inner in section.iter()}
    if measure_prose(body, inside) >= _MIN_ARTICLE:
        for section in sections:
            remove_element(section)


def _find_sections(body: Element) -> list[Element]:
    """Return the outermost parts that are named after comments and hold no title of the page."""
    sections: list[Element] = []
    walk = etree.iterwalk(body, events=("start",))
    for _, element in walk:
        if element is not body and _is_named(element) and next(element.iter("h1", "main"), None) is None:
            sections.append(element)
            walk.skip_subtree()
    return sections


def _is_named(element: Element) -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''}".split()
    return any(_SECTION.fullmatch(name) for name in names[:20])
