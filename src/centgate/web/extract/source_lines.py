"""Keep the line at the end of an article that names its source, which looks like a link beside the text."""

from __future__ import annotations

import copy
import re
from itertools import islice

from lxml import etree

from centgate.web.extract.boilerplate import is_named_extra
from centgate.web.extract.dom import Element, extract_beginning
from centgate.web.extract.elements import BLOCK_TAGS, HEADING_LEVELS, extract_text

MAX_LINE_LENGTH = 300
MAX_GAP = 80
"""Letters between the end of the article and the line, such as the names of buttons."""
_END_LENGTH = 60
"""Letters of the article's end by which its place is found."""
_MAX_LINES, _MAX_EXTRA = 10, 1000
_SOURCE_LINE = re.compile(
    r"\W{0,3}(?:(?:original |image |photo )?sources?|quellen?|fuentes?|fonti?|fontes|bron(?:nen)?|"
    r"k\u00e4ll(?:a|or)|kilder?|\u017ar\u00f3d\u0142[oa]|l\u00e4hteet|l\u00e4hde|zdroje?|"
    r"\u0438\u0441\u0442\u043e\u0447\u043d\u0438\u043a\u0438?|\u51fa\u5178|\u6765\u6e90|\u4f86\u6e90|"
    r"\ucd9c\ucc98|via|original article)\s*[:\uff1a]"
    r"|\W{0,3}(?:this (?:article|story|post|piece) )?(?:was )?"
    r"(?:originally|first) (?:published|appeared|posted)\b",
    re.IGNORECASE,
)
"""Beginning of a line that names the source of a text, in twelve languages."""
_LINE_TAGS = ("p", "div", "li", "small", "cite", "footer", "aside", "section")


def add_source_line(reading: Element, original: Element) -> None:
    """Add the source line that follows a reading in the page that it is of, unless the reading has it."""
    article = _squash(extract_text(reading))
    if len(article) < _END_LENGTH:
        return
    lines = (each for each in original.iter(*_LINE_TAGS) if _is_source_line(each))
    for line in islice(lines, _MAX_LINES):
        if _is_in_extra(line):
            continue
        before, heading = _read_before(line, original)
        end = before.rfind(article[-_END_LENGTH:]) + _END_LENGTH
        if end > max(_END_LENGTH - 1, heading) and len(before) - end <= MAX_GAP:
            added = copy.deepcopy(line)
            added.tag, added.tail = "p", None
            reading.append(added)
            return


def _is_source_line(element: Element) -> bool:
    """True for a line that names a source and links to it, and is not in the frame of the page."""
    if next(element.iterdescendants(*BLOCK_TAGS), None) is not None:
        return False
    text = " ".join(extract_text(element).split())
    if len(text) > MAX_LINE_LENGTH or _SOURCE_LINE.match(text) is None:
        return False
    if not any(link.get("href") for link in element.iter("a")):
        return False
    within = [element.tag, *(each.tag for each in element.iterancestors())]
    is_framed = any(tag in ("nav", "footer", "aside") for tag in within)
    return not is_framed or any(tag in ("article", "main") for tag in within)


def _is_in_extra(line: Element) -> bool:
    """True for a line of a small part that is named as none of the article, such as a comment."""
    for part in (line, *line.iterancestors()):
        if part.tag in ("article", "main") or len(extract_beginning(part, _MAX_EXTRA)) >= _MAX_EXTRA:
            return False
        if is_named_extra(part):
            return True
    return False


def _read_before(element: Element, root: Element) -> tuple[str, int]:
    """Return the letters of a tree before one of its elements, and the place of the last heading in them."""
    before, heading = "", 0
    parts: list[str] = []
    for event, each in etree.iterwalk(root, events=("start", "end")):
        if each is element:
            break
        if event == "start" and each.tag in HEADING_LEVELS:
            before, parts = before + _squash("".join(parts)), []
            heading = len(before)
        parts.append((each.text if event == "start" else each.tail) or "")
    return before + _squash("".join(parts)), heading


def _squash(text: str) -> str:
    return "".join(text.split())
