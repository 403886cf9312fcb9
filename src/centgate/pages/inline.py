"""What stands in a line of a page as Markdown: links, images, code, emphasis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from centgate.pages.addresses import absolute
from centgate.pages.code import code_of
from centgate.pages.document import Element
from centgate.pages.elements import BLOCKS, DEEPEST, HEADINGS, UNSHOWN, text_in
from centgate.pages.marks import TICKS
from centgate.text import legible

SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
_BREAK = "\v"
"""Stands for a line break until spaces are settled."""
_AROUND_BREAK = re.compile(f" *{_BREAK}[ {_BREAK}]*")
_MARK = re.compile(r"`|<(?=[a-zA-Z/!?]|\Z)")
"""What could begin a tag, perhaps with the text that follows in another element, and what could hide one."""
_ANCHORED = frozenset({*HEADINGS, "dt"})
"""What links to itself, so that it can be linked to."""
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_ANCHOR_TEXT = frozenset({"", "#", "\xb6", "\xa7", "\u200b", "\U0001f517", "\uf0c1", "[source]", "[edit]"})
_POWER = re.compile(r"[-+\u2212]?\d{1,4}|n")
_NOTE_MARK = re.compile(r"^\[([^\[\]]{1,6})\]$")
_LINK_INSIDE = re.compile(r"(?<!\!)\[[^\[\]]*\]\(")
_UNESCAPED_BRACKET = re.compile(r"!\[(?:[^\[\]\\]|\\.)*\]\([^()]*\)|(?<!\\)[\[\]]")


class Inline:
    """Writes what stands in a line; `base` is what links start from."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._addresses: dict[str, str | None] = {}

    def inline(self, element: Element, depth: int = 0) -> str:
        """What an element holds, on one line but for breaks."""
        return settled(self.inside(element, depth)).replace("\n", " ")

    def inside(self, element: Element, depth: int) -> str:
        """What an element holds, its spaces and breaks not yet settled."""
        if depth > DEEPEST:
            return shown(text_in(element))
        parts = [shown(element.text)]
        for child in element:
            tag = child.tag
            if tag not in UNSHOWN:
                space = " " if tag in BLOCKS else ""
                parts += (space, self.piece(child, tag, depth + 1), space)
            if child.tail:
                parts.append(shown(child.tail))
        return "".join(parts)

    def piece(self, element: Element, tag: str, depth: int) -> str:
        """An element in a line."""
        if tag == "br":
            return _BREAK
        if tag == "img":
            return self._image(element)
        if tag == "a":
            return self._link(element, depth)
        if tag in _CODE:
            return code_span(SPACE.sub(" ", text_in(element)))
        if tag == "math":
            return _formula(element)
        if tag == "pre":
            return code_span(SPACE.sub(" ", code_of(element)))
        if tag == "sup":
            text = settled(self.inside(element, depth))
            return f"^{text}" if _POWER.fullmatch(text) else text
        inside = self.inside(element, depth)
        if tag == "q":
            return f"\u201c{inside.strip()}\u201d"
        if tag == "rt":
            return f"({inside.strip()})" if inside.strip() else ""
        if tag == "label":
            return f" {inside} "  # names of tabs stand one after another
        return wrapped(inside, _MARKS[tag]) if tag in _MARKS else inside

    def _link(self, element: Element, depth: int) -> str:
        inside = self.inside(element, depth)
        text = settled(inside).replace("\n", " ")
        if text in _ANCHOR_TEXT or "headerlink" in (element.get("class") or ""):
            return " " if inside.isspace() else ""
        href, parent = element.get("href") or "", element.getparent()
        if href == "#" or (href.startswith("#") and parent is not None and parent.tag in _ANCHORED):
            return inside
        address = self.address(href)
        text = _NOTE_MARK.sub(r"\1", text)
        if address is None or _LINK_INSIDE.search(text):
            return inside
        before = " " if inside[:1].isspace() else ""
        after = " " if inside[-1:].isspace() else ""
        return f"{before}[{bracketed(text)}]({address}){after}"

    def _image(self, element: Element) -> str:
        address = next((found for each in _sources(element) if (found := self.address(each))), None)
        if address is None or not address.startswith("http") or _is_pixel(element):
            return ""
        alt = settled(shown(element.get("alt") or element.get("title"))).replace("\n", " ")
        alt = alt or PurePosixPath(unquote(urlsplit(address).path)).name or "image"
        return f"![{bracketed(alt)}]({address})"

    def address(self, href: str | None) -> str | None:
        """Where a link leads; None where it must not."""
        if href is None:
            return None
        if href not in self._addresses:
            self._addresses[href] = absolute(self._base, href)
        return self._addresses[href]


def shown(written: str | None) -> str:
    """Text of a page, where it is not read as a tag; white space is one space."""
    if not written:
        return ""
    line = SPACE.sub(" ", written)
    return _MARK.sub(r"\\\g<0>", legible(line)) if "<" in line or "`" in line else line


def settled(line: str) -> str:
    """A line with its spaces and breaks as they are to stand."""
    return _AROUND_BREAK.sub("\n", re.sub(" {2,}", " ", line)).strip()


def wrapped(inside: str, mark: str) -> str:
    """Text between marks, which must touch it; left alone where marks stand already."""
    bare = inside.strip(" " + _BREAK)
    if not bare or bare.startswith(("*", "#", "!")) or bare.endswith("*") or _BREAK in bare or "\n" in bare:
        return inside
    before, after = (" " if inside[:1] == " " else ""), (" " if inside[-1:] == " " else "")
    return f"{before}{mark}{bare}{mark}{after}"


def code_span(code: str) -> str:
    """Code in a line."""
    if not code.strip():
        return code
    ticks = "`" * (max((len(run) for run in TICKS.findall(code)), default=0) + 1)
    edge = " " if code[0] == "`" or code[-1] == "`" else ""
    return f"{ticks}{edge}{code.strip() if not edge else code}{edge}{ticks}"


def bracketed(inside: str) -> str:
    """Text that may stand between brackets; images in it stay images."""
    return _UNESCAPED_BRACKET.sub(lambda found: found[0] if len(found[0]) > 1 else "\\" + found[0], inside)


def _sources(image: Element) -> Iterator[str]:
    """Where an image may lie; images that wait for scripts say it in other attributes."""
    for name in ("data-src", "data-lazy-src", "data-original", "src"):
        if value := image.get(name):
            yield value
    for name in ("srcset", "data-srcset"):
        if value := (image.get(name) or "").split(",")[0].split():
            yield value[0]


def _is_pixel(image: Element) -> bool:
    return any((image.get(side) or "").strip() in ("0", "1", "2", "1px") for side in ("width", "height"))


def _formula(element: Element) -> str:
    for note in element.iter("annotation", "{*}annotation"):
        if "tex" in (note.get("encoding") or "").lower() and note.text:
            return f"${SPACE.sub(' ', note.text).strip()}$"
    return shown(element.get("alttext")) or shown(text_in(element))
