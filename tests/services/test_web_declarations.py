"""Requests of the seven web services: accepted values, refused ones, and options beyond one cent."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from pydantic import ValidationError
from pydantic_core import PydanticCustomError
from subtest_cases import each_case

from centgate.service import AnyService
from centgate.services.crawler_map import crawler_map
from centgate.services.crawler_scrape import crawler_scrape
from centgate.services.crawler_search import crawler_search
from centgate.services.libdocs_query_docs import libdocs_query_docs
from centgate.services.libdocs_resolve_library import libdocs_resolve_library
from centgate.services.neuralweb_contents import neuralweb_contents
from centgate.services.neuralweb_search import neuralweb_search
from centgate.web.fields import validate_web_url

SEARCHES = (neuralweb_search, crawler_search)
PAGED = (crawler_map, crawler_scrape)
SERVICES: tuple[AnyService, ...] = (
    *(neuralweb_search, neuralweb_contents, crawler_map, crawler_search, crawler_scrape),
    *(libdocs_resolve_library, libdocs_query_docs),
)
DEFAULTS: dict[str, dict[str, Any]] = {
    "neuralweb-search": {"numResults": 5},
    "crawler-search": {"limit": 5},
    "crawler-scrape": {"onlyMainContent": True},
    "libdocs-query-docs": {"tokens": 2500},
}
PAGE = "https://example.com/"
GOOD_URLS = (
    *(
        PAGE,
        "http://example.com",
        "HTTPS://EXAMPLE.COM/A",
        "https://example.com?q=1",
        "https://example.com#a",
    ),
    *("https://example.com:443/a?b=c#d", "https://example.com/@user", "https://example.com/?at=a@b"),
    PAGE + "a\\b",
    PAGE + "a" * (2048 - len(PAGE)),
)
UNDESCRIBED_URLS = ("https://b\u00fccher.example/\u00e4", "https://[2606:4700::1]/", "https://198.41.0.4/")
"""Accepted URLs that the schema refuses, since no pattern separates their hosts from refused ones."""
BAD_URLS = (
    *("", "example.com", "www.example.com/a", "/a", "//example.com/", "ftp://example.com/", "file:///etc/a"),
    *("javascript:alert(1)", "https:example.com", "https:/example.com", "https://", "https:///example.com"),
    *("https://?q", "https://#top", "https://user@example.com/", "https://user:secret@example.com/"),
    *("https://@example.com/", "https://example.com:99999/", "https://example.com:x/", "https://256.1.1.1/"),
    *("https://exa mple.com/", " " + PAGE, PAGE + " ", PAGE + "\n", "https://exam\tple.com/", PAGE + "\x00"),
    *("https:\\\\example.com", "https://example.com\\@example.org/", "https://[::1/", "https://%/"),
    *("https://example.com:8443/", "https://192.0.2.1/", "https://[2001:db8::1]/", "http://127.0.0.1/"),
    *(
        "http://10.1.2.3/",
        "http://169.254.169.254/",
        "http://0x7f000001/",
        "http://localhost/a",
        "http://wiki/",
    ),
    *(PAGE + "a" * (2049 - len(PAGE)), None, 1, True, [PAGE], {"url": PAGE}),
)
GOOD_IDS = (
    *("/fastapi/fastapi", "/vercel/next.js", "/vercel/next.js/v15.1.8", "/vercel/next.js@v15.1.8"),
    *("/npm/@scope~name", "/github/.github", "/websites/a_b", "/o/p/1.0+build", "/o/" + "p" * 197),
)
BAD_IDS = (
    *("", "/", "fastapi", "/fastapi", "fastapi/fastapi", "/fastapi/", "//fastapi", "/a//b", "/a/b/"),
    *("/a/b/c/d", "/../..", "/a/..", "/a/b/..", "/./a", "/a/b c", " /a/b", "/a/b ", "/a/b?c", "/a/b#c"),
    *("/a/b%2e", "https://a/b", None, 1, ["/a/b"]),
)
CATEGORIES = ("company", "news", "research paper", "github", "pdf")
NOT_TEXT: tuple[Any, ...] = (None, 1, 1.5, True, ["text"], {"text": 1})
NOT_WHOLE: tuple[Any, ...] = (None, "5", 5.5, True, False, [5], {"5": 5})

Body = dict[str, Any]
Case = tuple[AnyService, Body]


def build_body(service: AnyService, **more: Any) -> Body:
    """Return the service's example with changes."""
    return {**service.input_example, **more}


