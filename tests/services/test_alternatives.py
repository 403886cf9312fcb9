"""Services with alternative providers, through the paid API: order, fallback, pins and options."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from buyer import ApiFactory
from fake_upstreams import FAULTS, FakeUpstreams, Fault, configure_providers, send_paid
from jsonschema import Draft202012Validator
from pydantic import SecretStr

from centgate.cache import response_cache
from centgate.catalog import all_services
from centgate.provider import instrumented
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.pagereader import PageReader
from centgate.services.crawler_scrape import CrawlerScrape
from centgate.services.neuralweb_search import KEYWORD_WARNING
from centgate.settings import ProviderSettings, Settings
from centgate.web.results import WebPage

WORD = "Kumquat"
ARTICLE = f"""<!doctype html><html lang="en"><head><title>{WORD} farming</title></head><body><main><h1>{WORD}
farming</h1>{"<p>A kumquat is a small fruit that is eaten whole, and grows on a tree of its own.</p>" * 8}
<p><a href="/site/other">Another {WORD} page</a></p></main></body></html>"""
SEARCHED = {
    "exa": ("POST", "/search", {"results": [{"id": "1", "url": "https://a.test/1", "title": WORD}]}),
    "firecrawl": (
        "POST",
        "/v2/search",
        {"success": True, "data": {"web": [{"url": "https://a.test/1", "title": WORD}]}},
    ),
    "searxng": ("GET", "/search", {"results": [{"url": "https://a.test/1", "title": WORD, "content": "x"}]}),
}
Made = Callable[[FakeUpstreams], Any]


@dataclass(frozen=True)
class Case:
    """Service with two providers: its request, and the response of each one's upstream."""

    slug: str
    body: Callable[[FakeUpstreams], dict[str, Any]]
    primary: str
    path: str
    method: str
    response_body: Callable[[FakeUpstreams], Any]
    alternative: str
    """The alternative that answers otherwise; `serve_alternatives` prepares its upstream."""

    def __str__(self) -> str:
        return self.slug


def page_url(upstreams: FakeUpstreams, name: str = "page") -> str:
    """Return the URL of a page of the site that the built-in providers read."""
    return f"{upstreams.url}/site/{name}"


def firecrawl_page(upstreams: FakeUpstreams) -> Any:
    """Return Firecrawl's response for a page."""
    metadata = {"title": WORD, "sourceURL": page_url(upstreams), "statusCode": 200}
    return {"success": True, "data": {"markdown": f"# {WORD}\n\nA small fruit.", "metadata": metadata}}


def exa_page(upstreams: FakeUpstreams) -> Any:
    """Return Exa's response for a page."""
    return {
        "results": [
            {"id": page_url(upstreams), "url": page_url(upstreams), "title": WORD, "text": f"{WORD} text"}
        ],
        "statuses": [{"id": page_url(upstreams), "status": "success"}],
    }


def _return_always(value: Any) -> Made:
    return lambda _upstreams: value


CASES = (
    Case(
        "neuralweb-search",
        _return_always({"query": WORD}),
        "exa",
        "/search",
        "POST",
        _return_always(SEARCHED["exa"][2]),
        "searxng",
    ),
    Case(
        "neuralweb-contents",
        lambda upstreams: {"urls": [page_url(upstreams)]},
        "exa",
        "/contents",
        "POST",
        exa_page,
        "pagereader",
    ),
    Case(
        "crawler-map",
        lambda upstreams: {"url": page_url(upstreams)},
        "firecrawl",
        "/v2/map",
        "POST",
        _return_always({"success": True, "links": [{"url": "https://a.test/1", "title": WORD}]}),
        "sitemapper",
    ),
    Case(
        "crawler-search",
        _return_always({"query": WORD}),
        "firecrawl",
        "/v2/search",
        "POST",
        _return_always(SEARCHED["firecrawl"][2]),
        "searxng",
    ),
    Case(
        "crawler-scrape",
        lambda upstreams: {"url": page_url(upstreams)},
        "firecrawl",
        "/v2/scrape",
        "POST",
        firecrawl_page,
        "pagereader",
    ),
    Case(
        "libdocs-resolve-library",
        _return_always({"libraryName": "kumquat"}),
        "context7",
        "/api/v2/libs/search",
        "GET",
        _return_always({"results": [{"id": "/kumquat/kumquat", "title": WORD, "state": "finalized"}]}),
        "packagedocs",
    ),
    Case(
        "libdocs-query-docs",
        _return_always({"libraryId": "/pypi/kumquat", "topic": "peel"}),
        "context7",
        "/api/v2/context",
        "GET",
        _return_always(
            {"codeSnippets": [], "infoSnippets": [{"content": f"How to peel a {WORD}", "pageId": "x"}]}
        ),
        "packagedocs",
    ),
)
LEFT_TO_THE_OTHER: tuple[Fault, ...] = (
    "500",
    "429",
    "403 page",
    "200 page",
    "reset",
    "empty",
    "wrong types",
)
IN_TWO_PARTS = tuple(FAULTS)[::2], tuple(FAULTS)[1::2]
"""All faults in two parts: an upstream that fails ten times in a row is not called for a while."""
SERVICES = {service.slug: service for service in all_services()}
Deploy = Callable[..., httpx.Client]


