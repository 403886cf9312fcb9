"""Match the blocks of a page with the text of its article, and remove the others."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from centgate.web.extract.boilerplate import is_named_extra
from centgate.web.extract.dom import Element, extract_all_text, find_container, remove_element
from centgate.web.extract.elements import BLOCK_TAGS, HEADING_LEVELS
from centgate.web.extract.headings import (
    find_first_heading,
    find_first_heading_tag,
    is_promotion_heading,
    is_reference_heading,
    lists_texts,
    reduce_to_letters,
)
from centgate.web.extract.text_density import TextDensity

_SIMPLE_TAGS = frozenset({"pre", "p", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "figcaption"})
_COMPOUND_TAGS = frozenset({"ul", "ol", "dl", "table"})
"""Blocks that are kept or removed as a whole."""
_INNER_TAGS = (*(BLOCK_TAGS - {"html", "body"}), "img")
MAX_BUTTON = 20
"""Maximum letters of a link between facts, such as one to buy."""
MAX_FACT = 120
"""Maximum letters of a text that is a fact beside the article."""
MIN_SURE_LETTERS = 20
"""Letters of a block from which on a match with the article is not a coincidence."""
MIN_SURE_DATA = 8
"""The same for a table or code, which is less often repeated by chance."""
MAX_BYLINE = 60
"""Maximum letters of a line between a heading and its text: a date, an author."""
MAX_SECTION_DEPTH = 4
"""Maximum number of elements around a block that may be its section."""
MAX_LEAD_IN = 5
"""Maximum number of such lines, and images, in that place."""
PART_LENGTH = 24
"""Letters of the parts that are searched for if a text is not found as a whole."""


def split_letters(letters: str) -> list[str]:
    """Return the parts by which a text is searched in another."""
    return [letters[at : at + PART_LENGTH] for at in range(0, len(letters) - PART_LENGTH, PART_LENGTH)]


class _ContentBlock(Struct):
    """Block of a page: a paragraph, a heading, an image, a whole list or table."""

    element: Element
    key: str
    """Its letters and digits, in lower case."""
    link_share: float
    """Share of its text that is in links."""
    matches: bool


def keep_matching(body: Element, article: str) -> bool:
    """Remove the blocks whose text is not part of an article; return False if no block matches.

    Elements between matching blocks stay if they belong to them: their headings, images, tables, code, and
    paragraphs beside them that are not links.
    """
    letters, weights = reduce_to_letters(article), TextDensity(body)
    lines = {reduce_to_letters(line) for line in article.splitlines()}
    blocks = [_make_block(element, letters, weights) for element in _iter_blocks(body)]
    sure = [
        at
        for at, block in enumerate(blocks)
        if block.matches and len(block.key) >= _min_sure_letters(block) and block.link_share < 0.8
    ]
    if not sure:
        return False
    parents = {blocks[at].element.getparent() for at in sure}
    container = find_container(body)
    last = _extend_over_sections(blocks, sure, parents, weights)
    reach = _extend_range(blocks, sure[0], last, parents)
    reach = _extend_over_alike(blocks, reach, lines)
    reach = range(_find_start(blocks, reach.start, container), reach.stop)
    signatures = _signatures(blocks[at].element for at in reach if blocks[at].matches)
    keeps = [
        block.matches or _is_related(block, parents) or _is_repeated(block, signatures) for block in blocks
    ]
    facts = _find_facts(blocks, container)
    keeps = [(keep or at in facts) and at in reach for at, keep in enumerate(keeps)]
    _keep_link_lists(blocks, keeps, range(sure[0], sure[-1]), parents)
    _keep_headings(blocks, keeps, reach)
    survivors = {
        each
        for block, keep in zip(blocks, keeps, strict=True)
        if keep
        for each in _with_ancestors(block.element)
    }
    _prune_tree(body, survivors, {block.element for block in blocks})
    return True


def _make_block(element: Element, letters: str, weights: TextDensity) -> _ContentBlock:
    key = reduce_to_letters(extract_all_text(element))
    return _ContentBlock(element, key, weights.link_share(element), _is_contained(key, letters))


def _iter_blocks(element: Element) -> Iterator[Element]:
    """Yield the blocks of a page in document order."""
    for child in element:
        tag = child.tag
        if tag == "img" or tag in _SIMPLE_TAGS or (tag in _COMPOUND_TAGS and not _is_layout(child)):
            yield child
        elif next(child.iterdescendants(*_INNER_TAGS), None) is not None:
            yield from _iter_blocks(child)
        elif tag in BLOCK_TAGS:
            yield child


def _is_layout(element: Element) -> bool:
    """True if a list or table is only layout."""
    return next(element.iterdescendants("h1", "h2", "h3", "table", "article", "section"), None) is not None


def _min_sure_letters(block: _ContentBlock) -> int:
    return MIN_SURE_DATA if block.element.tag in ("pre", "table") else MIN_SURE_LETTERS


def _is_contained(key: str, letters: str) -> bool:
    """True if most of a text is contained in another."""
    if not key or len(key) < PART_LENGTH * 2 or key in letters:
        return bool(key) and key in letters
    parts = split_letters(key)
    return sum(part in letters for part in parts) >= len(parts) * 0.6


def _extend_range(blocks: list[_ContentBlock], first: int, last: int, parents: set[Element | None]) -> range:
    """Return the range of the sure blocks, extended by matching or related blocks next to it."""
    while (before := _find_lead_in(blocks, first)) is not None:
        first = before
    in_references = False
    for at in range(last + 1, len(blocks)):
        block = blocks[at]
        if block.element.getparent() not in parents and not _is_in_group(block.element, parents):
            break
        if block.element.tag in HEADING_LEVELS:
            in_references = is_reference_heading(block.key)
        elif block.link_share >= 0.5 and not in_references:
            break
        elif block.matches or in_references or _is_related(block, parents):
            block.matches, last = True, at
    return range(first, last + 1)


def _extend_over_sections(
    blocks: list[_ContentBlock], sure: list[int], parents: set[Element | None], weights: TextDensity
) -> int:
    """Return the index of the last block in the sections that follow those of the sure blocks.

    The last sections of a page are often too short for trafilatura. Their blocks count as matching.
    """
    around = {part for at in sure for part in _iter_sections(blocks[at].element)}
    places = {_make_place(part) for part in around}
    last, accepted = sure[-1], set[Element]()
    for at in range(last + 1, len(blocks)):
        block = blocks[at]
        if block.element.getparent() in parents:
            continue
        outer = (part for part in _iter_sections(block.element) if part not in around)
        section = next((part for part in outer if _make_place(part) in places), None)
        if section is None:
            continue
        if section not in accepted and not _is_text_section(section, weights):
            break
        accepted.add(section)
        block.matches, last = True, at
    return last


def _iter_sections(element: Element) -> Iterator[Element]:
    """Yield the elements around a block, from the inside, which may be its section.

    An `article` is none: it is complete in itself, as a comment or another story is.
    """
    return (each for each in islice(element.iterancestors(), MAX_SECTION_DEPTH) if each.tag != "article")


def _make_place(part: Element) -> tuple[str, str, str, Element | None]:
    """Return tag, class, first heading's tag and parent of a part, which the sections of a text share."""
    return part.tag, part.get("class") or "", find_first_heading_tag(part), part.getparent()