def text_cases(low: int, high: int) -> tuple[list[str], list[Any]]:
    """Return texts at and inside the bounds, and values outside them."""
    inside = ["a" * low, "a" * high, "\N{OCTOPUS}" * high]
    return inside, ["a" * (high + 1), *(["a" * (low - 1)] if low else []), *NOT_TEXT]


def integer_cases(low: int, high: int) -> tuple[list[int], list[Any]]:
    """Return integers at and inside the bounds, and values outside them."""
    return [low, low + 1, high], [low - 1, high + 1, -high, 2**63, *NOT_WHOLE]


RULES: tuple[tuple[AnyService, str, tuple[Any, Any]], ...] = (
    *((service, "query", text_cases(2, 500)) for service in SEARCHES),
    (neuralweb_search, "numResults", integer_cases(1, 10)),
    (neuralweb_search, "category", (CATEGORIES, ("people", "News", "", *NOT_TEXT))),
    (neuralweb_contents, "urls", ([[PAGE], [PAGE] * 5], ([], [PAGE] * 6, PAGE, {"0": PAGE}, None))),
    (neuralweb_contents, "urls", ([[url] for url in GOOD_URLS], [[PAGE, url] for url in BAD_URLS])),
    *((service, "url", (GOOD_URLS, BAD_URLS)) for service in PAGED),
    (crawler_map, "search", text_cases(0, 200)),
    (crawler_search, "limit", integer_cases(1, 10)),
    (crawler_scrape, "onlyMainContent", ([True, False], ["true", 0, 1, None, []])),
    (libdocs_resolve_library, "libraryName", text_cases(1, 200)),
    (libdocs_query_docs, "libraryId", (GOOD_IDS, BAD_IDS)),
    (libdocs_query_docs, "topic", text_cases(0, 200)),
    (libdocs_query_docs, "tokens", integer_cases(500, 5000)),
)
RIGHT: list[Case] = [
    *((service, service.input_example) for service in SERVICES),
    *(
        (service, build_body(service, **{field: value}))
        for service, field, (good, _) in RULES
        for value in good
    ),
]
WRONG: list[Case] = [
    *(
        (service, build_body(service, **{field: value}))
        for service, field, (_, bad) in RULES
        for value in bad
    ),
    *((service, build_body(service, unknown=1)) for service in SERVICES),
    *((service, {}) for service in SERVICES),
    (neuralweb_search, build_body(neuralweb_search, num_results=3)),
    (crawler_scrape, build_body(crawler_scrape, only_main_content=True)),
    (libdocs_query_docs, build_body(libdocs_query_docs, library_id="/fastapi/fastapi")),
]


TEXTS = [(service, field) for service, field, (good, _) in RULES if isinstance(good[0], str)]


def is_unchanged_by_parser(url: object) -> bool:
    """Return True if the validator's own parser returns the URL unchanged; other values are no URLs."""
    return not isinstance(url, str) or validate_web_url(url) == url


def list_schema_errors(schema: dict[str, Any], value: Any) -> list[Any]:
    """Return all errors of a value by a JSON Schema."""
    formats = FormatChecker(formats=())
    formats.checks("uri", raises=PydanticCustomError)(is_unchanged_by_parser)
    Draft202012Validator.check_schema(schema)
    validator: Any = Draft202012Validator(schema, format_checker=formats)
    return list(validator.iter_errors(value))


