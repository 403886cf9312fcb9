"""Base models of requests and responses, and their JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar, cast

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from centgate.errors import Issue

T = TypeVar("T")


def to_camel_case(name: str) -> str:
    """Convert a Python name to camelCase; digits do not start a word: `volume24h_usd` is `volume24hUsd`."""
    head, *words = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in words)


def to_snake_case(name: str) -> str:
    """Convert a JSON name to snake_case. Raises ValueError if it does not convert back."""
    attribute = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda upper: f"_{upper[1].lower()}", name)
    if to_camel_case(attribute) != name:
        raise ValueError(f"{name} has no snake_case name that converts back to it")
    return attribute


class _NotNull:
    """Allows a field to be omitted but not to be null."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema


Omittable = Annotated[T | None, _NotNull()]
"""A field that may be omitted, which gives None, but must not be null."""


class TextPattern(Struct, frozen=True):
    """Restricts a text to a regular expression; `requirement` is the message for a text without a match.

    It comes after limits of the length, which have messages of their own.
    """

    pattern: str
    requirement: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        matching = core_schema.custom_error_schema(
            core_schema.str_schema(pattern=self.pattern),
            custom_error_type="text_pattern",
            custom_error_message=self.requirement,
        )
        return core_schema.chain_schema([handler(source), matching])

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "pattern": self.pattern}


_UNSEEN = (
    r"\s\x00-\x1F\x7F-\x9F\xAD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180E\u200B-\u200F\u202A-\u202E\u2060-\u206F"
    r"\u2800\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF9-\uFFFB"
)
"""White space, controls, joiners, bidi marks, fillers and variation selectors, for a character class.

Those above U+FFFF are left out: Python, Rust and ECMA-262 share no escape for them.
"""
NON_BLANK = TextPattern(f"[^{_UNSEEN}]", "must not be blank")
"""Pattern of a text with a visible character; upstreams know nothing by a blank name or query."""


class Request(BaseModel):
    """Base model of a paid request's body: camelCase in JSON, strict types, unknown keys ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel_case, validate_by_name=True, strict=True, frozen=True, extra="ignore"
    )

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Yield issues that concern several fields; run besides field validation, to report all problems."""
        return ()

    @property
    def target_chain_id(self) -> int | None:
        """The id of the requested chain; None if the request concerns no chain."""
        return None

    @cached_property
    def canonical(self) -> dict[str, Any]:
        """The canonical request: defaults filled in, members without effect left out."""
        return self._canonical()

    def _canonical(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class StrictRequest(Request):
    """A request that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid")


class Data(BaseModel):
    """Base model of a service's result: camelCase in JSON, `null` if no provider has the value."""

    model_config = ConfigDict(alias_generator=to_camel_case, validate_by_name=True, frozen=True)


def hide_rule(*rules: JsonDict, value_type: Literal["object", "string"] = "object") -> JsonDict:
    """Return JSON Schema keywords that demand all of the rules, and that code generators and models ignore.

    Validators read it as the rule itself, since the condition repeats the type that the value has anyway: of
    an empty one, linters say that it accepts everything. With `allOf`, `anyOf` or `oneOf` at the root, code
    generators give up the type of the whole request; with one of them or `not`, model providers refuse the
    tool.
    """
    rule: JsonDict = rules[0] if len(rules) == 1 else {"allOf": [*rules]}
    return {"if": {"type": value_type}, "then": rule}


def restrict_field(name: str, restriction: JsonDict) -> JsonDict:
    """Return a rule about one field of a request.

    It says that there may be other fields: linters read a schema's list of fields as complete.
    """
    return {"properties": {name: restriction}, "additionalProperties": True}


def require_text(name: str) -> JsonDict:
    """Return a rule that a field of text is present, with its type: linters look for both in one place."""
    return {"required": [name], **restrict_field(name, {"type": "string"})}


class RefusedOptions(Struct, frozen=True, dict=True):
    """Upstream options that the price does not include and that are refused by name.

    `names` are refused with any value; of `values` only the listed ones are allowed.
    `maxAgeHours`, `max_age_hours` and `max-age-hours` are the same name.
    """

    names: frozenset[str] = frozenset()
    values: Mapping[str, frozenset[Any]] | None = None

    def find_refused(self, body: Mapping[str, Any]) -> list[str]:
        """Return the keys of `body` that the price does not include, as they are spelled there."""
        if not self._names and not self._values:
            return []
        return [
            key
            for key in body
            if (name := _normalize_name(key)) in self._names
            or _is_disallowed(body[key], self._values.get(name))
        ]

    @cached_property
    def _names(self) -> set[str]:
        return {_normalize_name(name) for name in self.names}

    @cached_property
    def _values(self) -> dict[str, frozenset[Any]]:
        return {_normalize_name(name): allowed for name, allowed in (self.values or {}).items()}


def _normalize_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _is_disallowed(value: Any, allowed: frozenset[Any] | None) -> bool:
    if allowed is None:
        return False
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    return any(isinstance(item, dict | list) or item not in allowed for item in items)


class _SchemaGenerator(GenerateJsonSchema):
    """JSON Schema generator without titles derived from names and without `default: null`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def json_schema(model: type[BaseModel], mode: JsonSchemaMode) -> dict[str, Any]:
    """Return the self-contained JSON Schema (draft 2020-12) of a model, in camelCase."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_SchemaGenerator, mode=mode)
    schema.pop("title", None)
    for definition in schema.get("$defs", {}).values():
        definition.pop("title", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
