"""Compare what is kept of a page with what is there, and return a fuller reading after a large loss.

Class names mislead, and designs put content where others put menus. Two readings that do not depend on them
are the measure: the article as trafilatura finds it in the whole page, and the page without the elements that
HTML itself calls navigation.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from centgate.web.extract.boilerplate import drop_tagged_boilerplate
from centgate.web.extract.content_blocks import keep_matching, split_letters
from centgate.web.extract.dom import Element, find_container
from centgate.web.extract.elements import extract_text
from centgate.web.extract.headings import reduce_to_letters
from centgate.web.extract.text_density import TextDensity, measure_prose

MIN_ARTICLE_RECALL = 0.45
"""Share of the article's text below which a reading has lost too much of it."""
MIN_PAGE_SHARE = 0.3
"""Share of the unlinked text outside navigation below which a reading has lost too much of the page."""
_FULL_RECALL, MIN_PROSE_SHARE = 0.9, 0.35
"""Share of the article, and of the page's paragraphs, from which on a reading has what the page tells."""
_MIN_ARTICLE_LENGTH, _MIN_PAGE_LENGTH = 300, 500
_MIN_PROSE_LENGTH = 800
"""Unlinked characters of a reading below which it may be a box of a page that consists of links."""
_MIN_MATCH_LENGTH = 0.8
"""Length of a matched page, relative to the reading that it replaces."""
_MAX_PARTS = 1000


def find_fuller_reading(
    reading: Element, original: Element, article: str, *, is_article: bool
) -> Element | None:
    """Return a reading that holds much more than the given one; None if that one has lost little.

    `original` is the page without consent banners, `article` the text that trafilatura finds in it.
    `is_article`: the page says that it is one, so that short texts and links around it are no loss.
    """
    if len(article) >= _MIN_ARTICLE_LENGTH:
        text = reduce_to_letters(extract_text(reading))
        recall = measure_recall(text, reduce_to_letters(article))
        if recall < MIN_ARTICLE_RECALL:
            matched = copy.deepcopy(original)
            if keep_matching(matched, article) and _holds_more(matched, text, article):
                return matched
        if is_article and recall >= _FULL_RECALL and _holds_page(reading, original):
            return None
    return _find_untagged_text(reading, original)


def _holds_page(reading: Element, original: Element) -> bool:
    """True if a reading holds what the page tells in paragraphs, and much of the page's only `main` or
    `article`, whatever short texts and links are beside it.
    """
    container = find_container(original)
    if container is not None:
        inside = TextDensity(container).text_length(container)
        if TextDensity(reading).text_length(reading) < inside * MIN_PAGE_SHARE:
            return False
    return measure_prose(reading) >= measure_prose(original) * MIN_PROSE_SHARE


def _holds_more(matched: Element, text: str, article: str) -> bool:
    """True if a matched page holds more of an article than a text, and is no small box beside it."""
    found, letters = reduce_to_letters(extract_text(matched)), reduce_to_letters(article)
    if len(found) < len(text) * _MIN_MATCH_LENGTH:
        return False
    return measure_recall(found, letters) > measure_recall(text, letters) + 0.1


def _find_untagged_text(reading: Element, original: Element) -> Element | None:
    """Return the page without tagged navigation if the reading holds a small share of its text."""
    page, kept = TextDensity(original), TextDensity(reading)
    if not _is_loss(reading, kept, original, page):
        return None
    rest = copy.deepcopy(original)
    drop_tagged_boilerplate(rest)
    return rest if _is_loss(reading, kept, rest, TextDensity(rest)) else None


def _is_loss(reading: Element, kept: TextDensity, page: Element, whole: TextDensity) -> bool:
    """True if a reading holds little of a page's unlinked text, or of all its text if it has no article."""
    unlinked = kept.unlinked_length(reading)
    if whole.text_length(page) < _MIN_PAGE_LENGTH:
        return False
    is_prose = whole.unlinked_length(page) >= _MIN_PAGE_LENGTH
    if is_prose and unlinked < whole.unlinked_length(page) * MIN_PAGE_SHARE:
        return True
    return (
        unlinked < _MIN_PROSE_LENGTH and kept.text_length(reading) < whole.text_length(page) * MIN_PAGE_SHARE
    )


def measure_recall(text: str, reference: str) -> float:
    """Return the share of a reference that is in a text, 0 to 1; both are reduced to letters."""
    parts = split_letters(reference) or [reference]
    step = max(1, len(parts) // _MAX_PARTS)
    return _mean(part in text for part in parts[::step])


def _mean(values: Iterator[bool]) -> float:
    found = list(values)
    return sum(found) / max(1, len(found))
