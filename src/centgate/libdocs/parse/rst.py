"""Split reStructuredText into chunks by heading. It is read line by line, not built."""

from __future__ import annotations

import re

from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.languages import normalize_language
from centgate.libdocs.parse.python_syntax import parse_source
from centgate.libdocs.parse.rst_inline import strip_rst
from centgate.libdocs.parse.sections import PageBlock, PageSection, build_chunks

_UNDERLINE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}[ \t]*")
_DIRECTIVE = re.compile(r"(?P<indent>[ \t]*)\.\. +(?P<name>[A-Za-z][\w:.-]*)::[ \t]*(?P<argument>.*)")
_COMMENT = re.compile(r"(?P<indent>[ \t]*)\.\.(?:[ \t]+\S.*|[ \t]*)$")
_OPTION = re.compile(r"[ \t]*:[\w-]+:(?:[ \t]|$)")
_PROMPT = re.compile(r"[ \t]*>>> ?\S")
_CODE_DIRECTIVES = (
    "code-block",
    "code",
    "sourcecode",
    "code-tab",
    "parsed-literal",
    "doctest",
    "testcode",
    "ipython",
)
_PROSE_DIRECTIVES = {
    "note": "Note",
    "warning": "Warning",
    "tip": "Tip",
    "hint": "Hint",
    "important": "Important",
    "caution": "Caution",
    "danger": "Danger",
    "attention": "Attention",
    "seealso": "See also",
    "admonition": "",
    "topic": "",
    "sidebar": "",
    "deepalchemy": "",
    "legacy": "Legacy",
    "rubric": "",
    "deprecated": "Deprecated since",
    "versionadded": "New in",
    "versionchanged": "Changed in",
    "tab": "",
    "tabs": "",
    "tab-item": "",
    "tab-set": "",
    "list-table": "",
    "container": "",
    "compound": "",
    "dropdown": "",
    "epigraph": "",
    "glossary": "",
    "function": "",
    "class": "",
    "method": "",
    "attribute": "",
    "data": "",
    "exception": "",
    "decorator": "",
    "option": "",
    "confval": "",
}
_PYTHON = re.compile(r"^(?:import|from|def|class|with|async|@|\w[\w.]* = )|\)\s*$", re.MULTILINE)
_DOMAIN = re.compile(r"^(?:py|js|c|cpp|rst|std):")
_MARKERS = re.compile(r"\{(?:sql|stop|execsql|printsql|opensql)\}")
"""Markers that fold output in SQLAlchemy's documentation."""


