"""Render inline HTML as Markdown: links, images, code, emphasis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from centgate.sanitize import strip_invisible
from centgate.web.extract.code_blocks import extract_code
from centgate.web.extract.dom import Element
from centgate.web.extract.elements import (
    BLOCK_TAGS,
    HEADING_LEVELS,
    MAX_DEPTH,
    NON_TEXT_TAGS,
    extract_text,
    is_tracking_pixel,
)
from centgate.web.extract.formulas import read_formula
from centgate.web.extract.links import resolve_link
from centgate.web.extract.markdown_syntax import BACKTICKS
from centgate.web.extract.superscripts import mark_subscript, mark_superscript

SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
_BREAK = "\v"
"""Placeholder for a line break until spaces are normalised."""
_AROUND_BREAK = re.compile(f" *{_BREAK}[ {_BREAK}]*")
_TAG_START = re.compile(r"`|<(?=[a-zA-Z/!?]|\Z)")
"""Characters that could begin a tag, also together with text of the next element, or hide one."""
_LAST_BRACKET = re.compile(r"(?<!\\)<\Z")
_ANCHOR_TARGETS = frozenset({*HEADING_LEVELS, "dt"})
"""Elements that contain a link to themselves, as an anchor for others."""
_MAX_EDGE = 100
"""Characters at the edge of a part in which a visible one is searched."""
_EMPHASIS_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE_TAGS = frozenset({"code", "kbd", "samp", "tt"})
_ANCHOR_TEXT = frozenset({"", "#", "\xb6", "\xa7", "\U0001f517", "[source]", "[edit]"})
_NOTE_MARK = re.compile(r"^\[([^\[\]\s][^\[\]]{0,5})\]$")
_LINK_INSIDE = re.compile(r"(?<!\!)\[[^\[\]]*\]\(")
_UNESCAPED_BRACKET = re.compile(r"!\[(?:[^\[\]\\]|\\.)*\]\([^()]*\)|(?<!\\)[\[\]]")


class InlineRenderer:
    """Renderer of inline elements; `base` is the URL that links are relative to."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._urls: dict[str, str | None] = {}

    def render_inline(self, element: Element, depth: int = 0) -> str:
        """Render the children of an element on one line, breaks as spaces."""
        return normalize_spaces(self.render_children(element, depth)).replace("\n", " ")

    def render_children(self, element: Element, depth: int) -> str:
        """Render the children of an element, before spaces and breaks are normalised."""
        if depth > MAX_DEPTH:
            return escape_text(extract_text(element))
        parts = [escape_text(element.text)]
        for child in element:
            tag = child.tag
            if tag not in NON_TEXT_TAGS:
                space = " " if tag in BLOCK_TAGS else ""
                parts += (space, self.render_element(child, tag, depth + 1), space)
            if child.tail:
                parts.append(escape_text(child.tail))
        return join_inline(parts)

    def render_element(self, element: Element, tag: str, depth: int) -> str:
        """Render one inline element."""
        if tag == "br":
            return _BREAK
        if tag == "img":
            return self._render_image(element)
        if tag == "a":
            return self._render_link(element, depth)
        if tag in _CODE_TAGS:
            has_lines = next(element.iter("br"), None) is not None
            code = extract_code(element) if has_lines else extract_text(element)
            return format_code_span(SPACE.sub(" ", code))
        if tag == "math":
            return escape_text(read_formula(element))
        if tag == "pre":
            return format_code_span(SPACE.sub(" ", extract_code(element)))
        if tag == "sup":
            text = normalize_spaces(self.render_children(element, depth))
            return mark_superscript(element, _LAST_BRACKET.sub(r"\\<", text))  # without the space after it
        content = self.render_children(element, depth)
        if tag == "sub":
            return mark_subscript(element, content)
        if tag == "q":
            return f"\u201c{content.strip()}\u201d"
        if tag == "rt":
            return f"({content.strip()})" if content.strip() else ""
        if tag == "label":
            return f" {content} "  # labels of tabs follow one another without spaces
        return wrap_in_marks(content, _EMPHASIS_MARKS[tag]) if tag in _EMPHASIS_MARKS else content

    def _render_link(self, element: Element, depth: int) -> str:
        content = self.render_children(element, depth)
        text = strip_invisible(normalize_spaces(content)).replace("\n", " ").strip()
        if text in _ANCHOR_TEXT or "headerlink" in (element.get("class") or ""):
            return " " if content.isspace() else ""
        href, parent = element.get("href") or "", element.getparent()
        if href == "#" or (href.startswith("#") and parent is not None and parent.tag in _ANCHOR_TARGETS):
            return content
        address = self.resolve_url(href)
        text = _NOTE_MARK.sub(r"\1", text)
        if address is None or _LINK_INSIDE.search(text):
            return content
        before = " " if content[:1].isspace() else ""
        after = " " if content[-1:].isspace() else ""
        return f"{before}[{escape_brackets(text)}]({address}){after}"

    def _render_image(self, element: Element) -> str:
        address = next((url for each in _image_urls(element) if (url := self.resolve_url(each))), None)
        if address is None or not address.startswith("http") or is_tracking_pixel(element):
            return ""
        alt = normalize_spaces(escape_text(element.get("alt") or element.get("title"))).replace("\n", " ")
        alt = alt or PurePosixPath(unquote(urlsplit(address).path)).name or "image"
        return f"![{escape_brackets(alt)}]({address})"

    def resolve_url(self, href: str | None) -> str | None:
        """Return the absolute URL of a link; None if it must not be linked."""
        if href is None:
            return None
        if href not in self._urls:
            self._urls[href] = resolve_link(self._base, href)
        return self._urls[href]


