"""Reader of JSON Schemas: accepted and refused schemas."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.json_schema import InvalidSchema, parse_schema

KEYWORDS = [
    "$ref",
    "$defs",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "minimum",
    "maximum",
    "maxLength",
    "pattern",
    "additionalProperties",
    "a",
]
VALUES = st.none() | st.booleans() | st.integers() | st.sampled_from(["#/$defs/a", "#/$defs/type", "array"])
JSON = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
)


@given(JSON)
def test_any_json_is_parsed_or_refused(node: Any) -> None:
    with suppress(InvalidSchema):
        schema = parse_schema(node)
        for each in (schema, *schema.properties.values()):
            each.non_null.describe_type("array of", lambda single: single.type or "any")
            assert each.nullable in (True, False)
            assert len(each.bounds) == 2


def nest_schema(depth: int) -> dict[str, Any]:
    """Return schemas nested to this depth."""
    node: dict[str, Any] = {}
    for _ in range(depth):
        node = {"not": node}
    return node


REFUSED: dict[str, Any] = {
    "a number": 5,
    "a list": [],
    "too deep": nest_schema(5_000),
    "properties": {"properties": []},
    "a property": {"properties": {"a": 5}},
    "many properties": {"properties": dict.fromkeys(map(str, range(100_000)), 5)},
    "required": {"required": [5] * 100_000},
    "type": {"type": ["string", 5]},
    "minimum": {"minimum": True},
    "length": {"maxLength": 1.5},
    "definitions": {"$defs": 5},
}


@pytest.mark.parametrize("case", REFUSED)
def test_keyword_of_wrong_type_is_refused_in_short_sentence(case: str) -> None:
    with pytest.raises(InvalidSchema) as error:
        parse_schema(REFUSED[case])

    assert len(str(error.value)) < 200


def test_keywords_beside_reference_override_its_target() -> None:
    target = {"type": "string", "description": "target", "maxLength": 5}
    schema = parse_schema({"$ref": "#/$defs/A", "description": "own", "$defs": {"A": target}})

    assert (schema.resolved.type, schema.resolved.description, schema.resolved.bounds) == (
        "string",
        "own",
        (None, 5),
    )


def test_reference_without_target_allows_anything() -> None:
    assert parse_schema({"$ref": "#/elsewhere"}).resolved.type is None


@pytest.mark.parametrize(
    "definition",
    [{"$ref": "#/$defs/a"}, {"anyOf": [{"$ref": "#/$defs/a"}] * 20}],
    ids=["a reference to itself", "alternatives that multiply"],
)
def test_infinite_definitions_are_refused(definition: dict[str, Any]) -> None:
    schema = parse_schema({"$ref": "#/$defs/a", "$defs": {"a": definition}})

    with pytest.raises(InvalidSchema, match="endlessly"):
        list(schema.iterate_alternatives())


def test_array_of_itself_has_a_type() -> None:
    schema = parse_schema(
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}
    )

    assert schema.describe_type("array of", str).endswith("array of any")


@pytest.mark.parametrize(
    ("node", "bounds"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 2**53 - 1}, (1, None)),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}, (1, 9)),
        ({"type": "number", "exclusiveMinimum": 0}, (None, None)),
        ({"type": "string", "maxLength": 9}, (None, 9)),
        ({"type": "array", "minItems": 1, "maxItems": 5}, (1, 5)),
        ({}, (None, None)),
    ],
)
def test_bounds_are_those_of_type(node: dict[str, Any], bounds: tuple[Any, Any]) -> None:
    assert parse_schema(node).bounds == bounds


def test_object_rule_may_list_values_of_field() -> None:
    rule = {"anyOf": [{"required": ["b"], "properties": {"a": {"enum": [1, 2]}}}]}
    schema = parse_schema({"properties": {"a": {"type": "integer"}}, "allOf": [rule]})

    assert schema.field_values("a") == [1, 2]
