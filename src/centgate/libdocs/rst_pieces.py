"""reStructuredText, read by its lines rather than built, cut into pieces by heading."""

from __future__ import annotations

import re

from centgate.libdocs.documents import Document
from centgate.libdocs.languages import language_of
from centgate.libdocs.pieces import Piece
from centgate.libdocs.python_syntax import parsed
from centgate.libdocs.rst_inline import plain
from centgate.libdocs.sections import Block, Section, pieces_of

_UNDERLINE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}[ \t]*")
_DIRECTIVE = re.compile(r"(?P<indent>[ \t]*)\.\. +(?P<name>[A-Za-z][\w:.-]*)::[ \t]*(?P<argument>.*)")
_COMMENT = re.compile(r"(?P<indent>[ \t]*)\.\.(?:[ \t]+\S.*|[ \t]*)$")
_OPTION = re.compile(r"[ \t]*:[\w-]+:(?:[ \t]|$)")
_PROMPT = re.compile(r"[ \t]*>>> ?\S")
_CODE = ("code-block", "code", "sourcecode", "code-tab", "parsed-literal", "doctest", "testcode", "ipython")
_PROSE = {
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
"""What SQLAlchemy's documentation folds its output by."""


def pieces(document: Document) -> list[Piece]:
    """A page's pieces."""
    return pieces_of(document, sections(document.text))


def sections(text: str) -> list[Section]:
    """A page by its headings; their levels are told by the order in which their marks are first used."""
    return _Reader(text.expandtabs(8).splitlines()).read()


class _Reader:
    """Goes through the lines once, by index, since blocks are told by what is above and below them."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._levels: list[str] = []
        self._headings: list[tuple[int, str]] = []
        self._prose: list[str] = []
        self._since = 1
        self._at = 0
        self._language: str | None = None
        self._sections = [Section((), 1)]

    def read(self) -> list[Section]:
        while self._at < len(self._lines):
            self._step(self._lines[self._at])
        self._close()
        return [section for section in self._sections if section.blocks]

    def _step(self, line: str) -> None:
        heading = self._heading_here(line)
        if heading:
            self._open(*heading)
        elif directive := _DIRECTIVE.fullmatch(line):
            self._directive(directive)
        elif comment := _COMMENT.fullmatch(line):
            self._skip_below(len(comment["indent"]))
        elif _PROMPT.match(line):
            self._doctest()
        elif line.rstrip().endswith("::"):
            self._literal(line)
        else:
            self._say(line)
            self._at += 1

    def _heading_here(self, line: str) -> tuple[str, str, int] | None:
        """A heading's mark, its text and how many lines it takes, if one begins at this line."""
        below = self._line(1)
        if _UNDERLINE.fullmatch(line) and below.strip() and self._line(2).rstrip() == line.rstrip():
            return line[0] * 2, below.strip(), 3
        under = _UNDERLINE.fullmatch(below)
        if not under or not line.strip() or line[0] == " " or _UNDERLINE.fullmatch(line):
            return None
        if len(below.rstrip()) < min(len(line.rstrip()), 4) or (self._prose and self._prose[-1].strip()):
            return None
        return under[1], line.strip(), 2

    def _open(self, mark: str, text: str, lines: int) -> None:
        self._close()
        if mark not in self._levels:
            self._levels.append(mark)
        level = self._levels.index(mark)
        self._headings = [each for each in self._headings if each[0] < level]
        self._headings.append((level, plain(text)))
        self._sections.append(Section(tuple(each for _, each in self._headings), self._at + 1))
        self._at += lines

    def _directive(self, directive: re.Match[str]) -> None:
        name = _DOMAIN.sub("", directive["name"].lower())
        indent = len(directive["indent"])
        if name in ("highlight", "highlightlang"):
            self._language = language_of(directive["argument"].strip())
        if name in _CODE:
            self._code(indent, directive["argument"])
        elif name.endswith("example"):
            self._code(indent, "python")
        elif name in _PROSE:
            self._unfold(indent, _PROSE[name], directive["argument"])
        else:
            self._skip_below(indent)

    def _code(self, indent: int, argument: str) -> None:
        first = self._at + 1
        body = self._below(indent)
        while body and (_OPTION.match(body[0]) or not body[0].strip()):
            body.pop(0)
        self._add_code(body, first, language_of(argument.strip().split(" ")[0]) or self._language)

    def _unfold(self, indent: int, label: str, argument: str) -> None:
        """Puts what a directive holds in its place, its indentation taken off and its label above it."""
        start = self._at
        body = self._below(indent)
        while body and _OPTION.match(body[0]):
            body.pop(0)
        head = " ".join(part for part in (label, argument.strip()) if part)
        lines = [head + (":" if head and body else ""), *_dedent(body)]
        # as many lines as before, so that the numbers of those below stay right
        self._lines[start : self._at] = lines + [""] * (self._at - start - len(lines))
        self._at = start + 1
        self._say(lines[0])

    def _doctest(self) -> None:
        first = self._at + 1
        body: list[str] = []
        while self._at < len(self._lines) and self._lines[self._at].strip():
            body.append(self._lines[self._at])
            self._at += 1
        self._add_code(_dedent(body), first, "python")

    def _literal(self, line: str) -> None:
        """A paragraph that ends in two colons, and the indented block that it announces."""
        said = line.rstrip()[:-2]
        if said.strip():
            self._say(said.rstrip() + ":")
        first = self._at + 1
        body = self._below(len(line) - len(line.lstrip()))
        self._add_code(_dedent(body), first, self._language)

    def _add_code(self, body: list[str], first: int, language: str | None) -> None:
        code = _MARKERS.sub("", "\n".join(_dedent(body))).strip("\n")
        if not code.strip():
            return
        self._close()
        if language in (None, "default", "pycon+sql", "python+sql") and ">>>" in code:
            language = "python"
        if language in ("pycon+sql", "python+sql"):
            language = "python"
        if language in (None, "default"):
            language = _guessed(code)
        block = Block(code, first, self._at, code=True, language=language)
        self._sections[-1].blocks.append(block)

    def _below(self, indent: int) -> list[str]:
        """The lines below this one that are further in, and moves past them."""
        self._at += 1
        start = self._at
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            self._at += 1
        body = self._lines[start : self._at]
        while body and not body[-1].strip():
            body.pop()
        while body and not body[0].strip():
            body.pop(0)
        return body

    def _skip_below(self, indent: int) -> None:
        self._below(indent)

    def _say(self, line: str) -> None:
        if not self._prose:
            self._since = self._at + 1
        self._prose.append(line)

    def _close(self) -> None:
        text = plain("\n".join(self._prose))
        self._prose = []
        if text:
            self._sections[-1].blocks.append(Block(text, self._since, self._at))

    def _line(self, ahead: int) -> str:
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else ""


def _guessed(code: str) -> str | None:
    """What a block without a language most likely is: Sphinx takes it for Python too, where it parses."""
    if code.startswith(("$ ", "pip install ", "python -m ")):
        return "bash"
    if not _PYTHON.search(code):
        return None
    try:
        parsed(code)
    except SyntaxError:
        return None
    return "python"


def _dedent(lines: list[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]
