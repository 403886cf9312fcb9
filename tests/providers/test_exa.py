"""Exa: requests, parsing of responses, and failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
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
from structlog.testing import capture_logs

from centgate.errors import ProviderError, ProviderFailure, ProviderRefused
from centgate.log import configure_logging
from centgate.providers.exa import Exa
from centgate.providers.exa_pages import parse_pages
from centgate.settings import Settings
from centgate.web.results import Hit, SearchResults, UnreadPage, WebPage

KEY = "exa-0123456789abcdef"
SECRET = SecretStr(KEY)
A, B, C = "https://a.example/one", "https://b.example/two", "https://c.example/three"


def build_row(**more: Any) -> dict[str, Any]:
    """Return a result in the upstream's format."""
    return {
        "id": A,
        "url": A,
        "title": "One",
        "publishedDate": "2026-04-01T12:00:00.000Z",
        "author": "A. Writer",
        "score": 0.41,
    } | more


def search_body(*results: Any, **more: Any) -> dict[str, Any]:
    """Return the body of a search response."""
    return {"requestId": "r", "resolvedSearchType": "", "results": [*results]} | more


def serve_results(upstreams: FakeUpstreams, *results: Any, **more: Any) -> None:
    upstreams.set_response("exa", "/search", search_body(*results, **more), method="POST")


def refuse_categories(upstreams: FakeUpstreams, *words: str) -> None:
    """Let the upstream refuse these categories with 400 and find a page for all others."""

    def search_pages(request: RecordedRequest) -> tuple[int, Any]:
        if request.body.get("category") in words:
            return 400, {"requestId": "r", "error": "Invalid category", "tag": "INVALID_REQUEST_BODY"}
        return 200, search_body(build_row(), build_row(url="https://a.example/paper.PDF?x=1", id="b"))

    upstreams.set_response_function("exa", "/search", search_pages, method="POST")


async def search(upstreams: FakeUpstreams, folder: Path, *arguments: Any) -> tuple[SearchResults, list[str]]:
    """Search and return hits and warnings."""
    async with open_provider(Exa, folder, url=upstreams.url_of("exa"), key=SECRET) as exa:
        return await exa.search(*arguments), exa.trace.warnings


async def fetch_contents(
    upstreams: FakeUpstreams, folder: Path, body: Any, *urls: str, most: int = 100
) -> list[Any]:
    """Parse pages from this response."""
    upstreams.set_response("exa", "/contents", body, method="POST")
    async with open_provider(Exa, folder, url=upstreams.url_of("exa"), key=SECRET) as exa:
        return await exa.page_contents(urls, most)


async def test_results_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_results(
        upstreams,
        build_row(),
        build_row(url=B, id="other", title=None, author="", publishedDate=None, score=None),
    )

    found, warnings = await search(upstreams, tmp_path, "rollups", 5)

    assert found == SearchResults(
        (
            Hit(A, "One", None, "2026-04-01T12:00:00.000Z", "A. Writer", 0.41),
            Hit(B, None, None, None, None, None),
        ),
        "auto",
        by_meaning=True,
    )
    assert warnings == []


WAYS: list[tuple[str | None, dict[str, Any]]] = [
    (None, {}),
    ("company", {"category": "company"}),
    ("news", {"category": "news"}),
    ("research paper", {"category": "publication"}),
    ("github", {"includeDomains": ["github.com"]}),
    ("pdf", {"category": "pdf"}),
]


