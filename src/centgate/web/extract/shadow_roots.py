"""Open declarative shadow roots: put what a browser shows of them into the page's own tree.

Sources: the start tag `template` in the section "in head" of the HTML standard's parser, "attach a shadow
root" and "slots" in the DOM standard.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from lxml.etree import _Element as Element  # pyright: ignore[reportPrivateUsage] - the name in the stubs

SLOTTED = "slotted"
"""Attribute of an element in a shadow root which holds content of the page around it."""
_HOSTS = frozenset(
    (
        *("article", "aside", "blockquote", "body", "div", "footer", "header", "main", "nav", "p", "section"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "span"),
    )
)
"""Elements beside those of a page's own that may have a shadow root."""
_INLINE_TAGS = frozenset(
    (
        *("a", "abbr", "b", "br", "cite", "code", "em", "i", "img", "kbd"),
        *("mark", "q", "s", "small", "span", "strong", "sub", "sup", "time", "u"),
    )
)
_MAX_INLINE = 100
"""Elements directly in a slot above which it is no part of a line."""
_MODES = ("open", "closed")


def open_shadow_roots(root: Element) -> None:
    """Turn shadow roots into ordinary elements, with the content of their hosts in the slots.

    Content of a host without a slot is removed, as browsers do not show it.
    """
    _remove_marks(root)
    opened = set[Element]()
    for template in list(root.iter("template")):  # an outer one comes first: its slots may be in an inner one
        host = template.getparent()
        if host is None or host in opened or not _is_shadow_root(template, host):
            continue
        opened.add(host)
        _fill_slots(template, host)
        template.tag, template.tail = "div", None
        template.set("shadowrootmode", "open")
        host.text = None
        host[:] = [template, *(each for each in host if each.tag in ("script", "style"))]


def _remove_marks(root: Element) -> None:
    """Remove attributes of a page that would count as marks of what is opened here."""
    for element in root.iter(etree.Element):
        for name in (SLOTTED, "shadowrootmode"):
            if name in element.attrib and not (element.tag == "template" and name != SLOTTED):
                del element.attrib[name]


def find_shadow_elements(root: Element) -> set[Element]:
    """Return the elements of opened shadow roots, which the page's style sheets do not apply to."""
    found = set[Element]()
    for shadow in root.iter("div"):
        if shadow.get("shadowrootmode") is None or shadow in found:
            continue
        walk = etree.iterwalk(shadow, events=("start",))
        for _, element in walk:
            if element.get(SLOTTED) is None:
                found.add(element)
            else:
                walk.skip_subtree()
    return found


def _is_shadow_root(template: Element, host: Element) -> bool:
    mode = template.get("shadowrootmode") or template.get("shadowroot") or ""
    is_host = (host.tag in _HOSTS or "-" in host.tag) and host.get("shadowrootmode") is None
    return is_host and mode.lower() in _MODES


def _fill_slots(template: Element, host: Element) -> None:
    """Move the content of a host to the first slot of each name; a slot without any keeps its own content."""
    own = list(_iter_slots(template))
    slots: dict[str, Element] = {}
    for slot in own:
        slots.setdefault(slot.get("name") or "", slot)
    texts = [host.text, *(each.tail for each in host)]
    children: dict[str, list[Element]] = {}
    for each in host:
        if each is not template:
            children.setdefault(each.get("slot") or "", []).append(each)
    for name, slot in slots.items():
        assigned = children.get(name, [])
        has_text = not name and any(text and text.strip() for text in texts)
        if not assigned and not has_text:
            continue
        slot.text, slot[:] = None, []
        if name:
            for each in assigned:
                each.tail = None
                slot.append(each)
        else:
            _move_unnamed(host, slot, template)
        slot.set(SLOTTED, "")
    for slot in own:
        if len(slot) <= _MAX_INLINE and all(each.tag in _INLINE_TAGS for each in slot.iterdescendants()):
            slot.tag = "span"  # an element that readers do not know makes a cell no cell


def _move_unnamed(host: Element, slot: Element, template: Element) -> None:
    """Move the text of a host, and its elements that name no slot, in their order."""
    texts = [host.text or ""]
    last: Element | None = None
    for each in list(host):
        tail, each.tail = each.tail, None
        if each is not template and not each.get("slot"):
            _set_text_after(last, slot, "".join(texts))
            slot.append(each)
            last, texts = each, []
        texts.append(tail or "")
    _set_text_after(last, slot, "".join(texts))


def _set_text_after(element: Element | None, parent: Element, text: str) -> None:
    """Set the text after an element, or at the beginning of its parent if there is none."""
    if element is None:
        parent.text = text
    else:
        element.tail = text


def _iter_slots(template: Element) -> Iterator[Element]:
    """Yield the slots of a shadow root, without those of roots within it."""
    walk = etree.iterwalk(template, events=("start",))
    for _, element in walk:
        if element.tag == "slot":
            yield element
        elif element.tag == "template" and element is not template:
            walk.skip_subtree()
