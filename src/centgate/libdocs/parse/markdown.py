"""Split Markdown and MDX documentation into chunks by heading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from centgate.libdocs.parse import rst
from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.languages import normalize_language
from centgate.libdocs.parse.sections import PageBlock, PageSection, build_chunks
from centgate.libdocs.parse.text_split import trim_blank_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FENCE = re.compile(r"[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>`{3,}|~{3,})[^`]*$")
_ADMONITION = re.compile(
    r"(?P<indent>[ ]*)(?:!!!|\?{3}\+?|///|:::)[ ]*(?P<kind>[A-Za-z]\w*)[^\"'|\[\n]*"
    r"(?:[\"'|\[][ ]*(?P<title>[^\"'\]\n]*)[\"'\]]?[ ]*)?"
)
_DROPPED = re.compile(
    r"[ ]*(?:///|:::)[ ]*$|\([\w .:-]+\)=[ \t]*$"
    r"|(?:import\s.*\bfrom\b\s*['\"]|import\s+['\"]|export\s+(?:const|default|function)\b)"
)
_FENCED_OR_COMMENT = re.compile(
    r"^[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>`{3,}+|~{3,}+)[^`\n]*+\n.*?(?:^[ \t>]*(?P=mark)|\Z)"
    r"|<!--.*?(?:-->|\Z)|\{/\*.*?(?:\*/\}|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LINK_LINE = re.compile(r"^[ \t]*<a\s[^<>]{0,600}>[^<>]{0,30}</a>(?:&nbsp;|[ \t•|·])*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z][\w.:-]*(?:\s[^<>]{0,1000})?/?>|</?>")
_ANCHOR = re.compile(r"(?<![ \t])[ \t]*\{[ \t]*[#.:][^{}\n]{0,200}\}")
_ROLE = re.compile(r"\{[a-z:-]+\}(?=\0)")
_PLACEHOLDER = re.compile("\0([0-9]+)\0")
_PUNCTUATION_LINE = re.compile(r"^[-*_=>+·•— \t\xa0]+$", re.MULTILINE)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
_INFO = re.compile(r"\{?\.?([\w+#.-]+)\}?[ \t]*([\w+#-]+)?")
_FILE = re.compile(r"""(?:filename|title|file)=["']([^"']+)["']""")
_ALERT = re.compile(r"\A\[!(\w+)\]\s*")
_PROSE_DIRECTIVES = (
    "note",
    "tip",
    "warning",
    "important",
    "caution",
    "hint",
    "admonition",
    "seealso",
    "attention",
)
_SKIPPED_DIRECTIVES = (
    "toctree",
    "contents",
    "include",
    "image",
    "figure",
    "currentmodule",
    "module",
    "mermaid",
)
MAX_PARAGRAPH = 150_000
"""Maximum characters of a paragraph; the parser's time for hostile ones grows with the square of this."""


@cache
def _open_parser() -> MarkdownIt:
    """Return the parser of CommonMark with tables."""
    from markdown_it import MarkdownIt  # late: only processes that build an index need it

    return MarkdownIt("commonmark", {"maxNesting": 12}).enable("table").disable("html_block")


