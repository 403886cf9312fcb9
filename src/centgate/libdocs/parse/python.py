"""Split Python files into chunks: examples whole, public classes and functions by their docstrings."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from msgspec.structs import replace

from centgate.libdocs.parse.chunk import Chunk, finalize_chunks, link_to_lines, name_variants
from centgate.libdocs.parse.docstrings import add_signature, split_examples
from centgate.libdocs.parse.documents import EXAMPLE_FOLDER, PackageDocument, is_example, is_test
from centgate.libdocs.parse.python_signatures import (
    FunctionNode,
    format_class_outline,
    format_parameter_notes,
    format_signature,
    is_public,
)
from centgate.libdocs.parse.python_syntax import parse_source
from centgate.libdocs.parse.sections import Excerpt, page_name

UNDOCUMENTED_WEIGHT = 0.45
"""Weight of a bare signature."""
REFERENCE_WEIGHT = 0.9
"""Weight of a docstring, compared with guides and examples."""
MEMBER_WEIGHT = 0.9
"""Weight of a method, compared with a class or function."""
TEST_WEIGHT = 0.25
"""Weight of a test, which shows a call but is seldom written to be read."""
MAX_TEST_LINES = 40
MAX_SIGNATURE = 1500
"""Characters of a signature and its example above which the example is a chunk of its own."""
MAX_OVERLOADS = 4
MIN_EXAMPLE_LINES = 3
"""Minimum lines of code in an example."""
_ROOTS = re.compile(r"^(?:[^/]+-\d[^/]*/)?(?:(?:src|lib|python)/)?")
_VARIANT = re.compile(r"(?:_non)?(?:_an)?(?:_py\d+)?$")


def split_python(document: PackageDocument) -> list[Chunk]:
    """Return the chunks of a file; none if it cannot be parsed."""
    try:
        return _split_module(document, parse_source(document.text))
    except (SyntaxError, RecursionError):
        return []


def _split_module(document: PackageDocument, tree: ast.Module) -> list[Chunk]:
    if is_example(document.path):
        return _split_example(document, tree)
    if is_test(document.path):
        return list(_test_chunks(document, tree.body, (page_name(document.path),)))
    module = module_name(document.path)
    found = list(_module_chunks(document, tree, module))
    for node in tree.body:
        found.extend(_definition_chunks(document, node, module))
    return _merge_overloads(found)


def module_name(path: str) -> str:
    """Return the module of a path: `src/flask/json/__init__.py` is `flask.json`."""
    inner = _ROOTS.sub("", path).removesuffix(".pyi").removesuffix(".py").removesuffix("/__init__")
    return inner.replace("/", ".")


def _split_example(document: PackageDocument, tree: ast.Module) -> list[Chunk]:
    """Return the whole file as a chunk, titled by its folder and name."""
    text = document.text.strip()
    docstring = ast.get_docstring(tree)
    if docstring and isinstance(tree.body[0], ast.Expr):
        text = "\n".join(document.text.splitlines()[tree.body[0].end_lineno :]).strip()
    if sum(bool(line.strip()) for line in text.splitlines()) < MIN_EXAMPLE_LINES:
        return []
    # `@` marks the folder of another source
    parts = document.path.removesuffix(".py").split("/")
    *folders, name = [part for part in parts if part and not part.startswith("@")]
    after = [folder for folder in folders if not EXAMPLE_FOLDER.search(f"{folder}/")][-2:]
    trail = [_title_from_name(part) for part in (*after, _VARIANT.sub("", name))]
    chunk = Chunk(trail[-1], tuple(trail[:-1]), text, "python", docstring, document.source_url, document.path)
    return finalize_chunks(chunk)


def _test_chunks(document: PackageDocument, body: list[ast.stmt], trail: tuple[str, ...]) -> Iterator[Chunk]:
    """Yield each test as a whole chunk, titled by the words of its name."""
    lines = document.text.splitlines()
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _test_chunks(document, node.body, (*trail, node.name))
        elif isinstance(node, FunctionNode) and node.name.startswith("test"):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            code = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
            if code.count("\n") < MAX_TEST_LINES:
                title = _title_from_name(node.name.removeprefix("test").strip("_")) or node.name
                url = link_to_lines(document.source_url, *_line_range(node))
                yield from finalize_chunks(
                    Chunk(title, trail, code, "python", None, url, document.path, weight=TEST_WEIGHT)
                )


def _module_chunks(document: PackageDocument, tree: ast.Module, module: str) -> Iterator[Chunk]:
    docstring = ast.get_docstring(tree, clean=False)
    if docstring:
        yield from _reference_chunks(document, (module,), None, docstring, (1, docstring.count("\n") + 1))


def _definition_chunks(document: PackageDocument, node: ast.stmt, module: str) -> Iterator[Chunk]:
    if isinstance(node, ast.If | ast.Try):
        for inner in node.body:
            yield from _definition_chunks(document, inner, module)
    elif isinstance(node, FunctionNode) and is_public(node.name):
        yield from _function_chunks(document, node, (module, node.name))
    elif isinstance(node, ast.ClassDef) and is_public(node.name):
        yield from _class_chunks(document, node, (module, node.name))


def _function_chunks(
    document: PackageDocument, node: FunctionNode, trail: tuple[str, ...]
) -> Iterator[Chunk]:
    docstring = ast.get_docstring(node, clean=False) or ""
    if len(trail) > 2 and not docstring:
        return
    text = "\n\n".join(
        part for part in (_clean_docstring(docstring), "\n".join(format_parameter_notes(node))) if part
    )
    code = format_signature(node, method=len(trail) > 2)
    yield from _reference_chunks(document, trail, code, text, _line_range(node))


def _class_chunks(document: PackageDocument, node: ast.ClassDef, trail: tuple[str, ...]) -> Iterator[Chunk]:
    init_method = next(
        (each for each in node.body if isinstance(each, FunctionNode) and each.name == "__init__"), None
    )
    parts = [_clean_docstring(ast.get_docstring(node, clean=False) or "")]
    if init_method:
        parts += [
            _clean_docstring(ast.get_docstring(init_method, clean=False) or ""),
            "\n".join(format_parameter_notes(init_method)),
        ]
    text = "\n\n".join(part for part in parts if part)
    yield from _reference_chunks(
        document, trail, format_class_outline(node), text, (node.lineno, node.body[0].lineno)
    )
    for member in node.body:
        if isinstance(member, FunctionNode) and is_public(member.name):
            yield from _function_chunks(document, member, (*trail, member.name))


def _reference_chunks(
    document: PackageDocument,
    trail: tuple[str, ...],
    code: str | None,
    docstring: str,
    lines: tuple[int, int],
) -> Iterator[Chunk]:
    """Yield a signature with its text and first example; further examples become chunks of their own."""
    module, *inner = trail
    title = ".".join(inner) or module
    names = name_variants(title)
    weight = (REFERENCE_WEIGHT if docstring else UNDOCUMENTED_WEIGHT) * (
        MEMBER_WEIGHT if len(inner) > 1 else 1.0
    )
    url = link_to_lines(document.source_url, *lines)
    trail = (module,) if inner else ()
    examples = split_examples(docstring, language="python") if docstring else []
    if code is not None:
        examples = add_signature(code, examples, language="python", is_joinable=_fits_below)
    # a signature parses, but has no bodies and methods without `self`; it is in the first excerpt
    complete = None if code is None else False
    for excerpt in examples:
        yield from finalize_chunks(Chunk(title, trail, *excerpt, url, document.path, names, weight, complete))
        complete = None


def _fits_below(code: str, example: Excerpt) -> bool:
    return example.language == "python" and len(code) + len(example.code or "") < MAX_SIGNATURE


def _merge_overloads(found: list[Chunk]) -> list[Chunk]:
    """Merge overloads into one chunk: the implementation's text with the signatures that callers see."""
    merged: list[Chunk] = []
    for chunk in found:
        previous = merged[-1] if merged else None
        if (
            previous is None
            or not chunk.names
            or previous.names != chunk.names
            or previous.weight > UNDOCUMENTED_WEIGHT
        ):
            merged.append(chunk)
        elif chunk.weight <= UNDOCUMENTED_WEIGHT:
            signatures = chunk.code or ""
            is_complete = (
                signatures in (previous.code or "") or (previous.code or "").count("def ") >= MAX_OVERLOADS
            )
            merged[-1] = previous if is_complete else replace(previous, code=f"{previous.code}\n{signatures}")
        else:
            example = (chunk.code or "").partition("\n\n")[2]
            code = f"{previous.code}\n\n{example}" if example else previous.code
            merged[-1] = replace(chunk, code=code)
    return merged


def _line_range(node: FunctionNode) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _clean_docstring(docstring: str) -> str:
    lines = docstring.expandtabs().splitlines()
    indent = min((len(each) - len(each.lstrip()) for each in lines[1:] if each.strip()), default=0)
    return "\n".join([*map(str.strip, lines[:1]), *(each[indent:].rstrip() for each in lines[1:])]).strip()


def _title_from_name(name: str) -> str:
    """Return a title: Background tasks for `background_tasks`, Tutorial 001 for `tutorial001`."""
    words = re.sub(r"(?<=[a-z])(?=\d)", " ", name.replace("_", " ").replace("-", " ").strip())
    return words[:1].upper() + words[1:]
