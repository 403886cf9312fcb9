"""Split Markdown and MDX documentation into chunks by heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from centgate.libdocs.parse import rst
from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.languages import normalize_language
from centgate.libdocs.parse.markdown_inline import strip_markdown
from centgate.libdocs.parse.sections import PageBlock, PageSection, build_chunks

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)")
_FENCE = re.compile(r"(?P<indent>[ \t>]*)(?:[-*+] |\d+[.)] )?(?P<mark>`{3,}|~{3,}) *(?P<info>[^`]*)$")
_ADMONITION = re.compile(
    r"(?P<indent>[ ]*)(?:!!!|\?{3}\+?|///|:::)[ ]*(?P<kind>[A-Za-z]\w*)[^\"'|\[\n]*"
    r"(?:[\"'|\[][ ]*(?P<title>[^\"'\]\n]*)[\"'\]]?[ ]*)?"
)
_INDENTED_ADMONITION = re.compile(r"\s+(?:!!!|\?{3}\+?)[ ]")
_CLOSING = re.compile(r"[ ]*(?:///|:::)[ ]*$")
_DEFINITION = re.compile(r"[ ]{0,3}\[[^\]]+\]:[ ]*\S+")
_MODULE = re.compile(r"(?:import\s.*\bfrom\b\s*['\"]|import\s+['\"]|export\s+(?:const|default|function)\b)")
_LIST = re.compile(r"[ ]*(?:[-*+]|\d+[.)])[ ]+\S")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
_INFO = re.compile(r"\{?\.?([\w+#.-]+)\}?[ \t]*([\w+#-]+)?")
_FILE = re.compile(r"""(?:filename|title|file)=["']([^"']+)["']""")
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


def split_markdown(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a page. The title in its front matter is above all headings."""
    return build_chunks(document, parse_sections(document.text))


def parse_sections(markdown: str) -> list[PageSection]:
    """Return the sections of a page, with fenced and indented code separated from prose."""
    front = _FRONT.match(markdown)
    title = _FRONT_TITLE.search(front[1]) if front else None
    skipped = markdown[: front.end()].count("\n") if front else 0
    reader = _MarkdownReader(strip_markdown(title[1].strip(" \t\r'\"")) if title else None)
    reader.read(markdown.splitlines(), skipped)
    return [section for section in reader.sections if section.blocks]


