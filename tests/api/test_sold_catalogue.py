"""The contract with buyers: every service that is sold keeps its place, path, cache time and answer.

All other tests derive the services from the catalogue. A new service may have any place in it; it gets its
line here once buyers rely on it.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from centgate.catalog import all_services
from centgate.client.catalog import ServiceDetail

SOLD = {
    "token-risk": (
        *("/services/token-risk", 300),
        "tokenAddress riskLevel riskFlags honeypot taxes ownership liquidity warnings "
        "riskScore token sourceNote",
    ),
    "pool-snapshot": (
        *("/services/pool-snapshot", 60),
        "pairAddress priceUsd liquidityUsd volume24hUsd fdvUsd pairCreatedAt txns24h url",
    ),
    "contract-explain": (
        *("/services/contract-explain", 600),
        "verified contractName sourceAvailable abiAvailable proxy links warnings",
    ),
    "protocol-context": ("/services/protocol-context", 600, "name slug category chains tvlUsd fees urls"),
    "phishing-check": ("/services/phishing-check", 0, "domain status matchedList match"),
    "wallet-brief": (
        *("/services/wallet-brief", 60),
        "nativeBalance tokenBalances recentTransfers suspiciousTokenNotes",
    ),
    "approval-risk": (
        *("/services/approval-risk", 300),
        "approvals unlimitedCount recommendations coverage warnings",
    ),
    "neuralweb-search": ("/services/neuralweb/search", 300, "results resolvedSearchType"),
    "neuralweb-contents": ("/services/neuralweb/contents", 300, "pages"),
    "crawler-map": ("/services/crawler/map", 300, "links"),
    "crawler-search": ("/services/crawler/search", 300, "results"),
    "crawler-scrape": ("/services/crawler/scrape", 300, "markdown metadata"),
    "libdocs-resolve-library": ("/services/libdocs/resolve-library", 600, "libraries"),
    "libdocs-query-docs": ("/services/libdocs/query-docs", 600, "docs"),
}
"""Path, cache time in seconds and fields of `data` of each service, in the order of the catalogue."""
CRYPTO = tuple(SOLD)[:7]

NEED_A_KEY = {"neuralweb-search", "crawler-search"}


@pytest.fixture
def entries(reader: httpx.Client) -> dict[str, dict[str, Any]]:
    """The full entries of the sold services, by slug, in the order of the catalogue."""
    slugs = [entry["slug"] for entry in reader.get("/services").json()["services"]]
    return {slug: reader.get(f"/services/{slug}").json() for slug in slugs if slug in SOLD}


def test_every_sold_service_is_listed_in_order(entries: dict[str, dict[str, Any]]) -> None:
    assert list(entries) == list(SOLD)


def test_path_cache_time_and_fields_match_contract(entries: dict[str, dict[str, Any]]) -> None:
    for slug, (path, cache_seconds, fields) in SOLD.items():
        entry, sold_fields = entries[slug], fields.split()
        assert (entry["path"], entry["cacheSeconds"]) == (path, cache_seconds)
        # fields may be added behind those that are sold
        assert entry["outputFields"][: len(sold_fields)] == sold_fields


def test_first_seven_are_crypto_and_others_web(
    entries: dict[str, dict[str, Any]],
) -> None:
    categories = {slug: entry["category"] for slug, entry in entries.items()}

    assert categories == {slug: f"{'crypto' if slug in CRYPTO else 'web'}-context" for slug in SOLD}


def test_only_searches_need_key(entries: dict[str, dict[str, Any]]) -> None:
    unavailable = {
        slug for slug, entry in entries.items() if not ServiceDetail.model_validate(entry).available
    }

    assert unavailable == NEED_A_KEY


def test_web_services_refuse_options_that_cost_more() -> None:
    refusing = {service.slug for service in all_services() if service.refused_options.names}

    assert set(SOLD) - set(CRYPTO) <= refusing