def _is_text_section(part: Element, weights: TextDensity) -> bool:
    """True if a part begins with a heading, and has text below it or links to other sources.

    A heading that is a link leads to another text.
    """
    heading = find_first_heading(part)
    if heading is None or weights.link_share(heading) > 0.5 or is_named_extra(part):
        return False
    if lists_texts(part, heading, weights):
        return False
    key = reduce_to_letters(extract_all_text(heading))
    if is_promotion_heading(key):
        return False
    return weights.link_share(part) < 0.5 or is_reference_heading(key)


def _extend_over_alike(blocks: list[_ContentBlock], reach: range, lines: Container[str]) -> range:
    """Return a range, extended by lines of the article in parts that are alike to parts of the range.

    The last post of a discussion may be short, and the name of an author precedes the first one.
    """
    alike = _signatures(blocks[at].element for at in reach if blocks[at].key in lines)
    found = [
        at for at, block in enumerate(blocks) if block.key in lines and _signatures([block.element]) & alike
    ]
    return range(min((reach.start, *found)), max((reach.stop - 1, *found)) + 1)


def _find_start(blocks: list[_ContentBlock], first: int, container: Element | None) -> int:
    """Return the index from which on a container has no links but single short ones before its text."""
    start = first
    for at in range(first - 1, -1, -1):
        block = blocks[at]
        if not _is_inside(block.element, container):
            break
        if not _has_link(block):
            start = at
        elif len(block.key) > MAX_BUTTON or block.element.tag in _COMPOUND_TAGS or at + 1 != start:
            break
    return start


def _is_inside(element: Element, container: Element | None) -> bool:
    return container is not None and any(each is container for each in element.iterancestors())


def _has_link(block: _ContentBlock) -> bool:
    return block.link_share > 0 or next(block.element.iter("a", "button"), None) is not None


