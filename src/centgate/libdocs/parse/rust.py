"""Split Rust files into chunks: public items with their doc comments, which are Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from centgate.libdocs.parse.chunk import Chunk, finalize_chunks, link_to_lines, name_variants
from centgate.libdocs.parse.docstrings import add_signature, split_examples
from centgate.libdocs.parse.documents import PackageDocument, is_example
from centgate.libdocs.parse.python import REFERENCE_WEIGHT
from centgate.libdocs.parse.sections import Excerpt, page_name

MAX_SIGNATURE_LINES = 20
MODULE_TITLE = "Overview"
"""Title of the documentation of a crate's root."""
_DOC = re.compile(r"[ \t]*//([/!])(?!/)[ ]?(.*)")
_ITEM = re.compile(
    r"[ \t]*(?:pub\s+(?:(?:async|const|unsafe|extern\s+\"C\")\s+)*"
    r"(?:fn|struct|enum|trait|type|union|const|static|mod|macro)|macro_rules!)\s+(?P<name>\w+)"
)
_OWNER = re.compile(
    r"(?:impl\b(?:<[^{}]{0,200}?>)?\s*|(?:pub\s+)?trait\s+)(?:[\w:<>, ]{1,200}\bfor\s+)?(?P<name>\w+)"
)
_HEAD_TOKEN = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|=>|[\[\]{;]", re.DOTALL)
"""Marks that end a signature or are brackets of a type; comments and literals are matched to be skipped."""
_SKIPPED = re.compile(r"[ \t]*(?:#!?\[.*|//.*)?$")
_HIDDEN = re.compile(r"^[ \t]*#(?: .*)?$\n?", re.MULTILINE)
_TEST_WORDS = (
    "no_run",
    "ignore",
    "should_panic",
    "compile_fail",
    "edition2018",
    "edition2021",
    "edition2024",
)


def split_rust(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a file; an example is one whole chunk."""
    if is_example(document.path):
        name, url = page_name(document.path), document.source_url
        return finalize_chunks(Chunk(name, (), document.text, "rust", None, url, document.path))
    return list(_iter_chunks(document, document.text.splitlines()))


def _iter_chunks(document: PackageDocument, lines: list[str]) -> Iterator[Chunk]:
    module = re.sub(r"(?:(?:^|/)(?:mod|lib|main))?\.rs$", "", document.path.removeprefix("src/")).replace(
        "/", "::"
    )
    inner = [doc[2] for line in lines if (doc := _DOC.match(line)) and doc[1] == "!"]
    yield from _make_chunks(document, (module, None), None, "\n".join(inner), 1)
    comment: list[str] = []
    owner: str | None = None
    for number, line in enumerate(lines):
        doc = _DOC.match(line)
        if line[:1].strip():
            head = _OWNER.match(line)
            owner = head["name"] if head else owner if line.startswith(("}", "#", "/", "w")) else None
        if doc:
            comment += [doc[2]] if doc[1] == "/" else []
        elif comment and (item := _ITEM.match(line)):
            name = f"{owner}::{item['name']}" if owner and line[:1].isspace() else item["name"]
            code = _read_signature(lines[number : number + MAX_SIGNATURE_LINES])
            yield from _make_chunks(document, (module, name), code, "\n".join(comment), number + 1)
            comment = []
        elif not _SKIPPED.match(line):
            comment = []


def _make_chunks(
    document: PackageDocument, place: tuple[str, str | None], code: str | None, text: str, line: int
) -> Iterator[Chunk]:
    module, name = place
    examples = [_as_rust(each) for each in split_examples(text, language="rust")] if text.strip() else []
    if code is not None:
        examples = add_signature(code, examples, language="rust", is_joinable=_is_rust)
    url = link_to_lines(document.source_url, line, line)
    names = name_variants(name.replace("::", ".")) if name else ()
    for excerpt in examples:
        trail = (module,) if name and module else ()
        chunk = Chunk(
            name or module or MODULE_TITLE, trail, *excerpt, url, document.path, names, REFERENCE_WEIGHT
        )
        yield from finalize_chunks(chunk)


def _read_signature(lines: list[str]) -> str:
    """Return an item up to its body."""
    text = "\n".join(lines)
    head = text[: _find_head_end(text)].rstrip()
    margin = len(head) - len(head.lstrip())
    return "\n".join(line[margin:].rstrip() for line in head.split("\n")).strip()


def _find_head_end(text: str) -> int:
    """Return where the body of an item begins, or the `;` instead of one; array types have a `;` too."""
    depth = 0
    for token in _HEAD_TOKEN.finditer(text):
        if token[0] in ("{", "=>") or (token[0] == ";" and depth == 0):
            return token.start()
        depth += (token[0] == "[") - (token[0] == "]")
    return len(text)


def _as_rust(excerpt: Excerpt) -> Excerpt:
    """Return an example as Rust, without the lines that its documentation hides."""
    if excerpt.code is None or excerpt.language not in ("rust", None, *_TEST_WORDS):
        return excerpt
    return Excerpt(_HIDDEN.sub("", excerpt.code), "rust", excerpt.text)


def _is_rust(_: str, example: Excerpt) -> bool:
    return example.language == "rust"