@pytest.mark.extended
@each_case(("service", "body"), RIGHT)
def test_values_within_bounds_are_accepted(service: AnyService, body: Body) -> None:
    request = service.request.model_validate(body, by_name=False)

    assert request.model_dump(by_alias=True, exclude_unset=True) == body
    assert list_schema_errors(service.input_schema(None), body) == []


@each_case("url", UNDESCRIBED_URLS)
def test_hosts_beyond_patterns_are_accepted(url: str) -> None:
    assert crawler_scrape.request.model_validate({"url": url}, by_name=False)
    assert list_schema_errors(crawler_scrape.input_schema(None), {"url": url})


@pytest.mark.extended
@each_case(("service", "body"), WRONG)
def test_values_outside_bounds_are_refused_by_validator_and_schema(service: AnyService, body: Body) -> None:
    with pytest.raises(ValidationError):
        service.request.model_validate(body, by_name=False)

    assert list_schema_errors(service.input_schema(None), body)


@each_case("service", SERVICES)
def test_omitted_field_has_its_default(service: AnyService) -> None:
    required = {key: service.input_example[key] for key in service.input_schema(None)["required"]}

    asked = service.request.model_validate(required, by_name=False).canonical

    assert asked == {**required, **DEFAULTS.get(service.slug, {})}


@each_case("bad", ["\ud800", PAGE + "\udfff"])
@each_case(("service", "field"), TEXTS)
def test_lone_surrogate_is_refused(service: AnyService, field: str, bad: str) -> None:
    with pytest.raises(ValidationError):
        service.request.model_validate(build_body(service, **{field: bad}), by_name=False)


def test_lone_surrogate_in_urls_is_refused_with_index() -> None:
    with pytest.raises(ValidationError) as refused:
        neuralweb_contents.request.model_validate({"urls": [PAGE, PAGE + "\ud800"]}, by_name=False)

    assert [error["loc"] for error in refused.value.errors()] == [("urls", 1)]


def test_credentials_in_url_are_refused_with_reason() -> None:
    with pytest.raises(ValidationError, match="user name or password"):
        crawler_scrape.request.model_validate({"url": "https://user:secret@example.com/"}, by_name=False)


BEYOND: tuple[tuple[AnyService, str, tuple[Any, ...], tuple[Any, ...]], ...] = (
    (neuralweb_search, "type", ("auto", "fast"), ("deep", "deep-reasoning", "neural", "instant", 1)),
    (neuralweb_search, "contents", (), ({"summary": True}, {})),
    (neuralweb_search, "summary", (), (True, False)),
    (neuralweb_contents, "livecrawl", (), ("always",)),
    (crawler_map, "limit", (0, 1, 100), (101, 5000, "all")),
    (crawler_search, "sources", ("web", ["web"], []), ("news", ["web", "images"], [{"type": "news"}])),
    (crawler_search, "scrapeOptions", (), ({"formats": ["markdown"]},)),
    (crawler_scrape, "formats", ("markdown", ["markdown"]), (["markdown", "json"], [{"type": "json"}])),
    (crawler_scrape, "actions", (), ([{"type": "click"}],)),
    (crawler_scrape, "proxy", (), ("stealth",)),
)


@each_case(("service", "option", "inside", "outside"), BEYOND)
def test_option_beyond_one_cent_is_recognised_by_value(
    service: AnyService, option: str, inside: tuple[Any, ...], outside: tuple[Any, ...]
) -> None:
    assert [value for value in inside if service.refused_options.find_refused({option: value})] == []
    assert [value for value in outside if not service.refused_options.find_refused({option: value})] == []


@each_case("service", SERVICES)
def test_unknown_option_is_an_unknown_key(service: AnyService) -> None:
    assert service.refused_options.find_refused({"numberOfResults": 3, "unknown": 1}) == []
