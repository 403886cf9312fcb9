"""JSON Schema as tables: a row for each field, however deep it lies, in the schema's own terms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from centgate.faces.site.wording import code

Schema = Mapping[str, Any]

_DEEPEST = 12
"""Fields inside fields that are told; a schema that refers to itself would have no end."""
_MOST = 500
"""Rows of a table; fields that refer to one another would multiply."""
_LARGEST = 2**53 - 1
"""Every number in JSON is held to it, so it goes without saying."""


@dataclass(frozen=True, slots=True)
class Row:
    """One field of a body."""

    name: str
    """Its path, `[]` standing for each item of an array: `approvals[].spender`."""
    type: str
    """`string`, `array of integer`, `object`."""
    limits: tuple[str, ...]
    """What holds its value, each as Markdown: ``1 to 10``, ``one of `a`, `b```."""
    default: str | None
    """As JSON; None where there is none."""
    required: bool
    """Whether it is always there."""
    nullable: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """The fields of a body, in the order of its schema, and what holds between them."""

    rows: tuple[Row, ...]
    rules: tuple[str, ...]


def table(schema: Schema) -> Table:
    """Every field of an object schema (draft 2020-12), with what `$ref`, `anyOf` and `allOf` say of it."""
    reader = _Reader(schema.get("$defs", {}))
    return Table(tuple(islice(reader.rows(schema, "", 0), _MOST)), tuple(_rules(schema)))


@dataclass(frozen=True, slots=True)
class _Reader:
    definitions: Mapping[str, Schema]
    deep: int = 0
    """How many schemas inside one another have led here, none of which is a field of its own."""

    def _deeper(self) -> _Reader:
        if self.deep == _DEEPEST:
            raise ValueError("schemas that refer to one another without an end")
        return replace(self, deep=self.deep + 1)

    def rows(self, schema: Schema, above: str, depth: int) -> Iterator[Row]:
        """The fields of an object, each followed by those inside it."""
        always = schema.get("required", ())
        for name, given in _fields(schema):
            field, nullable = self.plain(given)
            path = f"{above}{name}"
            elsewhere = [limit for part in _beside(schema, name) for limit in _limits(part)]
            limits = tuple(dict.fromkeys(_telling([*self.limits(field), *elsewhere])))
            default = json.dumps(field["default"], ensure_ascii=False) if "default" in field else None
            meaning = str(given.get("description") or field.get("description") or "")
            yield Row(path, self.kind(field), limits, default, name in always, nullable, meaning)
            if depth < _DEEPEST:
                yield from self._inside(field, path, depth)

    def _inside(self, field: Schema, path: str, depth: int) -> Iterator[Row]:
        for _ in range(_DEEPEST):
            if field.get("type") != "array":
                break
            field, path = self.plain(field.get("items", {}))[0], f"{path}[]"
        for variant in self._variants(field):
            yield from self.rows(variant, f"{path}.", depth + 1)

    def plain(self, given: Schema) -> tuple[Schema, bool]:
        """A field's schema with its reference followed and its null taken off, and whether there was one."""
        field = self.followed(given)
        variants = self._variants(field)
        kept = [each for each in variants if each.get("type") != "null"]
        if len(kept) == len(variants) or not kept:
            return field, False
        around = {name: value for name, value in field.items() if name not in ("anyOf", "oneOf", "type")}
        if len(kept) == 1:
            return {**self._deeper().plain(kept[0])[0], **around}, True
        return {**around, "anyOf": kept}, True

    def followed(self, given: Schema) -> Schema:
        """What a reference leads to, under what is said beside it."""
        if "$ref" not in given:
            return given
        beside = {name: value for name, value in given.items() if name != "$ref"}
        target = self.definitions.get(str(given["$ref"]).removeprefix("#/$defs/"), {})
        return {**self._deeper().followed(target), **beside}

    def _variants(self, field: Schema) -> list[Schema]:
        """What a field can be: itself, or each of the schemas it is one of."""
        variants: list[Schema] = field.get("anyOf") or field.get("oneOf") or []
        if isinstance(field.get("type"), list):
            return [{**field, "type": word} for word in cast(list[str], field["type"])]
        return [self.followed(each) for each in variants] if _typed(variants) else [field]

    def kind(self, field: Schema) -> str:
        words = dict.fromkeys(self._word(each) for each in self._variants(field))
        return " or ".join(words)

    def _word(self, field: Schema) -> str:
        word = field.get("type") or _type_of(field)
        if word != "array":
            return str(word)
        return f"array of {self._deeper().kind(self.plain(field.get('items', {}))[0])}"

    def limits(self, field: Schema) -> Iterator[str]:
        for variant in self._variants(field):
            yield from _limits(variant)
        if field.get("type") == "array":
            item = self.plain(field.get("items", {}))[0]
            yield from (f"each {limit}" for limit in self._deeper().limits(item))


