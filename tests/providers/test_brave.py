"""Brave Search: requests, parsing of responses, and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider, recorded_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from centgate.errors import ProviderError, ProviderFailure, ProviderRefused
from centgate.providers.brave import Brave
from centgate.settings import Settings
from centgate.web.results import Hit, SearchResults

KEY = "brave-0123456789abcdef"
SECRET = SecretStr(KEY)
PATH = "/res/v1/web/search"
A, B = "https://a.example/one", "https://b.example/two"


def build_row(**more: Any) -> dict[str, Any]:
    """Return a result in the upstream's format."""
    return {
        "type": "search_result",
        "subtype": "generic",
        "url": A,
        "title": "One",
        "description": "What it is about.",
        "page_age": "2026-04-01T08:30:00",
        "age": "April 1, 2026",
        "language": "en",
        "family_friendly": True,
        "meta_url": {"hostname": "a.example"},
        "extra_snippets": ["more"],
    } | more


def search_body(*results: Any) -> dict[str, Any]:
    """Return a response body."""
    return {
        "type": "search",
        "query": {"original": "q", "more_results_available": True},
        "mixed": {"type": "mixed", "main": []},
        "web": {"type": "search", "results": [*results], "family_friendly": True},
    }


async def search(
    upstreams: FakeUpstreams, folder: Path, body: Any, *asked: Any, status: int = 200
) -> tuple[SearchResults, list[str]]:
    """Search against this response; return hits and warnings."""
    upstreams.set_response("brave", PATH, body, status=status)
    async with open_provider(Brave, folder, url=upstreams.url_of("brave"), key=SECRET) as brave:
        return await brave.search(*asked), brave.trace.warnings


async def test_results_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    more = {"profile": {"name": "A site"}, "thumbnail": {"src": "https://a.example/1.png"}}
    odd = {"profile": "x", "thumbnail": {"src": "javascript:x"}, "language": "en\u202e; drop"}
    body = search_body(build_row(**more), {"url": B} | odd)

    found, warnings = await search(upstreams, tmp_path, body, "rollups", 5)

    first = Hit(
        *(A, "One", "What it is about.", "2026-04-01T08:30:00Z"),
        site_name="A site",
        image="https://a.example/1.png",
        language="en",
    )
    assert found == SearchResults((first, Hit(B)), "auto")
    assert warnings == []


@pytest.mark.parametrize(
    ("page_age", "published"),
    [
        ("2024-03-03T00:00:00", "2024-03-03T00:00:00Z"),
        ("2024-03-03T10:20:30Z", "2024-03-03T10:20:30Z"),
        ("2024-03-03T10:20:30+02:00", "2024-03-03T08:20:30Z"),
        ("2024-03-03", "2024-03-03"),
        ("yesterday", None),
    ],
)
async def test_publication_time_is_in_utc(
    upstreams: FakeUpstreams, tmp_path: Path, page_age: str, published: str | None
) -> None:
    found, _ = await search(upstreams, tmp_path, search_body(build_row(page_age=page_age)), "rollups", 5)

    assert [hit.published for hit in found.hits] == [published]


