"""Remove what readers wrote below an article."""

from __future__ import annotations

import re

from lxml import etree

from centgate.web.extract.dom import Element, find_by_xpath, remove_element
from centgate.web.extract.elements import name_set
from centgate.web.extract.text_density import measure_prose

_SECTION_TAGS = name_set("div section article aside ol ul li table form details")
_SECTION_NAME = re.compile(
    r"(?:(?:article|blog|entry|fb|page|post|reader|story|user)[-_]?)?"
    r"(?:comments?|commentaires|comentarios|commenti|kommentare|reacties)"
    r"(?:[-_]?(?:area|block|box|container|feed|form|item|list|module|section|thread|widget|wrap|wrapper))?"
    r"|(?:comment[-_])?respond|disqus_thread",
    re.IGNORECASE,
)
"""Class or id of a part with comments, or with the form for a new one; `no-comments` is none."""
_BLOG = "//form[@id='commentform'] | //ol[contains(concat(' ', @class, ' '), ' commentlist ')]"
"""What WordPress has for the comments of a text; its forums have other names."""
_FRAME_TAGS = ("footer", "nav", "aside", "header")
_MIN_ARTICLE, _MIN_ARTICLE_SHARE = 200, 0.25
"""Characters in paragraphs beside the comments, and of those in them: with less, a page is a discussion."""


def drop_comments(body: Element, *, is_article: bool) -> None:
    """Remove the comments of a page that says that it is an article, or has comments as blogs have them.

    They stay if little else is there: a discussion is the content of its page.
    """
    is_blog = bool(find_by_xpath(body, _BLOG))
    if not is_article and not is_blog:
        return
    sections = _find_sections(body)
    frame = {inner for part in (*sections, *body.iter(*_FRAME_TAGS)) for inner in part.iter()}
    article = measure_prose(body, frame)
    minimum = 0.0 if is_blog else _MIN_ARTICLE_SHARE * sum(map(measure_prose, sections))
    if article >= max(_MIN_ARTICLE, minimum):
        for section in sections:
            remove_element(section)


def _find_sections(body: Element) -> list[Element]:
    """Return the outermost parts that are named after comments and hold no title of the page."""
    sections: list[Element] = []
    walk = etree.iterwalk(body, events=("start",), tag=tuple(_SECTION_TAGS))
    for _, element in walk:
        if _is_named(element) and next(element.iter("h1", "main"), None) is None:
            sections.append(element)
            walk.skip_subtree()
    return sections


def _is_named(element: Element) -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''}".split()
    return any(_SECTION_NAME.fullmatch(name) for name in names[:20])
