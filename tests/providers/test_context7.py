"""Context7: requests, parsing of responses, and failures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from facilitators import build_settings
from fake_upstreams import (
    FAULTS,
    FakeUpstreams,
    Fault,
    RecordedRequest,
    load_body,
    open_provider,
    recorded_case,
)
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from openapi_contract import each_description, find_request_problems, generate_responses
from pydantic import SecretStr

from centgate.errors import (
    NoData,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnconfigured,
)
from centgate.libdocs import token_count
from centgate.libdocs.libraries import DocSnippet, DocumentedLibrary
from centgate.providers.context7 import Context7, parse_snippets
from centgate.settings import ProviderSettings

KEY = "ctx7sk-0123456789abcdef"
SECRET = SecretStr(KEY)
SEARCH, CONTEXT = "/api/v2/libs/search", "/api/v2/context"
ID = "/encode/httpx"
SOURCE = "https://github.com/encode/httpx/blob/master/docs/async.md"
UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def build_library(**more: Any) -> dict[str, Any]:
    """Return a library in the upstream's format."""
    return {
        "id": ID,
        "title": "HTTPX",
        "description": "An HTTP client.",
        "state": "finalized",
        "totalSnippets": 412,
        "trustScore": 9.2,
        "versions": ["0.28.1", "0.27.2"],
    } | more


def build_code(**more: Any) -> dict[str, Any]:
    """Return a code snippet in the upstream's format."""
    return {
        "codeTitle": "Open a client",
        "codeDescription": "Open it once.",
        "codeLanguage": "python",
        "codeTokens": 999,
        "codeId": f"{SOURCE}#_snippet_0",
        "pageTitle": "Async support",
        "codeList": [{"language": "Python", "code": "client = httpx.AsyncClient()"}],
    } | more


def build_info(**more: Any) -> dict[str, Any]:
    """Return an explanation in the upstream's format."""
    return {"pageId": SOURCE, "breadcrumb": "Async > Clients", "content": "Close it at the end."} | more


async def search_libraries(
    upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200
) -> list[DocumentedLibrary]:
    """Return the libraries parsed from these rows."""
    upstreams.set_response("context7", SEARCH, body, status=status)
    async with open_provider(Context7, folder, url=upstreams.url_of("context7"), key=SECRET) as context7:
        return await context7.find_libraries("httpx")


async def read_docs(
    upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200, *, budget: int = 2500
) -> list[DocSnippet]:
    """Return the snippets parsed from this body."""
    upstreams.set_response("context7", CONTEXT, body, status=status)
    async with open_provider(Context7, folder, url=upstreams.url_of("context7"), key=SECRET) as context7:
        return await context7.query_docs(ID, "clients", budget)


async def test_library_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    libraries = await search_libraries(
        upstreams, tmp_path, {"results": [build_library()], "searchFilterApplied": False}
    )

    assert libraries == [DocumentedLibrary(ID, "HTTPX", "An HTTP client.", 412, "0.28.1", 9.2)]


