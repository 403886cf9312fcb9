"""GeckoTerminal: parsing of responses, and failures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider

from centgate.errors import NoData, ProviderError, ProviderFailure
from centgate.providers.geckoterminal import CHAIN_NAMES, GeckoTerminal, parse_pool

TOKEN = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
WETH = "0x4200000000000000000000000000000000000006"
POOL = "0xd0b53d9277642d899df5c87a3966a349a798f224"
BASE = 8453
UNKNOWN = {"errors": [{"status": "404", "title": "Not Found"}], "meta": {"ref_id": "1"}}


def build_row(network: str = "base", base: str = WETH, quote: str = TOKEN, **fields: Any) -> dict[str, Any]:
    """Return a pool of WETH in USDC, in the upstream's format; `told` are further attributes."""
    return {
        "id": f"{network}_{POOL}",
        "type": "pool",
        "attributes": {
            "base_token_price_usd": "1998.0",
            "quote_token_price_usd": "0.999",
            "address": POOL,
            "name": "WETH / USDC 0.05%",
            "pool_created_at": "2023-08-16T19:05:00Z",
            "fdv_usd": "5000000000.5",
            "market_cap_usd": None,
            "transactions": {"h24": {"buys": 412, "sells": 398, "buyers": 7, "sellers": 8}},
            "volume_usd": {"h24": "143500.5"},
            "reserve_in_usd": "3996000.0",
        }
        | fields,
        "relationships": {
            "base_token": {"data": {"id": f"{network}_{base}", "type": "token"}},
            "quote_token": {"data": {"id": f"{network}_{quote}", "type": "token"}},
            "dex": {"data": {"id": "uniswap-v3-base", "type": "dex"}},
        },
    }


def serve_pools(upstreams: FakeUpstreams, body: Any, status: int = 200) -> None:
    """Set the upstream's list for the token on Base."""
    upstreams.set_response(
        "geckoterminal", f"/api/v2/networks/base/tokens/{TOKEN}/pools", body, status=status
    )


def serve_pool(upstreams: FakeUpstreams, body: Any, status: int = 200) -> None:
    """Set the upstream's response for the pool on Base."""
    upstreams.set_response("geckoterminal", f"/api/v2/networks/base/pools/{POOL}", body, status=status)


async def test_pool_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    included = [{"id": f"base_{WETH}", "type": "token", "attributes": {"symbol": "WE\u200bTH"}}]
    serve_pool(upstreams, {"data": build_row(), "included": included})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pair = await geckoterminal.pair(BASE, POOL)

    assert (pair.address, pair.dex, pair.source) == (POOL, "uniswap-v3-base", "geckoterminal")
    assert (pair.base.address, pair.base.symbol) == (WETH, "WETH")
    assert (pair.quote.address, pair.quote.symbol) == (TOKEN, None)
    assert (pair.price_usd, pair.quote_price_usd) == (1998.0, 0.999)
    assert (pair.liquidity_usd, pair.volume24h_usd, pair.fdv_usd) == (3_996_000, 143_500.5, 5_000_000_000.5)
    assert (pair.base_side_usd, pair.quote_side_usd) == (None, None)
    assert pair.created_at == datetime(2023, 8, 16, 19, 5, tzinfo=UTC)
    assert (pair.buys24h, pair.sells24h) == (412, 398)
    assert pair.url == f"https://www.geckoterminal.com/base/pools/{POOL}"


async def test_api_version_is_requested(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, {"data": [build_row()]})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        await geckoterminal.pairs(BASE, TOKEN)

    (request,) = upstreams.requests_of("geckoterminal")
    assert request.headers["accept"] == "application/json;version=20230302"


@pytest.mark.parametrize(("chain_id", "name"), CHAIN_NAMES.items())
async def test_each_chain_has_its_name(
    chain_id: int, name: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    path = f"/api/v2/networks/{name}"
    upstreams.set_response("geckoterminal", f"{path}/tokens/{WETH}/pools", {"data": [build_row(name)]})
    upstreams.set_response("geckoterminal", f"{path}/pools/{POOL}", {"data": build_row(name)})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        (pair,) = await geckoterminal.pairs(chain_id, WETH)
        same = await geckoterminal.pair(chain_id, POOL)

    assert geckoterminal.supports_chain(chain_id)
    assert pair == same
    assert (pair.base.address, pair.quote.address) == (WETH, TOKEN)


@pytest.mark.parametrize("body", [UNKNOWN, {"error": "Not Found"}, {"errors": []}, {}])
async def test_own_404_is_no_data(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, body, status=404)
    serve_pool(upstreams, body, status=404)

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(NoData, match=TOKEN):
            await geckoterminal.pairs(BASE, TOKEN)
        with pytest.raises(NoData, match=POOL):
            await geckoterminal.pair(BASE, POOL)

    assert geckoterminal.trace.providers["geckoterminal"]["status"] == "no_data"
    assert geckoterminal.trace.warnings == []


@pytest.mark.parametrize(
    "body", ["404 page not found", "<html>Not Found</html>", "", '{"errors":', [], ["Not Found"]]
)
async def test_any_other_404_is_a_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, body, status=404)
    serve_pool(upstreams, body, status=404)

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(ProviderError):
            await geckoterminal.pairs(BASE, TOKEN)
        with pytest.raises(ProviderError):
            await geckoterminal.pair(BASE, POOL)


