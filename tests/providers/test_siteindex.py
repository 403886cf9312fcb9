"""Site index as a search provider: alone, empty, damaged, and without pages that buyers read."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from embeddings import embed_text, serve_embeddings
from fake_upstreams import FakeUpstreams, open_provider, send_paid
from pydantic import SecretStr

from centgate.catalog import all_services
from centgate.errors import NoData, ProviderError
from centgate.providers.siteindex import SiteIndex
from centgate.services.neuralweb_search import KEYWORD_WARNING
from centgate.settings import ProviderSettings, Settings
from centgate.web.index.crawl_state import (
    COVERED_SITES,
    FILE,
    CrawlState,
    IndexedSite,
    find_reading_times,
)
from centgate.web.index.index_writer import PageIndexWriter
from centgate.web.index.page import IndexedPage, page_key
from centgate.web.index.page_index import PageIndex
from centgate.web.index.vectors import PageVectors, vector_id

PATHS = {service.slug: service.path for service in all_services()}
SITE = "https://docs.example/"
ApiFactory = Callable[[Settings], httpx.Client]


def write_index(folder: Path, *pages: IndexedPage) -> None:
    """Write pages, as a crawl does."""
    writer = PageIndexWriter(folder)
    for page in pages:
        writer.put(page)
    writer.close()
    state = CrawlState(folder)
    state.add_site(SITE, 100)
    state.add_pages(IndexedSite(SITE, 100), [(page.url, None) for page in pages])
    for page in state.list_due(SITE, 100, time.time()):
        state.record_reading(page, "indexed")
    state.finish_site(SITE, None)
    state.close()


def write_vectors(folder: Path, *pages: IndexedPage) -> None:
    """Write the vectors of pages, as a crawl does."""
    made = {vector_id(page_key(each.url) or "", each.content_hash): each for each in pages}
    PageVectors(folder, "fruit-1").change([(key, embed_text(each.text)) for key, each in made.items()], ())


def build_page(**more: Any) -> IndexedPage:
    """Return a page about a kumquat."""
    values: dict[str, Any] = {
        "url": f"{SITE}fruit?x=1",
        "site": SITE,
        "title": "The\u202e kumquat",
        "text": "Fruit of all kinds.\nThe kumquat is a small fruit that is eaten whole.",
        "headings": "",
        "language": "en-GB",
        "fetched": "2026-11-20T00:00:00Z",
        "published": "2026-03-01",
        "site_name": "Docs",
        "image": "javascript:alert(1)",
    }
    return IndexedPage(**values | more)


@pytest.fixture
def client(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, tmp_path: Path) -> httpx.Client:
    """API that has no search engine but the index."""
    off = {name: ProviderSettings(enabled=False) for name in ("exa", "firecrawl", "brave", "searxng")}
    allowed = (urlsplit(upstreams.url).netloc,)
    return api(settings.model_copy(update={"providers": off, "fetch_allowed": allowed}))


def search(client: httpx.Client, query: str, slug: str = "crawler-search") -> Any:
    """Buy a search, and return the response."""
    return send_paid(client, PATHS[slug], {"query": query})


def test_index_alone_answers_search(client: httpx.Client, settings: Settings) -> None:
    assert search(client, "kumquat").json()["error"]["code"] == "provider_unconfigured"

    write_index(settings.siteindex_folder, build_page())  # a running server opens the new index
    response = search(client, "whole kumquats").json()

    (found,) = response["data"]["results"]
    assert found == {
        "title": "The kumquat",
        "url": f"{SITE}fruit?x=1",
        "description": "The kumquat is a small fruit that is eaten whole.",
        "publishedDate": "2026-03-01",
        "siteName": "Docs",
        "image": None,
        "language": "en-GB",
        "score": found["score"],
        "engines": None,
        "indexedAt": "2026-11-20T00:00:00Z",
    }
    assert found["score"] > 0
    assert (
        "the pages are from an index of one page of docs.example, not of the whole web"
        in response["warnings"]
    )


def test_empty_index_is_no_source(client: httpx.Client, settings: Settings) -> None:
    write_index(settings.siteindex_folder)  # a crawl without a readable page
    assert search(client, "kumquat").status_code == 503

    write_index(settings.siteindex_folder, build_page())
    assert search(client, "kumquat").status_code == 200

    writer = PageIndexWriter(settings.siteindex_folder)
    writer.delete_site(SITE)
    writer.close()
    response = search(client, "kumquat")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")


def test_query_outside_of_sites_is_no_data_with_coverage(client: httpx.Client, settings: Settings) -> None:
    write_index(settings.siteindex_folder, build_page())

    response = search(client, "weather in Paris")

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (404, "no_data")
    assert error["message"] == "Site index knows no page that matches; it covers one page of docs.example"


def test_site_without_readable_page_is_not_covered(client: httpx.Client, settings: Settings) -> None:
    write_index(settings.siteindex_folder, build_page())
    with closing(CrawlState(settings.siteindex_folder)) as state:
        state.add_site("https://down.example/", 100)
        state.finish_site("https://down.example/", "robots.txt was answered with status 503")

    response = search(client, "weather in Paris")

    message = response.json()["error"]["message"]
    assert message == "Site index knows no page that matches; it covers one page of docs.example"


def test_covered_sites_are_found_without_their_other_pages(tmp_path: Path) -> None:
    CrawlState(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        plan = database.execute(f"explain query plan {COVERED_SITES}").fetchall()

    assert "SEARCH page USING INDEX page_indexed (site=?)" in [detail for *_, detail in plan]


def test_search_by_meaning_is_answered_by_words_with_warning(
    client: httpx.Client, settings: Settings
) -> None:
    write_index(settings.siteindex_folder, build_page())

    assert KEYWORD_WARNING in search(client, "kumquat", "neuralweb-search").json()["warnings"]


async def test_embeddings_find_pages_by_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Settings().siteindex_folder
    pomelo = build_page(
        url=f"{SITE}pomelo", title="The pomelo", text="A pomelo is large. Nobody asks about it."
    )
    write_index(folder, build_page(), pomelo)
    write_vectors(folder, build_page(), pomelo)
    with serve_embeddings() as (url, requests):
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", url)
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
        async with open_provider(SiteIndex, tmp_path, key=SecretStr("secret-key")) as provider:
            found = await provider.search("golden citrus", 5)
            both = await provider.search("large pomelo citrus", 5)
    assert ([hit.title for hit in found.hits], found.by_meaning) == (["The kumquat"], True)
    assert (
        found.hits[0].description == "Fruit of all kinds. The kumquat is a small fruit that is eaten whole."
    )
    assert {hit.title for hit in both.hits} == {"The kumquat", "The pomelo"}
    assert requests[0]["authorization"] == "Bearer secret-key"
    assert (requests[0]["path"], requests[0]["model"]) == ("/v1/embeddings", "fruit-1")


async def test_words_are_compared_if_embeddings_endpoint_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(Settings().siteindex_folder, build_page())
    write_vectors(Settings().siteindex_folder, build_page())
    monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
    async with open_provider(SiteIndex, tmp_path) as provider:
        found = await provider.search("kumquat", 5)
        assert ([hit.title for hit in found.hits], found.by_meaning) == (["The kumquat"], False)
        assert any(
            "compared words alone: the embeddings endpoint" in warning for warning in provider.trace.warnings
        )
        assert provider.trace.providers["siteindex"]["status"] == "ok"


async def test_page_that_only_a_failed_endpoint_could_find_is_no_final_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(Settings().siteindex_folder, build_page())
    write_vectors(Settings().siteindex_folder, build_page())
    monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
    async with open_provider(SiteIndex, tmp_path) as provider:
        with pytest.raises(ProviderError):
            await provider.search("golden citrus", 5)


@pytest.mark.extended
async def test_words_are_compared_if_embeddings_endpoint_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(Settings().siteindex_folder, build_page())
    write_vectors(Settings().siteindex_folder, build_page())
    with closing(socket.create_server(("127.0.0.1", 0))) as hanging:  # it accepts and never answers
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}/v1"
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", url)
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
        async with open_provider(SiteIndex, tmp_path, timeout=1) as provider:
            found = await provider.search("kumquat", 5)
    assert ([hit.title for hit in found.hits], found.by_meaning) == (["The kumquat"], False)
    assert any("compared words alone" in warning for warning in provider.trace.warnings)


async def test_words_are_compared_without_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_index(Settings().siteindex_folder, build_page())
    with serve_embeddings() as (url, requests):
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", url)
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
        async with open_provider(SiteIndex, tmp_path) as provider:
            found = await provider.search("kumquat", 5)
    assert ([hit.title for hit in found.hits], found.by_meaning, requests) == (["The kumquat"], False, [])
    assert any("the index has no vectors yet" in warning for warning in provider.trace.warnings)


async def test_damaged_vectors_give_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Settings().siteindex_folder
    write_index(folder, build_page())
    PageVectors(folder, "fruit-1").file.write_bytes(b"damaged" * 99)
    with serve_embeddings() as (url, _):
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", url)
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
        async with open_provider(SiteIndex, tmp_path) as provider:
            assert len((await provider.search("kumquat", 5)).hits) == 1
            assert any("cannot be read" in warning for warning in provider.trace.warnings)


@pytest.mark.extended
def test_pages_read_by_buyers_are_not_indexed(
    client: httpx.Client, settings: Settings, upstreams: FakeUpstreams
) -> None:
    write_index(settings.siteindex_folder, build_page())
    text = "<main><h1>Pomelo</h1>" + "<p>A pomelo is a large fruit that few people know.</p>" * 9
    upstreams.set_response("site", "/pomelo", f"<!doctype html><title>Pomelo</title>{text}")
    send_paid(client, PATHS["crawler-scrape"], {"url": f"{upstreams.url}/site/pomelo"}).raise_for_status()

    assert search(client, "pomelo").status_code == 404
    assert PageIndex(settings.siteindex_folder).summary.pages == 1


@pytest.mark.extended
def test_server_does_not_import_index_writer() -> None:
    code = (
        "import sys, centgate.server, centgate.catalog as catalog; catalog.all_services(); "
        "sys.exit('centgate.web.index.index_writer' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_damaged_index_is_provider_failure(tmp_path: Path) -> None:
    folder = Settings().siteindex_folder
    write_index(folder, build_page())
    (PageIndex(folder).folder / "meta.json").write_text("{")

    async with open_provider(SiteIndex, tmp_path) as provider:
        with pytest.raises(ProviderError, match="cannot be read"):
            await provider.search("kumquat", 5)


async def test_old_pages_are_reported_and_category_is_refused(tmp_path: Path) -> None:
    folder = Settings().siteindex_folder
    write_index(folder, build_page(fetched="2024-01-01T00:00:00Z"))

    async with open_provider(SiteIndex, tmp_path) as provider:
        assert provider.unsupported_options({"category": "news"}) == ("category",)
        with pytest.raises(ProviderError, match="'news'"):
            await provider.search("kumquat", 5, "news")
        await provider.search("kumquat", 5)
        assert "1 of the pages were read more than 90 days ago" in provider.trace.warnings
        with pytest.raises(NoData):
            await provider.search("weather", 5)


async def test_time_of_unchanged_reading_counts_once_committed(tmp_path: Path) -> None:
    folder = Settings().siteindex_folder
    write_index(folder, build_page(fetched="2024-01-01T00:00:00Z"))
    with closing(CrawlState(folder)) as state:
        state.settle()
        state.make_due(SITE)
        (due,) = state.list_due(SITE, 1, time.time())
        state.record_unchanged(due)
        async with open_provider(SiteIndex, tmp_path) as provider:
            (before,) = (await provider.search("kumquat", 5)).hits
            state.settle()
            (after,) = (await provider.search("kumquat", 5)).hits

    assert before.indexed == "2024-01-01T00:00:00Z"
    assert after.indexed is not None
    assert after.indexed > "2026"


def test_each_spelling_of_address_has_time_of_its_page(tmp_path: Path) -> None:
    page = build_page()
    with closing(CrawlState(tmp_path)) as state:
        state.add_pages(IndexedSite(SITE), [(page.url, None)])
        (due,) = state.list_due(SITE, 1, time.time())
        state.record_reading(due, "indexed")
        state.settle()

    times = find_reading_times(tmp_path, [page.url, f"{page.url}#part", f"{page.url}/other"])

    assert list(times) == [page.url, f"{page.url}#part"]
