"""The API's operations, fields and headers, read from its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from centgate.website.markdown_escape import escape_name, inline_code

Json = Mapping[str, Any]
FIELD_DEPTH = 4
"""Levels of nested objects that are listed."""
MAX_FIELDS = 500
"""Maximum number of listed fields of an envelope."""
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_PATH = r"(?:/[A-Za-z0-9._~{}-]*)+"


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """A member of a JSON object, or a parameter."""

    name: str
    """Full path: `error.details.payment.state`."""
    kind: str
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class ReferenceHeader:
    """A response header."""

    name: str
    about: str


@dataclass(frozen=True, slots=True)
class Operation:
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

    def operations(self) -> Iterator[Operation]:
        """Yield all operations in document order."""
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items() if re.fullmatch(_PATH, path) else ():
                if method in _METHODS and "responses" in operation:
                    yield self._read_operation(path, method.upper(), cast(dict[str, Any], operation))

    def fields(self, schema: Json, depth: int = FIELD_DEPTH) -> Iterator[ReferenceField]:
        """Yield the members of an object, and of its nested objects down to `depth` levels."""
        schema = self._resolve_ref(schema)
        required = schema.get("required", ())
        for key, member in schema.get("properties", {}).items():
            inner = self._resolve_ref(member)
            about = str(member.get("description") or inner.get("description") or "")
            yield ReferenceField(escape_name(key), self.kind(member), key in required, about)
            if depth > 1:
                yield from self._iterate_nested(escape_name(key), inner, depth - 1)

    def answer_fields(self) -> tuple[ReferenceField, ...]:
        """Return the fields of the response envelope, without the members of `data`."""
        paid = next(
            methods["post"] for methods in self._document["paths"].values() if _price_of(methods.get("post"))
        )
        schema = self._resolve_ref(_json_schema(self._resolve_ref(paid["responses"]["200"])))
        return tuple(
            each for each in islice(self.fields(schema), MAX_FIELDS) if not each.name.startswith("data.")
        )

    def error_fields(self) -> tuple[ReferenceField, ...]:
        """Return the fields of the error envelope."""
        return tuple(islice(self.fields(self._document["components"]["schemas"]["Error"]), MAX_FIELDS))

    def headers(self) -> tuple[ReferenceHeader, ...]:
        """Return all response headers."""
        declared: Json = self._document["components"]["headers"]
        return tuple(
            ReferenceHeader(escape_name(of), str(each.get("description", "")))
            for of, each in declared.items()
        )

    def kind(self, schema: Json, depth: int = FIELD_DEPTH) -> str:
        """Describe the type of a value."""
        if not depth:
            return "any"
        schema = self._resolve_ref(schema)
        if "const" in schema:
            return inline_code(str(schema["const"]))
        if "enum" in schema:
            return " or ".join(inline_code(str(value)) for value in schema["enum"])
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return " or ".join(dict.fromkeys(self.kind(each, depth - 1) for each in schema[several]))
        kinds = schema.get("type", "any")
        if kinds == "array":
            return f"list of {self.kind(schema.get('items', {}), depth - 1)}"
        return escape_name(kinds if isinstance(kinds, str) else " or ".join(cast(list[str], kinds)))

    def _read_operation(self, path: str, method: str, operation: Json) -> Operation:
        responses: Json = operation["responses"]
        body = self._resolve_ref(operation.get("requestBody", {}))
        return Operation(
            method,
            path,
            id=escape_name(str(operation.get("operationId", ""))),
            summary=str(operation.get("summary", "")),
            about=str(operation.get("description", "")),
            price=_price_of(operation),
            parameters=tuple(self._read_parameter(each) for each in operation.get("parameters", ())),
            body=tuple(self.fields(_json_schema(body), 1)) if body else (),
            statuses=tuple(sorted(map(escape_name, responses))),
            headers=tuple(map(escape_name, self._resolve_ref(responses.get("200", {})).get("headers", {}))),
        )

    def _read_parameter(self, parameter: Json) -> ReferenceField:
        parameter = self._resolve_ref(parameter)
        about, required = str(parameter.get("description", "")), bool(parameter.get("required"))
        return ReferenceField(escape_name(parameter["name"]), self.kind(parameter["schema"]), required, about)

    def _iterate_nested(self, parent: str, schema: Json, depth: int) -> Iterator[ReferenceField]:
        if schema.get("type") == "array":
            parent, schema = f"{parent}[]", self._resolve_ref(schema.get("items", {}))
        for field in self.fields(schema, depth):
            yield ReferenceField(f"{parent}.{field.name}", field.kind, field.required, field.about)

    def _resolve_ref(self, node: Json) -> Json:
        """Resolve a `$ref`; other nodes are returned unchanged."""
        if not isinstance(reference := node.get("$ref"), str):
            return node
        node = self._document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return self._resolve_ref(node)


def _json_schema(content: Json) -> Json:
    """Return the schema of a JSON body."""
    return content["content"]["application/json"]["schema"]


def _price_of(operation: Json | None) -> str | None:
    """Return an operation's price from `x-payment-info`, or None."""
    price: Json = (operation or {}).get("x-payment-info", {}).get("price", {})
    return escape_name(str(price["amount"])) if "amount" in price else None
