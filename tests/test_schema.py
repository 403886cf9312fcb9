"""Published schema and validation of a request: they agree on every body."""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic_core import PydanticCustomError

from centgate.catalog import all_services
from centgate.errors import InvalidRequest, UnsupportedOptions
from centgate.json_schema import iterate_objects, without_field_rules
from centgate.phishing.url import InvalidAddress, parse_address
from centgate.request_body import RequestBody, parse_request
from centgate.service import AnyService
from centgate.web.fields import validate_web_url

pytestmark = pytest.mark.extended

DEVELOPMENT_CHAIN = 84532
repeatably = settings(max_examples=40, deadline=None, derandomize=True, database=None)
each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
on_each_chain = pytest.mark.parametrize("development_chain", [None, DEVELOPMENT_CHAIN], ids=["real", "test"])

FORMATS = FormatChecker(formats=())


@FORMATS.checks("web-address")
def _is_browser_address(text: object) -> bool:
    try:
        parse_address(str(text))
    except InvalidAddress:
        return False
    return True


@FORMATS.checks("uri", raises=PydanticCustomError)
def _is_fetchable_url(text: object) -> bool:
    return bool(validate_web_url(str(text)))


def _check_pattern(
    _validator: Validator, pattern: str, text: object, _schema: Any
) -> Iterator[ValidationError]:
    """Check `pattern` by ECMA-262, where `$` does not match before a final line feed."""
    if isinstance(text, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")


SchemaValidator = extend(Draft202012Validator, {"pattern": _check_pattern})


def schema_allows(service: AnyService, development_chain: int | None, body: Any) -> bool:
    """Return True if the published schema allows a body, without its hidden rules of fields."""
    schema = without_field_rules(load_schema(service.slug, development_chain))
    return SchemaValidator(schema, format_checker=FORMATS).is_valid(body)


def whole_schema_allows(service: AnyService, development_chain: int | None, body: Any) -> bool:
    """Return True if the published schema allows a body, with its hidden rules of fields."""
    return SchemaValidator(load_schema(service.slug, development_chain), format_checker=FORMATS).is_valid(
        body
    )


def reader_accepts(service: AnyService, development_chain: int | None, body: Any) -> bool:
    """Return True if the validation accepts a body."""
    context: Mapping[str, Any] = {"development_chain": development_chain}
    try:
        parse_request(service, RequestBody(json.dumps(body, ensure_ascii=False).encode()), context)
    except (InvalidRequest, UnsupportedOptions):
        return False
    return True


@cache
def load_schema(slug: str, development_chain: int | None) -> dict[str, Any]:
    service = next(service for service in all_services() if service.slug == slug)
    schema = service.input_schema(development_chain)
    if slug == "phishing-check":  # no pattern describes what a browser opens
        schema["properties"]["url"]["format"] = "web-address"
    return schema


@on_each_chain
@each_service
def test_tool_schema_is_accepted_by_model_providers(
    service: AnyService, development_chain: int | None
) -> None:
    schema = service.input_schema(development_chain)
    formats = [node["format"] for node in iterate_objects(schema) if isinstance(node.get("format"), str)]

    assert schema["type"] == "object"
    assert {"allOf", "anyOf", "oneOf", "not", "enum"}.isdisjoint(schema)
    assert set(formats) <= {"uri"}


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
# Addresses that browsers open have no grammar. Every browser opens these; none is filtered away.
_HOST = r"[a-z]{1,20}(\.[a-z]{2,10}){1,2}(:[1-9][0-9]{0,3})?"
_PUBLIC = r"[a-z]{1,20}\.(com|org|dev)(:(80|443))?"
STRINGS: dict[str, st.SearchStrategy[str]] = {
    "web-address": st.from_regex(rf"\A(https?://)?{_HOST}(/[a-z0-9._~-]{{0,30}})?\Z"),
    "uri": st.from_regex(rf"\A[hH]ttps?://{_PUBLIC}([/?#][a-zA-Z0-9/?&=%~@\\\u00e4\u6f22-]{{0,30}})?\Z"),
}
SIZES = {"minLength", "maxLength"}
NOTES = {"description", "default", "$schema"}
FIELD_RULES = {"if", "then"}
"""Rules of fields for validators alone; values that they forbid are filtered away."""


def generate_objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Generate objects that a published schema allows."""
    fields: dict[str, Any] = schema["properties"]
    known = {
        name: generate_values(field) | generate_enum_values(schema, name) for name, field in fields.items()
    }
    required: set[str] = set(schema.get("required", ()))
    others = {name: known[name] for name in known if name not in required}
    extra = {} if schema.get("additionalProperties") is False else {"extra": JSON}
    validator = SchemaValidator(schema, format_checker=FORMATS)
    made = st.fixed_dictionaries({name: known[name] for name in required}, optional=others | extra)
    # the filter is for anyOf and oneOf, which declare the required combinations
    return made.filter(lambda body: _is_allowed(validator, body))


def _is_allowed(validator: Any, body: Any) -> bool:
    return validator.is_valid(body)


def generate_enum_values(schema: dict[str, Any], name: str) -> st.SearchStrategy[Any]:
    """Generate the values of a field that the branches of a schema name."""
    fields = [
        node["properties"][name] for node in iterate_objects(schema) if name in node.get("properties", {})
    ]
    choices = [choice for field in fields for choice in field.get("enum", ())]
    return st.sampled_from(choices) if choices else st.nothing()


def generate_values(field: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Generate values that a field's own schema allows; other keywords raise NotImplementedError."""
    match {name: value for name, value in field.items() if name not in NOTES | FIELD_RULES}:
        case {"enum": choices, "type": "string", **rest} if not rest:
            return st.sampled_from(choices)
        case {"type": "boolean", **rest} if not rest:
            return st.booleans()
        case {"type": "integer", **rest} if rest.keys() <= {"minimum", "exclusiveMinimum", "maximum"}:
            least = rest.get("minimum", rest.get("exclusiveMinimum", 0) + 1)
            whole = st.integers(least, rest["maximum"])
            return whole | whole.filter(lambda number: float(number) == number).map(float)
        case {"type": "array", "items": items, "minItems": least, "maxItems": most, **rest} if not rest:
            return st.lists(generate_values(items), min_size=least, max_size=most)
        case {"type": "string", "format": kind, **rest} if rest.keys() <= {*SIZES, "pattern"}:
            return STRINGS[kind]
        case {"type": "string", "pattern": pattern, **rest} if not rest:
            return st.from_regex(re.sub(r"\$$", r"\\Z", pattern))
        case {"type": "string", **rest} if rest.keys() <= {*SIZES, "pattern"}:
            return st.text(
                st.characters(exclude_categories=["Cs"]),
                min_size=rest.get("minLength", 0),
                max_size=rest["maxLength"],
            ).filter(re.compile(rest.get("pattern", "")).search)
        case unknown:
            raise NotImplementedError(f"no values are made here for {unknown}")


CHAIN_IDS = [1, 1.0, 10, 56, 137, 8453, 8453.0, 42161, 84532, 31337]
LIMITS = [499, 500, 500.0, 500.5, 5000, 5001, 2**53 - 1, 2**53, 2**63, 2**64, 1e300]
NUMBERS = st.integers(-2, 12) | st.sampled_from([*CHAIN_IDS, *LIMITS])
CHARACTERS = st.sampled_from(["", "a", "é", "漢", "🙂", "\n", " ", "\x00", "/", "0x"])
LENGTHS = st.sampled_from([0, 1, 2, 3, 100, 101, 200, 201, 500, 501, 2000, 2001, 2048, 2049])
WORDS = st.tuples(CHARACTERS, LENGTHS).map(lambda pair: (pair[0] * pair[1])[: pair[1]])


def change_text(text: str) -> st.SearchStrategy[str]:
    """Generate small changes of a text."""
    return st.sampled_from(
        [
            text,
            text + "\n",
            "\n" + text,
            text + " ",
            text.upper(),
            text.title(),
            text[:-1],
            text[1:],
            text + text,
            text.replace("/", "\\"),
            text.replace("https", "ftp"),
            text.replace("://", "://user:pass@"),
            text.replace(".", "\u3002"),
            text.replace("/", "//"),
            f"{text}\u0000",
            f"{text}\u00e9",
            f"{text}:99999",
            f"{text}/../x",
            "https://[::1]/",
            "https://[::1/",
            "https://1.2.3.4.5/",
            "https://%zz/",
            "https://xn--a/",
        ]
    )


def generate_changed_values(example: Any) -> st.SearchStrategy[Any]:
    """Generate values for a field: its example, changed or replaced."""
    if isinstance(example, str):
        return change_text(example) | WORDS | JSON
    if isinstance(example, list):
        return st.lists(st.one_of([generate_changed_values(item) for item in example]), max_size=7) | JSON
    return NUMBERS | JSON | st.just(example)


def generate_bodies(service: AnyService) -> st.SearchStrategy[dict[str, Any]]:
    """Generate the published example with changed, omitted and additional fields."""
    fields: dict[str, Any] = load_schema(service.slug, None)["properties"]
    example = service.input_example
    changed = {
        name: generate_changed_values(example.get(name, _example_value(field)))
        for name, field in fields.items()
    }
    odd = dict.fromkeys({"extra", *(name.lower() for name in fields)} - fields.keys(), JSON)
    none: dict[str, Any] = {}
    return st.builds(
        _patch_example,
        st.just(example),
        st.fixed_dictionaries(none, optional=changed),
        st.sets(st.sampled_from(sorted(fields)), max_size=1),
        st.just(none) | st.fixed_dictionaries(none, optional=odd),
    )


def _patch_example(
    example: dict[str, Any], changed: dict[str, Any], left_out: set[str], added: dict[str, Any]
) -> dict[str, Any]:
    body = example | changed | added
    return {name: value for name, value in body.items() if name not in left_out}


def _example_value(field: dict[str, Any]) -> Any:
    """Return a plausible value of a field that the example omits."""
    if "pattern" in field:
        return "0x" + "aB" * 20
    return field.get("enum", [field.get("default", 1 if field.get("type") == "integer" else "words")])[0]


@on_each_chain
@each_service
def test_body_allowed_by_schema_is_accepted(service: AnyService, development_chain: int | None) -> None:
    @repeatably
    @given(generate_objects(load_schema(service.slug, development_chain)))
    def is_taken(body: Any) -> None:
        assert reader_accepts(service, development_chain, body)

    is_taken()


@on_each_chain
@each_service
def test_body_is_accepted_exactly_if_schema_allows_it(
    service: AnyService, development_chain: int | None
) -> None:
    @repeatably
    @given(generate_bodies(service))
    def is_judged_alike(body: Any) -> None:
        allowed = schema_allows(service, development_chain, body)
        assert reader_accepts(service, development_chain, body) is allowed
        assert allowed or not whole_schema_allows(service, development_chain, body)

    is_judged_alike()


@each_service
def test_any_object_is_accepted_exactly_if_schema_allows_it(service: AnyService) -> None:
    @repeatably
    @given(st.dictionaries(TEXT, JSON, max_size=4))
    def is_judged_alike(body: Any) -> None:
        assert reader_accepts(service, None, body) is schema_allows(service, None, body)

    is_judged_alike()


@each_service
def test_generated_bodies_are_valid_and_invalid(service: AnyService) -> None:
    seen: set[bool] = set()

    @repeatably
    @given(generate_bodies(service))
    def record_verdict(body: Any) -> None:
        seen.add(reader_accepts(service, None, body))

    record_verdict()

    assert seen == {True, False}


@each_service
def test_schema_declares_unknown_keys(service: AnyService) -> None:
    strict = service.category == "web-context"

    assert (load_schema(service.slug, None).get("additionalProperties") is False) is strict


def test_final_line_feed_is_part_of_value() -> None:
    service = next(service for service in all_services() if service.slug == "token-risk")
    body = service.input_example | {"tokenAddress": service.input_example["tokenAddress"] + "\n"}

    assert not schema_allows(service, None, body)
    assert not reader_accepts(service, None, body)
