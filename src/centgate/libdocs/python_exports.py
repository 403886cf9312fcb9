"""Where a Python package's users find what its private or inner modules define."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from centgate.libdocs.documents import Document
from centgate.libdocs.pieces import Piece
from centgate.libdocs.python_pieces import is_example, module_of
from centgate.libdocs.python_syntax import parsed

EXPORTED = 1.05
"""How much more a name counts that the package itself offers."""
INNER = 0.8
"""How much is left for one that can only be had from the module that defines it."""
_ALL = re.compile(r"^__all__[^=\n]{0,60}=\s*[\[(]([^\])=]*)[\])]", re.MULTILINE)
_IMPORT = re.compile(
    r"^from[ \t]{1,9}[.\w]{1,200}[ \t]{1,9}import[ \t]{1,9}(?:\([^()]{0,9000}\)|[^\n()]{1,900}$)",
    re.MULTILINE,
)
_QUOTED = re.compile(r"[\"'](\w+)[\"']")


@dataclass(slots=True)
class Imports:
    """What modules bring in from others of the same package."""

    named: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Dotted names to where else they can be imported from."""
    whole: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Modules to those that import everything of them."""
    offered: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The names in modules' `__all__`, which is what everything is."""


def public_names(documents: Iterable[Document]) -> Imports:
    """Imports between modules, read from packages' `__init__.py` and from modules that only gather."""
    imports = Imports()
    for document in documents:
        if document.kind != "python" or is_example(document.path):
            continue
        module = module_of(document.path)
        offered = _ALL.search(document.text)
        if offered:
            imports.offered[module] = frozenset(_QUOTED.findall(offered[1]))
        package = document.path.endswith("/__init__.py")
        if package or _is_public(module):
            for statement in _import_statements(document.text, limited=not package):
                _note(imports, module, statement, package=package)
    return imports


def under_public_names(pieces: Iterable[Piece], imports: Imports) -> Iterator[Piece]:
    """Pieces with their shortest public module; those without any are left out."""
    for piece in pieces:
        if not piece.path.endswith((".py", ".pyi")) or is_example(piece.path):
            yield piece
            continue
        module = piece.breadcrumb[0] if piece.breadcrumb else piece.title
        place = best_place(module, piece.title.split(".")[0], imports) if piece.breadcrumb else module
        if not _is_public(place):
            continue
        top = place.count(".") == 0
        weight = piece.weight * (EXPORTED if top else 1.0 if place != module or not imports.named else INNER)
        yield replace(piece, breadcrumb=(place,) if piece.breadcrumb else (), weight=weight)


def best_place(module: str, name: str, imports: Imports) -> str:
    """The public module with the fewest parts that a definition can be imported from, else its own."""
    seen = {module}
    waiting = deque([module])
    while waiting and len(seen) < 50:
        here = waiting.popleft()
        whole = imports.whole.get(here, ()) if name in imports.offered.get(here, (name,)) else ()
        for there in (*imports.named.get(f"{here}.{name}", ()), *whole):
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    return min(seen, key=lambda each: (not _is_public(each), each.count("."), each))


def _import_statements(text: str, *, limited: bool) -> Iterator[ast.ImportFrom]:
    # a module is parsed again for its pieces; for what it only gathers it is enough to look at the margin
    statements = "\n".join(_IMPORT.findall(text)) if limited else text
    try:
        tree = parsed(statements)
    except SyntaxError:
        return
    for node in tree.body:
        inner = node.body if isinstance(node, ast.If | ast.Try) else [node]
        yield from (each for each in inner if isinstance(each, ast.ImportFrom))


def _note(imports: Imports, module: str, statement: ast.ImportFrom, *, package: bool) -> None:
    source = _source(module, statement, package=package)
    if source is None or source.split(".")[0] != module.split(".")[0]:
        return
    offered = imports.offered.get(module, ())
    for alias in statement.names:
        if alias.name == "*":
            imports.whole.setdefault(source, []).append(module)
        elif alias.asname in (None, alias.name) and (package or alias.asname or alias.name in offered):
            imports.named.setdefault(f"{source}.{alias.name}", []).append(module)


def _source(module: str, statement: ast.ImportFrom, *, package: bool) -> str | None:
    """The absolute name of the module imported from."""
    if not statement.level:
        return statement.module
    parts = module.split(".")
    up = statement.level - (1 if package else 0)
    base = parts[: len(parts) - up] if up else parts
    return ".".join([*base, *([statement.module] if statement.module else [])]) if base else None


def _is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))
