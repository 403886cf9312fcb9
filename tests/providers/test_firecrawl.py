"""Firecrawl: requests and their costs, parsing of responses, and failures."""

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
    PageUnread,
    ProviderError,
    ProviderFailure,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
)
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.firecrawl_pages import MAX_CHARACTERS, failure_reason, parse_page
from centgate.settings import ProviderSettings
from centgate.web.results import Hit, SearchResults, WebPage

KEY = "fc-0123456789abcdef"
SECRET = SecretStr(KEY)
URL = "https://example.com/guide"
MAP, SEARCH, SCRAPE = "/v2/map", "/v2/search", "/v2/scrape"
UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def build_page(**metadata: Any) -> dict[str, Any]:
    """Return a page in the upstream's format with this metadata."""
    known = {
        "title": "A guide",
        "description": "How to begin.",
        "language": "en",
        "sourceURL": URL,
        "url": "https://example.com/guide/",
        "statusCode": 200,
        "contentType": "text/html; charset=utf-8",
        "proxyUsed": "basic",
        "creditsUsed": 1,
    }
    return {"success": True, "data": {"markdown": "# A guide\n\nBegin.", "metadata": known | metadata}}


def find_problems(spec: str, path: str, body: dict[str, Any]) -> list[str]:
    """Return the errors of a request by the upstream's description.

    That writes formats and sources as objects, and in its defaults and examples as words, as clients do.
    """
    named = {key: [{"type": each} for each in body[key]] for key in ("formats", "sources") if key in body}
    return find_request_problems(spec, "POST", path, body | named)


async def scrape_page(upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200) -> WebPage:
    """Parse a page in the upstream's format."""
    upstreams.set_response("firecrawl", SCRAPE, body, status=status, method="POST")
    async with open_provider(Firecrawl, folder, url=upstreams.url_of("firecrawl"), key=SECRET) as firecrawl:
        return await firecrawl.scrape(URL, only_main_content=True)


async def test_page_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    read = await scrape_page(
        upstreams,
        tmp_path,
        build_page(
            author="Ada",
            canonical="https://example.com/guide",
            **{
                "article:published_time": "2026-01-02T03:04:05Z",
                "article:modified_time": ["2026-02-03", "2026-02-04"],
            },
        ),
    )

    assert read == WebPage(
        url=URL,
        markdown="# A guide\n\nBegin.",
        length=17,
        title="A guide",
        description="How to begin.",
        language="en",
        canonical="https://example.com/guide",
        author="Ada",
        published="2026-01-02T03:04:05Z",
        modified="2026-02-03",
        status=200,
        content_type="text/html; charset=utf-8",
        final_url="https://example.com/guide/",
    )


@each_description("firecrawl")
@pytest.mark.parametrize("only_main_content", [True, False])
async def test_page_costs_one_credit(
    *, only_main_content: bool, spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("firecrawl", SCRAPE, build_page(), method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET) as firecrawl:
        await firecrawl.scrape(URL, only_main_content=only_main_content)

    (request,) = upstreams.requests_of("firecrawl")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "url": URL,
        "formats": ["markdown"],
        "onlyMainContent": only_main_content,
        "timeout": 15_000,
        "skipTlsVerification": False,
        "parsers": [{"type": "pdf", "maxPages": 1}],
        "removeBase64Images": True,
        "proxy": "basic",
    }
    assert find_problems(spec, "/scrape", request.body) == []


