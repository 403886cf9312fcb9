"""Checks by upstreams' OpenAPI files: validation of requests, and generation of responses.

Each upstream has a small file in tests/openapi with the operations that we call; the vendors' own files are
beside the recordings. OpenAPI 3.0 and 3.1 are read, JSON and YAML, and `nullable` in either.
"""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from ada_url import check_url
from fake_upstreams import SHARED, recorded_case
from jsonschema import Draft202012Validator, FormatChecker

DESCRIPTIONS = Path(__file__).parent / "openapi"
VENDOR_FILES = {
    "context7": "context7-v2-2.0.0.json",
    "exa": "exa-search-1.2.0.yaml",
    "firecrawl": "firecrawl-v2.json",
}
JSON_MEDIA = "application/json"
MAX_DEPTH = 6
"""Depth of a generated response; optional members are omitted below it."""
NOTES = frozenset({"example", "examples", "description", "title", "default", "deprecated", "nullable"})
FORMATS = FormatChecker(formats=())


@FORMATS.checks("uri")
def _is_url(text: object) -> bool:
    return not isinstance(text, str) or check_url(text)


@FORMATS.checks("date-time")
def _is_date_time(text: object) -> bool:
    return not isinstance(text, str) or bool(re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d.*", text))


def each_description(upstream: str) -> pytest.MarkDecorator:
    """Run a test with our description as `spec`, and with the vendor's where the recordings are."""
    return pytest.mark.parametrize("spec", [f"{upstream}.yaml", recorded_case(VENDOR_FILES[upstream])])


def find_request_problems(spec_file: str, method: str, path: str, content: Any) -> list[str]:
    """List the problems of a request to an operation; empty if it conforms to the description.

    `path` as the file spells it (`/v1/{owner}/{repo}`). `asked` is the JSON body where the operation takes
    one, else path and query parameters by name, as text. A member that the description does not name is a
    problem too, also where the description would let it pass.
    """
    spec = _spec(spec_file)
    operation = _operation(spec, method, path)
    if body := _resolve_reference(spec, operation.get("requestBody")):
        return _list_problems(spec, body["content"][JSON_MEDIA]["schema"], content)
    declared = {each["name"]: each for each in _parameters(spec, path, operation)}
    return [*_unknown_parameters(declared, content), *_invalid_parameters(spec, declared, content)]


def generate_responses(
    spec_file: str, method: str, path: str, status: int, count: int, seed: int
) -> list[Any]:
    """Generate JSON responses that an operation's description allows for a status, by `seed`.

    Optional members come and go; texts are hostile at times, lists at times empty.
    """
    spec = _spec(spec_file)
    answer = _resolve_reference(spec, _operation(spec, method, path)["responses"][str(status)])
    schema: dict[str, Any] = answer["content"][JSON_MEDIA]["schema"]
    chance = random.Random(f"{spec_file} {method} {path} {status} {seed}")
    judge: Any = Draft202012Validator(_with_root(spec, schema), format_checker=FORMATS)
    made = [_generate_value(spec, schema, chance, 0) for _ in range(count)]
    for each in made:
        judge.validate(each)
    return made


@cache
def _spec(file: str) -> dict[str, Any]:
    """Load a description once, with its schemas as JSON Schema."""
    where = DESCRIPTIONS / file
    if not where.exists():
        where = SHARED / "specs" / "web" / file
    # read through JSON, since YAML takes texts in examples for dates
    raw = (
        yaml.safe_load(where.read_text()) if file.endswith(("yaml", "yml")) else json.loads(where.read_text())
    )
    return cast(dict[str, Any], _modernize(json.loads(json.dumps(raw, default=str))))


def _modernize(node: Any) -> Any:
    """Convert `nullable` and the old bounds in a part of a description to current JSON Schema."""
    if isinstance(node, list):
        return [_modernize(each) for each in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    schema = {key: _modernize(value) for key, value in cast(dict[str, Any], node).items()}
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(bound), bool):
            exclusive = schema.pop(bound)
            if exclusive:
                schema[bound] = schema.pop(limit)
    if schema.get("nullable") is True:
        del schema["nullable"]
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def _operation(spec: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    return spec["paths"][path][method.lower()]


def _resolve_reference(spec: dict[str, Any], node: Any) -> Any:
    """Resolve a reference; other nodes are returned unchanged."""
    while isinstance(node, dict) and isinstance(node.get("$ref"), str):
        found: Any = spec
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        node = found
    return node


def _with_root(spec: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in which the description's own references resolve."""
    return {"allOf": [schema], "components": spec.get("components", {})}


def _parameters(spec: dict[str, Any], path: str, operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of path and query; those of a path apply to all its operations."""
    for each in (*spec["paths"][path].get("parameters", ()), *operation.get("parameters", ())):
        parameter = _resolve_reference(spec, each)
        if parameter["in"] in ("path", "query"):
            yield parameter


def _unknown_parameters(declared: Mapping[str, Any], content: Mapping[str, str]) -> Iterator[str]:
    for name in content.keys() - declared.keys():
        yield f"{name}: not a parameter of this operation"
    for name, parameter in declared.items():
        if parameter.get("required") and name not in content:
            yield f"{name}: required"


def _invalid_parameters(
    spec: dict[str, Any], declared: Mapping[str, Any], content: Mapping[str, str]
) -> Iterator[str]:
    for name in content.keys() & declared.keys():
        schema = declared[name]["schema"]
        value = _parse_parameter(_resolve_reference(spec, schema), content[name])
        for problem in _list_problems(spec, schema, value):
            yield f"{name}: {problem}"


def _parse_parameter(schema: dict[str, Any], text: str) -> Any:
    """Parse a parameter's text to a value of its schema's type."""
    kinds = _schema_types(schema)
    if kinds & {"integer", "number", "boolean"}:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text.split(",") if "array" in kinds else text


def _schema_types(schema: dict[str, Any]) -> set[str]:
    stated = schema.get("type", ())
    branches = [each for word in ("anyOf", "oneOf", "allOf") for each in schema.get(word, ())]
    return (
        {stated} if isinstance(stated, str) else {*stated}.union(*(_schema_types(each) for each in branches))
    )


def _list_problems(spec: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    judge: Any = Draft202012Validator(_with_root(spec, schema), format_checker=FORMATS)
    wrong = [f"{error.json_path}: {error.message}" for error in judge.iter_errors(value)]
    return wrong + list(_list_undeclared_members(spec, schema, value, "$"))


def _list_undeclared_members(spec: dict[str, Any], schema: Any, value: Any, where: str) -> Iterator[str]:
    """Yield members at any depth that no branch of a schema names, unless it allows additional ones."""
    branches = list(_branches(spec, schema))
    if isinstance(value, list):
        items = [branch["items"] for branch in branches if "items" in branch]
        for place, each in enumerate(cast(list[Any], value)):
            yield from (
                _list_undeclared_members(spec, {"anyOf": items}, each, f"{where}[{place}]") if items else ()
            )
    if not isinstance(value, dict):
        return
    named = [branch["properties"] for branch in branches if "properties" in branch]
    if not named or any(branch.get("additionalProperties") not in (None, False) for branch in branches):
        return
    for name, each in cast(dict[str, Any], value).items():
        known = [properties[name] for properties in named if name in properties]
        if not known:
            yield f"{where}.{name}: not named in the description"
        yield from _list_undeclared_members(spec, {"anyOf": known}, each, f"{where}.{name}") if known else ()


def _branches(spec: dict[str, Any], schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas that it combines at the same level."""
    node = _resolve_reference(spec, schema)
    yield node
    for word in ("allOf", "anyOf", "oneOf"):
        for branch in node.get(word, ()):
            yield from _branches(spec, branch)


def _generate_value(spec: dict[str, Any], schema: Any, chance: random.Random, depth: int) -> Any:
    """Generate a value that a schema allows."""
    node = _merge_schema(spec, _resolve_reference(spec, schema), chance)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return chance.choice(node["enum"])
    stated = node.get("type") or ("object" if "properties" in node else "array" if "items" in node else None)
    kind: Any = chance.choice(cast(list[str], stated)) if isinstance(stated, list) else stated
    match kind:
        case "object":
            return _generate_object(spec, node, chance, depth)
        case "array":
            return _generate_array(spec, node, chance, depth)
        case "string":
            return _generate_string(node, chance)
        case "integer" | "number":
            return _generate_number(node, chance, whole=kind == "integer")
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
        case None:
            return chance.choice([None, True, 0, -1.5, "", "text", [], {}, {"key": ["value"]}])
        case _:
            raise NotImplementedError(f"no values are made here for {kind}")


def _merge_schema(spec: dict[str, Any], node: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Merge a schema's parts into one, with one branch of each choice."""
    parts = list(node.get("allOf", ()))
    parts += [chance.choice(node[word]) for word in ("anyOf", "oneOf") if node.get(word)]
    whole = {key: value for key, value in node.items() if key not in ("allOf", "anyOf", "oneOf")}
    for part in parts:
        more = _merge_schema(spec, _resolve_reference(spec, part), chance)
        members = {**whole.get("properties", {}), **more.get("properties", {})}
        required = [*whole.get("required", ()), *more.get("required", ())]
        whole = {**whole, **more}
        if members:
            whole |= {"properties": members, "required": required}
    return whole


def _generate_object(
    spec: dict[str, Any], node: dict[str, Any], chance: random.Random, depth: int
) -> dict[str, Any]:
    required: set[str] = set(node.get("required", ()))
    likely = 0.75 if depth < MAX_DEPTH else 0.0
    made = {
        name: _generate_value(spec, schema, chance, depth + 1)
        for name, schema in node.get("properties", {}).items()
        if name in required or chance.random() < likely
    }
    more = node.get("additionalProperties")
    if isinstance(more, dict) and depth < MAX_DEPTH and chance.random() < 0.5:
        made["another"] = _generate_value(spec, more, chance, depth + 1)
    return made


def _generate_array(
    spec: dict[str, Any], node: dict[str, Any], chance: random.Random, depth: int
) -> list[Any]:
    least = node.get("minItems", 0)
    most = min(node.get("maxItems", 4), max(least, 4)) if depth < MAX_DEPTH else least
    return [
        _generate_value(spec, node.get("items", {}), chance, depth + 1)
        for _ in range(chance.randint(least, most))
    ]


TEXTS = (
    "",
    " ",
    "words in a row",
    "two\nlines\r\nand a third",
    "<b>bold</b> &amp; <script>alert(1)</script>",
    "turned \u202eround\u202c, joined \u200b and \x00 cut",
    "\u6f22\u5b57 \U0001f642 e\u0301",
    "{json: [",
    "-7",
    "long " * 2000,
)
URLS = (
    "https://example.com/",
    "http://example.org/a/b.html?c=d#e",
    "HTTPS://Example.COM:443/%7Euser",
    "ftp://example.com/file",
    "https://xn--bcher-kva.example/\u00fc",
    "data:text/plain,hi",
    "javascript:alert(1)",
    "https://user:secret@example.com/",
)
MOMENTS = ("2026-04-01T12:00:00.000Z", "1999-12-31T23:59:59+05:30", "0001-01-01T00:00:00Z")
KNOWN_TEXTS: Mapping[str, tuple[str, ...]] = {
    "uri": URLS,
    "url": URLS,
    "date-time": MOMENTS,
    "date": ("2026-04-01", "1970-01-01"),
    "binary": TEXTS,
}


def _generate_string(node: dict[str, Any], chance: random.Random) -> str:
    if "pattern" in node:
        return node["example"]  # texts for unknown patterns are not generated
    text = chance.choice(KNOWN_TEXTS.get(node.get("format", ""), TEXTS))
    if "example" in node and chance.random() < 0.3:
        text = str(node["example"])
    return text.ljust(node.get("minLength", 0), "x")[: node.get("maxLength")]


def _generate_number(node: dict[str, Any], chance: random.Random, *, whole: bool) -> int | float:
    least, most = node.get("minimum"), node.get("maximum")
    if "exclusiveMinimum" in node:
        least = node["exclusiveMinimum"] + 1
    low = least if least is not None else (most or 0) - 1000 if most is not None else -1000
    high = most if most is not None else low + 100_000
    return chance.randint(int(low), int(high)) if whole else chance.uniform(low, high)