async def test_other_pool_than_requested_is_ignored(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pool(upstreams, {"data": build_row(address="0x" + "05" * 20)})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(NoData, match=POOL):
            await geckoterminal.pair(BASE, POOL)


async def test_pools_of_other_chain_are_a_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, {"data": [build_row(), build_row(network="bsc")]})
    serve_pool(upstreams, {"data": build_row(network="bsc")})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(ProviderError):
            await geckoterminal.pairs(BASE, TOKEN)
        with pytest.raises(ProviderError):
            await geckoterminal.pair(BASE, POOL)


@pytest.mark.parametrize("named", [None, f"base_{POOL}"])
async def test_tokens_of_other_chain_are_a_failure(
    named: str | None, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_pools(upstreams, {"data": [build_row(network="eth") | {"id": named}]})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(ProviderError, match="another chain"):
            await geckoterminal.pairs(BASE, TOKEN)


async def test_empty_list_is_no_data(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, {"data": []})
    serve_pool(upstreams, {"data": None})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(NoData):
            await geckoterminal.pairs(BASE, TOKEN)
        with pytest.raises(NoData):
            await geckoterminal.pair(BASE, POOL)


@pytest.mark.parametrize(
    ("date", "created"),
    [
        ("2021-12-29T12:35:14Z", None),
        ("2023-06-14T23:59:59Z", None),
        ("2023-06-15T00:00:00Z", datetime(2023, 6, 15, tzinfo=UTC)),
        ("2024-05-13T15:13:47+02:00", datetime(2024, 5, 13, 13, 13, 47, tzinfo=UTC)),
        ("2024-05-13", datetime(2024, 5, 13, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", None),
        ("yesterday", None),
        (1_700_000_000, None),
        (None, None),
    ],
)
async def test_start_of_index_is_no_creation_date(
    date: Any, created: datetime | None, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_pool(upstreams, {"data": build_row(pool_created_at=date)})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pair = await geckoterminal.pair(BASE, POOL)

    assert pair.created_at == created


@pytest.mark.parametrize(
    ("dex", "version"),
    [
        ("uniswap-v2-base", "v2"),
        ("uniswap_v3", "v3"),
        ("pancakeswap-v3-ethereum", "v3"),
        ("uniswap-v4-ethereum", "v4"),
        ("aerodrome-base", None),
        ("uniswap-v2-v3", None),
        ("dexv3swap", None),
        ("solid-v30", None),
        (None, None),
    ],
)
def test_version_is_that_of_exchange_id(dex: str | None, version: str | None) -> None:
    row = build_row()
    row["relationships"]["dex"] = {"data": {"id": dex}}

    pair = parse_pool(row, BASE, {})

    assert pair
    assert pair.version == version


@pytest.mark.parametrize(
    ("date", "created"),
    [("2022-01-31T23:59:59Z", None), ("2022-02-01T00:00:00Z", datetime(2022, 2, 1, tzinfo=UTC))],
)
def test_date_before_index_is_ignored_on_older_chain(date: str, created: datetime | None) -> None:
    pair = parse_pool(build_row(pool_created_at=date), 1, {})

    assert pair
    assert pair.created_at == created


@pytest.mark.extended
@pytest.mark.parametrize("odd", ["NaN", "inf", "1e400", "-1", "x", "", None, True, [], {}])
async def test_invalid_figures_are_null(odd: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    names = ("base_token_price_usd", "quote_token_price_usd", "reserve_in_usd", "fdv_usd")
    trades = {"h24": {"buys": odd, "sells": odd}}
    odds: dict[str, Any] = dict.fromkeys(names, odd) | {"volume_usd": {"h24": odd}, "transactions": trades}
    serve_pool(upstreams, {"data": build_row(**odds)})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pair = await geckoterminal.pair(BASE, POOL)

    assert (pair.price_usd, pair.quote_price_usd, pair.liquidity_usd, pair.volume24h_usd) == (None,) * 4
    assert (pair.fdv_usd, pair.buys24h, pair.sells24h) == (None,) * 3


async def test_token_as_quote_has_no_fdv(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, {"data": [build_row(), build_row(base=TOKEN, quote=WETH)]})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        as_quote, as_base = await geckoterminal.pairs(BASE, TOKEN)

    assert as_quote.fdv_usd is None
    assert as_base.fdv_usd == 5_000_000_000.5


@pytest.mark.parametrize(
    "broken", [7, None, {}, {"attributes": {}}, build_row(address="x"), build_row(base="x")]
)
async def test_invalid_row_does_not_affect_others(
    broken: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_pools(upstreams, {"data": [broken, build_row()]})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pairs = await geckoterminal.pairs(BASE, TOKEN)

    assert [pair.address for pair in pairs] == [POOL]
    assert geckoterminal.trace.warnings == ["GeckoTerminal: 1 of 2 pools could not be read and are left out"]


@pytest.mark.parametrize("body", [[], {}, {"data": 7}, {"data": [7]}, {"data": {}}, 7, {"errors": []}])
async def test_unknown_format_is_a_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, body)
    serve_pool(upstreams, body)

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(ProviderError):
            await geckoterminal.pairs(BASE, TOKEN)
        with pytest.raises(ProviderError):
            await geckoterminal.pair(BASE, POOL)


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_a_failure_of_its_kind(fault: Fault, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pool(upstreams, {"data": build_row()})
    upstreams.faults["geckoterminal"] = fault
    url = upstreams.url_of("geckoterminal")

    async with open_provider(GeckoTerminal, tmp_path, url=url, timeout=2.5) as geckoterminal:
        with pytest.raises(ProviderFailure) as caught:
            await geckoterminal.pair(BASE, POOL)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "geckoterminal"


async def test_saved_pool_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    address = "0x" + "e1" * 20
    upstreams.set_response(
        "geckoterminal", f"/api/v2/networks/eth/pools/{address}", load_body("geckoterminal", "pool")
    )

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pair = await geckoterminal.pair(1, address)

    assert (pair.address, pair.dex, pair.version) == (address, "uniswap_v3", "v3")
    assert (pair.price_usd, pair.quote_price_usd, pair.liquidity_usd) == (2500.5, 1.0005, 1234567.89)
    assert (pair.volume24h_usd, pair.fdv_usd) == (45000.25, 9_000_000_000.5)
    assert (pair.buys24h, pair.sells24h) == (210, 190)
    assert pair.created_at is None, "the pool is as old as the upstream's index"


async def test_saved_pools_with_token_in_third_place_are_omitted(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    weth = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
    body = load_body("geckoterminal", "token_pools")
    upstreams.set_response("geckoterminal", f"/api/v2/networks/eth/tokens/{weth}/pools", body)

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pairs = await geckoterminal.pairs(1, weth)

    assert [pair.address for pair in pairs] == ["0x" + "e1" * 20, "0x" + "e2" * 20]
    assert [pair.price_of(weth) for pair in pairs] == [2500.5, 2500.5]
    assert [pair.fdv_usd for pair in pairs] == [9_000_000_000.5, None]
    assert [pair.created_at for pair in pairs] == [None, datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)]
    assert geckoterminal.trace.warnings == []


async def test_saved_unknown_pool_is_no_data(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pool(upstreams, load_body("geckoterminal", "not_found"), status=404)

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        with pytest.raises(NoData):
            await geckoterminal.pair(BASE, POOL)


async def test_replayed_pool_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    address = "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640"

    async with open_provider(GeckoTerminal, tmp_path, url=f"{recordings_url}/geckoterminal") as geckoterminal:
        pair = await geckoterminal.pair(1, address)

    assert (pair.address, pair.price_usd, pair.liquidity_usd) == (address, 2700.79, 98049483.9936)
    assert (pair.buys24h, pair.sells24h) == (6104, 6826)
    assert pair.created_at is None


async def test_replayed_pools_with_token_in_third_place_are_omitted(
    recordings_url: str, tmp_path: Path
) -> None:
    weth = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
    listed = len(load_body("geckoterminal", "token_pools_eth_weth")["data"])

    async with open_provider(GeckoTerminal, tmp_path, url=f"{recordings_url}/geckoterminal") as geckoterminal:
        pairs = await geckoterminal.pairs(1, weth)

    assert 0 < len(pairs) < listed
    assert all(2800 < (pair.price_of(weth) or 0) < 3100 for pair in pairs)
    assert all((pair.fdv_usd is None) == (pair.base.address != weth) for pair in pairs)
    assert geckoterminal.trace.warnings == []


async def test_replayed_unknown_pool_is_no_data(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(GeckoTerminal, tmp_path, url=f"{recordings_url}/geckoterminal") as geckoterminal:
        with pytest.raises(NoData):
            await geckoterminal.pair(1, "0x" + "0" * 39 + "1")


@pytest.mark.recorded
async def test_recorded_new_pools_are_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("geckoterminal", "new_pools_eth")
    weth = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
    upstreams.set_response("geckoterminal", f"/api/v2/networks/eth/tokens/{weth}/pools", body)

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        pairs = await geckoterminal.pairs(1, weth)

    assert len(pairs) == len(body["data"])
    assert all(pair.created_at for pair in pairs)


async def test_repeated_row_counts_once(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pools(upstreams, {"data": [build_row(), build_row()]})

    async with open_provider(GeckoTerminal, tmp_path, url=upstreams.url_of("geckoterminal")) as geckoterminal:
        assert len(await geckoterminal.pairs(BASE, TOKEN)) == 1