@each_description("firecrawl")
async def test_search_costs_two_credits(spec: str, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", SEARCH, {"success": True, "data": {}}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET) as firecrawl:
        await firecrawl.search("words", 5)
        await firecrawl.search("words", 40)

    first, second = upstreams.requests_of("firecrawl")
    assert first.body == {
        "query": "words",
        "limit": 5,
        "sources": ["web"],
        "highlights": False,
        "timeout": 15_000,
    }
    assert second.body["limit"] == 10
    assert find_problems(spec, "/search", first.body) == []


@each_description("firecrawl")
@pytest.mark.parametrize(("words", "sent"), [(None, {}), ("blog", {"search": "blog"})])
async def test_map_costs_one_credit(
    words: str | None, sent: dict[str, str], spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("firecrawl", MAP, {"success": True, "links": [{"url": URL}]}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET) as firecrawl:
        await firecrawl.site_links(URL, words, 100)

    (request,) = upstreams.requests_of("firecrawl")
    assert request.body == {"url": URL, "limit": 100, "timeout": 15_000, "includeSubdomains": False} | sent
    assert find_problems(spec, "/map", request.body) == []


async def test_upstream_timeout_is_shorter_than_ours(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", SCRAPE, build_page(), method="POST")

    async with open_provider(
        Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET, timeout=5.0
    ) as firecrawl:
        await firecrawl.scrape(URL, only_main_content=True)

    assert upstreams.requests_of("firecrawl")[0].body["timeout"] == 4000


def build_provider(folder: Path, **options: Any) -> Firecrawl:
    """Build the provider with these settings."""
    options = {"firecrawl": ProviderSettings(**options)} if options else {}
    return Firecrawl(build_settings(folder, "http://127.0.0.1:9", providers=options))


@pytest.mark.parametrize(
    "base", ["https://fire.example", "https://fire.example/v2", "https://fire.example/v2/"]
)
def test_url_with_version_is_used_unchanged(base: str, tmp_path: Path) -> None:
    firecrawl = build_provider(tmp_path, url=base)

    assert firecrawl.url(SCRAPE) == "https://fire.example/v2/scrape"


@pytest.mark.parametrize(
    ("options", "configured"),
    [
        ({}, False),
        ({"key": SECRET}, True),
        ({"url": "http://localhost:3002"}, True),
        ({"url": "https://api.firecrawl.dev"}, False),
        ({"url": "https://api.firecrawl.dev/"}, False),
        ({"url": "https://api.firecrawl.dev/v2"}, False),
        ({"url": "http://localhost:3002", "key": SECRET}, True),
        ({"key": SECRET, "enabled": False}, False),
    ],
)
def test_key_or_own_instance_is_sufficient(
    *, options: dict[str, Any], configured: bool, tmp_path: Path
) -> None:
    assert build_provider(tmp_path, **options).is_configured is configured


async def test_own_instance_is_called_without_key(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", SCRAPE, build_page(), method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        await firecrawl.scrape(URL, only_main_content=True)

    assert "authorization" not in upstreams.requests_of("firecrawl")[0].headers


async def test_missing_key_and_url_send_no_request(tmp_path: Path) -> None:
    async with open_provider(Firecrawl, tmp_path) as firecrawl:
        with pytest.raises(ProviderUnconfigured):
            await firecrawl.scrape(URL, only_main_content=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://x.com/someone",
        "http://X.COM./a",
        "https://www.x.com",
        "https://twitter.com/a",
        "https://mobile.twitter.com:443/a",
        "https://api.twitter.com",
        "https://\uff58.com/",
        "https://%78.com/",
    ],
)
async def test_expensive_sites_are_never_sent(url: str, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET) as firecrawl:
        with pytest.raises(ProviderError, match="not used"):
            await firecrawl.scrape(url, only_main_content=True)
        with pytest.raises(ProviderError, match="not used"):
            await firecrawl.site_links(url, None, 100)

    assert firecrawl.unsupported_options({"url": url, "onlyMainContent": True}) == ("url",)
    assert upstreams.requests == []


@pytest.mark.parametrize(
    "options",
    [
        {"url": "https://notx.com/"},
        {"url": "https://x.com.example/"},
        {"url": "https://example.com/x.com"},
        {"url": "https://fedex.com/"},
        {"query": "x.com"},
        {},
        {"url": "no address"},
    ],
)
def test_other_sites_are_not_expensive(options: dict[str, Any], tmp_path: Path) -> None:
    assert build_provider(tmp_path, key=SECRET).unsupported_options(options) == ()


@pytest.mark.parametrize("status", [404, 410])
async def test_missing_page_is_no_data(status: int, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    with pytest.raises(NoData, match=str(status)):
        await scrape_page(upstreams, tmp_path, build_page(statusCode=status))


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "blocked"),
        (403, "blocked"),
        ([429], "blocked"),
        ("451", "blocked"),
        (500, "failed"),
        (503, "failed"),
        (400, "failed"),
    ],
)
async def test_non_page_answer_of_site_is_distinguished(
    status: Any, reason: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(PageUnread) as caught:
        await scrape_page(upstreams, tmp_path, build_page(statusCode=status))

    assert caught.value.reason == reason
    assert caught.value.provider == "firecrawl"


@pytest.mark.parametrize("markdown", ["", "  \n\n ", None, "\u200b\u202e", "![](<Base64-Image-Removed>)"])
async def test_page_without_text_is_unread(markdown: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = build_page()
    body["data"]["markdown"] = markdown

    with pytest.raises(PageUnread) as caught:
        await scrape_page(upstreams, tmp_path, body)

    assert caught.value.reason == "failed"


REASONS = [
    ("SCRAPE_DNS_RESOLUTION_ERROR", "", "dns"),
    ("SCRAPE_TIMEOUT", "", "timeout"),
    ("MAP_TIMEOUT", "", "timeout"),
    ("SCRAPE_PDF_INSUFFICIENT_TIME_ERROR", "", "timeout"),
    ("SCRAPE_SSL_ERROR", "", "tls"),
    ("SCRAPE_UNSUPPORTED_FILE_ERROR", "", "unsupported"),
    ("SCRAPE_PDF_OCR_REQUIRED", "", "unsupported"),
    ("SCRAPE_PDF_PREFETCH_FAILED", "", "failed"),
    ("SCRAPE_PDF_ANTIBOT_ERROR", "", "blocked"),
    ("SCRAPE_ALL_ENGINES_FAILED", "All scraping engines failed!", "failed"),
    ("SCRAPE_SITE_ERROR", "net::ERR_CONNECTION_REFUSED", "unreachable"),
    ("SCRAPE_SITE_ERROR", "net::ERR_NAME_NOT_RESOLVED", "dns"),
    ("SCRAPE_SITE_ERROR", "net::ERR_CERT_DATE_INVALID", "tls"),
    ("SCRAPE_SITE_ERROR", "net::ERR_CONNECTION_TIMED_OUT", "timeout"),
    ("scrape_ssl_error", "", "tls"),
    ("SCRAPE_SOMETHING_NEW", "", "failed"),
]


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(("code", "text", "reason"), REASONS)
async def test_reason_of_unread_page_is_code(
    code: str, text: str, reason: str, status: int, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {"success": False, "code": code, "error": text}

    with pytest.raises(PageUnread) as caught:
        await scrape_page(upstreams, tmp_path, body, status)

    assert caught.value.reason == reason
    assert caught.value.details == {"reason": reason}
    assert code.upper() in caught.value.message


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, {"success": False, "error": "something"}, "failed"),
        (200, {"success": False}, "failed"),
        (408, {"success": False, "error": "Request timed out"}, "timeout"),
        (408, "gateway", "timeout"),
        (404, {"success": False, "code": "SCRAPE_NO_CACHED_DATA"}, "failed"),
        (403, {"success": False, "error": "We do not support this site. Contact support."}, "blocked"),
        (403, {"success": False, "error": "This website is no longer supported."}, "blocked"),
    ],
)
async def test_failure_without_code_is_classified_by_status(
    status: int, body: Any, reason: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(PageUnread) as caught:
        await scrape_page(upstreams, tmp_path, body, status)

    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"success": False, "error": "Unauthorized: Invalid token"}),
        (402, {"error": "Payment required to access this resource."}),
        (402, {"success": False, "error": "Insufficient credits"}),
        (403, {"success": False, "error": "Forbidden. Please contact support."}),
        (403, "<html>no</html>"),
    ],
)
async def test_refusal_of_operator_is_no_buyer_error(
    status: int, body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderRefused):
        await scrape_page(upstreams, tmp_path, body, status)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {}),
        (200, []),
        (200, {"success": True}),
        (200, {"success": True, "data": None}),
        (200, {"success": True, "data": []}),
        (200, {"success": True, "data": "text"}),
        (200, {"success": True, "data": {"markdown": ["x"]}}),
        (400, {"success": False, "error": "Bad Request", "details": []}),
        (404, "404 page not found"),
        (500, {"success": False, "error": "(Internal server error) - oh"}),
        (500, "text"),
        (409, {}),
        (302, ""),
    ],
)
async def test_failure_unrelated_to_page_is_of_upstream(
    status: int, body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderError) as caught:
        await scrape_page(upstreams, tmp_path, body, status)

    assert not isinstance(caught.value, PageUnread | ProviderRefused)


