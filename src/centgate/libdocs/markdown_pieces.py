"""Markdown and MDX, as documentation is written in it, cut into pieces by heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from centgate.libdocs import rst_pieces
from centgate.libdocs.documents import Document
from centgate.libdocs.languages import language_of
from centgate.libdocs.markdown_inline import plain
from centgate.libdocs.pieces import Piece
from centgate.libdocs.sections import Block, Section, pieces_of

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)")
_FENCE = re.compile(r"(?P<indent>[ \t>]*)(?:[-*+] |\d+[.)] )?(?P<mark>`{3,}|~{3,}) *(?P<info>[^`]*)$")
_ADMONITION = re.compile(
    r"(?P<indent>[ ]*)(?:!!!|\?{3}\+?|///|:::)[ ]*(?P<kind>[A-Za-z]\w*)[^\"'|\[\n]*"
    r"(?:[\"'|\[][ ]*(?P<title>[^\"'\]\n]*)[\"'\]]?[ ]*)?"
)
_SET_IN = re.compile(r"\s+(?:!!!|\?{3}\+?)[ ]")
_CLOSING = re.compile(r"[ ]*(?:///|:::)[ ]*$")
_DEFINITION = re.compile(r"[ ]{0,3}\[[^\]]+\]:[ ]*\S+")
_MODULE = re.compile(r"(?:import\s.*\bfrom\b\s*['\"]|import\s+['\"]|export\s+(?:const|default|function)\b)")
_LIST = re.compile(r"[ ]*(?:[-*+]|\d+[.)])[ ]+\S")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
_INFO = re.compile(r"\{?\.?([\w+#.-]+)\}?[ \t]*([\w+#-]+)?")
_FILE = re.compile(r"""(?:filename|title|file)=["']([^"']+)["']""")
_PROSE = ("note", "tip", "warning", "important", "caution", "hint", "admonition", "seealso", "attention")
_DROPPED = (
    "toctree",
    "contents",
    "include",
    "image",
    "figure",
    "currentmodule",
    "module",
    "mermaid",
)


def pieces(document: Document) -> list[Piece]:
    """A page's pieces; the title of its front matter stands above all headings."""
    return pieces_of(document, sections(document.text))


def sections(markdown: str) -> list[Section]:
    """A page by its headings, with fenced and indented code told from prose."""
    front = _FRONT.match(markdown)
    title = _FRONT_TITLE.search(front[1]) if front else None
    skipped = markdown[: front.end()].count("\n") if front else 0
    reader = _Reader(plain(title[1].strip(" \t\r'\"")) if title else None)
    reader.read(markdown.splitlines(), skipped)
    return [section for section in reader.sections if section.blocks]


