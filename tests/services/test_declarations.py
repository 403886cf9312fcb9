"""Declarations of all services: order, examples, schemas and texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from centgate.catalog import all_services
from centgate.service import AnyService


def list_fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of a schema and of its definitions, by name."""
    for model, part in {"data": schema, **schema.get("$defs", {})}.items():
        for name, field in part.get("properties", {}).items():
            yield f"{model}.{name}", field


def list_types(field: dict[str, Any]) -> set[str]:
    """Return the types that a field may have, in words of JSON Schema."""
    choices = (field, *field.get("anyOf", ()))
    return {name for each in choices if isinstance(name := each.get("type"), str)}


UNITS = {"Usd": "dollar", "Percent": "percent", "Share": "percent", "Seconds": "seconds", "Days": "days"}
"""Words for the unit of an amount, by the end of a field's name."""

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


def test_orders_are_unique() -> None:
    places = [service.order for service in all_services()]

    assert len(set(places)) == len(places)


@each_service
def test_sources_have_unique_orders(service: AnyService) -> None:
    first, *others = [source.declared_role.name for source in service.leads]

    assert first == "primary"
    assert "primary" not in others
    assert service.sources[: len(service.leads)] == service.leads


@each_service
def test_sample_has_all_fields_in_order(service: AnyService) -> None:
    assert list(service.output_example) == list(service.output_schema["properties"])


@each_service
def test_sample_is_valid_by_schema(service: AnyService) -> None:
    Draft202012Validator.check_schema(service.output_schema)
    validator: Any = Draft202012Validator(service.output_schema)

    assert list(validator.iter_errors(service.output_example)) == []


@each_service
def test_sample_is_restored_from_json(service: AnyService) -> None:
    assert service.data.model_validate(service.output_example) == service.example_data


@each_service
def test_every_field_has_a_description(service: AnyService) -> None:
    schema = service.input_schema(None)

    assert schema["description"] == service.request.__doc__
    assert all("description" in each for each in schema["properties"].values())


@each_service
def test_every_number_of_a_result_has_a_description(service: AnyService) -> None:
    undescribed = [
        name
        for name, field in list_fields(service.output_schema)
        if {"integer", "number"} & list_types(field) and "description" not in field
    ]

    assert undescribed == []


@each_service
def test_description_of_an_amount_names_its_unit(service: AnyService) -> None:
    without_unit = [
        name
        for name, field in list_fields(service.output_schema)
        for ending, unit in UNITS.items()
        if name.endswith(ending)
        and {"integer", "number"} & list_types(field)
        and unit not in field["description"].lower()
    ]

    assert without_unit == []


@each_service
def test_tags_are_few_and_short(service: AnyService) -> None:
    assert 0 < len(service.tags) <= 5
    assert all(tag.isascii() and len(tag) <= 32 for tag in service.tags)


@each_service
def test_refused_options_are_known_in_every_spelling(service: AnyService) -> None:
    for name in {*service.refused_options.names, *(service.refused_options.values or {})}:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        for spelling in (name, snake, snake.replace("_", "-"), name.upper()):
            assert service.refused_options.find_refused({spelling: "beyond"}) == [spelling]


@each_service
def test_fields_of_services_are_no_refused_options(service: AnyService) -> None:
    fields = dict.fromkeys([*service.request.model_fields, *service.input_schema(None)["properties"]], "any")

    assert service.refused_options.find_refused(fields) == []