def _fields(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield from schema.get("properties", {}).items()
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping) and others:
        yield "*", cast(Schema, others)


def _typed(variants: list[Schema]) -> bool:
    """Whether the schemas say what a value can be, not only which fields go together."""
    return bool(variants) and not any("required" in each and "type" not in each for each in variants)


def _type_of(field: Schema) -> str:
    """The type of what is told by its values alone."""
    values: list[Any] = field.get("enum") or ([field["const"]] if "const" in field else [])
    names: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
    words = dict.fromkeys(names.get(type(value), "object") for value in values if value is not None)
    return " or ".join(words) or "any"


_RANGES = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minimum", "maximum", ""),
)


def _limits(field: Schema) -> Iterator[str]:
    """What one schema holds a value to; a pattern as it stands, since it is a term of the contract."""
    if "const" in field:
        yield f"always {_literal(field['const'])}"
    if "enum" in field:
        yield f"one of {', '.join(_literal(value) for value in field['enum'])}"
    for low, high, unit in _RANGES:
        yield from _range(field.get(low), field.get(high), unit)
    if "exclusiveMinimum" in field:
        yield f"above {field['exclusiveMinimum']}"
    if "exclusiveMaximum" in field:
        yield f"below {field['exclusiveMaximum']}"
    if "pattern" in field:
        yield f"matches {_quoted(field['pattern'])}"
    if "format" in field:
        yield f"format {_quoted(field['format'])}"
    if "pattern" in field.get("not", {}):
        yield f"does not match {_quoted(field['not']['pattern'])}"


def _telling(limits: list[str]) -> list[str]:
    """Where all values are named, bounds say nothing more."""
    named = [limit for limit in limits if limit.startswith(("one of", "always"))]
    return named or limits


def _range(low: Any, high: Any, unit: str) -> Iterator[str]:
    high = None if high == _LARGEST else high
    unit = f" {unit}" if unit else ""
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}{unit}"
    elif high is not None:
        yield f"at most {high:,}{unit}"
    elif low is not None and (low or not unit):
        yield f"at least {low:,}{unit}"


def _literal(value: Any) -> str:
    """A value on the wire: words bare, as they are read; the rest as JSON."""
    return _quoted(value if isinstance(value, str) else json.dumps(value))


def _quoted(text: str) -> str:
    """Code inside a line of Markdown."""
    return code(str(text))


def _parts(schema: Schema) -> Iterator[Schema]:
    """The schemas that an object's schema is combined from, however deep."""
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            yield part
            yield from _parts(part)


def _beside(schema: Schema, name: str) -> list[Schema]:
    """What the parts of an object's schema say of one field."""
    return [part["properties"][name] for part in _parts(schema) if name in part.get("properties", {})]


def _rules(schema: Schema) -> Iterator[str]:
    """Which fields stand for one another, and whether others are refused."""
    for part in (schema, *_parts(schema)):
        for word, many in (("anyOf", "At least one"), ("oneOf", "Exactly one")):
            names = [_quoted(name) for each in part.get(word, ()) for name in each.get("required", ())]
            if len(names) > 1:
                yield f"{many} of {' and '.join(dict.fromkeys(names))} is required."
    if schema.get("additionalProperties") is False:
        yield "Fields not named here are refused."
