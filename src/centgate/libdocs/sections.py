"""Pages of prose and code, cut into pieces: a block of code with the explanation that leads to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from centgate.libdocs.documents import Document
from centgate.libdocs.pieces import Piece, anchored, finished, names_of

TRAILING = 500
"""Characters of prose at the end of a section that still belong to the code above them."""
REMARK = 40
"""Characters of prose that only join code and what it prints: "This gives:"."""
TOGETHER = 1600
"""Characters that blocks of code with nothing or a remark between them may have in one piece."""
_REPEATED_IN = {"typescript": ("javascript",), "tsx": ("jsx", "javascript"), "vue": ("vue",)}
SAME = 0.5
"""Share of two blocks' words that are in both, above which the JavaScript repeats the TypeScript."""
_PRINTED = (None, "json", "html", "xml", "sql", "yaml", "csv")
_OTHER_MANAGER = re.compile(r"\$?[ ]?(?:yarn|pnpm|bun|deno|bower)[ ](?:add|install|create|dlx|x)[ ][^\n]*")
_NAME = re.compile(r"[`<]?(@?[A-Za-z_$][\w$]*(?:[.#][\w$]+)*)(?:\([^()]*\))?[`>]?")


@dataclass(slots=True)
class Block:
    """Prose, or a block of code."""

    text: str
    first: int
    """The line it begins in, counted from 1."""
    last: int
    code: bool = False
    language: str | None = None
    file: str | None = None
    """What the code would be saved as."""


class Shown(NamedTuple):
    """What a piece shows."""

    code: str | None
    language: str | None
    text: str | None


@dataclass(slots=True)
class Section:
    """What stands below one heading, up to the next of any level."""

    trail: tuple[str, ...]
    """The headings it stands below, then its own; empty before the first heading."""
    line: int
    blocks: list[Block] = field(default_factory=list[Block])


def pieces_of(document: Document, sections: Iterable[Section]) -> list[Piece]:
    """Every section's pieces in the order of the page."""
    found: list[Piece] = []
    page = list(sections)
    above = _unsaid(document.path, page)
    for section in page:
        trail = (*above, *section.trail) or (page_name(document.path),)
        start = section.line
        for group in grouped(section.blocks):
            url = anchored(document.source_url, start, group[-1].last)
            piece = Piece(trail[-1], trail[:-1], *shown(group), url, document.path)
            names = _names(piece.title)
            found.extend(replace(each, names=names) for each in finished(piece))
            start = group[-1].last + 1
    return found


def _unsaid(path: str, page: list[Section]) -> tuple[str, ...]:
    """The page's name above its headings, where several stand at the top and none is the page's own."""
    tops = {section.trail[0] for section in page if section.trail}
    stem = path.rsplit("/", 1)[-1].split(".")[0].lower()
    return (page_name(path),) if len(tops) > 1 and stem != "readme" else ()


def grouped(blocks: Iterable[Block]) -> list[list[Block]]:
    """Blocks that are shown together: what leads to a block of code, the code, and what follows at once."""
    groups: list[list[Block]] = []
    waiting = _without_repeats(blocks)
    for index, block in enumerate(waiting):
        following = waiting[index + 1] if index + 1 < len(waiting) else None
        if groups and _belongs(groups[-1], block, following):
            groups[-1].append(block)
        else:
            groups.append([block])
    groups = [group for group in groups if not _is_alternative(group)] or groups
    if len(groups) > 1 and _is_closing(groups[-1]):
        groups[-2].extend(groups.pop())
    return groups


def shown(group: list[Block]) -> Shown:
    """A group's code and its text; code in other languages than the first stays in the text."""
    first = next((block for block in group if block.code), None)
    code: list[str] = []
    text: list[str] = []
    joined = True
    for block in group:
        if block.file:
            text.append(f"`{block.file}`:")
        if not block.code:
            text.append(block.text)
            joined = joined and not code
        elif first and joined and block.language == first.language:
            code.append(block.text)
        else:
            text.append(f"```{block.language or ''}\n{block.text}\n```")
    language = first.language if first else None
    return Shown("\n\n".join(code) or None, language, "\n\n".join(text) or None)


def page_name(path: str) -> str:
    """What to call a file that has no heading: `docs/01-getting_started.md` is Getting started."""
    parts = path.split("/")
    stem = parts[-1].rsplit(".", 1)[0]
    if stem.lower() in ("index", "readme", "__init__") and len(parts) > 1:
        stem = parts[-2]
    words = re.sub(r"^\d+[-_.]", "", stem).replace("-", " ").replace("_", " ").strip()
    return words[:1].upper() + words[1:] or path


def _belongs(group: list[Block], block: Block, following: Block | None) -> bool:
    code = next((each for each in group if each.code), None)
    if code is None:
        return True
    size = sum(len(each.text) for each in group) + len(block.text)
    if block.code:
        return size < TOGETHER
    if following is None or not following.code or len(block.text) > REMARK:
        return False
    # what code prints is in another language than the code
    printed = following.language in _PRINTED and code.language not in _PRINTED
    return printed and size + len(following.text) < TOGETHER


def _is_alternative(group: list[Block]) -> bool:
    """Whether it only says how a package manager other than npm and pip is told the same."""
    code = [block.text.strip() for block in group if block.code]
    said = sum(len(block.text) for block in group if not block.code)
    return said <= REMARK and len(code) == 1 and bool(_OTHER_MANAGER.fullmatch(code[0]))


def _is_closing(group: list[Block]) -> bool:
    return not any(block.code for block in group) and sum(len(block.text) for block in group) <= TRAILING


def _without_repeats(blocks: Iterable[Block]) -> list[Block]:
    """Without the JavaScript that repeats a block of TypeScript right above it."""
    kept: list[Block] = []
    for block in blocks:
        above = kept[-1] if kept else None
        if above and above.code and block.code and _repeats(above, block):
            continue
        kept.append(block)
    return kept


def _repeats(above: Block, block: Block) -> bool:
    if block.language not in _REPEATED_IN.get(above.language or "", ()):
        return False
    one, other = set(re.findall(r"\w+", above.text)), set(re.findall(r"\w+", block.text))
    return len(one & other) >= SAME * len(one | other)


def _names(heading: str) -> tuple[str, ...]:
    """The name that a heading is, if it is one: `useRouter`, `app.get(path)`."""
    name = _NAME.fullmatch(heading.strip())
    return names_of(name[1]) if name else ()
