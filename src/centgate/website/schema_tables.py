"""Convert JSON Schemas to tables with one row per field, nested fields included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from centgate.website.markdown_escape import inline_code

Schema = Mapping[str, Any]

_MAX_DEPTH = 12
"""Maximum nesting of fields; a schema that refers to itself would never end."""
_MAX_ROWS = 500
"""Maximum rows of a table; fields that refer to one another would multiply."""
_MAX_SAFE_INTEGER = 2**53 - 1
"""Maximum of every exact integer in JSON; not shown, as it applies to all numbers."""


@dataclass(frozen=True, slots=True)
class SchemaRow:
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


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """The fields of a body in schema order, and the rules that involve several fields."""

    rows: tuple[SchemaRow, ...]
    rules: tuple[str, ...]


def build_schema_table(schema: Schema) -> SchemaTable:
    """List all fields of an object schema (draft 2020-12), resolving `$ref`, `anyOf` and `allOf`."""
    reader = _Reader(schema.get("$defs", {}))
    return SchemaTable(tuple(islice(reader.rows(schema, "", 0), _MAX_ROWS)), tuple(_describe_rules(schema)))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads fields from a schema; counts nesting, to stop at recursive schemas."""

    definitions: Mapping[str, Schema]
    depth: int = 0
    """Number of enclosing schemas that are not fields of their own."""

    def _descend(self) -> _Reader:
        if self.depth == _MAX_DEPTH:
            raise ValueError("schemas refer to one another endlessly")
        return replace(self, depth=self.depth + 1)

    def rows(self, schema: Schema, prefix: str, depth: int) -> Iterator[SchemaRow]:
        """Yield the fields of an object, each resolve by its nested fields."""
        required = schema.get("required", ())
        for name, node in _property_items(schema):
            field, nullable = self.without_null(node)
            path = f"{prefix}{name}"
            extra_limits = [limit for part in _field_parts(schema, name) for limit in _schema_limits(part)]
            limits = tuple(dict.fromkeys(_drop_redundant([*self.limits(field), *extra_limits])))
            default = json.dumps(field["default"], ensure_ascii=False) if "default" in field else None
            meaning = str(node.get("description") or field.get("description") or "")
            yield SchemaRow(path, self.kind(field), limits, default, name in required, nullable, meaning)
            if depth < _MAX_DEPTH:
                yield from self._iterate_nested(field, path, depth)

    def _iterate_nested(self, field: Schema, path: str, depth: int) -> Iterator[SchemaRow]:
        for _ in range(_MAX_DEPTH):
            if field.get("type") != "array":
                break
            field, path = self.without_null(field.get("items", {}))[0], f"{path}[]"
        for variant in self._alternatives(field):
            yield from self.rows(variant, f"{path}.", depth + 1)

    def without_null(self, node: Schema) -> tuple[Schema, bool]:
        """Return a field's schema with its reference resolved, without null, and True if null was allowed."""
        field = self.resolve(node)
        variants = self._alternatives(field)
        others = [each for each in variants if each.get("type") != "null"]
        if len(others) == len(variants) or not others:
            return field, False
        siblings = {name: value for name, value in field.items() if name not in ("anyOf", "oneOf", "type")}
        if len(others) == 1:
            return {**self._descend().without_null(others[0])[0], **siblings}, True
        return {**siblings, "anyOf": others}, True

    def resolve(self, node: Schema) -> Schema:
        """Resolve a `$ref`; keywords beside it override the target's."""
        if "$ref" not in node:
            return node
        siblings = {name: value for name, value in node.items() if name != "$ref"}
        target = self.definitions.get(str(node["$ref"]).removeprefix("#/$defs/"), {})
        return {**self._descend().resolve(target), **siblings}

    def _alternatives(self, field: Schema) -> list[Schema]:
        """Return the alternatives of a field's schema, or the schema itself if it has none."""
        variants: list[Schema] = field.get("anyOf") or field.get("oneOf") or []
        if isinstance(field.get("type"), list):
            return [{**field, "type": word} for word in cast(list[str], field["type"])]
        return [self.resolve(each) for each in variants] if _have_types(variants) else [field]

    def kind(self, field: Schema) -> str:
        words = dict.fromkeys(self._type_name(each) for each in self._alternatives(field))
        return " or ".join(words)

    def _type_name(self, field: Schema) -> str:
        word = field.get("type") or _infer_type(field)
        if word != "array":
            return str(word)
        return f"array of {self._descend().kind(self.without_null(field.get('items', {}))[0])}"

    def limits(self, field: Schema) -> Iterator[str]:
        for variant in self._alternatives(field):
            yield from _schema_limits(variant)
        if field.get("type") == "array":
            item = self.without_null(field.get("items", {}))[0]
            yield from (f"each {limit}" for limit in self._descend().limits(item))