@each_description("context7")
async def test_name_is_sent_as_name_and_query(spec: str, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    await search_libraries(upstreams, tmp_path, {"results": [build_library()]})

    (request,) = upstreams.requests_of("context7")
    assert request.params == {"libraryName": "httpx", "query": "httpx"}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert find_request_problems(spec, "GET", "/v2/libs/search", request.params) == []


async def test_at_most_five_ready_libraries_are_returned_once(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    states = ["initial", "processing", "error", "delete", 7]
    listed = [build_library(id=f"/a/{state}", state=state) for state in states]
    listed += [build_library(), build_library(title="Again")]
    listed += [build_library(id=f"/b/{n}") for n in range(30)]
    del listed[7]["state"]

    libraries = await search_libraries(upstreams, tmp_path, {"results": listed})

    assert [each.id for each in libraries] == [ID, "/b/0", "/b/1", "/b/2", "/b/3"]
    assert libraries[0].title == "HTTPX"


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "encode/httpx",
        "/encode",
        "/a/b/c/d",
        "/../etc",
        "/a/..",
        "/a b/c",
        "/a/b\n",
        "/a/b?c",
        "https://x.y/z",
        7,
        None,
        [],
    ],
)
async def test_invalid_ids_are_omitted(identity: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    libraries = await search_libraries(
        upstreams, tmp_path, {"results": [build_library(id=identity), build_library()]}
    )

    assert [each.id for each in libraries] == [ID]


@pytest.mark.parametrize(
    "identity",
    [
        "/vercel/next.js",
        "/websites/x_y",
        "/npm/@angular/core",
        "/a/.github",
        "/v/next.js/v14.3.0",
        "/v/n@1.0+b",
    ],
)
async def test_valid_ids_of_every_kind_are_kept(
    identity: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    libraries = await search_libraries(upstreams, tmp_path, {"results": [build_library(id=identity)]})

    assert [each.id for each in libraries] == [identity]


@pytest.mark.extended
@pytest.mark.parametrize("odd", [-1, None, "x", "NaN", [], {}, True, "-inf"])
async def test_invalid_figures_are_null(odd: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    (each,) = await search_libraries(
        upstreams, tmp_path, {"results": [build_library(totalSnippets=odd, trustScore=odd, versions=odd)]}
    )

    assert (each.snippet_count, each.score, each.version) == (None, None, None)


async def test_version_is_newest_release(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    versions = ["v14.3.0-canary.87", "v9.5.1", "main", "v14.2.0", "v14.10.1", "15.0.0-rc.1"]

    (each,) = await search_libraries(upstreams, tmp_path, {"results": [build_library(versions=versions)]})

    assert each.version == "v14.10.1"


@pytest.mark.parametrize("versions", [["main"], [], [None], [7], [""], ["\u200b"], [{}]])
async def test_invalid_version_is_null(versions: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    (each,) = await search_libraries(upstreams, tmp_path, {"results": [build_library(versions=versions)]})

    assert each.version is None


async def test_library_needs_only_its_id(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    libraries = await search_libraries(upstreams, tmp_path, {"results": [{"id": ID}]})

    assert libraries == [DocumentedLibrary(ID, None, None, None, None, None)]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"error": "no_libraries_found", "message": "No libraries found."}),
        (200, {"results": []}),
        (200, {"results": [build_library(state="processing")]}),
    ],
)
async def test_unknown_name_is_no_data(
    status: int, body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(NoData, match="httpx"):
        await search_libraries(upstreams, tmp_path, body, status)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {}),
        (200, []),
        (200, {"results": None}),
        (200, {"results": {}}),
        (200, {"results": [7]}),
        (200, {"results": [{"id": "x"}]}),
        (202, {"results": [build_library()]}),
        (404, {"error": "not_found"}),
        (404, "404 page not found"),
        (400, {"error": "validation_error", "message": "Library name is required"}),
        (503, {"error": "search_failed", "message": "Search failed"}),
    ],
)
async def test_invalid_library_response_is_failure(
    status: int, body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderError):
        await search_libraries(upstreams, tmp_path, body, status)


async def test_code_and_explanations_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    snippets = await read_docs(
        upstreams, tmp_path, {"codeSnippets": [build_code()], "infoSnippets": [build_info()]}
    )

    assert snippets == [
        DocSnippet(
            title="Open a client",
            source_url=f"{SOURCE}#_snippet_0",
            language="python",
            code="client = httpx.AsyncClient()",
            text="Open it once.",
            tokens=token_count.snippet_tokens(
                "client = httpx.AsyncClient()", "Open it once.", "Open a client"
            ),
            headings=("Async support", "Open a client"),
            library=ID,
        ),
        DocSnippet(
            title="Async > Clients",
            source_url=SOURCE,
            language=None,
            code=None,
            text="Close it at the end.",
            tokens=token_count.snippet_tokens(None, "Close it at the end.", "Async > Clients"),
            headings=("Async", "Clients"),
            library=ID,
        ),
    ]


