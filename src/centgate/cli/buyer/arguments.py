"""Parse `key=value` arguments by a service's input schema, with help texts and suggestions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, cast

from centgate.json_schema import Schema
from centgate.signing.assets import TEST_NETWORKS, USDC

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TYPE_LABELS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}


class InvalidArguments(ValueError):
    """The arguments do not match the schema; `problems` lists every problem."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def parse_body(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object; bytes may be UTF-8, UTF-16 or UTF-32. Raises InvalidArguments."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments([f"the body is not JSON: {error}"]) from error
    if not isinstance(body, dict):
        raise InvalidArguments(['the body is not a JSON object: it must look like {"key": "value"}'])
    return cast(dict[str, Any], body)


def parse_pairs(pairs: Iterable[str], schema: Schema) -> dict[str, Any]:
    """Parse `key=value` pairs into a request body; a repeated key adds to a list.

    Raises InvalidArguments with every problem of single fields. The API checks rules across fields, before it
    requires a payment.
    """
    values_by_key: dict[str, list[str]] = {}
    problems: list[str] = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        name = match_key(key, schema.properties)
        if not equals:
            problems.append(f"{pair!r} is not key=value; {_describe_keys(schema)}")
        elif name is None:
            suggestion = _suggest(key, schema.properties)
            problems.append(f"unknown key {key!r}{suggestion}; {_describe_keys(schema)}")
        else:
            values_by_key.setdefault(name, []).append(value)
    body = _parse_fields(values_by_key, schema, problems)
    if problems:
        raise InvalidArguments(problems)
    return body


def require_keys(body: Mapping[str, Any], schema: Schema) -> None:
    """Raise InvalidArguments if required keys are missing, with every such key."""
    missing = [name for name in schema.required if name not in body]
    if missing:
        raise InvalidArguments(
            [f"{name} is required: {describe_field(schema.properties[name])}" for name in missing]
        )


def network_to_enable(network: str) -> str | None:
    """Return the network if it must be enabled explicitly; None for test networks and unknown networks."""
    return network if network in USDC and network not in TEST_NETWORKS else None


def match_key(key: str, names: Iterable[str]) -> str | None:
    """Return the field that a key matches: `token-address` and `token_address` are `tokenAddress`."""
    return next((name for name in names if _normalize(name) == _normalize(key)), None)


def describe_field(schema: Schema) -> str:
    """Describe a field: its purpose and its allowed values."""
    parts = [schema.description.rstrip("."), describe_limits(schema)]
    if parts == [parts[0], _TYPE_LABELS["string"]] and parts[0]:
        parts.pop()  # "text" is no information: every argument is text
    if schema.has("default"):
        parts.append(f"default {json.dumps(schema.default)}")
    return "; ".join(part for part in parts if part)


def describe_limits(schema: Schema) -> str:
    """Describe the allowed values: the type, the enum or the limits."""
    if schema.values:
        return "one of " + ", ".join(map(str, schema.values))
    label = _TYPE_LABELS.get(schema.type or "", "any value")
    minimum, maximum = schema.bounds
    unit = {"string": " characters", "array": " values"}.get(schema.type or "", "")
    if minimum is None and maximum is None:
        return label
    if maximum is None:
        return f"{label} of {minimum}{unit} or more"
    return f"{label}, {f'{minimum} to {maximum}' if minimum is not None else f'at most {maximum}'}{unit}"


def _parse_fields(
    values_by_key: Mapping[str, list[str]], schema: Schema, problems: list[str]
) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, texts in values_by_key.items():
        field = schema.properties[name]
        try:
            body[name] = _parse_value(texts, field)
        except ValueError as error:
            problems.append(f"{name}: {error}; expected: {describe_field(field)}")
    return body


def _parse_value(texts: list[str], schema: Schema) -> Any:
    """Parse one value as the schema's type. Raises ValueError."""
    if schema.type == "array":
        return _validate_length(_parse_items(texts, schema.item), schema)
    if len(texts) > 1:
        raise ValueError(f"given {len(texts)} times, but it takes one value")
    return _validate(_convert(texts[0], schema), schema)


def _parse_items(texts: list[str], schema: Schema) -> list[Any]:
    """Parse a list from JSON, repeated keys, or comma-separated values."""
    if len(texts) == 1 and texts[0].lstrip().startswith("["):
        try:
            return json.loads(texts[0])
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is not a JSON list: {error}") from error
    parts = [part for text in texts for part in _split_commas(text, schema)]
    return [_validate(_convert(part, schema), schema) for part in parts]


def _split_commas(text: str, schema: Schema) -> list[str]:
    """Split at commas, unless a part does not match the pattern (a URL may contain a comma)."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    all_match = all(_matches_pattern(part, schema) for part in parts)
    return parts if all_match and parts else [text]


def _convert(text: str, schema: Schema) -> Any:
    kind = schema.type
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
        if kind == "boolean":
            return _BOOLEANS[text.lower()]
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not {_TYPE_LABELS[kind or '']}") from None
    return text if kind == "string" else json.loads(text)


def _validate(value: Any, schema: Schema) -> Any:
    """Return the value if the schema allows it. Raises ValueError."""
    if schema.values and value not in schema.values:
        raise ValueError(f"{value!r} is not known{_suggest(str(value), map(str, schema.values))}")
    if not _is_within_limits(len(value) if isinstance(value, str) else value, schema):
        raise ValueError(f"{_truncate_repr(value)} is outside the limits")
    if isinstance(value, str) and not _matches_pattern(value, schema):
        raise ValueError(f"{_truncate_repr(value)} does not match the pattern")
    return value


def _is_within_limits(size: Any, schema: Schema) -> bool:
    """Return True if a number or a length is within the limits."""
    minimum, maximum = schema.bounds
    if isinstance(size, bool) or not isinstance(size, int | float):
        return True
    return (minimum is None or size >= minimum) and (maximum is None or size <= maximum)


def _matches_pattern(text: str, schema: Schema) -> bool:
    """Return True if a text matches the pattern; a pattern that Python cannot compile is left to the API."""
    try:
        return re.search(schema.pattern or "", text) is not None
    except re.error:
        return True


def _validate_length(values: list[Any], schema: Schema) -> list[Any]:
    if not _is_within_limits(len(values), schema):
        raise ValueError(f"{len(values)} values given")
    return values


def _truncate_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def _describe_keys(schema: Schema) -> str:
    return f"the keys are {', '.join(schema.properties)}"


def _suggest(word: str, words: Iterable[str]) -> str:
    """Return ` (did you mean x?)`, or an empty string."""
    by_normalized = {_normalize(each): each for each in words}
    matches = get_close_matches(_normalize(word), by_normalized, 1)
    return f" (did you mean {by_normalized[matches[0]]}?)" if matches else ""


def _normalize(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