def pack_source() -> bytes:
    """Return a source distribution with a README."""
    readme = f"# {WORD}\n\nA library about fruit.\n\n## Peel\n\nTo peel a {WORD}:\n\n```python\npeel()\n```\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"README.md": readme, "src/kumquat/__init__.py": "def peel() -> None: ..."}.items():
            member = tarfile.TarInfo(f"kumquat-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def serve_registries(upstreams: FakeUpstreams) -> None:
    """Serve package registries that know one package."""
    packed = pack_source()
    file = {
        "packagetype": "sdist",
        "filename": "kumquat-1.0.tar.gz",
        "url": f"{upstreams.url_of('packagedocs_pypi')}/packages/kumquat-1.0.tar.gz",
        "digests": {"sha256": sha256(packed).hexdigest()},
        "size": len(packed),
        "yanked": False,
    }
    info = {"name": "kumquat", "version": "1.0", "summary": f"{WORD}s", "project_urls": None, "yanked": False}
    body = {"info": info, "urls": [file], "releases": {"1.0": [file]}}
    for path in ("/pypi/kumquat/json", "/pypi/kumquat/1.0/json"):
        upstreams.set_response("packagedocs_pypi", path, body)
    upstreams.set_response("packagedocs_pypi", "/packages/kumquat-1.0.tar.gz", packed)


def serve_alternatives(upstreams: FakeUpstreams) -> None:
    """Serve every upstream of the providers that need no key."""
    upstreams.set_response("site", "/page", ARTICLE)
    method, path, body = SEARCHED["searxng"]
    upstreams.set_response("searxng", path, body, method=method)
    serve_registries(upstreams)


@pytest.fixture
def deploy(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> Deploy:
    """Function that serves an API: `deploy(*names)` with keys and a timeout for these."""

    def start(
        *keyed: str, pinned: tuple[str, ...] = (), off: tuple[str, ...] = (), timeout: float = 8
    ) -> httpx.Client:
        serve_alternatives(upstreams)
        key = {"key": SecretStr("a-secret-key"), "timeout": timeout}
        providers: Mapping[str, ProviderSettings] = {
            **upstreams.provider_settings("searxng", "packagedocs_pypi", "packagedocs_npm"),
            **upstreams.provider_settings(*keyed, **key),
            **{name: ProviderSettings(enabled=False) for name in off},
        }
        update = {
            "providers": providers,
            "pinned": pinned,
            "fetch_allowed": (urlsplit(upstreams.url).netloc,),
        }
        return api(settings.model_copy(update=update))

    return start


def serve_primary(upstreams: FakeUpstreams, case: Case) -> None:
    """Let the primary's upstream answer."""
    upstreams.set_response(case.primary, case.path, case.response_body(upstreams), method=case.method)


def buy(client: httpx.Client, case: Case, upstreams: FakeUpstreams) -> httpx.Response:
    """Buy the answer."""
    return send_paid(client, SERVICES[case.slug].path, case.body(upstreams))


def provider_statuses(response: httpx.Response) -> dict[str, tuple[str, str]]:
    """Return role and status of each provider."""
    return {each["name"]: (each["role"], each["status"]) for each in response.json()["providers"]}


def list_providers(client: httpx.Client, case: Case) -> list[tuple[str, str]]:
    """Return name and role of each provider, as the catalogue lists them."""
    entry = client.get(f"/services/{case.slug}").json()
    return [(each["name"], each["role"]) for each in entry["providers"]]


def assert_complete(response: httpx.Response, case: Case) -> None:
    """Assert that the answer is valid by its schema, and about the query."""
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    validator: Any = Draft202012Validator(SERVICES[case.slug].output_schema)
    assert list(validator.iter_errors(data)) == []
    assert WORD.lower() in response.text.lower()


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES, ids=str)
def test_keyed_provider_is_primary(case: Case, deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy(case.primary)
    serve_primary(upstreams, case)

    response = buy(client, case, upstreams)

    assert_complete(response, case)
    assert list_providers(client, case)[:2] == [(case.primary, "primary"), (case.alternative, "fallback")]
    assert provider_statuses(response)[case.primary] == ("primary", "ok")
    assert provider_statuses(response)[case.alternative] == ("fallback", "skipped")
    assert not any("fallback source" in warning for warning in response.json()["warnings"])


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES, ids=str)
def test_alternative_is_primary_without_key(case: Case, deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy()

    response = buy(client, case, upstreams)

    assert_complete(response, case)
    assert list_providers(client, case)[0] == (case.alternative, "primary")
    assert provider_statuses(response)[case.alternative] == ("primary", "ok")
    assert provider_statuses(response)[case.primary] == ("fallback", "unconfigured")
    assert not any("fallback source" in warning for warning in response.json()["warnings"])
    assert upstreams.requests_of(case.primary) == []


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES, ids=str)
def test_alternative_answers_if_primary_fails(
    case: Case, deploy: Deploy, upstreams: FakeUpstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "MAX_DEGRADED_TTL", 0.0)  # so that the primary is called each time
    client = deploy(case.primary)

    for fault in LEFT_TO_THE_OTHER:
        upstreams.faults[case.primary] = fault
        upstreams.requests.clear()

        response = buy(client, case, upstreams)

        assert_complete(response, case)
        assert upstreams.requests_of(case.primary), fault
        assert provider_statuses(response)[case.primary][1] in ("error", "rate_limited"), fault
        assert provider_statuses(response)[case.alternative] == ("fallback", "ok"), fault
        assert any("a fallback source was used" in warning for warning in response.json()["warnings"]), fault
        assert "a-secret-key" not in response.text


@pytest.mark.extended
@pytest.mark.parametrize("faults", IN_TWO_PARTS, ids=["some", "others"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_pinned_primary_has_no_fallback(
    case: Case, faults: tuple[Fault, ...], deploy: Deploy, upstreams: FakeUpstreams
) -> None:
    client = deploy(case.primary, pinned=(f"{case.slug}={case.primary}",), timeout=2.5)

    for fault in faults:
        upstreams.faults[case.primary] = fault
        upstreams.requests.clear()

        response = buy(client, case, upstreams)

        error = response.json()["error"]
        assert upstreams.requests_of(case.primary), fault
        assert (response.status_code, error["code"]) == FAULTS[fault], fault
        assert error["provider"] == case.primary
        assert error["details"]["payment"]["retry"] == "same_payment"
    assert (case.alternative, "primary") not in list_providers(client, case)


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES, ids=str)
def test_pinned_alternative_answers_despite_key(case: Case, deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy(case.primary, pinned=(f"{case.slug}={case.alternative}",))
    serve_primary(upstreams, case)

    response = buy(client, case, upstreams)

    assert_complete(response, case)
    assert provider_statuses(response)[case.alternative] == ("primary", "ok")
    assert upstreams.requests_of(case.primary) == []


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_charged_without_providers(case: Case, deploy: Deploy, upstreams: FakeUpstreams) -> None:
    legs = tuple(source.info.name for source in SERVICES[case.slug].sources)
    client = deploy(off=legs)

    response = buy(client, case, upstreams)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (503, "provider_unconfigured")
    assert error["details"]["payment"]["charged"] is False
    assert case.primary in error["message"]


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES, ids=str)
def test_refusal_of_upstream_never_reaches_buyer(
    case: Case, deploy: Deploy, upstreams: FakeUpstreams
) -> None:
    client = deploy(case.primary, pinned=(f"{case.slug}={case.primary}",))
    terms = {"x402Version": 2, "accepts": [{"payTo": "0x" + "66" * 20}], "error": "pay me"}

    for status in (401, 402, 403):
        upstreams.set_response(case.primary, case.path, terms, status=status, method=case.method)

        response = buy(client, case, upstreams)

        assert (response.status_code, response.json()["error"]["code"]) == (502, "provider_error"), status
        assert "PAYMENT-REQUIRED" not in response.headers
        assert "66" * 20 not in response.text
    assert len(upstreams.requests_of(case.primary)) >= 3


FORBIDDEN = (
    "http://127.0.0.1/",
    "http://169.254.169.254/latest",
    "http://[::1]/",
    "http://0x7f.1/",
    "http://2130706433/",
    "http://localhost/",
    "https://a.test:22/",
)
BY_URL: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "neuralweb-contents": lambda url: {"urls": [url]},
    "crawler-map": lambda url: {"url": url},
    "crawler-scrape": lambda url: {"url": url},
}


@pytest.mark.extended
@pytest.mark.parametrize("slug", BY_URL)
def test_forbidden_url_is_refused_before_payment(slug: str, client: httpx.Client) -> None:
    for url in FORBIDDEN:
        response = client.post(SERVICES[slug].path, json=BY_URL[slug](url))

        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "validation_error"), url
        assert error["details"]["issues"][0]["path"] in ("url", "urls.0")