@pytest.mark.parametrize(
    ("identity", "topic", "query"),
    [
        (ID, "timeouts", "timeouts"),
        (ID, None, "httpx"),
        (ID, "", "httpx"),
        (ID, "x" * 900, "x" * 500),
        ("/vercel/next.js@v14.3.0", None, "next.js"),
        ("/vercel/next.js/v14.3.0", None, "next.js"),
        ("/npm/@angular/core", None, "angular"),
        ("/a/@", None, "@"),
    ],
)
@each_description("context7")
async def test_documentation_is_requested_as_json(
    identity: str, topic: str | None, query: str, spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("context7", CONTEXT, {"codeSnippets": [build_code()], "infoSnippets": []})

    async with open_provider(Context7, tmp_path, url=upstreams.url_of("context7"), key=SECRET) as context7:
        await context7.query_docs(identity, topic, 2500)

    (request,) = upstreams.requests_of("context7")
    assert request.params == {"libraryId": identity, "query": query, "type": "json"}
    assert find_request_problems(spec, "GET", "/v2/context", request.params) == []


async def test_best_explanation_follows_best_code(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {
        "codeSnippets": [build_code(codeTitle=f"code {n}") for n in range(4)],
        "infoSnippets": [build_info(breadcrumb=f"info {n}") for n in range(3)],
    }

    snippets = await read_docs(upstreams, tmp_path, body)

    titles = [snippet.title for snippet in snippets]
    assert titles == ["code 0", "info 0", "code 1", "code 2", "code 3", "info 1", "info 2"]


@pytest.mark.parametrize("budget", [500, 1200, 5000])
async def test_whole_snippets_fit_budget(budget: int, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {
        "codeSnippets": [build_code(codeDescription=f"word {n} " * 40) for n in range(20)],
        "infoSnippets": [build_info(content="word " * 3000), build_info(content="short")],
    }

    snippets = await read_docs(upstreams, tmp_path, body, budget=budget)

    assert budget - 150 <= sum(each.tokens for each in snippets) <= budget or len(snippets) == 22
    assert all(
        each.tokens == token_count.snippet_tokens(each.code, each.text, each.title) for each in snippets
    )
    assert all(each.text and each.text in str(body) for each in snippets)


async def test_code_in_two_languages_becomes_two_snippets(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    shown = [
        {"language": "TypeScript", "code": "const a = 1"},
        {"language": "typescript", "code": "const b = 2"},
        {"language": "Shell", "code": "npm i"},
        {"language": "shell", "code": " "},
        {"code": "plain"},
    ]

    snippets = await read_docs(
        upstreams, tmp_path, {"codeSnippets": [build_code(codeList=shown)], "infoSnippets": []}
    )

    assert [(each.language, each.code, each.text) for each in snippets] == [
        ("typescript", "const a = 1\n\nconst b = 2", "Open it once."),
        ("shell", "npm i", None),
        ("python", "plain", None),
    ]


@pytest.mark.parametrize("listed", [None, [], [{}], [{"code": None}], [7], "x"])
async def test_code_without_content_becomes_explanation(
    listed: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    (snippet,) = await read_docs(upstreams, tmp_path, {"codeSnippets": [build_code(codeList=listed)]})

    assert (snippet.code, snippet.language, snippet.text) == (None, None, "Open it once.")


@pytest.mark.parametrize(
    "source", ["dynamic:src/a.py", "javascript:alert(1)", "/docs/a.md", 7, None, "https://a:b@c.d/"]
)
async def test_only_urls_are_sources(source: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"codeSnippets": [build_code(codeId=source)], "infoSnippets": [build_info(pageId=source)]}

    snippets = await read_docs(upstreams, tmp_path, body)

    assert [each.source_url for each in snippets] == [None, None]


async def test_invisible_characters_are_removed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    hidden = "a\u202eb\u200bc\x00\U000e0041\x1b"
    body = {
        "codeSnippets": [
            build_code(
                codeTitle=hidden,
                codeDescription=hidden,
                codeList=[{"language": hidden, "code": f"{hidden}\r\n\td"}],
            )
        ],
        "infoSnippets": [build_info(breadcrumb=hidden, content=hidden)],
    }

    first, second = await read_docs(upstreams, tmp_path, body)

    assert (first.title, first.text, first.language, first.code) == ("abc", "abc", "abc", "abc\n\td")
    assert (second.title, second.text) == ("abc", "abc")


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (404, "library_not_found", "no library /encode/httpx"),
        (400, "invalid_library_id", "no library /encode/httpx"),
        (404, "no_snippets_found", "no documentation of"),
        (422, "no_code_found", "no documentation of"),
        (422, "library_too_large", "too large"),
        (404, "tag_not_found", "no such version"),
    ],
)
async def test_unknown_id_is_no_data_with_reason(
    status: int, error: str, says: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(NoData, match=says):
        await read_docs(upstreams, tmp_path, {"error": error, "message": "so it is"}, status)


async def test_available_versions_are_named(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    message = f'Tag "v1" not found for library "{ID}". Available tags: v2.0.0, v1.5.0\u202e'

    with pytest.raises(NoData, match=r"it has v2\.0\.0, v1\.5\.0$"):
        await read_docs(upstreams, tmp_path, {"error": "tag_not_found", "message": message}, 404)


@pytest.mark.parametrize("body", [{"codeSnippets": [], "infoSnippets": []}, {"codeSnippets": []}])
async def test_empty_documentation_is_no_data(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(NoData, match=ID):
        await read_docs(upstreams, tmp_path, body)


async def test_snippets_beyond_budget_are_no_data(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"codeSnippets": [build_code(codeDescription="word " * 900)], "infoSnippets": []}

    with pytest.raises(NoData, match="within 500 tokens"):
        await read_docs(upstreams, tmp_path, body, budget=500)


async def test_library_being_indexed_is_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"error": "library_not_finalized", "message": f"Library {ID} not finalized yet."}

    with pytest.raises(ProviderError, match="still indexing"):
        await read_docs(upstreams, tmp_path, body, 202)


NO_ANSWERS: list[tuple[int, Any]] = [
    (200, {}),
    (200, []),
    (200, {"codeSnippets": None, "infoSnippets": None}),
    (200, {"codeSnippets": 7}),
    (200, {"codeSnippets": {}, "infoSnippets": [7]}),
    (200, {"codeSnippets": [{}], "infoSnippets": []}),
    (200, "### A title\n\nSource: https://example.com"),
    (202, {}),
    (204, ""),
    (400, {"error": "validation_error", "message": "query"}),
    (404, {"error": "team_not_found"}),
    (404, "404 page not found"),
    (422, {}),
    (500, {"error": "internal_error", "message": "An error occurred"}),
]


@pytest.mark.parametrize(("status", "body"), NO_ANSWERS)
async def test_invalid_documentation_response_is_failure(
    status: int, body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderError):
        await read_docs(upstreams, tmp_path, body, status)


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, "invalid_api_key"), (402, "spending_limit_exceeded"), (403, "access_denied")],
)
async def test_refusal_of_operator_is_no_buyer_error(
    status: int, error: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderRefused):
        await read_docs(upstreams, tmp_path, {"error": error, "message": "no"}, status)
    with pytest.raises(ProviderRefused):
        await search_libraries(upstreams, tmp_path, {"error": error, "message": "no"}, status)


def serve_redirect(upstreams: FakeUpstreams, targets: dict[str, Any], status: int = 301) -> None:
    """Serve redirects of these library ids; all others have documentation."""

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        identity = request.params["libraryId"]
        if identity in targets:
            return status, {"error": "library_redirected", "redirectUrl": targets[identity]}
        return 200, {"codeSnippets": [build_code()], "infoSnippets": []}

    upstreams.set_response_function("context7", CONTEXT, answer)


@pytest.mark.parametrize(
    ("identity", "target", "asked_next"),
    [
        (ID, "/new/httpx", "/new/httpx"),
        (ID, "https://context7.com/new/httpx", "/new/httpx"),
        (f"{ID}/v1.0", "/new/httpx", "/new/httpx/v1.0"),
        (f"{ID}@v1.0", "/new/httpx", "/new/httpx@v1.0"),
        (f"{ID}/v1.0", "/new/httpx/v1.0", "/new/httpx/v1.0"),
    ],
)
async def test_redirect_of_library_is_followed_once(
    identity: str, target: str, asked_next: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_redirect(upstreams, {identity: target})

    async with open_provider(Context7, tmp_path, url=upstreams.url_of("context7")) as context7:
        snippets = await context7.query_docs(identity, "clients", 2500)

    assert len(snippets) == 1
    assert [each.params["libraryId"] for each in upstreams.requests_of("context7")] == [identity, asked_next]
    assert context7.trace.warnings == [f"Context7 has moved {identity} to the id {asked_next}"]


@pytest.mark.parametrize(
    "targets",
    [
        {ID: ID},
        {ID: "/b/b", "/b/b": ID},
        {ID: "/b/b", "/b/b": "/c/c"},
        {ID: "https://evil.example/a/b"},
        {ID: "//evil.example/a"},
        {ID: "/../admin"},
        {ID: "/a/b?x=y"},
        {ID: None},
        {ID: 7},
    ],
)
async def test_further_or_invalid_redirect_is_failure(
    targets: dict[str, Any], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_redirect(upstreams, targets)

    async with open_provider(Context7, tmp_path, url=upstreams.url_of("context7")) as context7:
        with pytest.raises(ProviderError):
            await context7.query_docs(ID, "clients", 2500)

    assert len(upstreams.requests_of("context7")) <= 2


async def test_rate_limit_is_distinguished(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(ProviderRateLimited):
        await read_docs(upstreams, tmp_path, {"error": "rate_limit_exceeded"}, 429)
    with pytest.raises(ProviderRateLimited):
        await search_libraries(upstreams, tmp_path, {"error": "rate_limit_exceeded"}, 429)


def build_provider(folder: Path, **options: Any) -> Context7:
    """Build the provider with these settings."""
    settings = {"context7": ProviderSettings(**options)} if options else {}
    return Context7(build_settings(folder, "http://127.0.0.1:9", providers=settings))


@pytest.mark.parametrize(
    ("options", "configured"),
    [
        ({}, False),
        ({"key": SECRET}, True),
        ({"url": "https://context7.com"}, True),
        ({"key": SECRET, "enabled": False}, False),
    ],
)
def test_provider_is_primary_only_if_configured(
    *, options: dict[str, Any], configured: bool, tmp_path: Path
) -> None:
    assert build_provider(tmp_path, **options).is_configured is configured


@pytest.mark.parametrize(
    "base", ["https://c7.example", "https://c7.example/api", "https://c7.example/api/v2/"]
)
def test_url_with_path_is_used_unchanged(base: str, tmp_path: Path) -> None:
    assert build_provider(tmp_path, url=base).url(CONTEXT) == "https://c7.example/api/v2/context"


async def test_missing_key_and_url_send_no_request(tmp_path: Path) -> None:
    async with open_provider(Context7, tmp_path) as context7:
        with pytest.raises(ProviderUnconfigured):
            await context7.find_libraries("httpx")


async def test_missing_key_is_not_sent(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("context7", SEARCH, {"results": [build_library()]})

    async with open_provider(Context7, tmp_path, url=upstreams.url_of("context7")) as context7:
        await context7.find_libraries("httpx")

    assert "authorization" not in upstreams.requests_of("context7")[0].headers


@pytest.mark.extended
@pytest.mark.parametrize("question", ["libraries", "docs"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(
    fault: Fault, question: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.faults["context7"] = fault

    async with open_provider(
        Context7, tmp_path, url=upstreams.url_of("context7"), key=SECRET, timeout=2.5
    ) as context7:
        with pytest.raises(ProviderFailure) as caught:
            await run_query(context7, question)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "context7"
    assert context7.trace.warnings == [caught.value.message]


async def run_query(context7: Context7, question: str) -> Any:
    """Return the result of a query, or its error."""
    if question == "libraries":
        return await context7.find_libraries("httpx")
    return await context7.query_docs(ID, "clients", 2500)


@pytest.mark.parametrize("question", ["libraries", "docs"])
@pytest.mark.parametrize("status", [200, 202, 301, 400, 401, 402, 403, 404, 422, 429, 500])
async def test_key_is_never_repeated(
    status: int, question: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {"error": KEY, "message": f"the key {KEY} is bad", "redirectUrl": KEY}
    for path in (SEARCH, CONTEXT):
        upstreams.set_response("context7", path, body, status=status)

    async with open_provider(Context7, tmp_path, url=upstreams.url_of("context7"), key=SECRET) as context7:
        with pytest.raises(ProviderFailure) as caught:
            await run_query(context7, question)

    assert KEY not in caught.value.message
    assert not any(KEY in warning for warning in context7.trace.warnings)


@pytest.mark.parametrize(
    ("case", "library"),
    [
        (
            "libraries",
            DocumentedLibrary("/example/orm", "Example ORM", "Maps rows to objects", 640, "v2.1.0", 9),
        ),
        recorded_case(
            "libs-search-documented",
            DocumentedLibrary(
                "/facebook/react",
                "React",
                "A JavaScript library for building user interfaces",
                2500,
                "v18.2.0",
                10,
            ),
        ),
    ],
)
async def test_saved_search_is_parsed(
    case: str, library: DocumentedLibrary, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    assert await search_libraries(upstreams, tmp_path, load_body("context7", case)) == [library]


async def test_saved_documentation_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    example, explanation = await read_docs(upstreams, tmp_path, load_body("context7", "context"))

    assert (example.title, example.language) == ("Open a session", "python")
    assert example.source_url == "https://github.com/example/orm/blob/main/docs/session.md#_snippet_0"
    assert example.code == "with Session(engine) as session:\n    session.commit()"
    assert (explanation.title, explanation.text) == (
        "Guide > Sessions",
        "A session ends with commit or rollback.",
    )


async def test_recorded_documentation_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(Context7, tmp_path, url=f"{recordings_url}/context7", key=SECRET) as context7:
        example, explanation = await context7.query_docs("/vercel/next.js", "middleware authentication", 2500)

    assert example.title == "Middleware Authentication Example"
    assert (
        example.source_url == "https://github.com/vercel/next.js/blob/canary/docs/middleware.mdx#_snippet_0"
    )
    assert example.language == "typescript"
    assert example.code is not None
    assert example.code.startswith("import { NextResponse }")
    assert explanation.title == "Routing > Middleware"
    assert explanation.text == "Middleware allows you to run code before a request is completed..."


@pytest.mark.parametrize(
    ("case", "status", "error"),
    [
        ("library_not_found", 404, NoData),
        ("rate_limit", 429, ProviderRateLimited),
        ("redirect", 301, ProviderError),
        recorded_case("error-404-library", 404, NoData),
        recorded_case("error-429", 429, ProviderRateLimited),
        recorded_case("redirect-301", 301, ProviderError),
    ],
)
async def test_saved_failures_are_distinguished(
    case: str, status: int, error: type[Exception], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(error):
        await read_docs(upstreams, tmp_path, load_body("context7", case), status)


@pytest.mark.parametrize("case", ["no_libraries", recorded_case("error-404-no-libraries")])
async def test_unknown_saved_name_is_no_data(case: str, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(NoData):
        await search_libraries(upstreams, tmp_path, load_body("context7", case), 404)


@each_description("context7")
@pytest.mark.parametrize("question", ["libraries", "docs"])
async def test_responses_of_its_description_are_parsed(
    question: str, spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    path = {"libraries": "/v2/libs/search", "docs": "/v2/context"}[question]
    bodies = iter(generate_responses(spec, "GET", path, 200, 60, seed=7))
    upstreams.set_response_function("context7", f"/api{path}", lambda _asked: (200, next(bodies)))

    async with open_provider(Context7, tmp_path, url=upstreams.url_of("context7")) as context7:
        outcomes = [await query_outcome(context7, question) for _ in range(60)]

    handed_on = [text for each in outcomes for text in list_texts(each)]
    assert len(handed_on) > 20
    assert [text for text in handed_on if UNSEEN.search(text)] == []
    assert all(
        sum(each.tokens for each in found) <= 2500
        for found in outcomes
        if question == "docs" and not isinstance(found, str)
    )


async def query_outcome(context7: Context7, question: str) -> Any:
    """Return the result, or the error."""
    try:
        return await run_query(context7, question)
    except (NoData, ProviderFailure) as missing:
        return missing.message


def list_texts(value: Any) -> list[str]:
    """Yield all texts of a result."""
    match value:
        case str():
            return [value]
        case DocumentedLibrary() | DocSnippet():
            return list_texts(list(to_builtins(value).values()))
        case list():
            return [text for each in cast(Sequence[Any], value) for text in list_texts(each)]
        case _:
            return []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.extended
@given(
    st.dictionaries(st.sampled_from(sorted(build_code())), JSON),
    st.dictionaries(st.sampled_from(sorted(build_info())), JSON),
)
def test_any_snippet_has_content(odd: dict[str, Any], strange: dict[str, Any]) -> None:
    snippets = parse_snippets(
        {"codeSnippets": [build_code(**odd), build_code()], "infoSnippets": [build_info(**strange)]}
    )

    assert any(each.title == "Open a client" for each in snippets)
    assert all(each.code or each.text for each in snippets)
    assert all(each.language is None for each in snippets if each.code is None)
