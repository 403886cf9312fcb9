"""Arguments `key=value`: parsed by a service's input schema."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.cli.buyer.arguments import InvalidArguments, match_key, parse_pairs
from centgate.client.shell_command import format_command
from centgate.json_schema import parse_schema

SCHEMA = parse_schema(
    {
        "properties": {
            "text": {"type": "string", "maxLength": 50},
            "howMany": {"type": "integer", "minimum": 1, "maximum": 10},
            "share": {"type": "number"},
            "whole": {"type": "boolean"},
            "kind": {"type": "string", "enum": ["news", "research paper"]},
            "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "urls": {"type": "array", "items": {"type": "string", "pattern": "^https?://"}},
            "counts": {"type": "array", "items": {"type": "integer"}},
            "bare": {"type": "string", "pattern": "(?<unreadable"},
        },
    }
)
READ: dict[str, tuple[list[str], dict[str, Any]]] = {
    "text": (["text=a=b, c"], {"text": "a=b, c"}),
    "empty": (["text="], {"text": ""}),
    "number": (["howMany=3", "share=0.5"], {"howMany": 3, "share": 0.5}),
    "boolean": (["whole=FALSE"], {"whole": False}),
    "snake": (["how_many=3"], {"howMany": 3}),
    "kebab": (["how-many=3"], {"howMany": 3}),
    "enum": (["kind=research paper"], {"kind": "research paper"}),
    "commas": (["words=a, b,c"], {"words": ["a", "b", "c"]}),
    "again": (["words=a", "words=b"], {"words": ["a", "b"]}),
    "JSON": (['words=["a,b"]'], {"words": ["a,b"]}),
    "URLs": (["urls=https://a.org,http://b.org"], {"urls": ["https://a.org", "http://b.org"]}),
    "a comma in a URL": (["urls=https://a.org/x,y"], {"urls": ["https://a.org/x,y"]}),
    "numbers": (["counts=1,2"], {"counts": [1, 2]}),
    "a form of another language": (["bare=x"], {"bare": "x"}),
}


@pytest.mark.parametrize("case", READ)
def test_pairs_are_parsed_by_schema(case: str) -> None:
    pairs, body = READ[case]

    assert parse_pairs(pairs, SCHEMA) == body


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("howMany=11", "howMany: 11 is outside the limits; expected: a whole number, 1 to 10"),
        ("whole=maybe", "whole: 'maybe' is not true or false; expected: true or false"),
        ("kind=new", "kind: 'new' is not known (did you mean news?); expected: one of news, research paper"),
        ("words=a,b,c,d", "words: 4 values given; expected: a list, at most 3 values"),
        ("words=[1", "words: this is not a JSON list: "),
        ("urls=ftp://a.org", "urls: 'ftp://a.org' does not match the pattern; expected: a list"),
    ],
)
def test_invalid_value_is_reported_with_bounds(pair: str, message: str) -> None:
    with pytest.raises(InvalidArguments) as error:
        parse_pairs([pair], SCHEMA)

    assert error.value.problems[0].startswith(message)


@given(st.lists(st.text(max_size=70), max_size=5))
def test_any_text_is_parsed_or_refused(pairs: list[str]) -> None:
    for name in ("", *(f"{name}=" for name in SCHEMA.properties)):
        with suppress(InvalidArguments):
            parse_pairs([f"{name}{pair}" for pair in pairs], SCHEMA)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.text(max_size=50),
            "howMany": st.integers(1, 10),
            "whole": st.booleans(),
            "counts": st.lists(st.integers(), min_size=1),
        },
    )
)
def test_command_of_body_parses_to_body(body: dict[str, Any]) -> None:
    words = shlex.split(format_command("some-facts", body))

    assert words[:3] == ["centgate", "call", "some-facts"]
    assert parse_pairs(words[3:], SCHEMA) == body


def test_unknown_key_is_not_guessed() -> None:
    assert match_key("howmuch", SCHEMA.properties) is None
