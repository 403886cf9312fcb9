"""Remove what readers wrote below an article."""

from __future__ import annotations

import re

from lxml import etree

from centgate.web.extract.dom import Element, find_by_xpath, remove_element
from centgate.web.extract.elements import name_set
from centgate.web.extract.text_density import measure_prose

_SECTION_TAGS = name_set("div section article aside ol ul li dl table form details")
_PREFIXES = "(?:article|blog|c|entry|fb|item|js|page|post|reader|story|user)"
_SUFFIXES = (
    "(?:area|block|box|container|content|feed|form|holder|inner|item|list|module|panel|section|stream|thread|"
    "widget|wrap|wrapper)"
)
_SECTION_NAME = re.compile(
    rf"(?:{_PREFIXES}[-_]{{0,2}})?(?:(?:comments|commentaires|comentarios|commenti|kommentare|reacties)"
    rf"(?:[-_]?{_SUFFIXES})?|comment[-_]?{_SUFFIXES})|(?:comment[-_])?respond|disqus_thread",
    re.IGNORECASE,
)
"""Class or id of a part with comments, or with the form for a new one; `no-comments` is none."""
_KEPT_PARTS = (
    "ancestor-or-self::*[contains(@id, 'review') or contains(@class, 'review')]"
    " | .//li[contains(@class, 'review')] | .//pre"
)
"""Reviews of a product and notes with code are content."""
_BLOG = "//form[@id='commentform'] | //ol[contains(concat(' ', @class, ' '), ' commentlist ')]"
"""What WordPress has for the comments of a text; its forums have other names."""
_FRAME_TAGS = ("footer", "nav", "aside", "header")
_MIN_ARTICLE, _MIN_ARTICLE_SHARE, _MIN_BLOG_SHARE = 200, 0.25, 0.1
"""Characters in paragraphs beside the comments, and of those in them: with less, a page is a discussion."""
_MAX_SECTIONS = 100
"""Parts above which nothing is removed: each removal copies the text after the part."""


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
    share = _MIN_BLOG_SHARE if is_blog else _MIN_ARTICLE_SHARE
    minimum = max(_MIN_ARTICLE, share * sum(map(measure_prose, sections)))
    if article >= minimum and len(sections) <= _MAX_SECTIONS:
        for section in sections:
            remove_element(section)


def _find_sections(body: Element) -> list[Element]:
    """Return the outermost parts that are named after comments and hold no title of the page."""
    sections: list[Element] = []
    walk = etree.iterwalk(body, events=("start",), tag=tuple(_SECTION_TAGS))
    for _, element in walk:
        if _is_named(element) and next(element.iter("h1", "main"), None) is None:
            walk.skip_subtree()
            if not find_by_xpath(element, _KEPT_PARTS):
                sections.append(element)
    return sections


def _is_named(element: Element) -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''}".split()
    return any(_SECTION_NAME.fullmatch(name) for name in names[:20])
