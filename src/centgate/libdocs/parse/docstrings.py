"""Split the text of a docstring or a comment into prose and examples."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable

from centgate.libdocs.parse import markdown, rst
from centgate.libdocs.parse.sections import Excerpt, PageBlock, group_blocks, make_excerpt

_SECTION = re.compile(
    r"(?:Args|Arguments|(?:Other )?Parameters|Params|Attributes|Returns?|Raises|Yields|Keyword Args):[ ]*"
)
_ENTRY = re.compile(r"^(\*{0,2}\w{1,60})([ ]?\([^\n]{1,300}\))?:(?:[ ]+|$)")
_JOINED_LANGUAGES = {("typescript", "javascript"): "typescript", ("typescript", "jsx"): "tsx"}
"""Language of a signature with an example below it, if it is not the example's."""
_MARKDOWN = re.compile(r"^[ \t]*(?:```|!!! )|^#{1,4} \S|\]\((?:https?://|\.\./)", re.MULTILINE)


def split_examples(docstring: str, *, language: str) -> list[Excerpt]:
    """Return each example with the text that leads to it, in source order.

    `language` is the language of code blocks that name none.
    """
    text = _format_sections_as_lists(inspect.cleandoc(docstring))
    if _MARKDOWN.search(text) or language != "python":
        sections = markdown.parse_sections(text)
    else:
        sections = rst.parse_sections(text)
    blocks: list[PageBlock] = []
    for section in sections:
        if section.trail:
            blocks.append(PageBlock(f"{section.trail[-1]}:", section.line, section.line))
        blocks += section.blocks
    return [_set_language(make_excerpt(group), language) for group in group_blocks(_merge_prose(blocks))]


def add_signature(
    code: str, examples: list[Excerpt], *, language: str, is_joinable: Callable[[str, Excerpt], bool]
) -> list[Excerpt]:
    """Put the signature above the first example, or before it if the two do not fit together."""
    first, *rest = examples or [Excerpt(None, None, None)]
    if first.code is None:
        return [Excerpt(code, language, first.text), *rest]
    if is_joinable(code, first):
        joined = _JOINED_LANGUAGES.get((language, first.language or ""), first.language)
        return [Excerpt(f"{code}\n\n{first.code}", joined, first.text), *rest]
    return [Excerpt(code, language, first.text), first._replace(text=None), *rest]


def _format_sections_as_lists(docstring: str) -> str:
    """Rewrite Google-style sections (`Args:` and others) as lists without indentation."""
    lines: list[str] = []
    indent: int | None = None
    for line in docstring.split("\n"):
        margin = len(line) - len(line.lstrip())
        if _SECTION.fullmatch(line):
            indent = 0
            lines += ["", line.strip(), ""]
        elif indent is None or not line.strip():
            lines.append(line)
        elif margin == 0:
            indent = None
            lines.append(line)
        else:
            indent = indent or margin
            inner = line[min(indent, margin) :]
            lines.append(_ENTRY.sub(r"- `\1`\2: ", inner, count=1) if margin == indent else inner)
    return "\n".join(lines)


def _merge_prose(blocks: list[PageBlock]) -> list[PageBlock]:
    """Merge adjacent blocks of prose."""
    merged: list[PageBlock] = []
    for block in blocks:
        if merged and not block.is_code and not merged[-1].is_code:
            merged[-1] = PageBlock(f"{merged[-1].text}\n\n{block.text}", merged[-1].first, block.last)
        else:
            merged.append(block)
    return merged


def _set_language(example: Excerpt, language: str) -> Excerpt:
    if example.code is None:
        return example
    return Excerpt(textwrap.dedent(example.code), example.language or language, example.text)