def escape_text(text: str | None) -> str:
    """Escape text so that it is not read as a tag, and collapse white space."""
    if not text:
        return ""
    line = SPACE.sub(" ", text)
    return _TAG_START.sub(r"\\\g<0>", strip_invisible(line)) if "<" in line or "`" in line else line


def normalize_spaces(line: str) -> str:
    """Collapse spaces and turn break placeholders into line feeds."""
    return _AROUND_BREAK.sub("\n", re.sub(" {2,}", " ", line)).strip()


def wrap_in_marks(content: str, mark: str) -> str:
    """Wrap text in emphasis marks, which must touch it; text that has marks already is unchanged."""
    bare = content.strip(" " + _BREAK)
    if not bare or bare.startswith(("*", "#", "!")) or bare.endswith("*") or _BREAK in bare or "\n" in bare:
        return content
    before, after = (" " if content[:1] == " " else ""), (" " if content[-1:] == " " else "")
    return f"{before}{mark}{bare}{mark}{after}"


def format_code_span(code: str) -> str:
    """Return code as a code span, without the spaces around it."""
    bare = strip_invisible(code).strip().replace("\n", " ")
    if not bare:
        return code
    runs = set(map(len, BACKTICKS.findall(bare)))
    # the shortest that the code has not, since three at the start of a line would begin a block
    ticks = "`" * next(length for length in count(1) if length not in runs)
    edge = " " if bare[0] == "`" or bare[-1] == "`" else ""
    return f"{ticks}{edge}{bare}{edge}{ticks}"


def join_inline(parts: Iterable[str]) -> str:
    """Join the rendered parts of a line, with code apart from what would change the marks around it."""
    joined: list[str] = []
    before = ""
    for part in parts:
        if strip_invisible(part[:_MAX_EDGE]).startswith("`"):
            joined.append(_separate_code(before))
        joined.append(part)
        before = strip_invisible(part[-_MAX_EDGE:]) or before
    return "".join(joined)


def _separate_code(before: str) -> str:
    """Return a space after other code, and an escape of a backslash that would escape the mark."""
    if before.endswith("`"):
        return " "
    backslashes = len(before) - len(before.rstrip("\\"))
    return "\\" * (backslashes % 2)


def escape_brackets(text: str) -> str:
    """Escape brackets for use as link text; images stay images."""
    return _UNESCAPED_BRACKET.sub(lambda match: match[0] if len(match[0]) > 1 else "\\" + match[0], text)


def _image_urls(image: Element) -> Iterator[str]:
    """Yield the possible URLs of an image; lazily loaded ones have them in other attributes."""
    for name in ("data-src", "data-lazy-src", "data-original", "src"):
        if value := image.get(name):
            yield value
    for name in ("srcset", "data-srcset"):
        if value := (image.get(name) or "").split(",")[0].split():
            yield value[0]
