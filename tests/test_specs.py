"""The judge of requests to upstreams, and the maker of their answers, know good from bad."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openapi_contract import find_request_problems, generate_responses

EXA, CONTEXT7, FIRECRAWL = "exa-search-1.2.0.yaml", "context7-v2-2.0.0.json", "firecrawl-v2.json"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"query": "x", "numResults": 5}, None),
        ({"numResults": 5}, "'query' is a required property"),
        ({"query": "x", "numResults": 500}, "greater than the maximum"),
        ({"query": "x", "category": "blog"}, "is not one of"),
        ({"query": "x", "results": 5}, "$.results: not named"),
        ({"query": "x", "contents": {"text": {"most": 5}}}, "$.contents.text.most: not named"),
    ],
)
def test_a_body_is_judged_by_the_description(body: dict[str, Any], problem: str | None) -> None:
    problems = find_request_problems(EXA, "POST", "/search", body)

    assert len(problems) == (problem is not None)
    assert (problem or "") in "".join(problems)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"libraryName": "react", "query": "hooks"}, None),
        ({"libraryName": "react", "query": "hooks", "fast": "true"}, None),
        ({"query": "hooks"}, "libraryName: required"),
        ({"libraryName": "react", "query": "hooks", "limit": "5"}, "limit: not a parameter"),
        ({"libraryName": "react", "query": "hooks", "fast": "maybe"}, "fast: "),
    ],
)
def test_parameters_are_judged_by_the_description(params: dict[str, str], problem: str | None) -> None:
    problems = find_request_problems(CONTEXT7, "GET", "/v2/libs/search", params)

    assert len(problems) == (problem is not None)
    assert (problem or "") in "".join(problems)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("file", "method", "path", "status"),
    [
        (EXA, "POST", "/search", 200),
        (EXA, "POST", "/contents", 200),
        (FIRECRAWL, "POST", "/scrape", 200),
        (FIRECRAWL, "POST", "/map", 200),
        (FIRECRAWL, "POST", "/search", 200),
        (CONTEXT7, "GET", "/v2/libs/search", 200),
        (CONTEXT7, "GET", "/v2/context", 200),
        (CONTEXT7, "GET", "/v2/context", 404),
    ],
)
def test_answers_are_the_same_for_a_seed_and_differ_among_themselves(
    file: str, method: str, path: str, status: int
) -> None:
    made = generate_responses(file, method, path, status, 20, 1)

    assert made == generate_responses(file, method, path, status, 20, 1)
    assert len({json.dumps(each) for each in made}) > 1
    assert len(made) == 20