class _Reader:
    """Goes through the lines once; keeps the open headings and the prose not yet closed."""

    def __init__(self, title: str | None) -> None:
        self._headings: list[tuple[int, str]] = [(0, title)] if title else []
        self._prose: list[str] = []
        self._code: list[str] = []
        self._since = 1
        self._listed = False
        self._inside = ""
        self.sections = [Section(self._trail(), 1)]

    def read(self, lines: list[str], start: int) -> None:
        numbered = iter(list(enumerate(lines, 1))[start:])
        for number, written in numbered:
            line = self._unfolded(written)
            fence = _FENCE.match(line)
            if fence:
                self._fenced(fence, number, numbered)
            elif line.lstrip().startswith("<!--") and "-->" not in line:
                self._comment(numbered)
            elif self._is_code(line):
                self._indented(line, number)
            elif self._code and not line.strip():
                self._code.append("")
            else:
                self._line(line, number)
        self._close(len(lines))

    def _comment(self, rest: Iterator[tuple[int, str]]) -> None:
        """Moves past a comment of several lines, in which indented ones are no code."""
        for number, line in rest:
            _, end, after = line.partition("-->")
            if end:
                self._line(after.lstrip(), number)
                return

    def _is_code(self, line: str) -> bool:
        """Whether a line is code by its indentation alone, which it is not in a list or below prose."""
        if not line.startswith(("    ", "\t")) or not line.strip() or _SET_IN.match(line):
            return False
        return bool(self._code) or not (self._listed or (self._prose and self._prose[-1].strip()))

    def _unfolded(self, line: str) -> str:
        """A line of an admonition without the indentation that makes it one."""
        if self._inside and line.startswith(self._inside):
            return line[len(self._inside) :]
        if line.strip():
            self._inside = ""
        return line

    def _line(self, line: str, number: int) -> None:
        heading = _HEADING.match(line)
        if heading:
            self._open(len(heading[1]), heading[2].rstrip("# \t"), number)
        elif self._is_underline(line):
            text = self._prose.pop()
            self._open(1 if line[0] == "=" else 2, text, number)
        elif admonition := _ADMONITION.fullmatch(line):
            self._inside = admonition["indent"] + " " * 4
            self._listed = False
            self._say("", number)
            self._say(f"{admonition['title'] or admonition['kind'].capitalize()}:", number)
        elif not (_CLOSING.match(line) or _DEFINITION.match(line) or _MODULE.match(line)):
            if line.strip() and not line.startswith((" ", "\t")):
                self._listed = bool(_LIST.match(line))
            elif _LIST.match(line):
                self._listed = True
            self._say(line, number)

    def _fenced(self, fence: re.Match[str], number: int, rest: Iterator[tuple[int, str]]) -> None:
        """The lines of a fence, its indentation taken off; one that is never closed ends with the page."""
        body: list[str] = []
        for _, written in rest:
            line = self._unfolded(written)
            if _closes(line, fence["mark"]):
                break
            body.append(_dedented(line, fence["indent"]))
        end = number + len(body) + 1
        info = _INFO.match(fence["info"])
        directive = info[1].lower() if info and fence["info"].startswith("{") else ""
        if directive in _DROPPED or directive.startswith("auto"):
            return
        if directive == "eval-rst":
            self._nested("\n".join(body), number)
            return
        if directive in _PROSE:
            self._say(f"{directive.capitalize()}:", number)
            for line in body:
                self._say(line, number)
            return
        word = (info[2] or "python") if info and directive else info[1] if info else None
        file = _FILE.search(fence["info"])
        self._close(number - 1)
        if any(line.strip() for line in body):
            language, name = language_of(word), file[1] if file else None
            block = Block("\n".join(body), number, end, code=True, language=language, file=name)
            self.sections[-1].blocks.append(block)

    def _nested(self, text: str, number: int) -> None:
        """reStructuredText within a page."""
        for section in rst_pieces.sections(text):
            for block in section.blocks:
                self._close(number - 1)
                moved = replace(block, first=block.first + number, last=block.last + number)
                self.sections[-1].blocks.append(moved)

    def _indented(self, line: str, number: int) -> None:
        if not self._code:
            self._close(number - 1)
            self._since = number
        self._code.append(line[4:] if line.startswith("    ") else line[1:])

    def _open(self, level: int, text: str, number: int) -> None:
        self._close(number - 1)
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, plain(text) or text.strip()))
        self._listed = False
        self.sections.append(Section(self._trail(), number))

    def _say(self, line: str, number: int) -> None:
        if self._code:
            self._close(number - 1)
        if not self._prose:
            self._since = number
        self._prose.append(line)

    def _close(self, number: int) -> None:
        """Make a block of what was gathered: code by indentation, or prose."""
        code, text = "\n".join(self._code).strip("\n"), plain("\n".join(self._prose))
        blocks = self.sections[-1].blocks
        if text:
            blocks.append(Block(text, self._since, number))
        if code:
            blocks.append(Block(code, self._since, number, code=True))
        self._prose, self._code = [], []

    def _is_underline(self, line: str) -> bool:
        if not self._prose or not self._prose[-1].strip() or not re.fullmatch(r"(?:={2,}|-{2,})[ \t]*", line):
            return False
        return len(self._prose) < 2 or not self._prose[-2].strip()

    def _trail(self) -> tuple[str, ...]:
        trail: list[str] = []
        for _, text in self._headings:
            if not trail or trail[-1] != text:
                trail.append(text)
        return tuple(trail)


def _closes(line: str, mark: str) -> bool:
    bare = line.strip(" \t>")
    return len(bare) >= len(mark) and not bare.strip(mark[0])


def _dedented(line: str, indent: str) -> str:
    """Without as much white space, or quoting, as stands before the fence."""
    taken = 0
    while taken < len(indent) and taken < len(line) and line[taken] in " \t>":
        taken += 1
    return line[taken:]
