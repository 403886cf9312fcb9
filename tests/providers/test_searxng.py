"""SearXNG: requests, parsing of responses, and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, PAGE, FakeUpstreams, Fault, load_body, open_provider, recorded_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from centgate.errors import ProviderError, ProviderFailure, ProviderRefused
from centgate.providers.searxng import SearXNG
from centgate.settings import Settings
from centgate.web.results import Hit, SearchResults

KEY = "searxng-0123456789abcdef"
A, B = "https://a.example/one", "https://b.example/two"


def build_row(**more: Any) -> dict[str, Any]:
    """Return a result in the instance's format."""
    return {
        "url": A,
        "title": "One",
        "content": "What it is about.",
        "engine": "loop",
        "engines": ["loop"],
        "template": "default.html",
        "parsed_url": ["https", "a.example", "/one", "", "", ""],
        "score": 1.5,
        "category": "general",
        "publishedDate": "2026-04-01T00:00:00",
    } | more


def search_body(*results: Any, **more: Any) -> dict[str, Any]:
    """Return the body of a response."""
    return {
        "query": "q",
        "results": [*results],
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [],
    } | more


async def search(
    upstreams: FakeUpstreams, folder: Path, body: Any, *asked: Any, status: int = 200
) -> tuple[SearchResults, list[str]]:
    """Search against this response; return hits and warnings."""
    upstreams.set_response("searxng", "/search", body, status=status)
    async with open_provider(SearXNG, folder, url=upstreams.url_of("searxng")) as searxng:
        return await searxng.search(*asked), searxng.trace.warnings


async def test_results_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    bare = build_row(url=B, title="", content=None, score=None, publishedDate=None, engines=None, engine=7)
    body = search_body(
        build_row(engines=["loop", "other", "loop", 7], thumbnail="https://a.example/1.png"), bare
    )

    found, warnings = await search(upstreams, tmp_path, body, "rollups", 5)

    assert found == SearchResults(
        (
            Hit(
                A,
                "One",
                "What it is about.",
                "2026-04-01T00:00:00",
                None,
                1.5,
                image="https://a.example/1.png",
                engines=("loop", "other"),
            ),
            Hit(B, None, None, None, None, None),
        ),
        "auto",
    )
    assert warnings == []


