"""`key=value` on a command line, read by a service's input schema: what each may be, and what was meant."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, cast

from centgate.dollars import TEST_NETWORKS, USDC

Schema = Mapping[str, Any]
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}


class BadArguments(ValueError):
    """The arguments do not fit the schema; `problems` are sentences, all of them."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def read_body(text: str | bytes) -> dict[str, Any]:
    """A request body given as JSON, as bytes in any of its encodings; BadArguments unless it is an object."""
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArguments([f"the body is not JSON: {error}"]) from error
    if not isinstance(body, dict):
        raise BadArguments(['the body is not a JSON object: it has to look like {"key": "value"}'])
    return cast(dict[str, Any], body)


def read_pairs(pairs: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The request body that `key=value` pairs mean; a key given again adds to a list.

    Raises BadArguments with every problem that the schema's own fields show. What only several of them
    show together, the API says, before money.
    """
    given: dict[str, list[str]] = {}
    problems: list[str] = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        name = spelt(key, schema["properties"])
        if not equals:
            problems.append(f"{pair!r} is not key=value; {_keys(schema)}")
        elif name is None:
            problems.append(f"there is no {key!r} here{_near(key, schema['properties'])}; {_keys(schema)}")
        else:
            given.setdefault(name, []).append(value)
    body = _read_all(given, schema, problems)
    if problems:
        raise BadArguments(problems)
    return body


def require_all(body: Mapping[str, Any], schema: Schema) -> None:
    """Raise BadArguments for every required key that is left out."""
    lacking = [name for name in schema.get("required", ()) if name not in body]
    if lacking:
        raise BadArguments([f"{name} is needed: {meaning(schema['properties'][name])}" for name in lacking])


def command(slug: str, body: Mapping[str, Any], *, network: str | None = None) -> str:
    """The command line that sends a body to a service, and allows it to be paid on a network."""
    pairs = [f"{name}={value}" for name, given in body.items() for value in _texts(given)]
    return shlex.join(["centgate", "call", slug, *pairs, *(["--network", network] if network else [])])


def network_to_name(network: str) -> str | None:
    """Return a network that is not paid on unless it is named; None for test networks and unknown ones."""
    return network if network in USDC and network not in TEST_NETWORKS else None


def spelt(key: str, names: Iterable[str]) -> str | None:
    """The name that a key means: `token-address` and `token_address` are `tokenAddress`."""
    return next((name for name in names if _plain(name) == _plain(key)), None)


def meaning(schema: Schema) -> str:
    """What a value is for, and what it may be, in words."""
    parts = [schema.get("description", "").rstrip("."), bounds(schema)]
    if parts == [parts[0], _KINDS["string"]] and parts[0]:
        parts.pop()  # which every line of a terminal is
    if "default" in schema:
        parts.append(f"{json.dumps(schema['default'])} unless given")
    return "; ".join(part for part in parts if part)


def bounds(schema: Schema) -> str:
    """What a value may be, in words: its kind, its words or its limits."""
    if "enum" in schema or "const" in schema:
        return "one of " + ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = _KINDS.get(schema.get("type", ""), "any value")
    least, most = _limits(schema)
    unit = {"string": " characters", "array": " values"}.get(schema.get("type", ""), "")
    if least is None and most is None:
        return kind
    if most is None:
        return f"{kind} of {least}{unit} or more"
    return f"{kind}, {f'{least} to {most}' if least is not None else f'at most {most}'}{unit}"


def _texts(value: Any) -> list[str]:
    """What has to be typed for a value: once for each item of a list."""
    if isinstance(value, list):
        return [text for each in cast(list[Any], value) for text in _texts(each)]
    return [value if isinstance(value, str) else json.dumps(value)]


def _read_all(given: Mapping[str, list[str]], schema: Schema, problems: list[str]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, texts in given.items():
        field: Schema = schema["properties"][name]
        try:
            body[name] = _read(texts, field)
        except ValueError as error:
            problems.append(f"{name}: {error}; expected: {meaning(field)}")
    return body


def _read(texts: list[str], schema: Schema) -> Any:
    """One value, as the schema's type; ValueError says what is wrong with it."""
    if schema.get("type") == "array":
        return _checked_list(_items(texts, schema.get("items", {})), schema)
    if len(texts) > 1:
        raise ValueError(f"given {len(texts)} times, and is one value")
    return _checked(_typed(texts[0], schema), schema)


def _items(texts: list[str], schema: Schema) -> list[Any]:
    """A list given as JSON, by repetition, or with commas between values."""
    if len(texts) == 1 and texts[0].lstrip().startswith("["):
        try:
            return json.loads(texts[0])
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is no JSON list: {error}") from error
    parts = [part for text in texts for part in _split(text, schema)]
    return [_checked(_typed(part, schema), schema) for part in parts]


def _split(text: str, schema: Schema) -> list[str]:
    """The values between commas; a comma that is part of a value, as in a URL, separates nothing."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    fits = all(_fits(part, schema) for part in parts)
    return parts if fits and parts else [text]


def _typed(text: str, schema: Schema) -> Any:
    kind = schema.get("type")
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
        if kind == "boolean":
            return _BOOLEANS[text.lower()]
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not {_KINDS[kind or '']}") from None
    return text if kind == "string" else json.loads(text)


def _checked(value: Any, schema: Schema) -> Any:
    """The value, where the schema allows it."""
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{value!r} is not known{_near(str(value), map(str, schema['enum']))}")
    if not _within(len(value) if isinstance(value, str) else value, schema):
        raise ValueError(f"{_shortened(value)} is outside the bounds")
    if isinstance(value, str) and not _fits(value, schema):
        raise ValueError(f"{_shortened(value)} has another form")
    return value


def _within(size: Any, schema: Schema) -> bool:
    """Whether a number, or a length, is inside the limits."""
    least, most = _limits(schema)
    if isinstance(size, bool) or not isinstance(size, int | float):
        return True
    return (least is None or size >= least) and (most is None or size <= most)


def _fits(text: str, schema: Schema) -> bool:
    """Whether a text has the form asked for; a form that cannot be read here is left to the API."""
    try:
        return re.search(schema.get("pattern", ""), text) is not None
    except re.error:
        return True


def _checked_list(values: list[Any], schema: Schema) -> list[Any]:
    if not _within(len(values), schema):
        raise ValueError(f"{len(values)} values given")
    return values


def _limits(schema: Schema) -> tuple[Any, Any]:
    """The least and the most, of a number or of a length; None where there is no limit worth a word."""
    least = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
    if "exclusiveMinimum" in schema and schema.get("type") == "integer":
        least = schema["exclusiveMinimum"] + 1
    most = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    return least, None if isinstance(most, int) and most >= 2**53 - 1 else most


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def _keys(schema: Schema) -> str:
    return f"the keys are {', '.join(schema['properties'])}"


def _near(word: str, words: Iterable[str]) -> str:
    """` (did you mean x?)`, or nothing where nothing is near."""
    plain = {_plain(each): each for each in words}
    found = get_close_matches(_plain(word), plain, 1)
    return f" (did you mean {plain[found[0]]}?)" if found else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