class _MarkdownReader:
    """Reads the lines once; holds the open headings and the prose of the unfinished block."""

    def __init__(self, title: str | None) -> None:
        self._headings: list[tuple[int, str]] = [(0, title)] if title else []
        self._prose: list[str] = []
        self._code: list[str] = []
        self._block_start = 1
        self._in_list = False
        self._admonition_indent = ""
        self.sections = [PageSection(self._heading_trail(), 1)]

    def read(self, lines: list[str], start: int) -> None:
        numbered = iter(list(enumerate(lines, 1))[start:])
        for number, raw_line in numbered:
            line = self._dedent_admonition(raw_line)
            fence = _FENCE.match(line)
            if fence:
                self._read_fence(fence, number, numbered)
            elif line.lstrip().startswith("<!--") and "-->" not in line:
                self._skip_comment(numbered)
            elif self._is_code(line):
                self._add_indented_code(line, number)
            elif self._code and not line.strip():
                self._code.append("")
            else:
                self._read_line(line, number)
        self._close_block(len(lines))

    def _skip_comment(self, rest: Iterator[tuple[int, str]]) -> None:
        """Skip a comment of several lines; indented lines inside it are not code."""
        for number, line in rest:
            _, end, after = line.partition("-->")
            if end:
                self._read_line(after.lstrip(), number)
                return

    def _is_code(self, line: str) -> bool:
        """Return True if a line is code by indentation alone, which is not so in a list or below prose."""
        if not line.startswith(("    ", "\t")) or not line.strip() or _INDENTED_ADMONITION.match(line):
            return False
        return bool(self._code) or not (self._in_list or (self._prose and self._prose[-1].strip()))

    def _dedent_admonition(self, line: str) -> str:
        """Return a line of an admonition without the indentation of its content."""
        if self._admonition_indent and line.startswith(self._admonition_indent):
            return line[len(self._admonition_indent) :]
        if line.strip():
            self._admonition_indent = ""
        return line

    def _read_line(self, line: str, number: int) -> None:
        heading = _HEADING.match(line)
        if heading:
            self._open_section(len(heading[1]), heading[2].rstrip("# \t"), number)
        elif self._is_underline(line):
            text = self._prose.pop()
            self._open_section(1 if line[0] == "=" else 2, text, number)
        elif admonition := _ADMONITION.fullmatch(line):
            self._admonition_indent = admonition["indent"] + " " * 4
            self._in_list = False
            self._add_prose("", number)
            self._add_prose(f"{admonition['title'] or admonition['kind'].capitalize()}:", number)
        elif not (_CLOSING.match(line) or _DEFINITION.match(line) or _MODULE.match(line)):
            if line.strip() and not line.startswith((" ", "\t")):
                self._in_list = bool(_LIST.match(line))
            elif _LIST.match(line):
                self._in_list = True
            self._add_prose(line, number)

    def _read_fence(self, fence: re.Match[str], number: int, rest: Iterator[tuple[int, str]]) -> None:
        """Read the lines of a fence without its indentation. An unclosed fence ends with the page."""
        body: list[str] = []
        for _, raw_line in rest:
            line = self._dedent_admonition(raw_line)
            if _closes_fence(line, fence["mark"]):
                break
            body.append(_strip_indent(line, fence["indent"]))
        end = number + len(body) + 1
        info = _INFO.match(fence["info"])
        directive = info[1].lower() if info and fence["info"].startswith("{") else ""
        if directive in _SKIPPED_DIRECTIVES or directive.startswith("auto"):
            return
        if directive == "eval-rst":
            self._read_rst("\n".join(body), number)
            return
        if directive in _PROSE_DIRECTIVES:
            self._add_prose(f"{directive.capitalize()}:", number)
            for line in body:
                self._add_prose(line, number)
            return
        word = (info[2] or "python") if info and directive else info[1] if info else None
        file = _FILE.search(fence["info"])
        self._close_block(number - 1)
        if any(line.strip() for line in body):
            language, name = normalize_language(word), file[1] if file else None
            block = PageBlock("\n".join(body), number, end, is_code=True, language=language, file=name)
            self.sections[-1].blocks.append(block)

    def _read_rst(self, text: str, number: int) -> None:
        """Read reStructuredText embedded in the page."""
        for section in rst.parse_sections(text):
            for block in section.blocks:
                self._close_block(number - 1)
                moved = replace(block, first=block.first + number, last=block.last + number)
                self.sections[-1].blocks.append(moved)

    def _add_indented_code(self, line: str, number: int) -> None:
        if not self._code:
            self._close_block(number - 1)
            self._block_start = number
        self._code.append(line[4:] if line.startswith("    ") else line[1:])

    def _open_section(self, level: int, text: str, number: int) -> None:
        self._close_block(number - 1)
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, strip_markdown(text) or text.strip()))
        self._in_list = False
        self.sections.append(PageSection(self._heading_trail(), number))

    def _add_prose(self, line: str, number: int) -> None:
        if self._code:
            self._close_block(number - 1)
        if not self._prose:
            self._block_start = number
        self._prose.append(line)

    def _close_block(self, number: int) -> None:
        """Finish the collected block: code by indentation, or prose."""
        code, text = "\n".join(self._code).strip("\n"), strip_markdown("\n".join(self._prose))
        blocks = self.sections[-1].blocks
        if text:
            blocks.append(PageBlock(text, self._block_start, number))
        if code:
            blocks.append(PageBlock(code, self._block_start, number, is_code=True))
        self._prose, self._code = [], []

    def _is_underline(self, line: str) -> bool:
        if not self._prose or not self._prose[-1].strip() or not re.fullmatch(r"(?:={2,}|-{2,})[ \t]*", line):
            return False
        return len(self._prose) < 2 or not self._prose[-2].strip()

    def _heading_trail(self) -> tuple[str, ...]:
        trail: list[str] = []
        for _, text in self._headings:
            if not trail or trail[-1] != text:
                trail.append(text)
        return tuple(trail)


def _closes_fence(line: str, mark: str) -> bool:
    bare = line.strip(" \t>")
    return len(bare) >= len(mark) and not bare.strip(mark[0])


def _strip_indent(line: str, indent: str) -> str:
    """Remove as much white space or quoting as there is before the fence."""
    position = 0
    while position < len(indent) and position < len(line) and line[position] in " \t>":
        position += 1
    return line[position:]
