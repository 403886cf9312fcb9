"""Split Go files into chunks: exported declarations with comments (go.dev/doc/comment), and examples."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from msgspec import Struct, field

from centgate.libdocs.parse.chunk import Chunk, finalize_chunks, name_variants
from centgate.libdocs.parse.docstrings import add_signature, split_examples
from centgate.libdocs.parse.documents import PackageDocument, is_example
from centgate.libdocs.parse.python import REFERENCE_WEIGHT, UNDOCUMENTED_WEIGHT
from centgate.libdocs.parse.sections import Excerpt, page_name

MAX_DECLARATION_LINES = 60
"""Maximum lines of a declared type or of a group of constants that are shown."""
MAX_BODY_LINES = 400
_PACKAGE = re.compile(r"package[ \t]+(?P<name>\w+)")
_DIRECTIVE = re.compile(r"//(?:[a-z0-9]+:[a-z0-9]|[ \t]*\+build[ \t])")
_FUNCTION = re.compile(r"func[ \t]+(?:\((?P<receiver>[^()]{1,200})\)[ \t]*)?(?P<name>\w+)[ \t]*[\[(]")
_RECEIVER = re.compile(r"(?:^|[ \t*])(?P<name>\w+)(?:\[[^\]]{0,100}\])?$")
_TYPE = re.compile(r"type[ \t]+(?P<name>\w+)")
_VALUES = re.compile(r"(?:const|var)[ \t]+(?:(?P<group>\()|(?P<name>\w+))")
_VALUE = re.compile(r"[ \t](?P<name>[A-Z]\w*)\b")
_EXAMPLE = re.compile(r"func[ \t]+Example(?P<name>\w*)\(\)[ \t]*\{[ \t]*$")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+\u2022]|\d{1,4}[.)])[ \t]")
_SHELL = re.compile(r"\$[ \t]|go (?:get|install|run|mod|test|build) ")
_BODY_AFTER = re.compile(r"(?:interface|struct)[ \t]*$")


class _GoFile(Struct):
    """A file, and the place in it."""

    document: PackageDocument
    lines: list[str]
    package: str = ""
    comment: list[str] = field(default_factory=list[str])
    """Lines of the comment directly above."""


def split_go(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a file; an example is one whole chunk."""
    if is_example(document.path):
        name, url = page_name(document.path), document.source_url
        return finalize_chunks(Chunk(name, (), document.text, "go", None, url, document.path))
    file = _GoFile(document, document.text.expandtabs(4).splitlines())
    return list(_iter_chunks(file, is_test=document.path.endswith("_test.go")))


def _iter_chunks(file: _GoFile, *, is_test: bool) -> Iterator[Chunk]:
    number = 0
    while number < len(file.lines):
        line = file.lines[number]
        if line.startswith("/*"):
            file.comment, number = _read_block_comment(file.lines, number)
            continue
        if line.startswith("//"):
            file.comment += [] if _DIRECTIVE.match(line) else [line[2:].removeprefix(" ")]
        else:
            if line[:1].strip():
                yield from _example_chunks(file, number) if is_test else _declaration_chunks(file, number)
            file.comment = []
        number += 1


def _read_block_comment(lines: list[str], first: int) -> tuple[list[str], int]:
    """Return the lines of a comment between `/*` and `*/`, and the number of the line after it."""
    end = next((number for number in range(first, len(lines)) if "*/" in lines[number]), len(lines) - 1)
    text = "\n".join(lines[first : end + 1]).removeprefix("/*").partition("*/")[0]
    return text.strip("\n").splitlines(), end + 1


def _declaration_chunks(file: _GoFile, number: int) -> Iterator[Chunk]:
    line = file.lines[number]
    if found := _PACKAGE.match(line):
        file.package = found["name"]
        if file.comment:
            yield from _make_chunks(file, None, None)
    elif found := _FUNCTION.match(line):
        receiver = _RECEIVER.search(found["receiver"].strip()) if found["receiver"] else None
        parts = [*([receiver["name"]] if receiver else []), found["name"]]
        if all(map(_is_exported, parts)) and bool(receiver) == bool(found["receiver"]):
            yield from _make_chunks(file, ".".join(parts), _read_signature(file.lines, number))
    elif found := _TYPE.match(line):
        if _is_exported(found["name"]):
            yield from _make_chunks(file, found["name"], _read_declaration(file.lines, number))
    elif (found := _VALUES.match(line)) and file.comment:
        code = _read_declaration(file.lines, number)
        first = found["name"] or next((each["name"] for each in _VALUE.finditer(code)), "")
        if _is_exported(first):
            yield from _make_chunks(file, first, code)


