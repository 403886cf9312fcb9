"""Find names that JavaScript or TypeScript declares twice in one scope, which a grammar does not forbid.

Two examples in one block of a page often do so (ECMA-262, "Static Semantics: Early Errors" of blocks, scripts
and modules). Only certain errors are found: variables of `var`, functions, overloads, interfaces and
namespaces may share a name, and parameters are not compared with the body of their function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from tree_sitter import Node

BindingKind: TypeAlias = Literal["lexical", "import", "plain"]
"""Of `let`, `const` and classes; of imports; of `var` and functions, which may be declared again."""
_KEYWORD = re.compile(r"\b(?:class|const|function|import|let|var)\b")
_CLASSES = ("class_declaration", "abstract_class_declaration")
_FUNCTIONS = ("function_declaration", "generator_function_declaration")
_NAMES = ("identifier", "shorthand_property_identifier_pattern")
_TARGETS = {
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
    "pair_pattern": "value",
    "variable_declarator": "name",
}
"""Fields of nodes whose other children declare nothing, such as defaults."""


def has_duplicate_binding(root: Node, code: str, *, is_typescript: bool) -> bool:
    """True if one scope of parsed code declares a name twice and no engine or compiler accepts that."""
    if len(_KEYWORD.findall(code)) < 2:
        return False
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.type in ("program", "statement_block") and _is_redeclared(
            _iter_bindings(node.named_children), is_typescript=is_typescript
        ):
            return True
        if node.type == "switch_body":
            statements = (each for case in node.named_children for each in case.named_children)
            if _is_redeclared(_iter_bindings(statements), is_typescript=is_typescript):
                return True
        nodes += node.named_children
    return False


def _is_redeclared(bindings: Iterable[tuple[str, BindingKind]], *, is_typescript: bool) -> bool:
    kinds: dict[str, set[BindingKind]] = {}
    for name, kind in bindings:
        earlier = kinds.setdefault(name, set())
        if kind in earlier and kind != "plain":
            return True
        earlier.add(kind)
        # an import of TypeScript may be a type, which can share its name with a value
        if len(earlier - {"import"} if is_typescript else earlier) > 1:
            return True
    return False


def _iter_bindings(statements: Iterable[Node]) -> Iterator[tuple[str, BindingKind]]:
    for statement in statements:
        node = statement
        if node.type == "export_statement":
            node = node.child_by_field_name("declaration") or node
        if node.type in ("lexical_declaration", "variable_declaration"):
            kind: BindingKind = "lexical" if node.type == "lexical_declaration" else "plain"
            for each in node.named_children:
                if each.type == "variable_declarator":
                    for name in _iter_names(each):
                        yield name, kind
        elif node.type in _CLASSES or node.type in _FUNCTIONS:
            name = node.child_by_field_name("name")
            if name and name.text:
                kind = "lexical" if node.type in _CLASSES else "plain"
                yield name.text.decode(), kind
        elif node.type == "import_statement":
            for name in _iter_imports(node):
                yield name, "import"


def _iter_names(pattern: Node) -> Iterator[str]:
    """Yield the names that a declarator or its pattern declares."""
    waiting = [pattern]  # patterns of strangers may be nested deeper than Python's calls may be
    while waiting:
        node = waiting.pop()
        if node.type in _NAMES:
            if node.text:
                yield node.text.decode()
        elif node.type in _TARGETS:
            target = node.child_by_field_name(_TARGETS[node.type])
            waiting += [target] if target else []
        elif node.type in ("array_pattern", "object_pattern", "rest_pattern"):
            waiting += node.named_children


def _iter_imports(statement: Node) -> Iterator[str]:
    """Yield the names that an import declares, apart from those that are marked as types."""
    if any(each.type in ("type", "typeof") for each in statement.children):
        return
    clause = next((each for each in statement.named_children if each.type == "import_clause"), None)
    for part in clause.named_children if clause else ():
        if part.type == "identifier":
            yield from _iter_names(part)
        elif part.type == "namespace_import":
            for each in part.named_children:
                yield from _iter_names(each)
        elif part.type == "named_imports":
            for each in part.named_children:
                is_type = any(token.type in ("type", "typeof") for token in each.children)
                name = each.child_by_field_name("alias") or each.child_by_field_name("name")
                if name and not is_type:
                    yield from _iter_names(name)
