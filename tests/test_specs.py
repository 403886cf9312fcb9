"""Checks by upstreams' descriptions: validation of requests, and generation of responses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openapi_contract import each_description, find_request_problems, generate_responses


@each_description("exa")
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
def test_body_is_validated(body: dict[str, Any], problem: str | None, spec: str) -> None:
    problems = find_request_problems(spec, "POST", "/search", body)

    assert len(problems) == (problem is not None)
    assert (problem or "") in "".join(problems)


@each_description("context7")
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
def test_parameters_are_validated(params: dict[str, str], problem: str | None, spec: str) -> None:
    problems = find_request_problems(spec, "GET", "/v2/libs/search", params)

    assert len(problems) == (problem is not None)
    assert (problem or "") in "".join(problems)


@pytest.mark.extended
@each_description("exa")
@pytest.mark.parametrize("path", ["/search", "/contents"])
def test_exa_responses_are_reproducible_and_varied(path: str, spec: str) -> None:
    assert_reproducible(spec, "POST", path, 200)


@pytest.mark.extended
@each_description("firecrawl")
@pytest.mark.parametrize("path", ["/scrape", "/map", "/search"])
def test_firecrawl_responses_are_reproducible_and_varied(path: str, spec: str) -> None:
    assert_reproducible(spec, "POST", path, 200)


@pytest.mark.extended
@each_description("context7")
@pytest.mark.parametrize(
    ("path", "status"), [("/v2/libs/search", 200), ("/v2/context", 200), ("/v2/context", 404)]
)
def test_context7_responses_are_reproducible_and_varied(path: str, status: int, spec: str) -> None:
    assert_reproducible(spec, "GET", path, status)


def assert_reproducible(spec: str, method: str, path: str, status: int) -> None:
    """Assert that a seed generates the same responses twice, and various ones."""
    made = generate_responses(spec, method, path, status, 20, 1)

    assert made == generate_responses(spec, method, path, status, 20, 1)
    assert len({json.dumps(each) for each in made}) > 1
    assert len(made) == 20