def _make_chunks(file: _GoFile, name: str | None, code: str | None) -> Iterator[Chunk]:
    text = _format_comment(file.comment)
    excerpts = split_examples(text, language="go") if text else []
    weight = REFERENCE_WEIGHT if text else UNDOCUMENTED_WEIGHT
    if code is not None:
        excerpts = add_signature(code, excerpts, language="go", is_joinable=_is_go)
    url = file.document.source_url
    url = f"{url}#{name}" if url and name else url
    trail = (file.package,) if name and file.package else ()
    names = name_variants(name) if name else ()
    title = name or file.package
    for excerpt in excerpts:
        yield from finalize_chunks(Chunk(title, trail, *excerpt, url, file.document.path, names, weight))


def _example_chunks(file: _GoFile, number: int) -> Iterator[Chunk]:
    """Yield an example: `ExampleRouter_Use_twice` shows the method `Use` of `Router`."""
    if found := _PACKAGE.match(file.lines[number]):
        file.package = found["name"].removesuffix("_test")
    example = _EXAMPLE.match(file.lines[number])
    if example is None:
        return
    parts = [part for part in example["name"].split("_") if part]
    name = ".".join(filter(_is_exported, parts))
    remark = "".join(f", {part}" for part in parts if not _is_exported(part))
    title = f"{name or file.package} (example{remark})"
    url = file.document.source_url
    url = f"{url}#example-{name or 'package'}" if url else None
    trail = (file.package,) if name and file.package else ()
    text = _format_comment(file.comment) or None
    code = _read_body(file.lines, number)
    names = name_variants(name) if name else ()
    yield from finalize_chunks(Chunk(title, trail, code, "go", text, url, file.document.path, names))


def _is_exported(name: str) -> bool:
    return name[:1].isupper()


def _read_body(lines: list[str], number: int) -> str:
    """Return the statements of a function whose closing brace begins a line."""
    body: list[str] = []
    for line in lines[number + 1 : number + 1 + MAX_BODY_LINES]:
        if line.startswith("}"):
            break
        body.append(line)
    return textwrap.dedent("\n".join(body)).strip("\n")


def _read_signature(lines: list[str], number: int) -> str:
    """Return the head of a function up to its body."""
    taken: list[str] = []
    depth = 0
    for line in lines[number : number + MAX_DECLARATION_LINES]:
        for place, letter in enumerate(line):
            depth += (letter in "([") - (letter in ")]")
            if letter == "{" and depth <= 0 and not _BODY_AFTER.search(line[:place]):
                return "\n".join([*taken, line[:place].rstrip()])
        taken.append(line)
        if depth <= 0:
            break
    return "\n".join(taken)


def _read_declaration(lines: list[str], number: int) -> str:
    """Return a declaration up to the brace or parenthesis that closes it at the beginning of a line."""
    if not lines[number].rstrip().endswith(("{", "(")):
        return lines[number]
    taken = [lines[number]]
    for line in lines[number + 1 : number + MAX_DECLARATION_LINES]:
        taken.append(line)
        if line.startswith(("}", ")")):
            return "\n".join(taken)
    return "\n".join([*taken, "    // …"])


def _format_comment(comment: list[str]) -> str:
    """Return a doc comment as Markdown: an indented span is code unless it is a list."""
    lines: list[str] = []
    span: list[str] = []
    for line in [*comment, "."]:
        if line[:1].isspace() or (not line.strip() and span):
            span.append(line)
            continue
        if span:
            lines += _format_span(span)
            span = []
        lines.append(line)
    return "\n".join(lines[:-1]).strip()


def _format_span(span: list[str]) -> list[str]:
    code = textwrap.dedent("\n".join(span)).strip("\n").splitlines()
    if not code:
        return ["", ""]
    if _LIST_ITEM.match(f"{code[0]} "):
        return ["", *code, ""]
    return ["", "```bash" if _SHELL.match(code[0]) else "```go", *code, "```", ""]


def _is_go(_: str, example: Excerpt) -> bool:
    return example.language == "go"
