"""Python files cut into pieces: examples whole, public classes and functions by their docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from centgate.libdocs.docstrings import examples_and_text
from centgate.libdocs.documents import Document
from centgate.libdocs.pieces import Piece, anchored, finished, names_of
from centgate.libdocs.python_signatures import (
    Function,
    class_outline,
    is_public,
    parameter_notes,
    signature,
)
from centgate.libdocs.python_syntax import parsed
from centgate.libdocs.sections import Shown

UNDOCUMENTED = 0.45
"""What a match in a bare signature is worth."""
REFERENCE = 0.9
"""What a match in a docstring is worth, beside guides and examples."""
MEMBER = 0.9
"""What a match in a method is worth beside one in a class or function."""
SIGNATURE = 1500
"""Characters of a signature beside which its examples are pieces of their own."""
OVERLOADS = 4
EXAMPLE = 3
"""Lines of code that an example has at least."""
_EXAMPLES = re.compile(r"(?:^|/)(?:docs?_src|docs?|examples?|samples?|demos?|snippets|tutorials?|cookbook)/")
_ROOTS = re.compile(r"^(?:[^/]+-\d[^/]*/)?(?:(?:src|lib|python)/)?")
_VARIANT = re.compile(r"(?:_non)?(?:_an)?(?:_py\d+)?$")


def pieces(document: Document) -> list[Piece]:
    """A file's pieces; none when it does not parse."""
    try:
        return _pieces(document, parsed(document.text))
    except (SyntaxError, RecursionError):
        return []


def _pieces(document: Document, tree: ast.Module) -> list[Piece]:
    if is_example(document.path):
        return _example(document, tree)
    module = module_of(document.path)
    found = list(_module(document, tree, module))
    for node in tree.body:
        found.extend(_definition(document, node, module))
    return _merged(found)


def is_example(path: str) -> bool:
    """Whether a file is there to be read rather than imported."""
    return bool(_EXAMPLES.search(path))


def module_of(path: str) -> str:
    """`src/flask/json/__init__.py` is the module `flask.json`."""
    inner = _ROOTS.sub("", path).removesuffix(".pyi").removesuffix(".py").removesuffix("/__init__")
    return inner.replace("/", ".")


def _example(document: Document, tree: ast.Module) -> list[Piece]:
    """The whole file, titled by what its folder and name say."""
    text = document.text.strip()
    docstring = ast.get_docstring(tree)
    if docstring and isinstance(tree.body[0], ast.Expr):
        text = "\n".join(document.text.splitlines()[tree.body[0].end_lineno :]).strip()
    if sum(bool(line.strip()) for line in text.splitlines()) < EXAMPLE:
        return []
    *folders, name = [part for part in document.path.removesuffix(".py").split("/") if part]
    after = [folder for folder in folders if not _EXAMPLES.search(f"{folder}/")][-2:]
    trail = [_words(part) for part in (*after, _VARIANT.sub("", name))]
    piece = Piece(trail[-1], tuple(trail[:-1]), text, "python", docstring, document.source_url, document.path)
    return finished(piece)


def _module(document: Document, tree: ast.Module, module: str) -> Iterator[Piece]:
    docstring = ast.get_docstring(tree, clean=False)
    if docstring:
        yield from _documented(document, (module,), None, docstring, (1, docstring.count("\n") + 1))


def _definition(document: Document, node: ast.stmt, module: str) -> Iterator[Piece]:
    if isinstance(node, ast.If | ast.Try):
        for inner in node.body:
            yield from _definition(document, inner, module)
    elif isinstance(node, Function) and is_public(node.name):
        yield from _function(document, node, (module, node.name))
    elif isinstance(node, ast.ClassDef) and is_public(node.name):
        yield from _class(document, node, (module, node.name))


def _function(document: Document, node: Function, trail: tuple[str, ...]) -> Iterator[Piece]:
    docstring = ast.get_docstring(node, clean=False) or ""
    if len(trail) > 2 and not docstring:
        return
    text = "\n\n".join(part for part in (_clean(docstring), "\n".join(parameter_notes(node))) if part)
    code = signature(node, method=len(trail) > 2)
    yield from _documented(document, trail, code, text, _lines(node))


def _class(document: Document, node: ast.ClassDef, trail: tuple[str, ...]) -> Iterator[Piece]:
    made = next((each for each in node.body if isinstance(each, Function) and each.name == "__init__"), None)
    parts = [_clean(ast.get_docstring(node, clean=False) or "")]
    if made:
        parts += [_clean(ast.get_docstring(made, clean=False) or ""), "\n".join(parameter_notes(made))]
    text = "\n\n".join(part for part in parts if part)
    yield from _documented(document, trail, class_outline(node), text, (node.lineno, node.body[0].lineno))
    for member in node.body:
        if isinstance(member, Function) and is_public(member.name):
            yield from _function(document, member, (*trail, member.name))


def _documented(
    document: Document, trail: tuple[str, ...], code: str | None, docstring: str, lines: tuple[int, int]
) -> Iterator[Piece]:
    """A signature with its text and first examples; further examples in pieces of their own."""
    module, *inner = trail
    title = ".".join(inner) or module
    names = names_of(title)
    weight = (REFERENCE if docstring else UNDOCUMENTED) * (MEMBER if len(inner) > 1 else 1.0)
    url = anchored(document.source_url, *lines)
    trail = (module,) if inner else ()
    examples = examples_and_text(docstring, language="python") if docstring else []
    for shown in _with_signature(code, examples):
        yield from finished(Piece(title, trail, *shown, url, document.path, names, weight))


def _with_signature(code: str | None, examples: list[Shown]) -> list[Shown]:
    """The signature put above the first example, or before it when both are long."""
    if code is None:
        return examples
    first, *rest = examples or [Shown(None, None, None)]
    if first.code is None:
        return [Shown(code, "python", first.text), *rest]
    if first.language == "python" and len(code) + len(first.code) < SIGNATURE:
        return [Shown(f"{code}\n\n{first.code}", "python", first.text), *rest]
    return [Shown(code, "python", first.text), first._replace(text=None), *rest]


def _merged(found: list[Piece]) -> list[Piece]:
    """Overloads made one piece: what the implementation says, with the signatures that callers see."""
    merged: list[Piece] = []
    for piece in found:
        above = merged[-1] if merged else None
        if above is None or not piece.names or above.names != piece.names or above.weight > UNDOCUMENTED:
            merged.append(piece)
        elif piece.weight <= UNDOCUMENTED:
            more = piece.code or ""
            enough = more in (above.code or "") or (above.code or "").count("def ") >= OVERLOADS
            merged[-1] = above if enough else replace(above, code=f"{above.code}\n{more}")
        else:
            example = (piece.code or "").partition("\n\n")[2]
            code = f"{above.code}\n\n{example}" if example else above.code
            merged[-1] = replace(piece, code=code)
    return merged


def _lines(node: Function) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _clean(docstring: str) -> str:
    lines = docstring.expandtabs().splitlines()
    indent = min((len(each) - len(each.lstrip()) for each in lines[1:] if each.strip()), default=0)
    return "\n".join([*map(str.strip, lines[:1]), *(each[indent:].rstrip() for each in lines[1:])]).strip()


def _words(name: str) -> str:
    """`background_tasks` is Background tasks; `tutorial001` is Tutorial 001."""
    words = re.sub(r"(?<=[a-z])(?=\d)", " ", name.replace("_", " ").replace("-", " ").strip())
    return words[:1].upper() + words[1:]