def split_rst(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a page."""
    return build_chunks(document, parse_sections(document.text))


def parse_sections(text: str) -> list[PageSection]:
    """Return the sections of a page. Heading levels follow the order in which their marks first appear."""
    return _RstReader(text.expandtabs(8).splitlines()).read()


class _RstReader:
    """Reads the lines once, by index, because a block depends on the lines above and below it."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._levels: list[str] = []
        self._headings: list[tuple[int, str]] = []
        self._prose: list[str] = []
        self._block_start = 1
        self._position = 0
        self._language: str | None = None
        self._sections = [PageSection((), 1)]

    def read(self) -> list[PageSection]:
        while self._position < len(self._lines):
            self._read_block(self._lines[self._position])
        self._close_block()
        return [section for section in self._sections if section.blocks]

    def _read_block(self, line: str) -> None:
        heading = self._parse_heading(line)
        if heading:
            self._open_section(*heading)
        elif directive := _DIRECTIVE.fullmatch(line):
            self._read_directive(directive)
        elif comment := _COMMENT.fullmatch(line):
            self._skip_indented_block(len(comment["indent"]))
        elif _PROMPT.match(line):
            self._read_doctest()
        elif line.rstrip().endswith("::"):
            self._read_literal_block(line)
        else:
            self._add_prose(line)
            self._position += 1

    def _parse_heading(self, line: str) -> tuple[str, str, int] | None:
        """Return the mark, the text and the number of lines of a heading that begins at this line."""
        below = self._peek_line(1)
        if _UNDERLINE.fullmatch(line) and below.strip() and self._peek_line(2).rstrip() == line.rstrip():
            return line[0] * 2, below.strip(), 3
        under = _UNDERLINE.fullmatch(below)
        if not under or not line.strip() or line[0] == " " or _UNDERLINE.fullmatch(line):
            return None
        if len(below.rstrip()) < min(len(line.rstrip()), 4) or (self._prose and self._prose[-1].strip()):
            return None
        return under[1], line.strip(), 2

    def _open_section(self, mark: str, text: str, lines: int) -> None:
        self._close_block()
        if mark not in self._levels:
            self._levels.append(mark)
        level = self._levels.index(mark)
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, strip_rst(text)))
        self._sections.append(PageSection(tuple(each for _, each in self._headings), self._position + 1))
        self._position += lines

    def _read_directive(self, directive: re.Match[str]) -> None:
        name = _DOMAIN.sub("", directive["name"].lower())
        indent = len(directive["indent"])
        if name in ("highlight", "highlightlang"):
            self._language = normalize_language(directive["argument"].strip())
        if name in _CODE_DIRECTIVES:
            self._read_code(indent, directive["argument"])
        elif name.endswith("example"):
            self._read_code(indent, "python")
        elif name in _PROSE_DIRECTIVES:
            self._unwrap_directive(indent, _PROSE_DIRECTIVES[name], directive["argument"])
        else:
            self._skip_indented_block(indent)

    def _read_code(self, indent: int, argument: str) -> None:
        first = self._position + 1
        body = self._take_indented_block(indent)
        while body and (_OPTION.match(body[0]) or not body[0].strip()):
            body.pop(0)
        self._add_code(body, first, normalize_language(argument.strip().split(" ")[0]) or self._language)

    def _unwrap_directive(self, indent: int, label: str, argument: str) -> None:
        """Replace a directive by its content, without its indentation and with its label above."""
        start = self._position
        body = self._take_indented_block(indent)
        while body and _OPTION.match(body[0]):
            body.pop(0)
        head = " ".join(part for part in (label, argument.strip()) if part)
        lines = [head + (":" if head and body else ""), *_dedent_lines(body)]
        # the number of lines must not change, so that later line numbers stay correct
        self._lines[start : self._position] = lines + [""] * (self._position - start - len(lines))
        self._position = start + 1
        self._add_prose(lines[0])

    def _read_doctest(self) -> None:
        first = self._position + 1
        body: list[str] = []
        while self._position < len(self._lines) and self._lines[self._position].strip():
            body.append(self._lines[self._position])
            self._position += 1
        self._add_code(_dedent_lines(body), first, "python")

    def _read_literal_block(self, line: str) -> None:
        """Read a paragraph that ends in two colons, and the indented block that follows it."""
        text = line.rstrip()[:-2]
        if text.strip():
            self._add_prose(text.rstrip() + ":")
        first = self._position + 1
        body = self._take_indented_block(len(line) - len(line.lstrip()))
        self._add_code(_dedent_lines(body), first, self._language)

    def _add_code(self, body: list[str], first: int, language: str | None) -> None:
        code = _MARKERS.sub("", "\n".join(_dedent_lines(body))).strip("\n")
        if not code.strip():
            return
        self._close_block()
        if language in (None, "default", "pycon+sql", "python+sql") and ">>>" in code:
            language = "python"
        if language in ("pycon+sql", "python+sql"):
            language = "python"
        if language in (None, "default"):
            language = _guess_language(code)
        block = PageBlock(code, first, self._position, is_code=True, language=language)
        self._sections[-1].blocks.append(block)

    def _take_indented_block(self, indent: int) -> list[str]:
        """Return the following lines with more indentation, and move past them."""
        self._position += 1
        start = self._position
        while self._position < len(self._lines):
            line = self._lines[self._position]
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            self._position += 1
        body = self._lines[start : self._position]
        while body and not body[-1].strip():
            body.pop()
        while body and not body[0].strip():
            body.pop(0)
        return body

    def _skip_indented_block(self, indent: int) -> None:
        self._take_indented_block(indent)

    def _add_prose(self, line: str) -> None:
        if not self._prose:
            self._block_start = self._position + 1
        self._prose.append(line)

    def _close_block(self) -> None:
        text = strip_rst("\n".join(self._prose))
        self._prose = []
        if text:
            self._sections[-1].blocks.append(PageBlock(text, self._block_start, self._position))

    def _peek_line(self, ahead: int) -> str:
        at = self._position + ahead
        return self._lines[at] if at < len(self._lines) else ""


def _guess_language(code: str) -> str | None:
    """Guess the language of a block that names none. Sphinx also takes it for Python if it parses."""
    if code.startswith(("$ ", "pip install ", "python -m ")):
        return "bash"
    if not _PYTHON.search(code):
        return None
    try:
        parse_source(code)
    except SyntaxError:
        return None
    return "python"


def _dedent_lines(lines: list[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]