@pytest.mark.parametrize(
    ("slug", "name"),
    [("neuralweb-search", "query"), ("crawler-search", "query"), ("libdocs-resolve-library", "libraryName")],
)
def test_white_space_query_is_refused_before_payment(slug: str, name: str, client: httpx.Client) -> None:
    response = client.post(SERVICES[slug].path, json={name: " \t\u3000"})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "validation_error")
    assert [issue["path"] for issue in error["details"]["issues"]] == [name]


def test_keyword_search_is_distinguished_from_search_by_meaning(
    deploy: Deploy, upstreams: FakeUpstreams
) -> None:
    by_keywords = buy(deploy(), CASES[0], upstreams)
    serve_primary(upstreams, CASES[0])
    by_meaning = buy(deploy("exa"), CASES[0], upstreams)

    assert KEYWORD_WARNING in by_keywords.json()["warnings"]
    assert KEYWORD_WARNING not in by_meaning.json()["warnings"]


@pytest.mark.parametrize("category", ["company"])
def test_unsupported_option_is_refused_before_payment(category: str, deploy: Deploy) -> None:
    client = deploy()

    response = client.post(SERVICES["neuralweb-search"].path, json={"query": WORD, "category": category})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "unsupported_options")
    assert error["details"]["options"] == ["category"]