@pytest.mark.parametrize(
    ("category", "params"),
    [
        (None, {"q": "rollups"}),
        ("news", {"q": "rollups", "categories": "news"}),
        ("research paper", {"q": "rollups", "categories": "science"}),
        ("github", {"q": "rollups site:github.com"}),
        ("pdf", {"q": "rollups filetype:pdf"}),
    ],
)
async def test_request_has_exactly_these_parameters(
    category: str | None, params: dict[str, str], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    await search(upstreams, tmp_path, search_body(), "rollups", 5, category)

    (request,) = upstreams.requests_of("searxng")
    assert (request.method, request.path) == ("GET", "/search")
    assert request.params == {**params, "format": "json"}
    assert "authorization" not in request.headers


async def test_key_is_sent_to_authenticating_proxy(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("searxng", "/search", search_body(build_row()))

    async with open_provider(
        SearXNG, tmp_path, url=upstreams.url_of("searxng"), key=SecretStr(KEY)
    ) as searxng:
        await searxng.search("rollups", 5)

    (request,) = upstreams.requests_of("searxng")
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_missing_url_is_unconfigured(tmp_path: Path) -> None:
    async with open_provider(SearXNG, tmp_path, key=SecretStr(KEY)) as searxng:
        with pytest.raises(ProviderFailure, match="not configured"):
            await searxng.search("rollups", 5)

    assert not SearXNG(Settings()).is_configured


@pytest.mark.parametrize(
    ("options", "unable"),
    [
        ({"query": "x"}, ()),
        ({"query": "x", "category": None}, ()),
        ({"query": "x", "category": "news"}, ()),
        ({"query": "x", "category": "research paper"}, ()),
        ({"query": "x", "category": "github"}, ()),
        ({"query": "x", "category": "pdf"}, ()),
        ({"query": "x", "category": "company"}, ("category",)),
        ({"query": "x " * 250, "limit": 5}, ()),
    ],
)
def test_unsupported_options_are_declared(options: dict[str, Any], unable: tuple[str, ...]) -> None:
    assert SearXNG(Settings()).unsupported_options(options) == unable


async def test_unsupported_category_is_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="'company'"):
        await search(upstreams, tmp_path, search_body(build_row()), "rollups", 5, "company")

    assert upstreams.requests == []


@pytest.mark.parametrize(
    ("category", "kept"),
    [
        ("github", ["https://github.com/a/b", "https://gist.github.com/c"]),
        ("pdf", ["https://example.com/a.PDF?x=1"]),
    ],
)
async def test_results_against_operators_are_omitted_with_warning(
    category: str, kept: list[str], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    others = ["https://github.com.evil.example/", "https://example.com/a.html"]
    body = search_body(*(build_row(url=url) for url in [*others, *kept]))

    found, warnings = await search(upstreams, tmp_path, body, "rollups", 5, category)

    assert [hit.url for hit in found.hits] == kept
    lost, total = len(others), len(others) + len(kept)
    assert warnings == [
        f"SearXNG: {lost} of {total} results are not of the category '{category}' and are left out"
    ]


async def test_ignored_operator_is_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="ignored the category 'pdf'"):
        await search(upstreams, tmp_path, search_body(build_row()), "rollups", 5, "pdf")


@pytest.mark.parametrize("results", [[], [{"url": None, "title": "a key"}]])
async def test_empty_results_of_all_engines_are_answer(
    results: list[Any], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    found, warnings = await search(upstreams, tmp_path, search_body(*results), "rollups", 5)

    assert (found.hits, warnings) == ((), [])


@pytest.mark.parametrize("results", [[], [{"url": None, "title": "a key"}]])
async def test_empty_results_with_silent_engines_are_failure(
    results: list[Any], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    silent: list[Any] = [
        ["deny", "Suspended: access denied"],
        ["slow", "timeout"],
        ["\u202eodd"],
        7,
        {},
        "plain",
    ]

    with pytest.raises(ProviderError) as caught:
        await search(upstreams, tmp_path, search_body(*results, unresponsive_engines=silent), "rollups", 5)

    assert caught.value.message == (
        "SearXNG found nothing, and 6 of its engines did not answer: "
        "deny (Suspended: access denied), slow (timeout), odd"
    )


@pytest.mark.parametrize(
    ("silent", "sentence"),
    [
        ([["slow", "timeout"]], "SearXNG: one of its engines did not answer"),
        ([["slow", "timeout"], ["deny", "x"]], "SearXNG: 2 of its engines did not answer"),
    ],
)
async def test_results_of_some_engines_give_warning(
    silent: list[Any], sentence: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    found, warnings = await search(
        upstreams, tmp_path, search_body(build_row(), unresponsive_engines=silent), "x", 5
    )

    assert len(found.hits) == 1
    assert warnings == [sentence]


async def test_duplicates_excess_and_rows_without_url_are_omitted(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    keys = {"template": "keyvalue.html", "url": None, "kvmap": {"a": 1}}
    body = search_body(
        keys,
        build_row(),
        build_row(title="again"),
        build_row(url=B),
        build_row(url="https://c.example/"),
        7,
        None,
    )

    found, warnings = await search(upstreams, tmp_path, body, "rollups", 2)

    assert [(hit.url, hit.title) for hit in found.hits] == [(A, "One"), (B, "One")]
    assert warnings == []


@pytest.mark.parametrize(
    ("fields", "author"),
    [
        ({"authors": ["A. Writer", "B. Writer", 7]}, "A. Writer, B. Writer"),
        ({"author": "C. Writer"}, "C. Writer"),
        ({"author": "", "authors": []}, None),
        ({"author": 7, "authors": "x"}, None),
    ],
)
async def test_author_of_page_is_returned(
    fields: dict[str, Any], author: str | None, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    found, _ = await search(upstreams, tmp_path, search_body(build_row(**fields)), "rollups", 5)

    assert found.hits[0].author == author


async def test_text_is_cleaned_and_limited(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    hostile = "Pay\u202e me\u200b\x00 now\n" + "x" * 5000

    found, _ = await search(
        upstreams, tmp_path, search_body(build_row(title=hostile, content=hostile)), "rollups", 5
    )

    (hit,) = found.hits
    assert hit.title
    assert hit.description
    assert hit.title.startswith("Pay me now xx")
    assert (len(hit.title), len(hit.description)) == (300, 1000)


@pytest.mark.parametrize("page", [PAGE, "\n <html></html>"])
async def test_instance_without_json_names_setting(
    page: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderRefused, match=r"json under search\.formats"):
        await search(upstreams, tmp_path, page, "rollups", 5, status=403)


async def test_other_refusal_is_refusal(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderRefused, match="status 403") as caught:
        await search(upstreams, tmp_path, {"error": "forbidden"}, "rollups", 5, status=403)

    assert "formats" not in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"results": None},
        {"results": {}},
        {"results": [7]},
        {"results": [{"link": A}, {"url": 7}]},
        [],
        7,
        "text",
        None,
    ],
)
async def test_unknown_format_is_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        await search(upstreams, tmp_path, body, "rollups", 5)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(fault: Fault, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.faults["searxng"] = fault

    async with open_provider(SearXNG, tmp_path, url=upstreams.url_of("searxng"), timeout=2.5) as searxng:
        with pytest.raises(ProviderFailure) as caught:
            await searxng.search("rollups", 5)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "searxng"
    assert searxng.trace.warnings == [caught.value.message]


async def test_saved_search_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("searxng", "search")

    found, warnings = await search(upstreams, tmp_path, body, "structured logging", 3)

    assert found.hits == (
        Hit("https://site.example/1", "Result 1", "Snippet 1", None, None, 1.0, engines=("first",)),
        Hit("https://site.example/2", "Result 2", "Snippet 2", None, None, 0.5, engines=("first",)),
    )
    assert warnings == ["SearXNG: 2 of its engines did not answer"]


@pytest.mark.recorded
async def test_recorded_search_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("searxng", "search-ok-with-unresponsive")

    found, warnings = await search(upstreams, tmp_path, body, "fastapi cors", 3)

    assert [(hit.url, hit.title, hit.description, hit.score) for hit in found.hits] == [
        (f"https://example.org/{place}", f"fastapi cors result {place}", f"snippet {place}", score)
        for place, score in enumerate((1.0, 0.5, 1 / 3))
    ]
    assert warnings == ["SearXNG: 2 of its engines did not answer"]


@pytest.mark.parametrize("case", ["json_disabled", recorded_case("error-403-json-not-enabled")])
async def test_saved_refusal_of_json_names_setting(
    case: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = load_body("searxng", case)

    with pytest.raises(ProviderRefused, match=r"search\.formats"):
        await search(upstreams, tmp_path, body, "x", 3, status=403)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ODD_ROWS = st.dictionaries(st.sampled_from(sorted({*build_row(), "author", "authors"})), JSON)


@pytest.mark.extended
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ODD_ROWS.map(lambda odd: build_row(**odd)) | JSON, max_size=4), JSON)
async def test_any_response_is_parsed_or_failure(
    upstreams: FakeUpstreams, tmp_path: Path, results: list[Any], silent: Any
) -> None:
    try:
        found, _ = await search(
            upstreams, tmp_path, search_body(*results, unresponsive_engines=silent), "rollups", 3
        )
    except ProviderError:
        return

    assert len(found.hits) <= 3
    assert all(hit.url.isascii() and hit.url.lower().startswith("http") for hit in found.hits)


async def test_probe_finds_what_answers_without_json(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_provider(SearXNG, tmp_path, url=upstreams.url_of("searxng")) as searxng:
        upstreams.set_response("searxng", "/search", {"error": "no query"}, status=400)
        assert await searxng.probe() == "answers in JSON"

        upstreams.set_response("searxng", "/search", "<html>Welcome</html>")
        with pytest.raises(ProviderFailure):
            await searxng.probe()
