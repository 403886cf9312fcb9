"""Fields of a body as a tree, for lists whose nested fields can be folded."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup
from msgspec import Struct, field

from centgate.website.markdown import render_inline
from centgate.website.schema_tables import SchemaRow


class FieldNode(Struct):
    """One field with the fields inside it."""

    name: str
    """Without the names of the fields around it; `[]` stands for each item of an array."""
    row: SchemaRow
    meaning: Markup
    limits: Markup
    children: list[FieldNode] = field(default_factory=list["FieldNode"])

    @property
    def size(self) -> int:
        """Number of all fields inside it."""
        return sum(1 + child.size for child in self.children)


def build_field_tree(rows: Iterable[SchemaRow]) -> list[FieldNode]:
    """Return the outermost fields; `rows` are in schema order, each followed by its nested fields."""
    roots: list[FieldNode] = []
    path: list[FieldNode] = []
    for row in rows:
        while path and not row.name.startswith((f"{path[-1].row.name}.", f"{path[-1].row.name}[]")):
            path.pop()
        node = _make_node(row, path[-1].row.name if path else "")
        (path[-1].children if path else roots).append(node)
        path.append(node)
    return roots


def _make_node(row: SchemaRow, owner: str) -> FieldNode:
    limits = "; ".join(row.limits)
    return FieldNode(
        name=row.name.removeprefix(owner).lstrip("[].") if owner else row.name,
        row=row,
        meaning=render_inline(row.meaning),
        limits=render_inline(limits[:1].upper() + limits[1:]),
    )