@pytest.mark.parametrize(
    ("category", "query"),
    [(None, "rollups"), ("github", "rollups site:github.com"), ("pdf", "rollups filetype:pdf")],
)
async def test_request_has_exactly_these_parameters(
    category: str | None, query: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    await search(upstreams, tmp_path, search_body(), "rollups", 7, category)

    (request,) = upstreams.requests_of("brave")
    assert (request.method, request.path, request.body) == ("GET", PATH, None)
    assert request.params == {"q": query, "count": "7"}
    assert request.headers["x-subscription-token"] == KEY


@pytest.mark.parametrize(
    ("options", "unable"),
    [
        ({"query": "x"}, ()),
        ({"query": "x", "category": None}, ()),
        ({"query": "x", "category": "github"}, ()),
        ({"query": "x", "category": "pdf"}, ()),
        ({"query": "x", "category": "news"}, ("category",)),
        ({"query": "x", "category": "company"}, ("category",)),
        ({"query": "x", "category": "research paper"}, ("category",)),
        ({"query": "x" * 400}, ()),
        ({"query": "x" * 401}, ("query",)),
        ({"query": "x " * 50}, ()),
        ({"query": "x " * 51}, ("query",)),
        # the search operator counts as well
        ({"query": "x" * 384, "category": "github"}, ()),
        ({"query": "x" * 385, "category": "github"}, ("query",)),
        ({"query": "x " * 50, "category": "pdf"}, ("query",)),
    ],
)
def test_unsupported_options_are_declared(options: dict[str, Any], unable: tuple[str, ...]) -> None:
    assert Brave(Settings()).unsupported_options(options) == unable


@pytest.mark.parametrize("asked", [("x", 5, "news"), ("x" * 401, 5), ("x " * 51, 5)])
async def test_unsupported_query_is_failure(
    asked: tuple[Any, ...], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderError, match=r"does not support this (category|query)"):
        await search(upstreams, tmp_path, search_body(build_row()), *asked)

    assert upstreams.requests == []


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("A <strong>roll&#x27;up</strong> &amp; more", "A roll'up & more"),
        ("Use &lt;strong&gt; and &quot;b&quot;", 'Use <strong> and "b"'),
        ("a < b and c > d", "a < b and c > d"),
        ("<STRONG>x</STRONG> &amp;lt; y", "x &lt; y"),
        ("&#8238;turned&#x200b;", "turned"),
        ("<strong></strong>", None),
        (7, None),
        (None, None),
    ],
)
async def test_markup_is_removed_and_entities_decoded_once(
    sent: Any, expected: str | None, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    found, _ = await search(
        upstreams, tmp_path, search_body(build_row(title=sent, description=sent)), "rollups", 5
    )

    (hit,) = found.hits
    assert (hit.title, hit.description) == (expected, expected)


async def test_text_is_limited(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    long = "<strong>x</strong>" * 5000

    found, _ = await search(
        upstreams, tmp_path, search_body(build_row(title=long, description=long)), "rollups", 5
    )

    (hit,) = found.hits
    assert (len(hit.title or ""), len(hit.description or "")) == (300, 1000)


@pytest.mark.parametrize(
    "body",
    [
        search_body(),
        {"type": "search", "query": {"original": "q"}, "mixed": {}},
        {"type": "search", "query": {"original": "q"}, "web": None},
        {"query": {"original": "q"}, "videos": {"results": [build_row()]}},
    ],
)
async def test_empty_results_are_answer(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    found, warnings = await search(upstreams, tmp_path, body, "rollups", 5)

    assert (found.hits, warnings) == ((), [])


async def test_duplicates_excess_and_invalid_urls_are_omitted(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = search_body(
        build_row(url=None),
        build_row(),
        build_row(url=A + "#"),
        build_row(url="javascript:x"),
        build_row(url=B),
        build_row(url=B + "3"),
        build_row(url=B + "4"),
    )

    found, _ = await search(upstreams, tmp_path, body, "rollups", 3)

    assert [hit.url for hit in found.hits] == [A, B, B + "3"]


async def test_results_against_operators_are_omitted_with_warning(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = search_body(build_row(), build_row(url="https://github.com/a/b"))

    found, warnings = await search(upstreams, tmp_path, body, "rollups", 5, "github")

    assert [hit.url for hit in found.hits] == ["https://github.com/a/b"]
    assert warnings == ["Brave Search: 1 of 2 results are not of the category 'github' and are left out"]


async def test_ignored_operator_is_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="ignored the category 'pdf'"):
        await search(upstreams, tmp_path, search_body(build_row()), "rollups", 5, "pdf")


async def test_missing_key_sends_no_request(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_provider(Brave, tmp_path, url=upstreams.url_of("brave")) as brave:
        with pytest.raises(ProviderFailure, match="not configured"):
            await brave.search("rollups", 5)

    assert upstreams.requests == []


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": f"The token {KEY} is invalid."}, True),
        ({"code": "VALIDATION", "detail": "Unable to validate request parameter(s)"}, False),
        ({"code": KEY}, False),
        ({}, False),
        (None, False),
    ],
)
async def test_status_422_is_about_key_or_query(
    error: Any, refused: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderError) as caught:
        await search(upstreams, tmp_path, {"type": "ErrorResponse", "error": error}, "x", 5, status=422)

    assert isinstance(caught.value, ProviderRefused) is refused
    assert caught.value.code == "provider_error"
    assert KEY not in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"web": {}},
        {"web": {"results": None}},
        {"web": {"results": [7]}},
        {"web": {"results": [{"link": A}, {"url": 7}]}},
        {"web": 7},
        [],
        7,
        "text",
    ],
)
async def test_unknown_format_is_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        await search(upstreams, tmp_path, body, "rollups", 5)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(fault: Fault, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.faults["brave"] = fault

    async with open_provider(
        Brave, tmp_path, url=upstreams.url_of("brave"), key=SECRET, timeout=2.5
    ) as brave:
        with pytest.raises(ProviderFailure) as caught:
            await brave.search("rollups", 5)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "brave"
    assert brave.trace.warnings == [caught.value.message]


@pytest.mark.parametrize("case", ["invalid_token", recorded_case("error-422-bad-token")])
async def test_saved_refusal_of_key_is_refusal(case: str, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("brave", case)

    with pytest.raises(ProviderRefused, match="SUBSCRIPTION_TOKEN_INVALID"):
        await search(upstreams, tmp_path, body, "x", 5, status=422)


async def test_replayed_refusal_of_key_is_refusal(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(Brave, tmp_path, url=f"{recordings_url}/brave", key=SECRET) as brave:
        with pytest.raises(ProviderRefused):
            await brave.search("x", 5)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ODD_ROWS = st.dictionaries(st.sampled_from(sorted(build_row())), JSON)


@pytest.mark.extended
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ODD_ROWS.map(lambda odd: build_row(**odd)) | JSON, max_size=4))
async def test_any_response_is_parsed_or_failure(
    upstreams: FakeUpstreams, tmp_path: Path, results: list[Any]
) -> None:
    try:
        found, _ = await search(upstreams, tmp_path, search_body(*results), "rollups", 3)
    except ProviderError:
        return

    assert len(found.hits) <= 3
    assert all(hit.url.isascii() and hit.url.lower().startswith("http") for hit in found.hits)
