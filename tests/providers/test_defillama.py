"""DefiLlama provider: prices, the list of protocols, a protocol's page, fees, revenue and incidents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from fake_upstreams import FAULTS, PAGE, FakeUpstreams, Fault, load_body, open_provider, recorded_case

from centgate.chains import CHAINS
from centgate.crypto.wallet.wallets import Price
from centgate.errors import NoData, ProviderError, ProviderFailure, ProviderRateLimited, ProviderRefused
from centgate.provider import RequestTrace
from centgate.providers.defillama import DefiLlama, FlowTotals
from centgate.resources import open_resources
from centgate.settings import ProviderSettings

USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
NATIVE = "0x" + "0" * 40
ROW = {"slug": "aave-v3", "name": "Aave V3", "tvl": 5, "chains": ["Base"]}

Question = Callable[[DefiLlama], Awaitable[Any]]
QUESTIONS: Mapping[str, Question] = {
    "prices": lambda llama: llama.token_prices(8453, [USDC]),
    "directory": lambda llama: llama.directory(),
    "incidents": lambda llama: llama.incidents(["1"]),
    "protocol": lambda llama: llama.protocol("aave-v3"),
    "fees": lambda llama: llama.fees("aave-v3"),
    "revenue": lambda llama: llama.revenue("aave-v3"),
}


def serve_prices(upstreams: FakeUpstreams, *given: tuple[str, Any], chain: str = "base") -> None:
    """Answer a price request for these tokens; None for an unknown token."""
    path = "/prices/current/" + ",".join(f"{chain}:{token.lower()}" for token, _ in given)
    upstreams.set_response(
        "defillama", path, {"coins": {f"{chain}:{token}": coin for token, coin in given if coin is not None}}
    )


async def test_prices_are_by_lower_case_token(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_prices(
        upstreams,
        (
            USDC,
            {"price": 0.9998, "symbol": "USDC", "decimals": 6, "timestamp": 1775058208, "confidence": 0.99},
        ),
        (NATIVE, {"price": 3100, "timestamp": 1775058208, "confidence": 5}),
        ("0x" + "1" * 40, None),
    )

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        prices = await llama.token_prices(8453, [USDC.lower(), NATIVE, "0x" + "1" * 40])

    seen = datetime(2026, 4, 1, 15, 43, 28, tzinfo=UTC)
    assert prices == {
        USDC.lower(): Price(0.9998, 0.99, "USDC", 6, seen),
        NATIVE: Price(3100, None, None, None, seen),
    }


async def test_tokens_are_requested_once_in_groups_of_100(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    tokens = [f"0x{number:040x}" for number in range(1, 251)]
    for start in (0, 100, 200):
        serve_prices(upstreams, *((token, {"price": 2}) for token in tokens[start : start + 100]))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        prices = await llama.token_prices(
            8453, [*tokens, *(token.upper().replace("X", "x") for token in tokens)]
        )

    assert {*prices} == {*tokens}
    assert sorted(len(call.path.split(",")) for call in upstreams.requests_of("defillama")) == [50, 100, 100]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.slug)
async def test_prices_exist_on_all_six_chains(upstreams: FakeUpstreams, tmp_path: Path, chain: Any) -> None:
    serve_prices(upstreams, (USDC, {"price": 1}), chain=chain.slug)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        prices = await llama.token_prices(chain.id, [USDC])

    assert prices[USDC.lower()].usd == 1


@pytest.mark.parametrize(
    "coin",
    [
        {},
        7,
        [],
        {"price": None},
        {"price": "x"},
        {"price": 0},
        {"price": -1},
        {"price": "NaN"},
        {"price": 1e300},
    ],
)
async def test_invalid_price_is_omitted(upstreams: FakeUpstreams, tmp_path: Path, coin: Any) -> None:
    serve_prices(
        upstreams, (USDC, coin), (NATIVE, {"price": "2.5", "decimals": "x", "timestamp": 1e300, "symbol": 5})
    )

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        prices = await llama.token_prices(8453, [USDC, NATIVE])

    assert prices == {NATIVE: Price(2.5, None, None, None, None)}


@pytest.mark.parametrize("ahead", [15 * 60, 4_000_000_000])
async def test_future_price_has_no_time(upstreams: FakeUpstreams, tmp_path: Path, ahead: float) -> None:
    serve_prices(upstreams, (USDC, {"price": 1, "timestamp": time.time() + ahead}))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        prices = await llama.token_prices(8453, [USDC])

    assert prices == {USDC.lower(): Price(1, None, None, None, None)}


async def test_no_tokens_send_no_request(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        assert await llama.token_prices(1, []) == {}

    assert upstreams.requests == []


async def test_development_chain_has_no_prices(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        assert not llama.supports_chain(84532)
        with pytest.raises(NoData):
            await llama.token_prices(84532, [USDC])

    assert upstreams.requests == []


async def test_partial_price_failure_is_a_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_prices(upstreams, *((f"0x{number:040x}", {"price": 2}) for number in range(1, 101)))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(ProviderError):
            await llama.token_prices(8453, [f"0x{number:040x}" for number in range(1, 200)])


async def test_paid_plan_has_url_for_each_part(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    host = upstreams.url_of("llama")
    upstreams.set_response("llama", "/key/api/protocol/aave", {"name": "Aave", "tvl": []})
    upstreams.set_response("llama", f"/key/coins/prices/current/base:{USDC.lower()}", {"coins": {}})
    settings = build_settings(
        tmp_path,
        "http://127.0.0.1:9",
        providers={
            "defillama_api": ProviderSettings(url=f"{host}/key/api"),
            "defillama_coins": ProviderSettings(url=f"{host}/key/coins"),
        },
    )

    async with open_resources(settings) as resources:
        llama = DefiLlama(settings, resources)
        await llama.protocol("aave")
        await llama.token_prices(8453, [USDC])

    assert {each.path for each in upstreams.requests} == {
        "/key/api/protocol/aave",
        f"/key/coins/prices/current/base:{USDC.lower()}",
    }


async def test_saved_prices_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    token, other = "0x" + "ab" * 20, "0x" + "cd" * 20
    prices = "/prices/current/polygon:"
    upstreams.set_response("defillama", f"{prices}{token}", load_body("defillama", "prices"))
    upstreams.set_response("defillama", f"{prices}{other}", load_body("defillama", "prices_unknown"))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        known = await llama.token_prices(137, [token])
        unknown = await llama.token_prices(137, [other])

    assert known == {token: Price(1.25, 0.97, "EXM", 18, datetime(2026, 4, 1, 15, 43, 28, tzinfo=UTC))}
    assert unknown == {}


async def test_replayed_prices_are_parsed(recordings_url: str, tmp_path: Path) -> None:
    token = "0x3b7e1ce09afe2bb3a23919afb65a38e627cfbe97"

    async with open_provider(DefiLlama, tmp_path, url=f"{recordings_url}/defillama") as llama:
        known = await llama.token_prices(137, [token])
        unknown = await llama.token_prices(42161, ["0xd88F38F930b7952f2DB2432Cb002E7abbF3dD869"])

    seen = datetime(2025, 9, 10, 12, 58, 56, tzinfo=UTC)
    assert known == {token: Price(0.00085796, 0.99, "dst", 18, seen)}
    assert unknown == {}


async def test_list_is_requested_once_by_all_instances(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/protocols", [ROW])

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        records = [RequestTrace() for _ in range(20)]
        directories = await asyncio.gather(*(llama.bind(record).directory() for record in records))

    assert len(upstreams.requests) == 1
    assert {id(directory) for directory in directories} == {id(directories[0])}
    assert {record.providers["defillama"]["status"] for record in records} == {"ok"}
    assert all(record.providers["defillama"]["fetchedAt"] for record in records)


async def test_saved_list_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/protocols", load_body("defillama", "protocols"))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        directory = await llama.directory()

    assert {"example-lend", "example-swap"} <= {*directory.all_slugs()}


async def test_replayed_list_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(DefiLlama, tmp_path, url=f"{recordings_url}/defillama") as llama:
        directory = await llama.directory()

    assert {"eigenlayer", "eigenpie"} <= {*directory.all_slugs()}


async def test_stale_list_is_used_with_warning(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/protocols", [ROW])

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        await llama.directory()
        upstreams.faults["defillama"] = "500"
        llama.directory_cache.clock = lambda: time.monotonic() + 3600
        directory = await llama.directory()

    assert [*directory.all_slugs()] == ["aave-v3"]
    (warning,) = llama.trace.warnings
    assert "list of protocols cannot be refreshed now" in warning


@pytest.mark.extended
async def test_page_of_several_megabytes_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    days = [{"date": day, "totalLiquidityUSD": day / 7} for day in range(50_000)]
    body = {
        "name": "Jito",
        "tvl": days,
        "chainTvls": {"Solana": {"tvl": days}},
        "currentChainTvls": {"Solana": 3},
    }
    upstreams.set_response("defillama", "/protocol/jito", body)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        protocol = await llama.protocol("jito")

    assert (protocol.name, protocol.tvl_usd, protocol.chains) == ("Jito", 3, ("Solana",))


async def test_saved_page_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/protocol/example-lend", load_body("defillama", "protocol"))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        protocol = await llama.protocol("example-lend")

    assert (protocol.slug, protocol.category) == ("example-lend", "Lending")
    assert (protocol.chains, protocol.tvl_usd) == (("Ethereum", "Base"), 3_000_000.5)
    assert [link.kind for link in protocol.links] == ["website", "social", "code", "audit", "audit"]


async def test_replayed_page_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(DefiLlama, tmp_path, url=f"{recordings_url}/defillama") as llama:
        jito = await llama.protocol("jito")

    assert (jito.slug, jito.category, jito.chains) == ("jito", "Liquid Staking", ("Solana",))
    assert jito.tvl_usd == pytest.approx(2_050_645_658.695)
    assert [link.kind for link in jito.links] == ["website", "social", "code", "audit", "audit"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"message": "Protocol is not in our database"}),
        (404, {"message": "Protocol is not in our database"}),
        (404, "404 page not found"),
        (502, {"message": "Protocol is not in our database"}),
        (502, "Protocol not found"),
        (200, "Protocol not found"),
        (200, {"message": "Protocol is not in our database"}),
        (200, {}),
        (200, {"name": None}),
        (400, ""),
        (410, "Gone"),
        (422, {"detail": "no such slug"}),
    ],
)
async def test_missing_page_is_no_data(
    upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any
) -> None:
    upstreams.set_response("defillama", "/protocol/none", body, status=status)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(NoData, match="knows no protocol none"):
            await llama.protocol("none")

    assert llama.trace.providers["defillama"]["status"] == "no_data"
    assert llama.trace.warnings == []


@pytest.mark.parametrize("case", ["protocol_unknown", recorded_case("protocol_unknown_400")])
async def test_saved_unknown_protocol_is_no_data(upstreams: FakeUpstreams, tmp_path: Path, case: str) -> None:
    body = load_body("defillama", case)
    upstreams.set_response("defillama", "/protocol/this-does-not-exist", body, status=400)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(NoData):
            await llama.protocol("this-does-not-exist")


@pytest.mark.parametrize("status", [400, 404, 410, 500, 502])
async def test_error_page_of_gateway_is_a_failure(
    upstreams: FakeUpstreams, tmp_path: Path, status: int
) -> None:
    for path in ("/protocol/aave", "/summary/fees/aave"):
        upstreams.set_response("defillama", path, PAGE, status=status)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(ProviderError, match=f"status {status}"):
            await llama.protocol("aave")
        with pytest.raises(ProviderError, match=f"status {status}"):
            await llama.fees("aave")


@pytest.mark.parametrize("body", ["", "error code: 502", "upstream connect error"])
async def test_gateway_without_answer_is_a_failure(
    upstreams: FakeUpstreams, tmp_path: Path, body: str
) -> None:
    upstreams.set_response("defillama", "/protocol/aave", body, status=502)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(ProviderError, match="status 502"):
            await llama.protocol("aave")


@pytest.mark.parametrize("status", [401, 403])
async def test_refusal_says_nothing_about_protocol(
    upstreams: FakeUpstreams, tmp_path: Path, status: int
) -> None:
    for path in ("/protocol/aave", "/summary/fees/aave"):
        upstreams.set_response("defillama", path, {"message": "Forbidden"}, status=status)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(ProviderRefused):
            await llama.protocol("aave")
        with pytest.raises(ProviderRefused):
            await llama.fees("aave")


@pytest.mark.parametrize("body", [{"message": "Internal server error"}, "Internal Server Error", "{}"])
async def test_bare_500_of_fees_is_unmeasured_for_short_time(
    upstreams: FakeUpstreams, tmp_path: Path, body: Any
) -> None:
    upstreams.set_response("defillama", "/summary/fees/none", body, status=500)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(NoData, match="the reply is the one for figures that are not measured"):
            await llama.fees("none")

    assert llama.trace.is_provisional


async def test_empty_500_is_a_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/summary/fees/none", "", status=500)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(ProviderError):
            await llama.fees("none")


async def test_impossible_totals_are_unmeasured(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response(
        "defillama", "/summary/fees/odd", {"total24h": 1e300, "total7d": -1e300, "total30d": -5}
    )

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        fees = await llama.fees("odd")

    assert fees == FlowTotals(None, None, -5)


@pytest.mark.parametrize("slug", ["../admin", "%2e%2e", "a b", "a?b#c", "\N{OCTOPUS}", "a&b=c"])
async def test_slug_is_one_path_segment(upstreams: FakeUpstreams, tmp_path: Path, slug: str) -> None:
    upstreams.set_response("defillama", f"/protocol/{slug}", {"name": "Odd"})
    upstreams.set_response("defillama", f"/summary/fees/{slug}", {"total24h": 1})

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        protocol = await llama.protocol(slug)
        fees = await llama.fees(slug)

    assert (protocol.name, fees.day_usd) == ("Odd", 1)


async def test_fees_and_revenue_are_requested_without_daily_figures(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    totals = {
        "dailyFees": {"total24h": 4, "total7d": "28.5", "total30d": None, "latestFetchIsOk": True},
        "dailyRevenue": {"total24h": -1, "total7d": 7, "total30d": 30},
    }
    upstreams.set_response_function(
        "defillama", "/summary/fees/aave", lambda request: (200, totals[request.params["dataType"]])
    )

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        fees, revenue = await llama.fees("aave"), await llama.revenue("aave")

    assert (fees, revenue) == (FlowTotals(4, 28.5, None), FlowTotals(-1, 7, 30))
    assert all(
        call.params.items()
        >= {"excludeTotalDataChart": "true", "excludeTotalDataChartBreakdown": "true"}.items()
        for call in upstreams.requests
    )
    assert llama.trace.warnings == []


async def test_saved_fees_of_parent_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/summary/fees/example", load_body("defillama", "fees"))

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        fees = await llama.fees("example")

    assert fees == FlowTotals(1200, 8000.5, None)


async def test_replayed_fees_of_parent_are_parsed(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(DefiLlama, tmp_path, url=f"{recordings_url}/defillama") as llama:
        fees = await llama.fees("hyperliquid")

    assert fees == FlowTotals(4_890_250, 26_184_696, None)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, "Fees for none not found, please visit /overview/fees to see available protocols"),
        (404, {"message": "Fees for none not found, please visit /overview/fees to see available protocols"}),
        (500, {"message": "Fees for none not found, please visit /overview/fees to see available protocols"}),
        (200, "Protocol not found"),
        (200, {}),
        (200, {"total24h": None, "total7d": "NaN", "total30d": []}),
    ],
)
async def test_unmeasured_fees_are_no_data(
    upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any
) -> None:
    upstreams.set_response("defillama", "/summary/fees/none", body, status=status)

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(NoData, match="no revenue of none: it is not measured"):
            await llama.revenue("none")

    assert llama.trace.warnings == []


async def test_outdated_fees_are_marked(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/summary/fees/aave", {"total24h": 4, "latestFetchIsOk": False})

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        fees = await llama.fees("aave")

    assert not fees.is_current
    assert llama.trace.warnings == []


@pytest.mark.extended
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_failures_are_provider_failures(
    upstreams: FakeUpstreams, tmp_path: Path, fault: Fault, question: str
) -> None:
    upstreams.faults["defillama"] = fault
    if fault == "500" and question in ("fees", "revenue"):
        upstreams.faults["defillama"] = "503"  # a 500 means here that a figure is not measured
    # the longest answer takes some time to arrive before it is refused
    patience = 0.2 if fault == "timeout" else 5

    async with open_provider(
        DefiLlama, tmp_path, url=upstreams.url_of("defillama"), timeout=patience
    ) as llama:
        with pytest.raises(ProviderFailure) as caught:
            await QUESTIONS[question](llama)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "defillama"
    assert llama.trace.warnings == [caught.value.message]


async def test_rate_limit_has_retry_after(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.faults["defillama"] = "429"

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        with pytest.raises(ProviderRateLimited):
            await llama.directory()

    assert llama.trace.providers["defillama"]["status"] == "rate_limited"


async def test_stale_incidents_are_used_with_warning(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("defillama", "/hacks", [{"defillamaId": 1599, "date": 1_699_056_000, "amount": 7}])

    async with open_provider(DefiLlama, tmp_path, url=upstreams.url_of("defillama")) as llama:
        await llama.incidents(["1599"])
        upstreams.faults["defillama"] = "500"
        llama.incidents_cache.clock = lambda: time.monotonic() + 3600
        incidents = await llama.incidents(["1599", "2"])

    assert [incident.amount_usd for incident in incidents] == [7]
    (warning,) = llama.trace.warnings
    assert "list of incidents cannot be refreshed now" in warning
    assert llama.trace.is_provisional
