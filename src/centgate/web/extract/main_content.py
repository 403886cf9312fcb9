"""Extract the part of a page that is its content.

Reference pages keep their structure: their content is the page without boilerplate. Articles are found by
trafilatura, which is better at prose. It loses structure, so its text only decides which of the page's own
elements to keep.
"""

from __future__ import annotations

import copy
from itertools import islice

from lxml import etree
from msgspec import Struct
from msgspec.structs import replace

from centgate.web.extract.boilerplate import (
    drop_boilerplate,
    drop_consent_banners,
    drop_link_lists,
    drop_section_names,
    drop_side_boxes,
    open_content_forms,
    open_notes,
)
from centgate.web.extract.code_blocks import drop_language_labels
from centgate.web.extract.comments import drop_comments
from centgate.web.extract.content_blocks import keep_matching
from centgate.web.extract.content_type import PARSER_ERRORS
from centgate.web.extract.dom import Element, find_by_xpath, find_container, measure_depth, remove_element
from centgate.web.extract.loose_text import wrap_loose_text
from centgate.web.extract.recall_guard import find_fuller_reading
from centgate.web.extract.source_lines import add_source_line
from centgate.web.extract.text_density import TextDensity

MAX_ELEMENTS = 12_000
"""Above this number of elements trafilatura is skipped, since it would take seconds."""
MAX_MEASURED, MAX_NESTING = 60_000, 200
"""Elements and nesting depth above which the content is chosen by tags alone."""
REFERENCE_CODE, REFERENCE_ROWS, REFERENCE_TERMS = 2, 8, 6
MIN_ARTICLE, MAX_ARTICLE = 200, 300_000
_CONTAINERS = (
    "//main | //*[@role='main']",
    "//*[@itemprop='articleBody']",
    "//article",
    "//*[@id='content' or @id='main' or @id='main-content' or @id='mw-content-text' or "
    "@id='readme' or @id='article'"
    " or @id='bodyContent']",
    "//*[contains(concat(' ', @class, ' '), ' entry-content ') or contains(concat(' ', @class, ' "
    "'), ' post-content ')"
    " or contains(concat(' ', @class, ' '), ' article-body ') or contains(concat(' ', @class, ' "
    "'), ' markdown-body ')"
    " or contains(concat(' ', @class, ' '), ' post-body ') or contains(concat(' ', @class, ' '), "
    "' main-content ')"
    " or contains(concat(' ', @class, ' '), ' page-content ') or contains(concat(' ', @class, ' "
    "'), ' content ')]",
)
_MIN_CONTAINER_SHARE = 0.4
"""Share of the page's remaining text that a container must hold to be the content."""
_MIN_ARTICLE_SHARE = 0.25
"""Share of the remaining text that an article must hold."""
_MIN_UNLINKED_SHARE = 0.6
"""Share of a part's unlinked text that its article must hold if the page does not say that it is one."""
_MAX_PART_LINKS = 0.7
"""Share of links of a part from which on its unlinked text is beside them."""


class MainContent(Struct, frozen=True):
    """Main content of a page, and how much of the page's text it holds."""

    element: Element
    share: float
    """Share of the page's visible text outside links, 0 to 1; menus and boxes are part of that text."""
    visible: int
    """Characters of that text."""
    container_share: float = 1
    """Share of the same text in the page's only `main` or `article`, 0 to 1; 1 without one."""
    is_fuller: bool = False
    """True if the first reading lost much of the text, and one that holds more is returned."""


def extract_main_content(body: Element, *, is_article: bool) -> MainContent:
    """Return the main content of a body; modifies the body. `is_article`: the page says that it is one."""
    container = find_container(body)
    inside = TextDensity(body).unlinked_length(container) if container is not None else 0
    main = _select_main_content(body, is_article=is_article)
    kept = TextDensity(main.element).unlinked_length(main.element)
    return replace(main, container_share=min(1.0, kept / inside) if inside else 1)


def _select_main_content(body: Element, *, is_article: bool) -> MainContent:
    visible = max(1, TextDensity(body).unlinked_length(body))
    count = sum(1 for _ in islice(body.iter(), MAX_MEASURED))
    if count == MAX_MEASURED or measure_depth(body, MAX_NESTING) == MAX_NESTING:
        return _make_main_content(_content_by_tags(body), visible)
    drop_consent_banners(body)
    drop_language_labels(body)
    wrap_loose_text(body)
    drop_comments(body, is_article=is_article)
    weights = TextDensity(body)
    open_content_forms(body, weights)
    open_notes(body, weights)
    drop_section_names(body, weights)
    original = copy.deepcopy(body) if count < MAX_ELEMENTS else None
    drop_boilerplate(body, weights)
    drop_side_boxes(body, TextDensity(body))
    weights = TextDensity(body)
    part = _find_container(body, weights)
    if part is body:
        drop_link_lists(body, weights)
    if original is None:
        return _make_main_content(_with_title(part, body), visible)
    article = _run_trafilatura(original)
    reading = (
        _with_title(part, body)
        if _is_reference(part)
        else _match_article(body, part, article, weights, is_article=is_article)
    )
    fuller = find_fuller_reading(reading, original, article, is_article=is_article)
    chosen = reading if fuller is None else fuller
    add_source_line(chosen, original)
    return _make_main_content(chosen, visible, is_fuller=fuller is not None)