@pytest.mark.parametrize("success", [{"success": True}, {"status": "success"}, {}])
async def test_success_field_is_optional(success: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    read = await scrape_page(upstreams, tmp_path, {"data": build_page()["data"], **success})

    assert read.title == "A guide"


async def test_metadata_is_optional(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    read = await scrape_page(upstreams, tmp_path, {"success": True, "data": {"markdown": "Text"}})

    assert read == WebPage(url=URL, markdown="Text", length=4)


async def test_metadata_values_may_be_lists(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = build_page(
        title=["", "First", "Second"],
        description=["One", "Two"],
        language=["de"],
        url=["https://example.com/a", "https://example.com/b"],
        contentType=["text/html"],
        author=["https://example.com/ada", 7],
        **{"article:author": "Grace"},
    )

    read = await scrape_page(upstreams, tmp_path, body)

    assert (read.title, read.description, read.language) == ("First", "One", "de")
    assert (read.final_url, read.content_type, read.author) == ("https://example.com/a", "text/html", "Grace")


@pytest.mark.extended
@pytest.mark.parametrize(
    "odd",
    ["", "yesterday", 7, None, {}, [], True, "2026-13-01", "javascript:alert(1)", "1970-01-01T00:00:00Z"],
)
async def test_invalid_dates_and_urls_are_null(odd: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    read = await scrape_page(
        upstreams,
        tmp_path,
        build_page(url=odd, canonical=odd, **{"article:published_time": odd, "og:updated_time": odd}),
    )

    assert (read.published, read.modified, read.final_url, read.canonical) == (None,) * 4


@pytest.mark.extended
@pytest.mark.parametrize("odd", [0, 99, 600, -1, 200.5, True, None, "ok", [], {}, 2**70])
async def test_invalid_status_is_null(odd: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    read = await scrape_page(upstreams, tmp_path, build_page(statusCode=odd))

    assert read.status is None


@pytest.mark.parametrize(
    ("fields", "length", "warning"),
    [
        ({"numPages": 1, "totalPages": 12}, None, "it has 12"),
        ({"numPages": 1, "totalPages": 1}, 17, None),
        ({"numPages": 1}, None, "at most the first page"),
        ({}, None, "at most the first page"),
    ],
)
async def test_one_page_of_pdf_is_read_with_warning(
    fields: dict[str, Any], length: int | None, warning: str | None, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    read = await scrape_page(upstreams, tmp_path, build_page(contentType="application/pdf", **fields))

    assert read.length == length
    assert (warning is None and read.warnings == ()) or (warning or "") in read.warnings[0]


async def test_invisible_characters_are_removed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    hidden = "\u202eab\u200bcd\x00\U000e0041\x1b[31m"
    body = build_page(title=hidden, description=hidden, author=hidden, language=hidden, contentType=hidden)
    body["data"]["markdown"] = f"# {hidden}\r\n\r\ntext\x85more"

    read = await scrape_page(upstreams, tmp_path, body)

    assert read.markdown == "# abcd[31m\n\ntext\nmore"
    assert (read.title, read.description, read.author) == ("abcd[31m",) * 3
    assert not any(UNSEEN.search(each) for each in to_builtins(read).values() if isinstance(each, str))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("markdown", "left"),
    [
        ("a ![Logo](<Base64-Image-Removed>) b", "a Logo b"),
        ("a ![Logo](data:image/png;base64,iVBORw0KGgo=) b", "a Logo b"),
        ('a ![Logo](data:image/png;base64,iVBORw0KGgo= "Our logo") b', "a Logo b"),
        ("[![Logo](<Base64-Image-Removed>)](https://example.com)", "[Logo](https://example.com)"),
        ('<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAUEBA=="> b', '<img src=""> b'),
        ("a [Menu](java\u200bscript:void(0)) b", "a Menu b"),
        ("![Chart](https://example.com/chart.png)", "![Chart](https://example.com/chart.png)"),
        ("send data: as base64, please", "send data: as base64, please"),
    ],
)
async def test_data_images_and_script_links_become_text(
    markdown: str, left: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = build_page()
    body["data"]["markdown"] = markdown

    read = await scrape_page(upstreams, tmp_path, body)

    assert read.markdown == left


async def test_only_required_part_of_long_page_is_read(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = build_page()
    body["data"]["markdown"] = "word " * 100_000

    read = await scrape_page(upstreams, tmp_path, body)

    assert len(read.markdown) <= MAX_CHARACTERS
    assert read.length == 500_000


async def test_length_of_endless_page_is_unknown(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = build_page()
    body["data"]["markdown"] = "word " * 300_000

    read = await scrape_page(upstreams, tmp_path, body)

    assert len(read.markdown) <= MAX_CHARACTERS
    assert read.length is None


@pytest.mark.extended
@pytest.mark.parametrize(
    "hostile", ["![](data:" * 100_000, "![" * 200_000, "![a](" + " " * 400_000, "data:a/b;base64," * 30_000]
)
def test_hostile_markdown_is_read_in_time(hostile: str) -> None:
    read = parse_page(URL, {"markdown": hostile + " base64"})

    assert read


def build_search_row(**more: Any) -> dict[str, Any]:
    """Return a search result in the upstream's format."""
    return {"url": URL, "title": "A guide", "description": "How to begin.", "position": 1} | more


@pytest.mark.parametrize(
    "data",
    [
        {"web": [build_search_row()]},
        [build_search_row()],
        {"web": [build_search_row()], "news": [{"url": "https://n.example"}], "images": [7]},
    ],
)
async def test_results_of_both_formats_are_parsed(
    data: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("firecrawl", SEARCH, {"success": True, "data": data}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        (hit,) = (await firecrawl.search("words", 5)).hits

    assert (hit.url, hit.title, hit.description) == (URL, "A guide", "How to begin.")


@pytest.mark.parametrize(
    "data", [{}, {"web": []}, {"web": None}, [], {"news": [build_search_row(url="https://n.example")]}]
)
async def test_empty_results_are_answer(data: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", SEARCH, {"success": True, "data": data}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        answer = await firecrawl.search("words", 5)

    assert answer.hits == ()


async def test_results_are_distinct_limited_and_clean(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    listed = [
        build_search_row(),
        build_search_row(title="Again"),
        build_search_row(url="javascript:alert(1)"),
        7,
        None,
        build_search_row(url=None),
    ]
    listed += [
        build_search_row(url=f"https://example.com/{n}", title="\u202eT\x00" + "x" * 900) for n in range(30)
    ]
    upstreams.set_response("firecrawl", SEARCH, {"success": True, "data": {"web": listed}}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        hits = (await firecrawl.search("words", 10)).hits

    assert [hit.url for hit in hits] == [URL] + [f"https://example.com/{n}" for n in range(9)]
    assert hits[1].title is not None
    assert hits[1].title.startswith("Txxx")
    assert len(hits[1].title) == 300


@pytest.mark.parametrize(
    "body",
    [
        {"success": False, "error": "oh"},
        {"success": False, "code": "SCRAPE_TIMEOUT"},
        {"success": True},
        {"success": True, "data": None},
        {"success": True, "data": 7},
        {"success": True, "data": {"web": 7}},
        {"success": True, "data": {"web": [7]}},
        {"success": True, "data": {"web": [{"url": "ftp://example.com"}]}},
        {"success": True, "data": {"pages": [build_search_row()]}},
        [],
        "text",
    ],
)
async def test_unknown_search_format_is_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", SEARCH, body, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        with pytest.raises(ProviderError) as caught:
            await firecrawl.search("words", 5)

    assert not isinstance(caught.value, PageUnread)


@pytest.mark.parametrize(
    "body",
    [
        {"success": True, "links": [URL, {"url": "https://example.com/b", "title": "B"}]},
        {"status": "success", "links": [URL, {"url": "https://example.com/b", "title": "B"}]},
        {"success": True, "data": {"links": [{"url": URL}, {"url": "https://example.com/b", "title": "B"}]}},
    ],
)
async def test_links_of_both_formats_are_parsed(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", MAP, body, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        links = await firecrawl.site_links(URL, None, 100)

    assert [(link.url, link.title) for link in links] == [(URL, None), ("https://example.com/b", "B")]


async def test_links_are_distinct_and_limited(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    listed: list[Any] = [
        {"url": f"{URL}?a=1", "title": "T", "description": "D"},
        {"url": f"{URL}?a=2", "title": "T", "description": "D"},
        f"{URL}?page=1",
        f"{URL}?page=2",
        f"{URL}?page=2",
        "mailto:someone@example.com",
        *(f"https://example.com/{n}" for n in range(200)),
    ]
    upstreams.set_response("firecrawl", MAP, {"success": True, "links": listed}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        links = await firecrawl.site_links(URL, None, 100)

    assert [link.url for link in links[:4]] == [
        f"{URL}?a=1",
        f"{URL}?page=1",
        f"{URL}?page=2",
        "https://example.com/0",
    ]
    assert len(links) == 100


async def test_site_without_links_is_no_data(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", MAP, {"success": True, "links": []}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        with pytest.raises(NoData):
            await firecrawl.site_links(URL, None, 100)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"success": True},
        {"success": True, "links": None},
        {"links": {}},
        {"links": [7]},
        {"links": ["x"]},
    ],
)
async def test_unknown_map_format_is_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("firecrawl", MAP, body, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        with pytest.raises(ProviderError):
            await firecrawl.site_links(URL, None, 100)


async def test_site_that_cannot_be_mapped_has_reason(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"success": False, "code": "MAP_TIMEOUT", "error": "Map timed out"}
    upstreams.set_response("firecrawl", MAP, body, status=408, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        with pytest.raises(PageUnread) as caught:
            await firecrawl.site_links(URL, None, 100)

    assert caught.value.reason == "timeout"


@pytest.mark.extended
@pytest.mark.parametrize("question", ["search", "scrape", "links"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(
    fault: Fault, question: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.faults["firecrawl"] = fault

    async with open_provider(
        Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET, timeout=2.5
    ) as firecrawl:
        with pytest.raises(ProviderFailure) as caught:
            await run_query(firecrawl, question)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "firecrawl"
    assert firecrawl.trace.warnings == [caught.value.message]


async def run_query(firecrawl: Firecrawl, question: str) -> Any:
    """Return the result of a query, or its error."""
    match question:
        case "search":
            return await firecrawl.search("words", 5)
        case "scrape":
            return await firecrawl.scrape(URL, only_main_content=True)
        case _:
            return await firecrawl.site_links(URL, "words", 100)


@pytest.mark.extended
@pytest.mark.parametrize("question", ["search", "scrape", "links"])
@pytest.mark.parametrize("status", [200, 400, 401, 402, 403, 404, 408, 429, 500, 503])
async def test_key_is_never_repeated(
    status: int, question: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {"success": False, "error": f"the token {KEY} is bad", "code": KEY}
    for path in (MAP, SEARCH, SCRAPE):
        upstreams.set_response("firecrawl", path, body, status=status, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), key=SECRET) as firecrawl:
        with pytest.raises(ProviderFailure) as caught:
            await run_query(firecrawl, question)

    assert KEY not in caught.value.message
    assert KEY.upper() not in caught.value.message
    assert not any(KEY in warning for warning in firecrawl.trace.warnings)


@pytest.mark.parametrize("before", range(90, 125, 5))
async def test_parts_of_key_are_never_repeated(before: int, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = {"success": False, "error": "x" * before + KEY}

    with pytest.raises(ProviderError) as caught:
        await scrape_page(upstreams, tmp_path, body, 400)

    assert KEY[:6] not in caught.value.message


async def test_saved_page_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    read = await scrape_page(upstreams, tmp_path, load_body("firecrawl", "scrape"))

    assert read.markdown == "# Pricing\n\nOne cent a call. [Read more](https://shop.example/more)"
    assert read.length == len(read.markdown)
    assert (read.title, read.author, read.description) == ("Pricing | Shop", "Shop Team", "What a call costs")
    assert (read.status, read.language) == (200, "en")
    assert read.final_url == "https://www.shop.example/pricing"


@pytest.mark.recorded
async def test_recorded_page_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("firecrawl", "scrape-firecrawl-dev")

    read = await scrape_page(upstreams, tmp_path, body)

    assert read.markdown.startswith("We just raised our Series A")
    assert len(read.markdown) == read.length
    assert len(read.markdown) > 20_000
    assert (read.title, read.author) == ("Firecrawl - The Web Data API for AI", "Firecrawl")
    assert (read.status, read.language, read.final_url) == (200, "en", "https://www.firecrawl.dev/")
    assert "base64" not in read.markdown.lower()


async def test_request_matches_recorded_description(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(Firecrawl, tmp_path, url=f"{recordings_url}/firecrawl", key=SECRET) as firecrawl:
        links = await firecrawl.site_links("https://firecrawl.dev", None, 100)
        with pytest.raises(PageUnread):
            await firecrawl.scrape("https://nonexistent.example", only_main_content=True)
        with pytest.raises(ProviderTimeout):
            await firecrawl.search("q", 5)

    assert len(links) == 4


@pytest.mark.parametrize("case", ["scrape_dns_failure", recorded_case("scrape-200-success-false")])
async def test_saved_failure_with_status_200_is_failure(
    case: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(PageUnread, match="SCRAPE_DNS_RESOLUTION_ERROR") as caught:
        await scrape_page(upstreams, tmp_path, load_body("firecrawl", case))

    assert caught.value.reason == "dns"


@pytest.mark.parametrize(
    ("case", "count"),
    [
        ("search", 2),
        ("search_list", 1),
        recorded_case("search-documented", 2),
        recorded_case("search-data-is-a-list", 1),
    ],
)
async def test_saved_search_is_parsed(
    case: str, count: int, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("firecrawl", SEARCH, load_body("firecrawl", case), method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        hits = (await firecrawl.search("firecrawl", 5)).hits

    assert len(hits) == count
    assert all(hit.title and hit.description for hit in hits)


async def test_search_results_have_page_data(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    metadata = {"language": "en", "ogSiteName": "Shop", "ogImage": "https://shop.example/1.png"}
    results = [
        {"url": "https://shop.example/1", "metadata": metadata | {"publishedTime": "2026-04-01"}},
        {"url": "https://shop.example/2", "metadata": {"language": ["en"], "ogImage": "data:x"}},
    ]
    upstreams.set_response("firecrawl", SEARCH, {"success": True, "data": {"web": results}}, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        first, second = (await firecrawl.search("shop", 5)).hits

    assert (first.published, first.site_name, first.language) == ("2026-04-01", "Shop", "en")
    assert first.image == "https://shop.example/1.png"
    assert (second.language, second.image) == (None, None)


@pytest.mark.parametrize(
    ("case", "count", "title"),
    [("map", 2, "Page docs"), recorded_case("map-documented", 4, "Scrape | Firecrawl")],
)
async def test_saved_map_names_each_page_once(
    case: str, count: int, title: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("firecrawl", MAP, load_body("firecrawl", case), method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        links = await firecrawl.site_links("https://firecrawl.dev", None, 100)

    assert len(links) == count
    assert links[0].title == title


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ("invalid_token", 401),
        ("no_credits", 402),
        recorded_case("error-401", 401),
        recorded_case("error-402", 402),
    ],
)
async def test_saved_refusal_is_refusal(
    case: str, status: int, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    with pytest.raises(ProviderRefused):
        await scrape_page(upstreams, tmp_path, load_body("firecrawl", case), status)


@pytest.mark.parametrize("case", ["search_timeout", recorded_case("error-408-search")])
async def test_saved_search_timeout_is_timeout(case: str, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("firecrawl", case)
    upstreams.set_response("firecrawl", SEARCH, body, status=408, method="POST")

    async with open_provider(Firecrawl, tmp_path, url=upstreams.url_of("firecrawl")) as firecrawl:
        with pytest.raises(ProviderTimeout):
            await firecrawl.search("q", 5)


@pytest.mark.extended
@each_description("firecrawl")
@pytest.mark.parametrize("question", ["search", "scrape", "links"])
async def test_responses_of_its_description_are_parsed(
    question: str, spec: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    path = {"search": "/search", "scrape": "/scrape", "links": "/map"}[question]
    bodies = iter(generate_responses(spec, "POST", path, 200, 60, seed=4))

    def next_answer(_request: RecordedRequest) -> tuple[int, Any]:
        return 200, next(bodies)

    upstreams.set_response_function("firecrawl", f"/v2{path}", next_answer, method="POST")

    async with open_provider(
        Firecrawl, tmp_path, url=upstreams.url_of("firecrawl"), per_minute=10_000
    ) as firecrawl:
        outcomes = [await query_outcome(firecrawl, question) for _ in range(60)]

    handed_on = [text for each in outcomes for text in list_texts(each)]
    assert len(handed_on) > 20
    assert [text for text in handed_on if UNSEEN.search(text)] == []


async def query_outcome(firecrawl: Firecrawl, question: str) -> Any:
    """Return the result, or the error."""
    try:
        return await run_query(firecrawl, question)
    except (NoData, ProviderFailure) as missing:
        return missing.message


def list_texts(value: Any) -> list[str]:
    """Yield all texts of a result."""
    match value:
        case str():
            return [value]
        case SearchResults() | Hit() | WebPage():
            return list_texts(list(to_builtins(value).values()))
        case list() | tuple():
            return [text for each in cast(Sequence[Any], value) for text in list_texts(each)]
        case dict():
            return list_texts(list(cast(dict[str, Any], value).values()))
        case _:
            return []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.extended
@given(
    st.dictionaries(st.sampled_from(sorted(build_page(author="", canonical="")["data"]["metadata"])), JSON)
)
def test_page_with_any_metadata_is_parsed(odd: dict[str, Any]) -> None:
    read = parse_page(URL, build_page(**odd)["data"])

    assert read is not None
    assert read.markdown == "# A guide\n\nBegin."
    assert all(each is None or each for each in (read.title, read.description, read.author, read.language))


@given(JSON, JSON)
def test_any_error_is_parsed(code: Any, text: Any) -> None:
    assert failure_reason({"code": code, "error": text}) is None or isinstance(code, str)
