"""Tool definitions for language models, built from the services of a catalogue.

The three formats accept no rule across fields, and Gemini's no enum of numbers: such rules are told in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast, get_args

from centgate.client.catalog import ServiceDetail

ToolFlavour = Literal["openai", "anthropic", "gemini"]
"""OpenAI's Chat Completions, Anthropic's Messages, Gemini's FunctionDeclaration."""
TOOL_FLAVOURS: tuple[ToolFlavour, ...] = get_args(ToolFlavour)

MAX_DESCRIPTION = 1024
"""Characters of a description: OpenAI's limit."""
_JsonObject = dict[str, Any]
_KEYWORDS = frozenset(
    "type description enum default pattern minimum maximum minLength maxLength minItems maxItems".split()  # noqa: SIM905
)
"""Keywords of a field that all three accept; `items` is converted besides."""


def build_tool(service: ServiceDetail, flavour: ToolFlavour) -> dict[str, Any]:
    """Build the tool of a service; its name is the slug. Raises ValueError for an unknown flavour."""
    if flavour not in _FORMATS:
        raise ValueError(f"tools are for {', '.join(_FORMATS)}, not {str(flavour)[:40]!r}")
    parameters, rules = _convert_input(service.input_schema, flavour)
    return _FORMATS[flavour](service.slug, _describe(service, rules), parameters)


def _describe(service: ServiceDetail, rules: list[str]) -> str:
    description = service.description if service.description != service.summary else ""
    end = " ".join([*rules, f"Costs {service.price} a call."])
    text = " ".join(part for part in (service.summary, description) if part)
    return f"{text[: MAX_DESCRIPTION - len(end) - 1]} {end}"


def _convert_input(schema: Mapping[str, Any], flavour: ToolFlavour) -> tuple[_JsonObject, list[str]]:
    """Return an input schema without combinations of schemas, and the rules across fields in words."""
    parts = list(_iterate_parts(schema))
    fields: dict[str, _JsonObject] = {}
    for part in parts:
        for name, field in _members(part.get("properties")):
            fields[name] = {**fields.get(name, {}), **field}
    converted: _JsonObject = {
        "type": "object",
        "properties": {name: _convert_field(field, flavour) for name, field in fields.items()},
    }
    required = [str(name) for name in cast(list[Any], schema.get("required", [])) if name in fields]
    if required:
        converted["required"] = required
    return converted, list(dict.fromkeys(rule for part in parts for rule in _iterate_rules(part)))


def _iterate_parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those that always apply with it: of `allOf`, and of `then` if its `if` holds."""
    yield schema
    others = _objects(schema.get("allOf"))
    if schema.get("if") in ({}, {"type": "object"}):
        others += _objects([schema.get("then")])
    for each in others:
        yield from _iterate_parts(each)


def _convert_field(field: Mapping[str, Any], flavour: ToolFlavour) -> _JsonObject:
    converted = {name: value for name, value in field.items() if name in _KEYWORDS}
    if isinstance(items := field.get("items"), dict):
        converted["items"] = _convert_field(cast(_JsonObject, items), flavour)
    values = converted.get("enum")
    if flavour == "gemini" and isinstance(values, list) and converted.get("type") != "string":
        listed = ", ".join(map(str, cast(list[Any], converted.pop("enum"))))
        converted["description"] = f"{converted.get('description', '')} One of {listed}.".strip()
    return converted


def _iterate_rules(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rules about needed fields: of anyOf, of oneOf, and of `not` with fields excluded."""
    for keyword, end in (("anyOf", ""), ("oneOf", ", and not both")):
        names = [str(name) for branch in _objects(part.get(keyword)) for name in branch.get("required", [])]
        if len(names) > 1:
            yield f"Needs {' or '.join(f'`{name}`' for name in dict.fromkeys(names))}{end}."
    excluded = part.get("not")
    if isinstance(excluded, dict):
        fields = cast(_JsonObject, excluded).get("properties", {})
        names = [name for name, field in cast(_JsonObject, fields).items() if field is False]
        if len(names) > 1:
            yield f"Needs {' or '.join(f'`{name}`' for name in names)}."


def _objects(value: object) -> list[_JsonObject]:
    if not isinstance(value, list):
        return []
    return [cast(_JsonObject, each) for each in cast(list[Any], value) if isinstance(each, dict)]


def _members(value: object) -> Iterator[tuple[str, _JsonObject]]:
    for name, field in cast(_JsonObject, value if isinstance(value, dict) else {}).items():
        if isinstance(field, dict):
            yield name, cast(_JsonObject, field)


def _openai_tool(name: str, description: str, parameters: _JsonObject) -> _JsonObject:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _anthropic_tool(name: str, description: str, parameters: _JsonObject) -> _JsonObject:
    return {"name": name, "description": description, "input_schema": parameters}


def _gemini_tool(name: str, description: str, parameters: _JsonObject) -> _JsonObject:
    return {"name": name, "description": description, "parameters": parameters}


_FORMATS: Mapping[str, Callable[[str, str, _JsonObject], _JsonObject]] = {
    "openai": _openai_tool,
    "anthropic": _anthropic_tool,
    "gemini": _gemini_tool,
}
