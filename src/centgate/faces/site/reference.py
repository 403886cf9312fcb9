"""The API's operations, fields and headers as its own OpenAPI document tells them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from centgate.faces.site.wording import code, name

Json = Mapping[str, Any]
DEEP = 4
"""How many objects inside one another are told."""
MOST = 500
"""Fields of an envelope that are told."""
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_PATH = r"(?:/[A-Za-z0-9._~{}-]*)+"


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a JSON object, or a parameter."""

    name: str
    """With its way from the outside: `error.details.payment.state`."""
    kind: str
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class Header:
    """A header that responses have."""

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
    """In dollars, as `0.01`; None where it is free."""
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    statuses: tuple[str, ...]
    headers: tuple[str, ...]
    """Names of the headers of a 200."""


class Reference:
    """An OpenAPI document, asked for what people look up."""

    def __init__(self, document: Json) -> None:
        self._document = document

    def operations(self) -> Iterator[Operation]:
        """Every operation in the document's order."""
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items() if re.fullmatch(_PATH, path) else ():
                if method in _METHODS and "responses" in operation:
                    yield self._operation(path, method.upper(), cast(dict[str, Any], operation))

    def fields(self, schema: Json, deep: int = DEEP) -> Iterator[Field]:
        """The members of an object, and those of the objects in it."""
        schema = self._resolved(schema)
        required = schema.get("required", ())
        for key, member in schema.get("properties", {}).items():
            inner = self._resolved(member)
            about = str(member.get("description") or inner.get("description") or "")
            yield Field(name(key), self.kind(member), key in required, about)
            if deep > 1:
                yield from self._inside(name(key), inner, deep - 1)

    def answer(self) -> tuple[Field, ...]:
        """The envelope of an answer, without what each service puts into `data`."""
        paid = next(
            methods["post"] for methods in self._document["paths"].values() if _price(methods.get("post"))
        )
        schema = self._resolved(_json(self._resolved(paid["responses"]["200"])))
        return tuple(each for each in islice(self.fields(schema), MOST) if not each.name.startswith("data."))

    def error(self) -> tuple[Field, ...]:
        """The envelope of an error."""
        return tuple(islice(self.fields(self._document["components"]["schemas"]["Error"]), MOST))

    def headers(self) -> tuple[Header, ...]:
        """Every header that responses have."""
        declared: Json = self._document["components"]["headers"]
        return tuple(Header(name(of), str(each.get("description", ""))) for of, each in declared.items())

    def kind(self, schema: Json, deep: int = DEEP) -> str:
        """What a value is, in a few words."""
        if not deep:
            return "any"
        schema = self._resolved(schema)
        if "const" in schema:
            return code(str(schema["const"]))
        if "enum" in schema:
            return " or ".join(code(str(value)) for value in schema["enum"])
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return " or ".join(dict.fromkeys(self.kind(each, deep - 1) for each in schema[several]))
        kinds = schema.get("type", "any")
        if kinds == "array":
            return f"list of {self.kind(schema.get('items', {}), deep - 1)}"
        return name(kinds if isinstance(kinds, str) else " or ".join(cast(list[str], kinds)))

    def _operation(self, path: str, method: str, operation: Json) -> Operation:
        responses: Json = operation["responses"]
        body = self._resolved(operation.get("requestBody", {}))
        return Operation(
            method,
            path,
            id=name(str(operation.get("operationId", ""))),
            summary=str(operation.get("summary", "")),
            about=str(operation.get("description", "")),
            price=_price(operation),
            parameters=tuple(self._parameter(each) for each in operation.get("parameters", ())),
            body=tuple(self.fields(_json(body), 1)) if body else (),
            statuses=tuple(sorted(map(name, responses))),
            headers=tuple(map(name, self._resolved(responses.get("200", {})).get("headers", {}))),
        )

    def _parameter(self, parameter: Json) -> Field:
        parameter = self._resolved(parameter)
        about, required = str(parameter.get("description", "")), bool(parameter.get("required"))
        return Field(name(parameter["name"]), self.kind(parameter["schema"]), required, about)

    def _inside(self, above: str, schema: Json, deep: int) -> Iterator[Field]:
        if schema.get("type") == "array":
            above, schema = f"{above}[]", self._resolved(schema.get("items", {}))
        for field in self.fields(schema, deep):
            yield Field(f"{above}.{field.name}", field.kind, field.required, field.about)

    def _resolved(self, node: Json) -> Json:
        """What a reference stands for."""
        if not isinstance(reference := node.get("$ref"), str):
            return node
        node = self._document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return self._resolved(node)


def _json(content: Json) -> Json:
    """The schema of a JSON body."""
    return content["content"]["application/json"]["schema"]


def _price(operation: Json | None) -> str | None:
    """What an operation costs, as directories read it."""
    price: Json = (operation or {}).get("x-payment-info", {}).get("price", {})
    return name(str(price["amount"])) if "amount" in price else None