def _make_main_content(element: Element, visible: int, *, is_fuller: bool = False) -> MainContent:
    share = TextDensity(element).unlinked_length(element) / visible
    return MainContent(element, min(1.0, share), visible, is_fuller=is_fuller)


def _content_by_tags(body: Element) -> Element:
    for element in list(body.iter("nav", "footer", "aside")):
        remove_element(element)
    mains = list(islice(body.iter("main"), 2))
    return mains[0] if len(mains) == 1 else body


def _is_reference(part: Element) -> bool:
    counts = {"pre": REFERENCE_CODE, "tr": REFERENCE_ROWS, "dt": REFERENCE_TERMS}
    return any(len(list(part.iter(tag))) >= minimum for tag, minimum in counts.items())


def _find_container(body: Element, weights: TextDensity) -> Element:
    """Return the element that is marked as the content and holds enough text, else the body."""
    minimum = weights.text_length(body) * _MIN_CONTAINER_SHARE
    for path in _CONTAINERS:
        candidates = find_by_xpath(body, path)
        if candidates and weights.text_length(largest := max(candidates, key=weights.text_length)) >= max(
            minimum, 1
        ):
            return largest
    return body


def _with_title(part: Element, body: Element) -> Element:
    """Return a part, with the page's only h1 in front if that precedes it."""
    titles = list(body.iter("h1"))
    if part is body or len(titles) != 1 or part in titles[0].iterancestors() or list(part.iter("h1")):
        return part
    title = copy.deepcopy(titles[0])
    title.tail = part.text
    part.text = None
    part.insert(0, title)
    return part


def _match_article(
    body: Element, part: Element, article: str, weights: TextDensity, *, is_article: bool
) -> Element:
    """Return the elements whose text is in the article, or the part if the article holds too little of it.

    Also the part if the article is longer than `MAX_ARTICLE`: what is after its end would be lost.
    """
    if len(article) >= MAX_ARTICLE:
        return _with_title(part, body)
    minimum = min(MIN_ARTICLE, weights.text_length(part) // 2)
    is_too_little = (
        len(article) < weights.text_length(part) * _MIN_ARTICLE_SHARE and weights.link_share(part) < 0.3
    )
    if len(article) < minimum or is_too_little:
        return _with_title(part, body)
    kept = copy.deepcopy(body)
    if not keep_matching(kept, article):
        return _with_title(part, body)
    return kept if is_article or _holds_most(kept, part, weights) else _with_title(part, body)


def _holds_most(kept: Element, part: Element, weights: TextDensity) -> bool:
    """True if what is kept holds most of a part's unlinked text: the introduction of a list is no article.

    The part's only `article` is measured in its place, if it holds a text.
    """
    if weights.link_share(part) > _MAX_PART_LINKS:
        return True
    articles = list(islice(part.iter("article"), 2))
    if len(articles) == 1 and weights.unlinked_length(articles[0]) >= MIN_ARTICLE:
        part = articles[0]
    frame = sum(map(weights.unlinked_length, _find_frame(part)))
    minimum = (weights.unlinked_length(part) - frame) * _MIN_UNLINKED_SHARE
    return TextDensity(kept).unlinked_length(kept) >= minimum


def _find_frame(part: Element) -> list[Element]:
    """Return the outermost elements of a part that HTML itself puts beside the content."""
    frame: list[Element] = []
    walk = etree.iterwalk(part, events=("start",), tag=("footer", "nav", "aside"))
    for _, element in walk:
        frame.append(element)
        walk.skip_subtree()
    return frame


def _drop_hiding_names(body: Element) -> None:
    """Remove the attributes by which trafilatura takes elements for hidden; those that are were removed.

    It drops, for example, all elements with `hidden` in their style, such as `overflow: hidden`.
    """
    etree.strip_attributes(body, "style", "aria-hidden")
    for element in body.iter(etree.Element):
        for name in ("class", "id"):
            value = element.get(name)
            if value and "hid" in value:
                element.set(name, " ".join(word for word in value.split() if "hid" not in word))


def _run_trafilatura(original: Element) -> str:
    from trafilatura import extract

    _drop_hiding_names(original)
    html = etree.tostring(original, encoding="unicode", method="html")
    try:
        article = extract(
            f"<html>{html}</html>",
            fast=True,
            include_comments=False,
            include_formatting=False,
            output_format="txt",
        )
    except (etree.LxmlError, *PARSER_ERRORS):
        return ""  # pages that break trafilatura are read without it
    return (article or "")[:MAX_ARTICLE]
