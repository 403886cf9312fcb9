"""The published schema of a request and the reader of a request agree on every body."""

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
from centgate.request_body import parse_request
from centgate.service import AnyService
from centgate.web.fields import validate_web_url

pytestmark = pytest.mark.extended

DEVELOPMENT_CHAIN = 84532
repeatably = settings(max_examples=40, deadline=None, derandomize=True, database=None)
each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
on_each_chain = pytest.mark.parametrize("development_chain", [None, DEVELOPMENT_CHAIN], ids=["real", "test"])

FORMATS = FormatChecker(formats=())


@FORMATS.checks("web-address")
def _opens_in_a_browser(text: object) -> bool:
    try:
        parse_address(str(text))
    except InvalidAddress:
        return False
    return True


@FORMATS.checks("uri", raises=PydanticCustomError)
def _may_be_fetched(text: object) -> bool:
    return bool(validate_web_url(str(text)))


def _matches(_validator: Validator, pattern: str, text: object, _schema: Any) -> Iterator[ValidationError]:
    """`pattern` as ECMA-262 has it, where `$` is the end and not the line feed before it as well."""
    if isinstance(text, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")


Judge = extend(Draft202012Validator, {"pattern": _matches})


def says_the_schema(service: AnyService, development_chain: int | None, body: Any) -> bool:
    """Whether the published schema allows a body, apart from its hidden rules of fields."""
    schema = without_field_rules(schema_of(service.slug, development_chain))
    return Judge(schema, format_checker=FORMATS).is_valid(body)


def says_the_whole_schema(service: AnyService, development_chain: int | None, body: Any) -> bool:
    """Whether the published schema allows a body by its hidden rules of fields too."""
    return Judge(schema_of(service.slug, development_chain), format_checker=FORMATS).is_valid(body)


def says_the_reader(service: AnyService, development_chain: int | None, body: Any) -> bool:
    """Whether a body would be taken."""
    context: Mapping[str, Any] = {"development_chain": development_chain}
    try:
        parse_request(service, json.dumps(body, ensure_ascii=False).encode(), "application/json", context)
    except (InvalidRequest, UnsupportedOptions):
        return False
    return True


@cache
def schema_of(slug: str, development_chain: int | None) -> dict[str, Any]:
    service = next(service for service in all_services() if service.slug == slug)
    schema = service.input_schema(development_chain)
    if slug == "phishing-check":  # what a browser opens is no pattern, so the schema cannot say it
        schema["properties"]["url"]["format"] = "web-address"
    return schema


@on_each_chain
@each_service
def test_tool_schema_has_nothing_that_model_providers_refuse(
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
# What a browser opens is no grammar. These are addresses every browser takes; none is filtered away.
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


def objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Objects that a published schema allows."""
    fields: dict[str, Any] = schema["properties"]
    known = {name: fitting(field) | of_enums(schema, name) for name, field in fields.items()}
    required: set[str] = set(schema.get("required", ()))
    others = {name: known[name] for name in known if name not in required}
    extra = {} if schema.get("additionalProperties") is False else {"extra": JSON}
    judge = Judge(schema, format_checker=FORMATS)
    made = st.fixed_dictionaries({name: known[name] for name in required}, optional=others | extra)
    # the filter is for anyOf and oneOf, which say what must come together
    return made.filter(lambda body: _allowed(judge, body))


def _allowed(judge: Any, body: Any) -> bool:
    return judge.is_valid(body)


def of_enums(schema: dict[str, Any], name: str) -> st.SearchStrategy[Any]:
    """What the branches of a schema name as values of a field."""
    fields = [
        node["properties"][name] for node in iterate_objects(schema) if name in node.get("properties", {})
    ]
    choices = [choice for field in fields for choice in field.get("enum", ())]
    return st.sampled_from(choices) if choices else st.nothing()


def fitting(field: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a field's own schema allows; each keyword used is one that is known here."""
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
            return st.lists(fitting(items), min_size=least, max_size=most)
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


def twisted(text: str) -> st.SearchStrategy[str]:
    """A text, changed a little."""
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


def values(example: Any) -> st.SearchStrategy[Any]:
    """Values for a field: its example, changed a little or thrown away."""
    if isinstance(example, str):
        return twisted(example) | WORDS | JSON
    if isinstance(example, list):
        return st.lists(st.one_of([values(item) for item in example]), max_size=7) | JSON
    return NUMBERS | JSON | st.just(example)


def bodies(service: AnyService) -> st.SearchStrategy[dict[str, Any]]:
    """The published example with fields changed, left out and added."""
    fields: dict[str, Any] = schema_of(service.slug, None)["properties"]
    example = service.input_example
    changed = {name: values(example.get(name, _stand_in(field))) for name, field in fields.items()}
    odd = dict.fromkeys({"extra", *(name.lower() for name in fields)} - fields.keys(), JSON)
    none: dict[str, Any] = {}
    return st.builds(
        _patched,
        st.just(example),
        st.fixed_dictionaries(none, optional=changed),
        st.sets(st.sampled_from(sorted(fields)), max_size=1),
        st.just(none) | st.fixed_dictionaries(none, optional=odd),
    )


def _patched(
    example: dict[str, Any], changed: dict[str, Any], left_out: set[str], added: dict[str, Any]
) -> dict[str, Any]:
    body = example | changed | added
    return {name: value for name, value in body.items() if name not in left_out}


def _stand_in(field: dict[str, Any]) -> Any:
    """Something like what a field holds that the example leaves out."""
    if "pattern" in field:
        return "0x" + "aB" * 20
    return field.get("enum", [field.get("default", 1 if field.get("type") == "integer" else "words")])[0]


@on_each_chain
@each_service
def test_what_the_schema_allows_is_taken(service: AnyService, development_chain: int | None) -> None:
    @repeatably
    @given(objects(schema_of(service.slug, development_chain)))
    def is_taken(body: Any) -> None:
        assert says_the_reader(service, development_chain, body)

    is_taken()


@on_each_chain
@each_service
def test_a_body_is_taken_exactly_when_the_schema_allows_it(
    service: AnyService, development_chain: int | None
) -> None:
    @repeatably
    @given(bodies(service))
    def is_judged_alike(body: Any) -> None:
        allowed = says_the_schema(service, development_chain, body)
        assert says_the_reader(service, development_chain, body) is allowed
        assert allowed or not says_the_whole_schema(service, development_chain, body)

    is_judged_alike()


@each_service
def test_any_object_at_all_is_taken_exactly_when_the_schema_allows_it(service: AnyService) -> None:
    @repeatably
    @given(st.dictionaries(TEXT, JSON, max_size=4))
    def is_judged_alike(body: Any) -> None:
        assert says_the_reader(service, None, body) is says_the_schema(service, None, body)

    is_judged_alike()


@each_service
def test_the_bodies_tried_are_good_and_bad(service: AnyService) -> None:
    seen: set[bool] = set()

    @repeatably
    @given(bodies(service))
    def is_seen(body: Any) -> None:
        seen.add(says_the_reader(service, None, body))

    is_seen()

    assert seen == {True, False}


@each_service
def test_the_schema_says_which_keys_are_unknown(service: AnyService) -> None:
    strict = service.category == "web-context"

    assert (schema_of(service.slug, None).get("additionalProperties") is False) is strict


def test_a_line_feed_at_the_end_is_part_of_a_value() -> None:
    service = next(service for service in all_services() if service.slug == "token-risk")
    body = service.input_example | {"tokenAddress": service.input_example["tokenAddress"] + "\n"}

    assert not says_the_schema(service, None, body)
    assert not says_the_reader(service, None, body)
