"""Find the public modules that export what a Python package's private or inner modules define."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument, is_example, is_test
from centgate.libdocs.parse.python import module_name
from centgate.libdocs.parse.python_syntax import parse_source

EXPORTED_WEIGHT = 1.05
"""Factor for a name that the top-level package exports."""
INNER_WEIGHT = 0.6
"""Factor for a name that can only be imported from the module that defines it."""
_ALL = re.compile(r"^__all__[^=\n]{0,60}=\s*[\[(]([^\])=]*)[\])]", re.MULTILINE)
_IMPORT = re.compile(
    r"^from[ \t]{1,9}[.\w]{1,200}[ \t]{1,9}import[ \t]{1,9}(?:\([^()]{0,9000}\)|[^\n()]{1,900}$)",
    re.MULTILINE,
)
_QUOTED = re.compile(r"[\"'](\w+)[\"']")


class PackageImports(Struct):
    """Imports between the modules of one package."""

    by_name: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Dotted names, with the modules that re-export them."""
    star_imports: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Modules, with the modules that import everything from them."""
    all_names: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The names in the `__all__` of modules, which limit a star import."""


def collect_imports(documents: Iterable[PackageDocument]) -> PackageImports:
    """Collect imports from the `__init__.py` of packages and from modules that only re-export."""
    imports = PackageImports()
    for document in documents:
        if document.kind != "python" or is_example(document.path) or is_test(document.path):
            continue
        module = module_name(document.path)
        all_names = _ALL.search(document.text)
        if all_names:
            imports.all_names[module] = frozenset(_QUOTED.findall(all_names[1]))
        package = document.path.endswith("/__init__.py")
        if package or _is_public(module):
            for statement in _import_statements(document.text, limited=not package):
                _record_imports(imports, module, statement, package=package)
    return imports


def use_public_names(chunks: Iterable[Chunk], imports: PackageImports) -> Iterator[Chunk]:
    """Yield chunks under their shortest public module. Chunks without a public module are dropped."""
    for chunk in chunks:
        if not chunk.path.endswith((".py", ".pyi")) or is_example(chunk.path) or is_test(chunk.path):
            yield chunk
            continue
        module = chunk.breadcrumb[0] if chunk.breadcrumb else chunk.title
        public_module = (
            shortest_public_module(module, chunk.title.split(".")[0], imports) if chunk.breadcrumb else module
        )
        if not _is_public(public_module):
            continue
        top = public_module.count(".") == 0
        weight = chunk.weight * (
            EXPORTED_WEIGHT
            if top
            else 1.0
            if public_module != module or not imports.by_name
            else INNER_WEIGHT
        )
        yield replace(chunk, breadcrumb=(public_module,) if chunk.breadcrumb else (), weight=weight)


def shortest_public_module(module: str, name: str, imports: PackageImports) -> str:
    """Return the public module with the fewest parts that exports a definition, else its own module."""
    modules = {module}
    queue = deque([module])
    while queue and len(modules) < 50:
        current = queue.popleft()
        star_imports = (
            imports.star_imports.get(current, ()) if name in imports.all_names.get(current, (name,)) else ()
        )
        for importer in (*imports.by_name.get(f"{current}.{name}", ()), *star_imports):
            if importer not in modules:
                modules.add(importer)
                queue.append(importer)
    return min(modules, key=lambda each: (not _is_public(each), each.count("."), each))


def _import_statements(text: str, *, limited: bool) -> Iterator[ast.ImportFrom]:
    # a module is parsed again for its chunks; its re-exports are found by the unindented statements alone
    statements = "\n".join(_IMPORT.findall(text)) if limited else text
    try:
        tree = parse_source(statements)
    except SyntaxError:
        return
    for node in tree.body:
        inner = node.body if isinstance(node, ast.If | ast.Try) else [node]
        yield from (each for each in inner if isinstance(each, ast.ImportFrom))


def _record_imports(
    imports: PackageImports, module: str, statement: ast.ImportFrom, *, package: bool
) -> None:
    source = _source_module(module, statement, package=package)
    if source is None or source.split(".")[0] != module.split(".")[0]:
        return
    all_names = imports.all_names.get(module, ())
    for alias in statement.names:
        if alias.name == "*":
            imports.star_imports.setdefault(source, []).append(module)
        elif alias.asname in (None, alias.name) and (package or alias.asname or alias.name in all_names):
            imports.by_name.setdefault(f"{source}.{alias.name}", []).append(module)


def _source_module(module: str, statement: ast.ImportFrom, *, package: bool) -> str | None:
    """Return the absolute name of the module that a statement imports from."""
    if not statement.level:
        return statement.module
    parts = module.split(".")
    up = statement.level - (1 if package else 0)
    base = parts[: len(parts) - up] if up else parts
    return ".".join([*base, *([statement.module] if statement.module else [])]) if base else None


def _is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))
