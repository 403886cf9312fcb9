"""The form that tries a service, its fields computed from the service's JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from markupsafe import Markup

from centgate.chains import CHAIN_BY_ID
from centgate.client.catalog import Entry
from centgate.faces.site.deployment import Deployment
from centgate.faces.site.promises import promised, terms_in_words
from centgate.faces.site.schema_tables import Row, table
from centgate.faces.site.snippets import Snippet, snippets

Kind = Literal["choice", "number", "flag", "lines", "text"]
Schema = Mapping[str, Any]

_SPELLED = {"id": "ID", "url": "URL", "urls": "URLs"}
_FOR_MACHINES = ("one of", "matches", "does not match", "format", "above")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a request body, and the control it is filled in with."""

    name: str
    """On the wire; `label` says the same in words."""
    label: str
    hint: Markup
    kind: Kind
    type: str
    """JSON's type of the value: what the script makes of the control's text."""
    required: bool
    value: str
    """What the control starts with: the example's value; lines of an array; `true` or nothing for a flag."""
    default: str
    """A flag that stands at its default is not sent."""
    options: tuple[tuple[str, str], ...] = ()
    """Value and words of each choice."""
    bounds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`min` and `max` of a number."""


@dataclass(frozen=True, slots=True)
class Form:
    """Everything a request body of a service can hold."""

    fields: tuple[Field, ...]
    rules: tuple[Markup, ...]
    """What no single field can say, as sentences."""
    promise: Mapping[str, Any] | None
    """See `promised`; there is no form to fill in where there is none."""
    terms: tuple[tuple[str, str], ...]
    """The promise in words."""
    commands: tuple[Snippet, ...]
    """The example from a terminal, for who has no wallet in the browser: asking the price, and paying."""


def form_of(service: Entry, deployment: Deployment) -> Form:
    """The form of a service, filled in with its example."""
    schema = service.input_schema
    properties: Mapping[str, Schema] = schema["properties"]
    told = table(schema)
    rows = {row.name: row for row in told.rows}
    promise = promised(service, deployment)
    return Form(
        fields=tuple(_field(name, each, service, rows[name]) for name, each in properties.items()),
        rules=tuple(_code(rule) for rule in told.rules if rule.endswith("required.")),
        promise=promise,
        terms=terms_in_words(promise),
        commands=tuple(each for each in snippets(service, deployment) if each.language == "sh"),
    )


def _field(name: str, schema: Schema, service: Entry, row: Row) -> Field:
    choices = _choices(service.input_schema, name)
    kind = _kind(schema, choices)
    starts = service.input_example.get(name, schema.get("default") if kind == "flag" else None)
    return Field(
        name=name,
        label=_words(name),
        hint=_code(_hint(schema, row, kind)),
        kind=kind,
        type=schema.get("type", "string"),
        required=row.required,
        value=_text(starts),
        default="" if row.required else _text(schema.get("default", False)),
        options=tuple((str(each), _option(name, each)) for each in choices),
        bounds=_bounds(schema) if kind == "number" else {},
    )


def _choices(schema: Schema, name: str) -> list[Any]:
    """The values a field is held to, by itself or by what its object is combined from."""
    own: list[Any] = schema.get("properties", {}).get(name, {}).get("enum", [])
    parts = (part for word in ("allOf", "anyOf", "oneOf") for part in schema.get(word, ()))
    found = (_choices(part, name) for part in parts)
    return own or next(filter(None, found), own)


def _kind(schema: Schema, choices: list[Any]) -> Kind:
    if choices:
        return "choice"
    by_type: dict[str, Kind] = {"boolean": "flag", "array": "lines", "integer": "number", "number": "number"}
    return by_type.get(schema.get("type", "string"), "text")


def _words(name: str) -> str:
    """`tokenAddress` as `Token address`, `chainId` as `Chain ID`."""
    spaced = "".join(f" {each.lower()}" if each.isupper() else each for each in name)
    words = " ".join(_SPELLED.get(word, word) for word in spaced.split())
    return words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    """A value as a control holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(map(str, cast(list[Any], value)))
    return "" if value is None else str(value)


def _option(name: str, value: Any) -> str:
    """A chain's id says little without its name."""
    chain = CHAIN_BY_ID.get(value) if name == "chainId" else None
    return f"{value} ({chain.slug})" if chain else str(value)


def _hint(schema: Schema, row: Row, kind: Kind) -> str:
    """What a field means, and within which bounds; what only machines read is left to the table above."""
    limits = [limit for limit in row.limits if not limit.removeprefix("each ").startswith(_FOR_MACHINES)]
    if kind != "flag" and row.default is not None:
        limits.append(f"{row.default} when left out")
    elif kind != "flag" and not row.required:
        limits.append("optional")
    told = "; ".join(limits)
    meaning = [row.meaning, schema.get("items", {}).get("description", "")]
    return " ".join(part for part in (*meaning, f"{told[:1].upper()}{told[1:]}." if told else "") if part)


def _code(text: str) -> Markup:
    """Text as HTML, with what stands in backticks as code."""
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in parts)


def _bounds(schema: Schema) -> dict[str, Any]:
    low = schema.get("minimum", schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else None)
    bounds = {"min": low, "max": schema.get("maximum")}
    return {name: value for name, value in bounds.items() if value is not None}
