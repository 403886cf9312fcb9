"""The models that cross the border, and the JSON Schema that says the same as their validators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from centgate.errors import Issue

T = TypeVar("T")


def camel(name: str) -> str:
    """A Python name on the wire; digits do not start words: `volume24h_usd` is `volume24hUsd`."""
    head, *words = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in words)


class _NotNull:
    """Lets a field be left out without letting it be null."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema


Omittable = Annotated[T | None, _NotNull()]
"""A field that may be left out, which reads as None, but not sent as null."""


class Request(BaseModel):
    """The body of a paid request: camelCase on the wire, JSON's own types only, unknown keys ignored."""

    model_config = ConfigDict(
        alias_generator=camel, validate_by_name=True, strict=True, frozen=True, extra="ignore"
    )

    @classmethod
    def rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """What no single field can say; asked beside the fields, so that all problems come at once."""
        return ()

    @property
    def on(self) -> int | None:
        """The id of the chain asked about; None for what is on no chain."""
        return None

    @cached_property
    def canonical(self) -> dict[str, Any]:
        """The request in its one spelling: defaults filled in, nothing that makes no difference."""
        return self._canonical()

    def _canonical(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class StrictRequest(Request):
    """A request that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")


class Data(BaseModel):
    """What a service answers: camelCase on the wire, `null` for what no source knew."""

    model_config = ConfigDict(alias_generator=camel, validate_by_name=True, frozen=True)


@dataclass(frozen=True)
class Beyond:
    """The upstream options that one cent does not pay for, so that they are refused by name.

    `names` are never offered, whatever their value; of `values` only those listed are inside the price.
    Spelling does not matter: `maxAgeHours`, `max_age_hours` and `max-age-hours` are one name.
    """

    names: frozenset[str] = frozenset()
    values: Mapping[str, frozenset[Any]] | None = None

    def asked_for(self, body: Mapping[str, Any]) -> list[str]:
        """The keys of `body` that ask for more than one cent pays for, as they were spelled."""
        return [
            key
            for key in body
            if (plain := _plain(key)) in self._names or _outside(body[key], self._values.get(plain))
        ]

    @cached_property
    def _names(self) -> set[str]:
        return {_plain(name) for name in self.names}

    @cached_property
    def _values(self) -> dict[str, frozenset[Any]]:
        return {_plain(name): allowed for name, allowed in (self.values or {}).items()}


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _outside(value: Any, allowed: frozenset[Any] | None) -> bool:
    if allowed is None:
        return False
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    return any(isinstance(item, dict | list) or item not in allowed for item in items)


class _Schema(GenerateJsonSchema):
    """JSON Schema as people write it: no titles made from names, no `default: null`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def json_schema(model: type[BaseModel], mode: JsonSchemaMode) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a model, camelCase, complete in itself."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Schema, mode=mode)
    schema.pop("title", None)
    for definition in schema.get("$defs", {}).values():
        definition.pop("title", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def walk(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON Schema, outermost first."""
    if isinstance(schema, dict):
        node = cast(dict[str, Any], schema)
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for value in cast(list[Any], schema):
            yield from walk(value)
