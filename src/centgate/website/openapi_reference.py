"""The API's operations, fields and headers, read from its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from centgate.json_schema import Schema, SchemaDocument
from centgate.website.markdown_escape import escape_name, inline_code
from centgate.website.schema_tables import MAX_ROWS

Json = Mapping[str, Any]
FIELD_DEPTH = 4
"""Levels of nested objects that are listed."""
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_PATH = r"(?:/[A-Za-z0-9._~{}-]*)+"


class ReferenceField(Struct, frozen=True):
    """A member of a JSON object, or a parameter."""

    name: str
    """Full path: `error.details.payment.state`."""
    kind: str
    required: bool
    about: str


class ReferenceHeader(Struct, frozen=True):
    """A response header."""

    name: str
    about: str


class Operation(Struct, frozen=True):
    """One method of one path."""

    method: str
    path: str
    id: str
    summary: str
    about: str
    price: str | None
    """In dollars, such as `0.01`; None if free."""
    parameters: tuple[ReferenceField, ...]
    body: tuple[ReferenceField, ...]
    statuses: tuple[str, ...]
    headers: tuple[str, ...]
    """Names of the headers of a 200 response."""


class ApiReference:
    """Extracts reference tables from an OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._schemas = SchemaDocument(document["components"]["schemas"], "#/components/schemas/")

    def operations(self) -> Iterator[Operation]:
        """Yield all operations in document order."""
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items() if re.fullmatch(_PATH, path) else ():
                if method in _METHODS and "responses" in operation:
                    yield self._read_operation(path, method.upper(), cast(dict[str, Any], operation))

    def answer_fields(self) -> tuple[ReferenceField, ...]:
        """Return the fields of the response envelope, without the members of `data`."""
        paid = next(
            methods["post"] for methods in self._document["paths"].values() if _price_of(methods.get("post"))
        )
        fields = islice(_iterate_fields(self._body_schema(paid["responses"]["200"])), MAX_ROWS)
        return tuple(each for each in fields if not each.name.startswith("data."))

    def error_fields(self) -> tuple[ReferenceField, ...]:
        """Return the fields of the error envelope."""
        error = self._schemas.parse({"$ref": "#/components/schemas/Error"})
        return tuple(islice(_iterate_fields(error), MAX_ROWS))

    def headers(self) -> tuple[ReferenceHeader, ...]:
        """Return all response headers."""
        declared: Json = self._document["components"]["headers"]
        return tuple(
            ReferenceHeader(escape_name(of), str(each.get("description", "")))
            for of, each in declared.items()
        )

    def _read_operation(self, path: str, method: str, operation: Json) -> Operation:
        responses: Json = operation["responses"]
        body: Json | None = operation.get("requestBody")
        return Operation(
            method,
            path,
            id=escape_name(str(operation.get("operationId", ""))),
            summary=str(operation.get("summary", "")),
            about=str(operation.get("description", "")),
            price=_price_of(operation),
            parameters=tuple(self._read_parameter(each) for each in operation.get("parameters", ())),
            body=tuple(_iterate_fields(self._body_schema(body), 1)) if body else (),
            statuses=tuple(sorted(map(escape_name, responses))),
            headers=tuple(map(escape_name, self._resolve_ref(responses.get("200", {})).get("headers", {}))),
        )

    def _read_parameter(self, parameter: Json) -> ReferenceField:
        parameter = self._resolve_ref(parameter)
        about, required = str(parameter.get("description", "")), bool(parameter.get("required"))
        kind = _describe_kind(self._schemas.parse(parameter["schema"]))
        return ReferenceField(escape_name(parameter["name"]), kind, required, about)

    def _body_schema(self, content: Json) -> Schema:
        """Return the schema of a request or response in JSON."""
        return self._schemas.parse(self._resolve_ref(content)["content"]["application/json"]["schema"])

    def _resolve_ref(self, node: Json) -> Json:
        """Return the component that a node refers to; other nodes are returned unchanged."""
        if not isinstance(reference := node.get("$ref"), str):
            return node
        _, kind, name = reference.rsplit("/", 2)
        return self._document["components"][kind][name]


def _iterate_fields(schema: Schema, depth: int = FIELD_DEPTH) -> Iterator[ReferenceField]:
    """Yield the members of an object, and of its nested objects down to `depth` levels."""
    schema = schema.resolved
    for name, member in schema.properties.items():
        inner, path = member.resolved, escape_name(name)
        yield ReferenceField(path, _describe_kind(inner), name in schema.required, inner.description)
        if inner.type == "array":
            inner, path = inner.item, f"{path}[]"
        for each in _iterate_fields(inner, depth - 1) if depth > 1 else ():
            yield replace(each, name=f"{path}.{each.name}")


def _describe_kind(schema: Schema) -> str:
    """Describe the type of a value."""
    return schema.describe_type("list of", _describe_single_type)


def _describe_single_type(schema: Schema) -> str:
    return " or ".join(inline_code(str(each)) for each in schema.values) or escape_name(schema.type or "any")


def _price_of(operation: Json | None) -> str | None:
    """Return an operation's price from `x-payment-info`, or None."""
    price: Json = (operation or {}).get("x-payment-info", {}).get("price", {})
    return escape_name(str(price["amount"])) if "amount" in price else None
