"""Public service status: counts of real calls, unknown without calls, outage while buyers are refused."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest
from test_outages import TOKENS, Open, clock, safe_token_body, shop

from centgate import service_status
from centgate.client.catalog import parse_service
from centgate.payments.database.store_factory import open_store
from centgate.payments.reports.service_health import (
    HealthCounts,
    HealthKey,
    find_bucket,
    list_rows,
    merge_counts,
    merge_rows,
    store_counts,
)
from centgate.website.api_snapshot import read_snapshot
from centgate.website.files import build_files

__all__ = ["clock", "shop"]
BODY = {"chain": "base", "tokenAddress": TOKENS[0]}
SOURCES = ("goplus", "honeypotis", "dexscreener", "geckoterminal")


@pytest.fixture(autouse=True)
def no_caching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_status, "REPORT_TTL", 0.0)


def read_status(client: httpx.Client, slug: str) -> dict[str, Any]:
    response = client.get("/status.json")
    assert response.status_code == 200, response.text
    return next(each for each in response.json()["services"] if each["slug"] == slug)


def test_service_without_calls_is_unknown(shop: Open) -> None:
    status = read_status(shop(*SOURCES).client, "token-risk")

    assert (status["state"], status["lastAnswerAt"]) == ("unknown", None)
    assert status["lastHour"] == {"calls": 0, "successShare": None, "p50Ms": None, "p95Ms": None}
    assert len(status["days"]) == 90
    assert {day["state"] for day in status["days"]} == {None}


@pytest.mark.extended
def test_answer_makes_service_operational(shop: Open) -> None:
    open_shop = shop(*SOURCES)
    open_shop.upstreams.set_response("goplus", "/api/v1/token_security/8453", safe_token_body())
    assert open_shop.buy("token-risk", BODY).status_code == 200

    status = read_status(open_shop.client, "token-risk")

    assert (status["state"], status["lastHour"]["successShare"]) == ("operational", 1.0)
    assert status["lastAnswerAt"] is not None
    assert 0 < status["lastDay"]["p50Ms"] <= status["lastDay"]["p95Ms"]
    assert [day["state"] for day in status["days"]][-2:] == [None, "operational"]


def test_dead_sources_are_outage_until_they_answer(shop: Open, clock: Any) -> None:
    open_shop = shop(*SOURCES)
    open_shop.fail("goplus")
    open_shop.buy_until_refused("token-risk", BODY)

    during = read_status(open_shop.client, "token-risk")
    site = read_snapshot(str(open_shop.client.base_url), "https://site.example")
    open_shop.upstreams.faults.clear()
    open_shop.upstreams.set_response("goplus", "/api/v1/token_security/8453", safe_token_body())
    clock.end_pause()
    assert open_shop.buy("token-risk", BODY).status_code == 200
    after = read_status(open_shop.client, "token-risk")

    assert (during["state"], during["available"]) == ("outage", False)
    assert during["lastHour"]["successShare"] == 0
    assert during["days"][-1]["state"] == "outage"
    assert (after["state"], after["available"]) == ("degraded", True)
    files = build_files(site)
    text, page = files["/status.md"].content.decode(), files["/status"].content.decode()
    assert "/services/token-risk.md) | **outage** |" in text
    assert "**up** |" not in text.partition("## Services")[2].partition("## ")[0]
    assert "Token risk, state by day: 1 outage, 89 not measured" in page
    assert "None of its sources answers" in files["/services/token-risk"].content.decode()


@pytest.mark.extended
def test_unconfigured_services_match_catalogue(shop: Open) -> None:
    client = shop("goplus", off=("defillama",)).client
    listed = [
        parse_service(client.get(f"/services/{slug}").json(), "the API", slug)
        for slug in [each["slug"] for each in client.get("/services").json()["services"]]
    ]

    states = {each["slug"]: each["state"] for each in client.get("/status.json").json()["services"]}

    assert {slug for slug, state in states.items() if state == "unconfigured"} == {
        each.slug for each in listed if not each.available
    }
    assert "unconfigured" in states.values()


def test_counts_of_processes_are_added_once(database_url: str) -> None:
    now = time.time()
    key = HealthKey("token-risk", 86400, int(now // 86400) * 86400)
    old = HealthKey("token-risk", 86400, key.start - 93 * 86400)
    counts = HealthCounts(answered=3, failed=1, answered_at=now)
    counts.latency[find_bucket(0.2)] = 3

    async def store_and_read() -> dict[HealthKey, HealthCounts]:
        store = open_store(database_url)
        try:
            await store.migrate()
            await store.run(lambda: store_counts("one", [(old, counts)], now - 93 * 86400))
            for process in ("one", "one", "two"):
                await store.run(lambda process=process: store_counts(process, [(key, counts)], now))
            return merge_rows(await store.read(lambda: list_rows(86400, 0)))
        finally:
            await store.close()

    rows = asyncio.run(store_and_read())

    assert list(rows) == [key]
    assert (rows[key].answered, rows[key].failed, rows[key].success_share) == (6, 2, 0.75)
    assert rows[key].percentile_ms(0.5) == pytest.approx(200, rel=0.08)


def test_percentiles_of_merged_histograms_match_all_answers() -> None:
    fast, slow = HealthCounts(), HealthCounts()
    fast.latency.update([find_bucket(0.05)] * 90)
    slow.latency.update([find_bucket(4)] * 10)

    merged = merge_counts([fast, slow])

    assert merged.percentile_ms(0.5) == pytest.approx(50, rel=0.08)
    assert merged.percentile_ms(0.95) == pytest.approx(4000, rel=0.08)
    assert HealthCounts().percentile_ms(0.5) is None