@pytest.mark.parametrize(("category", "way"), WAYS)
async def test_search_request_has_exactly_these_fields(
    category: str | None, way: dict[str, Any], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_results(upstreams, build_row())

    await search(upstreams, tmp_path, "rollups", 10, category)

    (request,) = upstreams.requests_of("exa")
    assert request.body == {"query": "rollups", "numResults": 10, "type": "auto", **way}
    assert request.headers["x-api-key"] == KEY
    assert "authorization" not in request.headers


@each_description("exa")
@pytest.mark.parametrize(("category", "way"), WAYS)
def test_search_request_matches_description(category: str | None, way: dict[str, Any], spec: str) -> None:
    problems = find_request_problems(
        spec, "POST", "/search", {"query": "x", "numResults": 10, "type": "auto", **way}
    )

    # the vendor's file is older than this category
    newer = ["publication"] if category == "research paper" and spec != "exa.yaml" else []
    assert [problem.split("'")[1] for problem in problems] == newer


@pytest.mark.extended
@each_description("exa")
async def test_contents_request_has_exactly_these_fields(
    spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    await fetch_contents(upstreams, tmp_path, {"results": [], "statuses": []}, A, B, A, most=20_000)

    (request,) = upstreams.requests_of("exa")
    assert request.body == {"urls": [A, B], "text": {"maxCharacters": 20_001}}
    assert request.headers["x-api-key"] == KEY
    assert find_request_problems(spec, "POST", "/contents", request.body) == []


async def test_refused_category_is_retried_under_older_name(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    refuse_categories(upstreams, "publication")

    found, warnings = await search(upstreams, tmp_path, "rollups", 5, "research paper")

    categories = [request.body["category"] for request in upstreams.requests_of("exa")]
    assert categories == ["publication", "research paper"]
    assert (len(found.hits), warnings) == (2, [])


async def test_pdfs_are_selected_if_category_is_refused_with_warning(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    refuse_categories(upstreams, "pdf")

    found, warnings = await search(upstreams, tmp_path, "rollups", 3, "pdf")

    assert [hit.url for hit in found.hits] == ["https://a.example/paper.PDF?x=1"]
    assert [request.body for request in upstreams.requests_of("exa")] == [
        {"query": "rollups", "numResults": 3, "type": "auto", "category": "pdf"},
        {"query": "rollups", "numResults": 10, "type": "auto"},
    ]
    assert len(warnings) == 1
    assert "whose address ends in .pdf" in warnings[0]


async def test_result_with_pdf_id_is_pdf(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    def search_pages(request: RecordedRequest) -> tuple[int, Any]:
        refused = "category" in request.body
        return (
            (400, {})
            if refused
            else (200, search_body(build_row(id="https://x.example/a.pdf"), build_row(url=B)))
        )

    upstreams.set_response_function("exa", "/search", search_pages, method="POST")

    found, _ = await search(upstreams, tmp_path, "rollups", 3, "pdf")

    assert [hit.url for hit in found.hits] == [A]


async def test_no_pdf_among_other_pages_is_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    def search_pages(request: RecordedRequest) -> tuple[int, Any]:
        return (400, {}) if "category" in request.body else (200, search_body(build_row()))

    upstreams.set_response_function("exa", "/search", search_pages, method="POST")

    with pytest.raises(ProviderError, match="category 'pdf'"):
        await search(upstreams, tmp_path, "rollups", 3, "pdf")


@pytest.mark.parametrize(
    ("category", "sent"),
    [
        ("company", ["company"]),
        ("news", ["news"]),
        ("research paper", ["publication", "research paper"]),
        ("github", [None]),
        (None, [None]),
    ],
)
async def test_refused_category_is_failure(
    category: str | None, sent: list[str | None], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {"requestId": "r", "error": f"Bad key {KEY}", "tag": "INVALID_REQUEST_BODY"}
    upstreams.set_response("exa", "/search", body, status=400, method="POST")

    with pytest.raises(ProviderError, match=r"status 400 .INVALID_REQUEST_BODY") as caught:
        await search(upstreams, tmp_path, "rollups", 3, category)

    assert [request.body.get("category") for request in upstreams.requests_of("exa")] == sent
    assert category is None or f"'{category}'" in caught.value.message
    assert KEY not in caught.value.message


async def test_excess_and_duplicate_results_are_omitted(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    listed = [build_row(url=f"https://a.example/{place // 2}", title=str(place)) for place in range(20)]
    serve_results(upstreams, *listed)

    found, _ = await search(upstreams, tmp_path, "rollups", 3)

    assert [(hit.url[-1], hit.title) for hit in found.hits] == [("0", "0"), ("1", "2"), ("2", "4")]


async def test_empty_results_are_answer(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_results(upstreams)

    found, warnings = await search(upstreams, tmp_path, "rollups", 3)

    assert (found.hits, warnings) == ((), [])


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"resolvedSearchType": "", "searchType": None}, "auto"),
        ({"resolvedSearchType": "neural"}, "auto"),
        ({"resolvedSearchType": "neural", "searchType": "auto"}, "auto"),
        ({"resolvedSearchType": "neural", "searchType": "fast"}, "fast"),
        ({"resolvedSearchType": "fast", "searchType": "auto"}, "fast"),
        ({"resolvedSearchType": "auto", "searchType": "fast"}, "auto"),
        ({"resolvedSearchType": "deep"}, "auto"),
        ({"resolvedSearchType": ["fast"], "searchType": {"fast": 1}}, "auto"),
        ({"searchType": "fast"}, "fast"),
    ],
)
async def test_search_type_of_upstream_is_mapped(
    fields: dict[str, Any], kind: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_results(upstreams, build_row(), **fields)

    found, _ = await search(upstreams, tmp_path, "rollups", 3)

    assert found.search_type == kind


@pytest.mark.parametrize(
    "odd", [None, 7, "", "ftp://a.example/", "javascript:alert(1)", "//a.example", "x" * 9]
)
async def test_result_with_invalid_url_is_omitted(odd: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_results(upstreams, build_row(url=odd), build_row(url=B), 7, None)

    found, _ = await search(upstreams, tmp_path, "rollups", 3)

    assert [hit.url for hit in found.hits] == [B]


async def test_results_without_urls_are_none_with_warning(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_results(upstreams, build_row(url=None), build_row(url=7))

    found, warnings = await search(upstreams, tmp_path, "rollups", 3)

    assert found.hits == ()
    assert warnings == ["Exa found 2 pages and returned no URL for any of them"]


async def test_only_beginning_of_long_list_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_results(upstreams, *[build_row(url="ftp://a.example")] * 999, build_row(url=A), build_row(url=B))

    found, _ = await search(upstreams, tmp_path, "rollups", 3)

    assert [hit.url for hit in found.hits] == [A]


async def test_text_is_cleaned_and_limited(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    hostile = "Pay\u202e me\u200b\x00 now\n" + "x" * 5000
    serve_results(
        upstreams, build_row(title=hostile, author=hostile, url="https://b\u00fccher.example/\u202e?q=\u00fc")
    )

    found, _ = await search(upstreams, tmp_path, "rollups", 3)

    (hit,) = found.hits
    assert hit.title
    assert hit.author
    assert hit.title.startswith("Pay me now xx")
    assert (len(hit.title), len(hit.author)) == (300, 200)
    assert hit.url == "https://xn--bcher-kva.example/%E2%80%AE?q=%C3%BC"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"results": None},
        {"results": {}},
        {"results": [7]},
        [],
        7,
        "text",
        None,
    ],
)
async def test_unknown_format_is_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("exa", "/search", body, method="POST")

    with pytest.raises(ProviderError):
        await search(upstreams, tmp_path, "rollups", 3)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(fault: Fault, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.faults["exa"] = fault

    async with open_provider(Exa, tmp_path, url=upstreams.url_of("exa"), key=SECRET, timeout=2.5) as exa:
        with pytest.raises(ProviderFailure) as caught:
            await exa.search("rollups", 3)
        searched = list(exa.trace.warnings)
        if fault != "timeout":
            with pytest.raises(ProviderFailure) as unread:
                await exa.page_contents([A], 100)
            assert unread.value.code == FAULTS[fault][1]

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "exa"
    assert searched == [caught.value.message]


async def test_missing_key_sends_no_request(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_provider(Exa, tmp_path, url=upstreams.url_of("exa")) as exa:
        with pytest.raises(ProviderFailure, match="not configured"):
            await exa.search("rollups", 3)

    assert not exa.is_configured
    assert upstreams.requests == []


async def test_key_repeated_by_upstream_is_not_shown(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("exa", "/search", {"error": "no", "tag": KEY.upper()}, status=400, method="POST")
    upstreams.set_response("exa", "/contents", {"results": [], "statuses": [7, {"id": KEY}]}, method="POST")

    async with open_provider(Exa, tmp_path, url=upstreams.url_of("exa"), key=SECRET) as exa:
        with pytest.raises(ProviderError) as caught:
            await exa.search("rollups", 3)
        unread = await exa.page_contents([A], 100)

    assert KEY not in repr([caught.value.message, exa.trace.warnings, unread])


TERMS = {
    "x402Version": 2,
    "error": "Payment required",
    "accepts": [{"scheme": "exact", "network": "eip155:8453", "amount": "7000", "payTo": "0x" + "05" * 20}],
}


@contextmanager
def serve_payment_terms() -> Generator[str]:
    """Serve an upstream that asks its own client to pay, by x402 and MPP."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(TERMS | {"tag": "X402_PAYMENT_REQUIRED"}).encode()
            self.send_response(402)
            self.send_header("PAYMENT-REQUIRED", "eyJ4NDAyVmVyc2lvbiI6Mn0=")
            self.send_header("WWW-Authenticate", 'Payment id="mpp", method="tempo", intent="charge"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


async def test_payment_terms_of_upstream_are_not_forwarded(tmp_path: Path) -> None:
    with serve_payment_terms() as url:
        async with open_provider(Exa, tmp_path, url=url, key=SECRET) as exa:
            with pytest.raises(ProviderRefused) as searched:
                await exa.search("rollups", 3)
            with pytest.raises(ProviderRefused) as read:
                await exa.page_contents([A], 100)

    for refused in (searched.value, read.value):
        assert refused.code == "provider_error"
        assert (refused.details, refused.payment, refused.retry_after) == ({}, None, None)
        assert refused.message == "Exa refuses this deployment (status 402)"


@pytest.mark.parametrize(("usd", "alarms"), [(0.007, []), (0.01, []), (0.012, [0.012]), ("x", [])])
async def test_request_above_listed_prices_is_logged_for_operator(
    usd: Any,
    alarms: list[Any],
    upstreams: FakeUpstreams,
    tmp_path: Path,
) -> None:
    serve_results(upstreams, build_row(), costDollars={"total": usd})

    configure_logging("warning")
    with capture_logs() as logs:
        _, warnings = await search(upstreams, tmp_path, "rollups", 3)
    configure_logging("error")

    assert [log["usd"] for log in logs] == alarms
    assert all("than its listed prices" in log["event"] and log["max_usd"] == 0.01 for log in logs)
    assert warnings == []


async def test_pages_are_in_requested_order_with_requested_urls(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {
        "results": [
            build_row(id="https://c.example/three", url="https://c.example/3", text="three"),
            build_row(id=A, url=A, text="# One\r\n\r\nText\u202e."),
        ],
        "statuses": [{"id": A, "status": "success", "source": "cached"}],
    }

    one, two, three, again = await fetch_contents(upstreams, tmp_path, body, A, B, C, A)

    assert one == again
    assert one == WebPage(
        url=A,
        markdown="# One\n\nText.",
        length=12,
        title="One",
        author="A. Writer",
        published="2026-04-01T12:00:00.000Z",
        final_url=A,
    )
    assert two == UnreadPage(B, "failed", "the page could not be read")
    assert (three.url, three.markdown, three.final_url) == (C, "three", "https://c.example/3")


@pytest.mark.parametrize(
    ("urls", "listed"),
    [
        ("https://a.example", "https://a.example/"),
        ("https://a.example/one/", "https://a.example/one"),
        ("http://a.example/one", "https://a.example/one"),
        ("https://A.Example/one", "https://a.example/one"),
        ("https://a.example:443/one#part", "https://a.example/one"),
        ("https://a.example/%7Eone", "https://a.example/~one"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example"),
    ],
)
@pytest.mark.parametrize("key", ["id", "url"])
async def test_url_is_matched_in_other_spelling(
    urls: str, listed: str, key: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    result = {"id": "x", "url": "https://elsewhere.example/", "text": "one", key: listed}
    body = {"results": [result, build_row(id=B, url=B, text="two")]}

    one, two = await fetch_contents(upstreams, tmp_path, body, urls, B)

    assert (one.url, one.markdown, two.markdown) == (urls, "one", "two")


async def test_spellings_that_are_both_listed_are_separate(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    secure, plain = "https://a.example/", "http://a.example/"
    body = {
        "results": [
            build_row(id=plain, url=plain, text="plain"),
            build_row(id=secure, url=secure, text="secure"),
        ]
    }

    pages = await fetch_contents(upstreams, tmp_path, body, secure, plain)

    assert [page.markdown for page in pages] == ["secure", "plain"]


async def test_remaining_page_matches_moved_url(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    moved = build_row(id=C, url=C, text="moved")
    body = {
        "results": [build_row(id=A, url=A, text="one"), moved],
        "statuses": [{"id": B, "status": "success"}],
    }

    _, page = await fetch_contents(upstreams, tmp_path, body, A, B)

    assert (page.url, page.markdown, page.final_url) == (B, "moved", C)


async def test_failed_page_gets_no_text_of_another(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"results": [build_row(id=C, url=C, text="other")], "statuses": [{"id": B, "status": "error"}]}

    (page,) = await fetch_contents(upstreams, tmp_path, body, B)

    assert page == UnreadPage(B, "failed", "the page could not be read")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"tag": "CRAWL_NOT_FOUND", "httpStatusCode": 404}, "not_found"),
        ({"tag": "CRAWL_NOT_FOUND"}, "not_found"),
        ({"tag": "crawl_not_found"}, "not_found"),
        ("CRAWL_NOT_FOUND", "not_found"),
        ({"tag": "CRAWL_HTTP_403", "httpStatusCode": 403}, "blocked"),
        ({"tag": "CRAWL_HTTP_401"}, "blocked"),
        ({"tag": "CRAWL_HTTP_429"}, "blocked"),
        ({"tag": "CRAWL_HTTP_451"}, "blocked"),
        ({"tag": "CRAWL_HTTP_404"}, "not_found"),
        ({"tag": "CRAWL_HTTP_410"}, "not_found"),
        ({"tag": "CRAWL_HTTP_415"}, "unsupported"),
        ({"tag": "CRAWL_HTTP_500"}, "failed"),
        ({"tag": "CRAWL_HTTP_504"}, "timeout"),
        ({"tag": "CRAWL_TIMEOUT"}, "timeout"),
        ({"tag": "CRAWL_LIVECRAWL_TIMEOUT", "httpStatusCode": 408}, "timeout"),
        ({"tag": "LIVECRAWL_TIMEOUT"}, "timeout"),
        ({"tag": "UNSUPPORTED_URL"}, "unsupported"),
        ({"tag": "SOURCE_NOT_AVAILABLE"}, "failed"),
        ({"tag": "CRAWL_UNKNOWN_ERROR", "httpStatusCode": 500}, "failed"),
        ({"tag": "CRAWL_UNKNOWN_ERROR", "httpStatusCode": "403"}, "blocked"),
        ({"tag": "something_new", "httpStatusCode": None}, "failed"),
        ({"tag": "\u202e<b>" * 50}, "failed"),
        ({"tag": 7, "httpStatusCode": "x"}, "failed"),
        ({}, "failed"),
        (None, "failed"),
        ([], "failed"),
    ],
)
async def test_unreadable_page_has_reason(
    error: Any, reason: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {"results": [], "statuses": [{"id": A + "/", "status": "error", "error": error}]}

    (unread,) = await fetch_contents(upstreams, tmp_path, body, A)

    assert (unread.url, unread.reason) == (A, reason)
    assert unread.message.isascii()
    assert "<" not in unread.message


@pytest.mark.parametrize("empty", ["", " \n", "\u200b\u202e", None, 7])
async def test_page_without_text_is_unread(empty: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"results": [build_row(text=empty)], "statuses": [{"id": A, "status": "success"}]}

    (page,) = await fetch_contents(upstreams, tmp_path, body, A)

    assert page == UnreadPage(A, "failed", "the page could not be read")


@pytest.mark.parametrize(
    ("sent", "length"),
    [
        ("x" * 99, 99),
        ("x" * 100, 100),
        ("x" * 101, None),
        ("x" * 5000, None),
        # cut by JavaScript, whose characters are units of UTF-16
        ("\U0001f642" * 50 + "x", None),
        ("\U0001f642" * 40, 40),
    ],
)
async def test_length_of_text_is_known_unless_truncated(
    sent: str, length: int | None, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    (page,) = await fetch_contents(upstreams, tmp_path, {"results": [build_row(text=sent)]}, A, most=100)

    assert page.length == length
    assert page.markdown == sent[:101]


async def test_script_links_in_text_become_text(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    sent = "[Menu](java\u200bscript:void(0)) ![Logo](data:image/png;base64,iVBORw0KGgo=)"

    (page,) = await fetch_contents(upstreams, tmp_path, {"results": [build_row(text=sent)]}, A)

    assert page.markdown == "Menu Logo"


async def test_text_cut_inside_emoji_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    (page,) = await fetch_contents(
        upstreams, tmp_path, {"results": [build_row(text="x" * 100 + "\ud83d")]}, A
    )

    assert (page.markdown, page.length) == ("x" * 100, None)


@pytest.mark.parametrize("body", [{}, {"results": None}, [], None, 7, "text", {"error": "no"}])
async def test_contents_of_unknown_format_are_failure(
    body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderError):
        await fetch_contents(upstreams, tmp_path, body, A)


@pytest.mark.parametrize(
    ("case", "hits"),
    [
        (
            "search",
            [
                Hit(
                    "https://papers.example/rollups.pdf",
                    "Rollups in Practice",
                    None,
                    "2025-03-14T09:26:53.000Z",
                    "Ada Lovelace, University of Example",
                    image="https://papers.example/1.png",
                )
            ],
        ),
        ("search_minimal", [Hit("https://docs.example/tasks", "Tasks")]),
        recorded_case(
            "search-documented-full",
            [
                Hit(
                    "https://arxiv.org/pdf/2307.06435.pdf",
                    "A Comprehensive Overview of Large Language Models",
                    None,
                    "2023-11-16T01:36:32.547Z",
                    "Humza Naveed, University of Engineering and Technology (UET), Lahore, Pakistan",
                    image="https://arxiv.org/pdf/2307.06435.pdf/page_1.png",
                )
            ],
        ),
        recorded_case(
            "search-mcp-fixture",
            [
                Hit(
                    "https://example.com/one",
                    "Result One",
                    None,
                    "2026-04-01T12:00:00.000Z",
                    "Example Author",
                )
            ],
        ),
        recorded_case(
            "search-resolved-type-empty",
            [Hit("https://docs.python.org/3/library/asyncio-task.html", "Coroutines and tasks")],
        ),
    ],
)
async def test_saved_search_is_parsed(
    case: str, hits: list[Hit], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("exa", "/search", load_body("exa", case), method="POST")

    found, warnings = await search(upstreams, tmp_path, "q", 10)

    assert found == SearchResults(tuple(hits), "auto", by_meaning=True)
    assert warnings == []


async def test_replayed_search_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(Exa, tmp_path, url=f"{recordings_url}/exa", key=SECRET) as exa:
        found = await exa.search("python asyncio TaskGroup", 3)

    assert [hit.title for hit in found.hits] == ["Coroutines and tasks"]


@pytest.mark.parametrize(
    ("case", "url"),
    [
        ("contents_not_found", "https://gone.example/page"),
        recorded_case("contents-one-failed", "https://example.com"),
    ],
)
async def test_saved_missing_page_is_unread(
    case: str, url: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    (unread,) = await fetch_contents(upstreams, tmp_path, load_body("exa", case), url)

    assert unread == UnreadPage(url, "not_found", "there is no such page (Exa says CRAWL_NOT_FOUND)")


@pytest.mark.parametrize(
    ("case", "status", "code"),
    [
        ("invalid_key", 401, "provider_error"),
        ("no_credits", 402, "provider_error"),
        ("rate_limit", 429, "provider_rate_limited"),
        recorded_case("error-401-invalid-key", 401, "provider_error"),
        recorded_case("error-402-no-more-credits", 402, "provider_error"),
        recorded_case("error-429-plain", 429, "provider_rate_limited"),
    ],
)
async def test_saved_refusal_is_provider_failure(
    case: str, status: int, code: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("exa", "/search", load_body("exa", case), status=status, method="POST")

    with pytest.raises(ProviderFailure) as caught:
        await search(upstreams, tmp_path, "q", 3)

    assert caught.value.code == code
    assert isinstance(caught.value, ProviderRefused) is (status != 429)


@pytest.mark.extended
@each_description("exa")
async def test_searches_of_its_description_are_parsed(
    spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    bodies = generate_responses(spec, "POST", "/search", 200, 100, 1)
    upstreams.set_response_function("exa", "/search", lambda _asked: (200, bodies.pop()), method="POST")
    read = 0

    async with open_provider(Exa, tmp_path, url=upstreams.url_of("exa"), key=SECRET, per_minute=6000) as exa:
        while bodies:
            expected = bodies[-1].get("results")
            if expected is None:
                with pytest.raises(ProviderError):
                    await exa.search("q", 10)
                continue
            found = await exa.search("q", 10)
            read += len(found.hits)
            assert len(found.hits) <= len(expected)
            assert all(hit.url.lower().startswith("http") for hit in found.hits)

    assert read > 30


@pytest.mark.extended
@each_description("exa")
@pytest.mark.parametrize("seed", range(3))
def test_contents_of_its_description_are_parsed(seed: int, spec: str) -> None:
    read = 0

    for body in generate_responses(spec, "POST", "/contents", 200, 100, seed):
        if "results" not in body and "statuses" not in body:
            continue
        urls = [*{str(each.get("url")) for each in body.get("results", ())}, C]
        pages = parse_pages(urls, body, 100)
        read += sum(isinstance(page, WebPage) for page in pages.values())
        assert list(pages) == urls
        assert all(page.url == url for url, page in pages.items())

    assert read > 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([A, B]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.dictionaries(st.sampled_from(["id", "url", "text", "status", "error", "title", "author"]), JSON)


@pytest.mark.extended
@given(st.lists(ROWS | JSON, max_size=4), st.lists(ROWS | JSON, max_size=4))
def test_every_requested_page_has_answer(results: list[Any], statuses: list[Any]) -> None:
    pages = parse_pages([A, B], {"results": results, "statuses": statuses}, 3)

    assert [page.url for page in pages.values()] == [A, B]
    for page in pages.values():
        assert isinstance(page, UnreadPage) or page.markdown
        assert json.dumps(to_builtins(page))


def test_empty_settings_are_dry_run() -> None:
    assert not Exa(Settings()).is_configured