def _property_items(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield from schema.get("properties", {}).items()
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping) and others:
        yield "*", cast(Schema, others)


def _have_types(variants: list[Schema]) -> bool:
    """Return True if the schemas describe types, not only combinations of required fields."""
    return bool(variants) and not any("required" in each and "type" not in each for each in variants)


def _infer_type(field: Schema) -> str:
    """Infer the type of a schema that has only values."""
    values: list[Any] = field.get("enum") or ([field["const"]] if "const" in field else [])
    names: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
    words = dict.fromkeys(names.get(type(value), "object") for value in values if value is not None)
    return " or ".join(words) or "any"


_RANGES = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minimum", "maximum", ""),
)


def _schema_limits(field: Schema) -> Iterator[str]:
    """Yield the limits that one schema sets; patterns unchanged, since they are part of the contract."""
    if "const" in field:
        yield f"always {_format_value(field['const'])}"
    if "enum" in field:
        yield f"one of {', '.join(_format_value(value) for value in field['enum'])}"
    for low, high, unit in _RANGES:
        yield from _format_range(field.get(low), field.get(high), unit)
    if "exclusiveMinimum" in field:
        yield f"above {field['exclusiveMinimum']}"
    if "exclusiveMaximum" in field:
        yield f"below {field['exclusiveMaximum']}"
    if "pattern" in field:
        yield f"matches {_format_code(field['pattern'])}"
    if "format" in field:
        yield f"format {_format_code(field['format'])}"
    if "pattern" in field.get("not", {}):
        yield f"does not match {_format_code(field['not']['pattern'])}"


def _drop_redundant(limits: list[str]) -> list[str]:
    """Drop bounds if all allowed values are listed."""
    enumerations = [limit for limit in limits if limit.startswith(("one of", "always"))]
    return enumerations or limits


def _format_range(low: Any, high: Any, unit: str) -> Iterator[str]:
    high = None if high == _MAX_SAFE_INTEGER else high
    unit = f" {unit}" if unit else ""
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}{unit}"
    elif high is not None:
        yield f"at most {high:,}{unit}"
    elif low is not None and (low or not unit):
        yield f"at least {low:,}{unit}"


def _format_value(value: Any) -> str:
    """Format a value as code: strings without quotes, other values as JSON."""
    return _format_code(value if isinstance(value, str) else json.dumps(value))


def _format_code(text: str) -> str:
    """Format text as inline code in Markdown."""
    return inline_code(str(text))


def _iterate_combined(schema: Schema) -> Iterator[Schema]:
    """Yield all schemas combined into an object's schema, at any depth."""
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            yield part
            yield from _iterate_combined(part)


def _field_parts(schema: Schema, name: str) -> list[Schema]:
    """Return the schemas for one field in the parts of an object's schema."""
    return [
        part["properties"][name] for part in _iterate_combined(schema) if name in part.get("properties", {})
    ]


def _describe_rules(schema: Schema) -> Iterator[str]:
    """Describe the alternatives among fields, and if unknown fields are refused."""
    for part in (schema, *_iterate_combined(schema)):
        for word, many in (("anyOf", "At least one"), ("oneOf", "Exactly one")):
            names = [_format_code(name) for each in part.get(word, ()) for name in each.get("required", ())]
            if len(names) > 1:
                yield f"{many} of {' and '.join(dict.fromkeys(names))} is required."
    if schema.get("additionalProperties") is False:
        yield "Unknown fields are refused."
