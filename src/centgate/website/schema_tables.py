"""Convert JSON Schemas to tables with one row per field, nested fields included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct

from centgate.json_schema import MAX_DEPTH, Number, Schema
from centgate.website.markdown_escape import inline_code

MAX_ROWS = 500
"""Maximum rows of a table; fields that refer to one another would multiply."""
_CHOICE_RULES = {"anyOf": "At least one", "oneOf": "Exactly one"}


class SchemaRow(Struct, frozen=True):
    """One field of a body."""

    name: str
    """Its path; `[]` stands for each item of an array: `approvals[].spender`."""
    type: str
    """`string`, `array of integer`, `object`."""
    limits: tuple[str, ...]
    """Limits of its value, each as Markdown: ``1 to 10``, ``one of `a`, `b```."""
    default: str | None
    """As JSON; None if it has no default."""
    required: bool
    """True if it is always present."""
    nullable: bool
    meaning: str


class SchemaTable(Struct, frozen=True):
    """The fields of a body in schema order, and the rules that involve several fields."""

    rows: tuple[SchemaRow, ...]
    rules: tuple[str, ...]


def build_schema_table(schema: Schema) -> SchemaTable:
    """List all fields of an object, nested fields included."""
    return SchemaTable(tuple(islice(_iterate_rows(schema, ""), MAX_ROWS)), tuple(_describe_rules(schema)))


def _iterate_rows(schema: Schema, prefix: str, depth: int = 0) -> Iterator[SchemaRow]:
    """Yield the fields of an object, each followed by its nested fields."""
    for name, node in _property_items(schema):
        field, path = node.non_null, f"{prefix}{name}"
        extra_limits = [limit for part in schema.field_parts(name) for limit in _schema_limits(part)]
        yield SchemaRow(
            path,
            field.describe_type("array of", _type_name),
            tuple(dict.fromkeys(_drop_redundant([*_field_limits(field), *extra_limits]))),
            json.dumps(field.default, ensure_ascii=False) if field.has("default") else None,
            name in schema.required,
            node.nullable,
            field.description,
        )
        if depth < MAX_DEPTH:
            yield from _iterate_nested(field, path, depth)


def _iterate_nested(field: Schema, path: str, depth: int) -> Iterator[SchemaRow]:
    for _ in range(MAX_DEPTH):
        if field.type != "array":
            break
        field, path = field.item, f"{path}[]"
    for variant in field.iterate_alternatives():
        yield from _iterate_rows(variant, f"{path}.", depth + 1)


def _property_items(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield from schema.properties.items()
    others = schema.additional_properties
    if isinstance(others, Schema) and others.model_fields_set:
        yield "*", others


def _type_name(field: Schema) -> str:
    """Return a type, inferred from the values if only these are given."""
    names: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
    words = dict.fromkeys(names.get(type(value), "object") for value in field.values if value is not None)
    return field.type or " or ".join(words) or "any"


def _field_limits(field: Schema, depth: int = 0) -> Iterator[str]:
    for variant in field.iterate_alternatives():
        yield from _schema_limits(variant)
    if field.type == "array" and depth < MAX_DEPTH:
        yield from (f"each {limit}" for limit in _field_limits(field.item, depth + 1))


def _schema_limits(field: Schema) -> Iterator[str]:
    """Yield the limits that one schema sets; patterns unchanged, since they are part of the contract."""
    if field.has("const"):
        yield f"always {_format_value(field.const)}"
    if field.enum:
        yield f"one of {', '.join(map(_format_value, field.enum))}"
    yield from _format_range(field.min_length, field.max_length, " characters")
    yield from _format_range(field.min_items, field.max_items, " items")
    yield from _format_range(field.minimum, field.maximum)
    if field.exclusive_minimum is not None:
        yield f"above {field.exclusive_minimum}"
    if field.exclusive_maximum is not None:
        yield f"below {field.exclusive_maximum}"
    if field.pattern is not None:
        yield f"matches {inline_code(field.pattern)}"
    if field.format is not None:
        yield f"format {inline_code(field.format)}"
    if field.excluded is not None and field.excluded.pattern is not None:
        yield f"does not match {inline_code(field.excluded.pattern)}"


def _drop_redundant(limits: list[str]) -> list[str]:
    """Drop bounds if all allowed values are listed."""
    enumerations = [limit for limit in limits if limit.startswith(("one of", "always"))]
    return enumerations or limits


def _format_range(low: Number | None, high: Number | None, unit: str = "") -> Iterator[str]:
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}{unit}"
    elif high is not None:
        yield f"at most {high:,}{unit}"
    elif low is not None and (low or not unit):
        yield f"at least {low:,}{unit}"


def _format_value(value: Any) -> str:
    """Format a value as code: strings without quotes, other values as JSON."""
    return inline_code(value if isinstance(value, str) else json.dumps(value))


def _describe_rules(schema: Schema) -> Iterator[str]:
    """Describe the alternatives among fields, and if unknown fields are refused."""
    for keyword, names in schema.iterate_choices():
        yield f"{_CHOICE_RULES[keyword]} of {' and '.join(map(inline_code, names))} is required."
    if schema.additional_properties is False:
        yield "Unknown fields are refused."