def split_markdown(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a page. The title in its front matter is above all headings."""
    return build_chunks(document, parse_sections(document.text))


def parse_sections(markdown: str) -> list[PageSection]:
    """Return the sections of a page, with fenced and indented code separated from prose."""
    front = _FRONT.match(markdown)
    title = _FRONT_TITLE.search(front[1]) if front else None
    if front:
        markdown = "\n" * front[0].count("\n") + markdown[front.end() :]
    walker = _TokenWalker(_strip_inline(title[1].strip(" \t\r'\"")) if title else None)
    walker.walk(_open_parser().parse(_to_commonmark(markdown)))
    return [section for section in walker.sections if section.blocks]


def _to_commonmark(markdown: str) -> str:
    """Return the page with admonitions as paragraphs, without comments and MDX imports, on the same lines."""
    page = _LINK_LINE.sub("", _FENCED_OR_COMMENT.sub(_blank_comment, markdown.replace("\0", "")))
    lines: list[str] = []
    indent = mark = ""
    length = 0
    for raw_line in page.splitlines():
        line = raw_line.removeprefix(indent)
        if indent and line == raw_line and line.strip():
            indent = ""
        length = 0 if mark or not line.strip() else length + len(line) + 1
        fence = _FENCE.match(line)
        if mark:
            bare = line.strip(" \t>")
            mark = "" if len(bare) >= len(mark) and not bare.strip(mark[0]) else mark
        elif fence:
            mark = fence["mark"]
        elif admonition := _ADMONITION.fullmatch(line):
            indent = admonition["indent"] + " " * 4
            line = f"{admonition['title'] or admonition['kind'].capitalize()}:"
        elif _DROPPED.match(line) or length > MAX_PARAGRAPH:
            line = ""
        lines.append(line)
    return "\n".join(lines)


def _blank_comment(found: re.Match[str]) -> str:
    return found[0] if found["mark"] else "\n" * found[0].count("\n")


class _TokenWalker:
    """Reads tokens once; holds the open headings and the prose of the unfinished block."""

    def __init__(self, title: str | None) -> None:
        self._headings: list[tuple[int, str]] = [(0, title)] if title else []
        self._prose = ""
        self._first = self._last = 1
        self._indents: list[str] = []
        self._cells: list[str] = []
        self._marker = ""
        self.sections = [PageSection(self._heading_trail(), 1)]

    def walk(self, tokens: Sequence[Token]) -> None:
        for before, token in pairwise([*tokens[:1], *tokens]):  # the first one opens a block
            match token.type:
                case "fence" | "code_block":
                    self._add_code(token)
                case "inline":
                    self._read_inline(token, before)
                case "list_item_open":
                    marker = f"{token.info}{token.markup} "
                    self._marker = "".join(self._indents) + marker
                    self._indents.append(" " * len(marker))
                case "list_item_close":
                    self._indents.pop()
                case "tr_open":
                    self._cells = []
                case "tr_close":
                    self._add_row(token, self._cells)
                case "thead_close":
                    self._add_row(token, ["---"] * len(self._cells))
                case "table_open" | "bullet_list_open" | "ordered_list_open" if token.level == 0:
                    self._prose += "\n" if self._prose else ""
                case _:
                    pass
        self._close_prose()

    def _read_inline(self, token: Token, opener: Token) -> None:
        text = _render_inline(token)
        if opener.type == "heading_open":
            self._open_section(int(opener.tag[1]), text or token.content, token)
        elif opener.type == "paragraph_open":
            note = _ALERT.sub(lambda alert: f"{alert[1].capitalize()}:\n", text, count=1)
            self._add_prose(note, token, "\n" if opener.hidden else "\n\n")
        else:
            self._cells.append(text.replace("|", "\\|"))

    def _add_row(self, token: Token, cells: list[str]) -> None:
        self._add_prose(f"| {' | '.join(cells)} |", token, "\n")

    def _add_prose(self, text: str, token: Token, separator: str) -> None:
        indent = "".join(self._indents)
        shown = (self._marker or indent) + text.replace("\n", f"\n{indent}")
        self._marker = ""
        if self._prose.strip():
            self._prose += separator + shown
        else:
            self._prose, self._first = shown, token.map[0] + 1 if token.map else self._last
        self._last = token.map[1] if token.map else self._last

    def _open_section(self, level: int, text: str, token: Token) -> None:
        self._close_prose()
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, text.strip()))
        self.sections.append(PageSection(self._heading_trail(), token.map[0] + 1 if token.map else 1))

    def _add_code(self, token: Token) -> None:
        info = _INFO.match(token.info)
        directive = info[1].lower() if info and token.info.startswith("{") else ""
        if directive in _SKIPPED_DIRECTIVES or directive.startswith("auto"):
            return
        if directive in _PROSE_DIRECTIVES:
            self._add_prose(f"{directive.capitalize()}:\n{_strip_inline(token.content)}", token, "\n\n")
            return
        self._close_prose()
        first, last = token.map or (0, 0)
        if directive == "eval-rst":
            self._add_rst(token.content, first + 1)
        elif token.content.strip():
            word = (info[2] or "python") if info and directive else info[1] if info else None
            language, file = normalize_language(word), _FILE.search(token.info)
            code = token.content.removesuffix("\n")
            block = PageBlock(code, first + 1, last, is_code=True, language=language)
            self.sections[-1].blocks.append(replace(block, file=file[1]) if file else block)

    def _add_rst(self, text: str, above: int) -> None:
        """Read reStructuredText embedded in the page, below a number of lines."""
        for section in rst.parse_sections(text):
            for block in section.blocks:
                moved = replace(block, first=block.first + above, last=block.last + above)
                self.sections[-1].blocks.append(moved)

    def _close_prose(self) -> None:
        text = trim_blank_lines(_PUNCTUATION_LINE.sub("", self._prose))
        if text:
            self.sections[-1].blocks.append(PageBlock(text, self._first, self._last))
        self._prose = ""

    def _heading_trail(self) -> tuple[str, ...]:
        trail: list[str] = []
        for _, text in self._headings:
            if not trail or trail[-1] != text:
                trail.append(text)
        return tuple(trail)


def _strip_inline(markdown: str) -> str:
    return "".join(map(_render_inline, _open_parser().parseInline(markdown.strip()))).strip()


def _render_inline(token: Token) -> str:
    """Return text without images, tags and link targets; emphasis and code keep their marks."""
    spans: list[str] = []
    parts: list[str] = []
    for child in token.children or ():
        if child.type == "code_inline":
            parts.append(f"\0{len(spans)}\0")
            padding = " " if child.content.startswith("`") or child.content.endswith("`") else ""
            spans.append(f"{child.markup}{padding}{child.content}{padding}{child.markup}")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif child.type in ("text", "text_special"):
            parts.append(child.content)
        elif child.type.startswith(("em_", "strong_")):
            parts.append(child.markup)
    # removing a tag can also remove a placeholder inside it
    text = _ROLE.sub("", _ANCHOR.sub("", _TAG.sub("", "".join(parts))))
    return _PLACEHOLDER.sub(lambda placeholder: spans[int(placeholder[1])], text)
