"""Split pages of prose and code into chunks: a block of code with the explanation that leads to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.libdocs.parse.chunk import Chunk, finalize_chunks, link_to_lines, name_variants
from centgate.libdocs.parse.documents import PackageDocument

MAX_CLOSING_TEXT = 500
"""Maximum characters of prose at the end of a section that still belong to the code above it."""
MAX_REMARK = 40
"""Maximum characters of prose that only connects code with its output: "This gives:"."""
MAX_JOINED_CODE = 1600
"""Maximum characters of code blocks in one chunk, with nothing or a remark between them."""
_REPEATING_LANGUAGES = {"typescript": ("javascript",), "tsx": ("jsx", "javascript"), "vue": ("vue",)}
REPEAT_SIMILARITY = 0.5
"""Share of common words above which JavaScript counts as a repetition of the TypeScript above it."""
_OUTPUT_LANGUAGES = (None, "json", "html", "xml", "sql", "yaml", "csv")
_OTHER_MANAGER = re.compile(r"\$?[ ]?(?:yarn|pnpm|bun|deno|bower)[ ](?:add|install|create|dlx|x)[ ][^\n]*")
_ROOT_README = re.compile(r"(?:@[^/]+/)?readme(?:\.[^/]*)?$", re.IGNORECASE)
"""README of a library, or of another source, whose folder begins with `@`; a scope has folders below it."""
_NAME = re.compile(r"[`<]?(@?[A-Za-z_$][\w$]*(?:[.#][\w$]+)*)(?:\([^()]*\))?[`>]?")


class PageBlock(Struct):
    """Prose, or a block of code."""

    text: str
    first: int
    """Number of its first line, counted from 1."""
    last: int
    is_code: bool = False
    language: str | None = None
    file: str | None = None
    """File name that the code would have."""


class Excerpt(NamedTuple):
    """The visible parts of a chunk."""

    code: str | None
    language: str | None
    text: str | None


class PageSection(Struct):
    """The content below one heading, up to the next heading of any level."""

    trail: tuple[str, ...]
    """The headings above it, then its own; empty before the first heading."""
    line: int
    blocks: list[PageBlock] = field(default_factory=list[PageBlock])


def build_chunks(document: PackageDocument, sections: Iterable[PageSection]) -> list[Chunk]:
    """Return the chunks of all sections in page order."""
    chunks: list[Chunk] = []
    page = list(sections)
    above = _page_heading(document.path, page)
    for section in page:
        trail = (*above, *section.trail) or (page_name(document.path),)
        start = section.line
        for group in group_blocks(section.blocks):
            url = link_to_lines(document.source_url, start, group[-1].last)
            chunk = Chunk(trail[-1], trail[:-1], *make_excerpt(group), url, document.path)
            names = _heading_names(chunk.title)
            chunks.extend(replace(each, names=names) for each in finalize_chunks(chunk))
            start = group[-1].last + 1
    return chunks


def _page_heading(path: str, page: list[PageSection]) -> tuple[str, ...]:
    """Return the page's name as top heading if the page has several top headings and none of its own."""
    tops = {section.trail[0] for section in page if section.trail}
    is_readme = _ROOT_README.match(path) is not None
    return (page_name(path),) if len(tops) > 1 and not is_readme else ()


def group_blocks(blocks: Iterable[PageBlock]) -> list[list[PageBlock]]:
    """Group the blocks that are shown together: text before a code block, the code, and text directly after
    it.
    """
    groups: list[list[PageBlock]] = []
    remaining = _drop_repeats(blocks)
    for index, block in enumerate(remaining):
        following = remaining[index + 1] if index + 1 < len(remaining) else None
        if groups and _belongs_to_group(groups[-1], block, following):
            groups[-1].append(block)
        else:
            groups.append([block])
    groups = [group for group in groups if not _is_alternative(group)] or groups
    if len(groups) > 1 and _is_closing_text(groups[-1]):
        groups[-2].extend(groups.pop())
    return groups


def make_excerpt(group: list[PageBlock]) -> Excerpt:
    """Return the code and the text of a group. Code in other languages than the first stays in the text."""
    first = next((block for block in group if block.is_code), None)
    code: list[str] = []
    text: list[str] = []
    is_joinable = True
    for block in group:
        if block.file:
            text.append(f"`{block.file}`:")
        if not block.is_code:
            text.append(block.text)
            is_joinable = is_joinable and not code
        elif first and is_joinable and block.language == first.language:
            code.append(block.text)
        else:
            text.append(f"```{block.language or ''}\n{block.text}\n```")
    language = first.language if first else None
    return Excerpt("\n\n".join(code) or None, language, "\n\n".join(text) or None)


def page_name(path: str) -> str:
    """Return a title for a file without headings: Getting started for `docs/01-getting_started.md`."""
    parts = path.split("/")
    stem = parts[-1].rsplit(".", 1)[0]
    if stem.lower() in ("index", "readme", "__init__") and len(parts) > 1:
        stem = parts[-2]
    words = re.sub(r"^\d+[-_.]", "", stem).replace("-", " ").replace("_", " ").strip()
    return words[:1].upper() + words[1:] or path


def _belongs_to_group(group: list[PageBlock], block: PageBlock, following: PageBlock | None) -> bool:
    code = next((each for each in group if each.is_code), None)
    if code is None:
        return True
    size = sum(len(each.text) for each in group) + len(block.text)
    if block.is_code:
        return size < MAX_JOINED_CODE
    if following is None or not following.is_code or len(block.text) > MAX_REMARK:
        return False
    # the output is in another language than the code that prints it
    is_output = following.language in _OUTPUT_LANGUAGES and code.language not in _OUTPUT_LANGUAGES
    return is_output and size + len(following.text) < MAX_JOINED_CODE


def _is_alternative(group: list[PageBlock]) -> bool:
    """True if a group only repeats a command for a package manager other than npm and pip."""
    code = [block.text.strip() for block in group if block.is_code]
    text_length = sum(len(block.text) for block in group if not block.is_code)
    return text_length <= MAX_REMARK and len(code) == 1 and bool(_OTHER_MANAGER.fullmatch(code[0]))


def _is_closing_text(group: list[PageBlock]) -> bool:
    return (
        not any(block.is_code for block in group)
        and sum(len(block.text) for block in group) <= MAX_CLOSING_TEXT
    )


def _drop_repeats(blocks: Iterable[PageBlock]) -> list[PageBlock]:
    """Drop JavaScript that repeats the block of TypeScript directly above it."""
    result: list[PageBlock] = []
    for block in blocks:
        above = result[-1] if result else None
        if above and above.is_code and block.is_code and _is_repetition(above, block):
            continue
        result.append(block)
    return result


def _is_repetition(above: PageBlock, block: PageBlock) -> bool:
    if block.language not in _REPEATING_LANGUAGES.get(above.language or "", ()):
        return False
    one, other = set(re.findall(r"\w+", above.text)), set(re.findall(r"\w+", block.text))
    return len(one & other) >= REPEAT_SIMILARITY * len(one | other)


def _heading_names(heading: str) -> tuple[str, ...]:
    """Return the name that a heading consists of, if it does: `useRouter`, `app.get(path)`."""
    name = _NAME.fullmatch(heading.strip())
    return name_variants(name[1]) if name else ()
