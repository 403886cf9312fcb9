"""A docstring or a comment's text, told apart into prose and examples."""

from __future__ import annotations

import inspect
import re
import textwrap

from centgate.libdocs import markdown_pieces, rst_pieces
from centgate.libdocs.sections import Block, Shown, grouped, shown

_SECTION = re.compile(
    r"(?:Args|Arguments|(?:Other )?Parameters|Params|Attributes|Returns?|Raises|Yields|Keyword Args):[ ]*"
)
_ENTRY = re.compile(r"^(\*{0,2}\w{1,60})([ ]?\([^\n]{1,300}\))?:(?:[ ]+|$)")
_MARKDOWN = re.compile(r"^[ \t]*(?:```|!!! )|^#{1,4} \S|\]\((?:https?://|\.\./)", re.MULTILINE)


def examples_and_text(docstring: str, *, language: str) -> list[Shown]:
    """Each example with the text that leads to it, in the order written; its language as for code without."""
    cleaned = _listed(inspect.cleandoc(docstring))
    if _MARKDOWN.search(cleaned) or language != "python":
        sections = markdown_pieces.sections(cleaned)
    else:
        sections = rst_pieces.sections(cleaned)
    blocks: list[Block] = []
    for section in sections:
        if section.trail:
            blocks.append(Block(f"{section.trail[-1]}:", section.line, section.line))
        blocks += section.blocks
    return [_with_language(shown(group), language) for group in grouped(_joined(blocks))]


def _listed(docstring: str) -> str:
    """With the sections of Google's style, `Args:` and the like, made lists at the margin."""
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


def _joined(blocks: list[Block]) -> list[Block]:
    """With prose that stands next to prose made one."""
    joined: list[Block] = []
    for block in blocks:
        if joined and not block.code and not joined[-1].code:
            joined[-1] = Block(f"{joined[-1].text}\n\n{block.text}", joined[-1].first, block.last)
        else:
            joined.append(block)
    return joined


def _with_language(example: Shown, language: str) -> Shown:
    if example.code is None:
        return example
    return Shown(textwrap.dedent(example.code), example.language or language, example.text)