def _find_facts(blocks: list[_ContentBlock], container: Element | None) -> set[int]:
    """Return the indices of short texts without links in the page's only main part, such as prices."""
    return {
        at
        for at, block in enumerate(blocks)
        if 0 < len(block.key) <= MAX_FACT
        and block.element.tag not in HEADING_LEVELS
        and not _has_link(block)
        and _is_inside(block.element, container)
    }


def _is_in_group(element: Element, parents: set[Element | None]) -> bool:
    """True for a block of a figure or of a group of fields that stands beside the text."""
    return any(group.getparent() in parents for group in element.iterancestors("figure", "fieldset"))


def _find_lead_in(blocks: list[_ContentBlock], first: int) -> int | None:
    """Return the index of a heading, code or matching text that leads up to a block; None without one."""
    for at in range(first - 1, max(first - 1 - MAX_LEAD_IN, -1), -1):
        block = blocks[at]
        is_code = block.element.tag == "pre" and bool(block.key)
        if block.element.tag in HEADING_LEVELS or is_code or (block.matches and block.link_share < 0.5):
            return at
        if len(block.key) > MAX_BYLINE or block.link_share >= 0.5:
            return None
    return None


def _is_related(block: _ContentBlock, parents: set[Element | None]) -> bool:
    tag = block.element.tag
    if tag in HEADING_LEVELS:
        return False
    if tag == "pre":
        return True  # the types in a declaration are links to their pages
    if tag in _COMPOUND_TAGS or tag in ("blockquote", "img", "figcaption"):
        return block.link_share < 0.5
    is_content = bool(block.key) or _holds_image(block.element)
    return block.link_share < 0.5 and is_content and block.element.getparent() in parents


def _holds_image(element: Element) -> bool:
    """True for a paragraph that consists of images, which generators of Markdown put into one."""
    return element.tag == "p" and next(element.iter("img", "picture"), None) is not None


def _signatures(elements: Iterable[Element]) -> set[tuple[str, str]]:
    """Return tag and class of the elements around some blocks, without those that have no class."""
    parents = (element.getparent() for element in elements)
    return {(each.tag, each.get("class") or "") for each in parents if each is not None and each.get("class")}


def _is_repeated(block: _ContentBlock, signatures: set[tuple[str, str]]) -> bool:
    """True for a block of a repeated part, such as the price in a card whose neighbour's price matches."""
    parent = block.element.getparent()
    if parent is None or block.element.tag in HEADING_LEVELS or not block.key or block.link_share >= 0.5:
        return False
    return (parent.tag, parent.get("class") or "") in signatures


def _keep_link_lists(
    blocks: list[_ContentBlock], keeps: list[bool], text: range, parents: set[Element | None]
) -> None:
    """Keep links that stand under a heading of the text, and lists of links without names in the text."""
    parent: Element | None = None
    for at in text:
        block = blocks[at]
        if block.element.tag in HEADING_LEVELS:
            parent = None if is_promotion_heading(block.key) else block.element.getparent()
        elif block.link_share >= 0.5 and block.element.getparent() in parents:
            is_plain = block.element.tag in ("ul", "ol") and not block.element.attrib
            keeps[at] = keeps[at] or is_plain or block.element.getparent() is parent
        elif block.key:
            parent = None


def _keep_headings(blocks: list[_ContentBlock], keeps: list[bool], reach: range) -> None:
    """Keep the headings that have content under them, and the title before all content.

    A heading right above another one, as its first line, stays with it, whatever their levels.
    """
    below = 0  # the level of the heading that follows, or a deeper one for other content
    for at in reversed(range(reach.stop)):
        level = HEADING_LEVELS.get(blocks[at].element.tag)
        if level is None:
            below = len(HEADING_LEVELS) + 1 if keeps[at] else below
            continue
        is_first_line = at + 1 < reach.stop and blocks[at + 1].element.tag in HEADING_LEVELS
        keeps[at] = at in reach and below > (0 if is_first_line else level)
        below = level if keeps[at] else below
    title = next((at for at in range(reach.start, -1, -1) if blocks[at].element.tag == "h1"), None)
    if title is not None:
        keeps[title] = True


def _with_ancestors(element: Element) -> Iterator[Element]:
    yield element
    yield from element.iterancestors()


def _prune_tree(element: Element, survivors: set[Element], blocks: set[Element]) -> None:
    for child in list(element):
        if child.tag == "br":
            continue
        if child not in survivors:
            if child in blocks or child.tag in BLOCK_TAGS or len(child):
                remove_element(child)
        elif child not in blocks:
            _prune_tree(child, survivors, blocks)