def test_option_is_sent_only_to_supporting_provider(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy("exa")
    upstreams.faults["exa"] = "500"

    response = send_paid(client, SERVICES["neuralweb-search"].path, {"query": WORD, "category": "company"})

    assert (response.status_code, response.json()["error"]["provider"]) == (502, "exa")
    assert upstreams.requests_of("searxng") == []


@pytest.mark.extended
def test_pages_unread_by_primary_are_read_by_built_in_reader(
    deploy: Deploy, upstreams: FakeUpstreams
) -> None:
    client = deploy("exa")
    upstreams.set_response("site", "/second", ARTICLE)
    second = page_url(upstreams, "second")
    failed = {"id": second, "status": "error", "error": {"tag": "CRAWL_TIMEOUT"}}
    page = exa_page(upstreams)
    upstreams.set_response(
        "exa", "/contents", {**page, "statuses": [*page["statuses"], failed]}, method="POST"
    )

    response = send_paid(client, SERVICES["neuralweb-contents"].path, {"urls": [page_url(upstreams), second]})

    first, alternative = response.json()["data"]["pages"]
    assert (first["text"], first["error"]) == (f"{WORD} text", None)
    assert (alternative["url"], alternative["error"]) == (second, None)
    assert "small fruit" in alternative["text"]
    assert any("a fallback source was used" in warning for warning in response.json()["warnings"])


@pytest.mark.extended
def test_unreadable_page_has_error_beside_others(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy()
    urls = [page_url(upstreams), page_url(upstreams, "missing"), page_url(upstreams)]

    response = send_paid(client, SERVICES["neuralweb-contents"].path, {"urls": urls})

    pages = response.json()["data"]["pages"]
    assert [each["url"] for each in pages] == urls
    assert [each["error"] and each["error"]["reason"] for each in pages] == [None, "not_found", None]
    assert (pages[1]["status"], pages[1]["finalUrl"]) == (404, urls[1])
    assert response.json()["warnings"] == [f"{urls[1]}: not read: {pages[1]['error']['message']}"]
    assert provider_statuses(response)["pagereader"] == ("primary", "ok")


def test_page_that_no_source_reads_has_status_of_site(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy("exa")
    missing = page_url(upstreams, "missing")
    page, failed = exa_page(upstreams), {"id": missing, "status": "error", "error": {"tag": "CRAWL_TIMEOUT"}}
    upstreams.set_response(
        "exa", "/contents", {**page, "statuses": [*page["statuses"], failed]}, method="POST"
    )

    response = send_paid(
        client, SERVICES["neuralweb-contents"].path, {"urls": [page_url(upstreams), missing]}
    )

    unread = response.json()["data"]["pages"][1]
    assert "CRAWL_TIMEOUT" in unread["error"]["message"]
    assert (unread["status"], unread["finalUrl"]) == (404, missing)


@pytest.mark.parametrize(("status", "is_kept"), [(500, False), (429, False), (403, True), (404, True)])
def test_passing_failure_of_page_is_not_kept(
    deploy: Deploy, upstreams: FakeUpstreams, monkeypatch: pytest.MonkeyPatch, status: int, *, is_kept: bool
) -> None:
    monkeypatch.setattr(response_cache, "MAX_DEGRADED_TTL", 0.0)
    client = deploy()
    upstreams.set_response("site", "/broken", "broken", status=status)
    question = {"urls": [page_url(upstreams), page_url(upstreams, "broken")]}

    answers = [send_paid(client, SERVICES["neuralweb-contents"].path, question).json() for _ in range(2)]

    assert [each["cache"]["hit"] for each in answers] == [False, is_kept]


def test_unreadable_pages_alone_are_provider_failure(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy()
    urls = [page_url(upstreams, f"missing-{number}") for number in range(5)]

    response = send_paid(client, SERVICES["neuralweb-contents"].path, {"urls": urls})

    error = response.json()["error"]
    assert (response.status_code, error["code"], error["provider"]) == (502, "provider_error", "pagereader")
    assert error["details"]["reason"] == "not_found"
    assert all(url in error["message"] for url in urls)


@pytest.mark.parametrize("fault", ["429", "500"])
def test_failed_primary_is_told_if_fallback_reads_no_page(
    deploy: Deploy, upstreams: FakeUpstreams, fault: Fault
) -> None:
    client = deploy("exa")
    upstreams.faults["exa"] = fault
    missing = page_url(upstreams, "missing")

    response = send_paid(client, SERVICES["neuralweb-contents"].path, {"urls": [missing]})

    error = response.json()["error"]
    assert (response.status_code, error["code"], error["provider"]) == (*FAULTS[fault], "exa")
    assert missing in error["message"]


def test_missing_page_is_no_data(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    response = send_paid(deploy(), SERVICES["crawler-scrape"].path, {"url": page_url(upstreams, "missing")})

    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_data")


@pytest.mark.extended
def test_long_page_is_truncated_with_warning(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    client = deploy()
    upstreams.set_response(
        "site", "/long", f"<main><h1>{WORD}</h1>" + "<p>some words of it</p>" * 4000 + "</main>"
    )

    data = send_paid(client, SERVICES["crawler-scrape"].path, {"url": page_url(upstreams, "long")}).json()[
        "data"
    ]

    assert data["metadata"]["truncated"] is True
    assert data["metadata"]["length"] > 20_000 >= len(data["markdown"]) > 19_000


def test_expensive_hosts_are_left_to_built_in_reader(deploy: Deploy, upstreams: FakeUpstreams) -> None:
    alone = deploy("firecrawl", pinned=("crawler-scrape=firecrawl",))

    refused = alone.post(SERVICES["crawler-scrape"].path, json={"url": "https://x.com/somebody"})

    assert refused.json()["error"]["code"] == "unsupported_options"
    assert upstreams.requests_of("firecrawl") == []


async def test_skipped_primary_is_reported(
    settings: Settings,
) -> None:
    class Reader(PageReader):
        @instrumented
        async def read_page(self, url: str, only_main_content: bool) -> WebPage:  # noqa: FBT001 - as every reader
            return WebPage(url, f"# {WORD}", length=9)

    given = configure_providers(settings, {"firecrawl": ProviderSettings(key=SecretStr("a-secret-key"))})
    legs = {"firecrawl": Firecrawl(given), "pagereader": Reader(given)}

    answered = await SERVICES["crawler-scrape"].run(CrawlerScrape(url="https://x.com/somebody"), legs)

    assert answered.warnings == [
        "a fallback source was used: Built-in page reader instead of Firecrawl, which was skipped, "
        "since it does not support the request"
    ]
