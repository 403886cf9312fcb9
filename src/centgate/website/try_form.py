"""The "Try it" form of a service, generated from its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from markupsafe import Markup
from msgspec import Struct, field

from centgate.chains import CHAIN_BY_ID
from centgate.client.catalog import ServiceDetail
from centgate.json_schema import Schema, parse_schema
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.code_samples import CodeSample, build_samples
from centgate.website.payment_terms import describe_terms, promise_terms
from centgate.website.schema_tables import SchemaRow, build_schema_table

ControlKind = Literal["choice", "number", "flag", "lines", "text"]

_ACRONYMS = {"id": "ID", "url": "URL", "urls": "URLs"}
_TECHNICAL_LIMITS = ("one of", "matches", "does not match", "format", "above")


class FormField(Struct, frozen=True):
    """One field of a request body, and its form control."""

    name: str
    """Name in JSON; `label` is its readable form."""
    label: str
    hint: Markup
    kind: ControlKind
    type: str
    """JSON type to which the script converts the control's text."""
    required: bool
    value: str
    """Initial value: from the example; one line per array item; `true` or `false` for a flag."""
    default: str
    """Default of a flag; a flag with this value is not sent."""
    options: tuple[tuple[str, str], ...] = ()
    """Value and label of each choice."""
    bounds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`min` and `max` of a number."""


class TryForm(Struct, frozen=True):
    """All fields of a service's request body, and the data of the payment dialog."""

    fields: tuple[FormField, ...]
    rules: tuple[Markup, ...]
    """Rules that involve several fields, as sentences."""
    promise: Mapping[str, Any] | None
    """See `promise_terms`; if None, no form is shown."""
    terms: tuple[tuple[str, str], ...]
    """The promised terms as labels and values."""
    commands: tuple[CodeSample, ...]
    """The example as shell commands (show the price, pay), for visitors without a browser wallet."""


def build_form(service: ServiceDetail, deployment: ApiSnapshot) -> TryForm:
    """Build the form of a service, filled in with its example."""
    schema = parse_schema(service.input_schema)
    input_table = build_schema_table(schema)
    rows = {row.name: row for row in input_table.rows}
    promise = promise_terms(service, deployment)
    return TryForm(
        fields=tuple(
            _build_field(rows[name], each.non_null, schema.field_values(name), service.input_example)
            for name, each in schema.properties.items()
        ),
        rules=tuple(_code_to_html(rule) for rule in input_table.rules if rule.endswith("required.")),
        promise=promise,
        terms=describe_terms(promise),
        commands=tuple(each for each in build_samples(service, deployment) if each.language == "sh"),
    )


def _build_field(row: SchemaRow, schema: Schema, choices: list[Any], example: Mapping[str, Any]) -> FormField:
    kind = _control_kind(schema, choices)
    initial = example.get(row.name, schema.default if kind == "flag" else None)
    return FormField(
        name=row.name,
        label=_label_of(row.name),
        hint=_code_to_html(_field_hint(schema, row, kind)),
        kind=kind,
        type=schema.type or "string",
        required=row.required,
        value=_control_text(initial),
        default="" if row.required else _control_text(schema.default or False),
        options=tuple((str(each), _option_label(row.name, each)) for each in choices),
        bounds=_number_bounds(schema) if kind == "number" else {},
    )


def _control_kind(schema: Schema, choices: list[Any]) -> ControlKind:
    if choices:
        return "choice"
    by_type: dict[str, ControlKind] = {
        "boolean": "flag",
        "array": "lines",
        "integer": "number",
        "number": "number",
    }
    return by_type.get(schema.type or "string", "text")


def _label_of(name: str) -> str:
    """Convert a field name to a label: `tokenAddress` to `Token address`, `chainId` to `Chain ID`."""
    spaced = "".join(f" {each.lower()}" if each.isupper() else each for each in name)
    words = " ".join(_ACRONYMS.get(word, word) for word in spaced.split())
    return words[:1].upper() + words[1:]


def _control_text(value: Any) -> str:
    """Format a value as the text of a control."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(map(str, cast(list[Any], value)))
    return "" if value is None else str(value)


def _option_label(name: str, value: Any) -> str:
    """Return the label of a choice; chain IDs get the name of the chain."""
    chain = CHAIN_BY_ID.get(value) if name == "chainId" else None
    return f"{value} ({chain.slug})" if chain else str(value)


def _field_hint(schema: Schema, row: SchemaRow, kind: ControlKind) -> str:
    """Return a field's meaning and bounds; technical limits (patterns) are only in the table above."""
    limits = [limit for limit in row.limits if not limit.removeprefix("each ").startswith(_TECHNICAL_LIMITS)]
    if kind != "flag" and row.default is not None:
        limits.append(f"{row.default} when left out")
    elif kind != "flag" and not row.required:
        limits.append("optional")
    bounds = "; ".join(limits)
    meaning = [row.meaning, schema.item.description]
    return " ".join(
        part for part in (*meaning, f"{bounds[:1].upper()}{bounds[1:]}." if bounds else "") if part
    )


def _code_to_html(text: str) -> Markup:
    """Convert text to HTML, with spans in backticks as `<code>`."""
    parts = enumerate(text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in parts)


def _number_bounds(schema: Schema) -> dict[str, Any]:
    bounds = zip(("min", "max"), schema.bounds, strict=True)
    return {name: value for name, value in bounds if value is not None}
