"""Remove menus that no tag or name marks: lists of short links."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from lxml import etree

from centgate.web.extract.dom import Element, find_container, remove_element
from centgate.web.extract.elements import name_set
from centgate.web.extract.text_density import TextDensity

MIN_LINKS = 4
MIN_LINK_SHARE = 0.85
"""Links of a menu, and their share of its text."""
MAX_LABEL = 25
"""Mean length of the labels of a menu; titles of texts and of products are longer."""
MIN_LINKS_PER_IMAGE = 5
"""Links per image below which a list consists of teasers with their images."""
MIN_ALIKE = 3
"""Other parts with the tag and the class of a part, from which on it is an item of a list."""
MIN_CONTAINER_SHARE = 0.2
"""Share of the page's text in its only `main` or `article` from which on no list in that is a menu."""
MIN_REST = 400
"""Characters outside menus below which a page is a directory, whose lists of links are its content."""
_MAX_BEFORE = 3
"""Elements before a list among which the title above it is looked for."""
_BOX_TAGS = ("ul", "ol", "dl", "div", "section", "table", "td", "p", "span", "center", "menu")
_CONTENT_TAGS = name_set("h1 pre main article")
_CONTAINER_TAGS = name_set("main article")
_TITLE_TAGS = name_set("h1 h2")


def drop_menus(root: Element) -> None:
    """Remove the outermost lists of short links that stand under no title, and outside `main`."""
    if any(each.tag in _CONTAINER_TAGS for each in (root, *root.iterancestors())):
        return
    lists = _LinkLists(root)
    menus = lists.find_menus()
    if lists.length - sum(map(lists.text_length, menus)) >= MIN_REST:
        for menu in menus:
            remove_element(menu)


class _LinkLists:
    """Links, images and titles in each element; counted in one pass."""

    def __init__(self, root: Element) -> None:
        self._root = root
        self._weights = TextDensity(root)
        self._links: Counter[Element] = Counter()
        self._images: Counter[Element] = Counter()
        self._content: set[Element] = set()
        """Elements with a title or another part that no menu has."""
        self._alike: dict[Element, Counter[tuple[str, str]]] = {}
        self.length = self._weights.text_length(root)
        for element in reversed(list(root.iter(etree.Element))):
            self._count(element)

    def text_length(self, element: Element) -> int:
        """Return the characters of text in an element."""
        return self._weights.text_length(element)

    def find_menus(self) -> list[Element]:
        """Return the outermost menus."""
        container = find_container(self._root)
        if container is not None and self.text_length(container) < self.length * MIN_CONTAINER_SHARE:
            container = None
        menus: list[Element] = []
        walk = etree.iterwalk(self._root, events=("start",))
        for _, element in walk:
            if element is container:
                walk.skip_subtree()
            elif element.tag in _BOX_TAGS and element is not self._root and self._is_link_list(element):
                walk.skip_subtree()
                if not self._is_item(element) and not _is_titled(element):
                    menus.append(element)
        return menus

    def _count(self, element: Element) -> None:
        self._links[element] += element.tag == "a" and self.text_length(element) > 0
        self._images[element] += element.tag == "img"
        parent = element.getparent()
        if parent is None:
            return
        self._links[parent] += self._links[element]
        self._images[parent] += self._images[element]
        if element in self._content or element.tag in _CONTENT_TAGS:
            self._content.add(parent)

    def _is_link_list(self, element: Element) -> bool:
        links = self._links[element]
        if links < MIN_LINKS or self._weights.link_share(element) < MIN_LINK_SHARE:
            return False
        if self._images[element] * MIN_LINKS_PER_IMAGE > links or element in self._content:
            return False
        return self.text_length(element) - self._weights.unlinked_length(element) <= links * MAX_LABEL

    def _is_item(self, element: Element) -> bool:
        """True for one of several alike parts, and for the links in one, such as the tags of a text."""
        if self._count_alike(element) >= MIN_ALIKE:
            return True
        parent = element.getparent()
        if parent is None or self._weights.link_share(parent) >= MIN_LINK_SHARE:
            return False
        return self._count_alike(parent) >= MIN_ALIKE

    def _count_alike(self, element: Element) -> int:
        parent = element.getparent()
        if parent is None or not element.get("class"):
            return 0
        if parent not in self._alike:
            self._alike[parent] = Counter(map(_kind, parent.iterchildren(etree.Element)))
        return self._alike[parent][_kind(element)] - 1


def _kind(element: Element) -> tuple[str, str]:
    """Return the tag and the first class of an element."""
    return element.tag, next(iter((element.get("class") or "").split()), "")


def _is_titled(element: Element) -> bool:
    """True for a list that stands right below a title, or below a sentence under it."""
    before = element.itersiblings(etree.Element, preceding=True)
    return any(each.tag in _TITLE_TAGS for each in islice(before, _MAX_BEFORE))
