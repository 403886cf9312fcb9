"""DEX Screener: parsing of responses, and failures."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from centgate.errors import NoData, ProviderError, ProviderFailure, ProviderRateLimited
from centgate.providers.dexscreener import CHAIN_NAMES, DexScreener, parse_pair

TOKEN = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
WETH = "0x4200000000000000000000000000000000000006"
PAIR = "0xd0b53d9277642d899df5c87a3966a349a798f224"
BASE = 8453
ODD_NUMBERS: tuple[Any, ...] = ("NaN", "inf", "1e400", "-1", -2, "x", "", None, True, [], {}, 1e300)


def build_row(**more: Any) -> dict[str, Any]:
    """A pair of WETH in USDC on Base, in the upstream's format."""
    return {
        "chainId": "base",
        "dexId": "uniswap",
        "url": f"https://dexscreener.com/base/{PAIR}",
        "pairAddress": "0xD0b53D9277642d899DF5C87A3966A349A798F224",
        "labels": ["v3"],
        "baseToken": {"address": WETH, "name": "Wrapped Ether", "symbol": "WETH"},
        "quoteToken": {
            "address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
            "name": "USD Coin",
            "symbol": "USDC",
        },
        "priceNative": "2000.0",
        "priceUsd": "1998.00",
        "txns": {"h24": {"buys": 412, "sells": 398}},
        "volume": {"h24": 143_500.5},
        "liquidity": {"usd": 3_996_000, "base": 1000, "quote": 2_000_000},
        "fdv": 5_000_000_000,
        "marketCap": 4_900_000_000,
        "pairCreatedAt": 1_692_212_700_000,
    } | more


def serve_pairs(upstreams: FakeUpstreams, body: Any) -> None:
    """Set the upstream's list for the token on Base."""
    upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{TOKEN}", body)


async def test_pair_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row()])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert (pair.address, pair.dex, pair.source) == (PAIR, "uniswap", "dexscreener")
    assert (pair.base.address, pair.base.symbol) == (WETH, "WETH")
    assert (pair.quote.address, pair.quote.symbol) == (TOKEN, "USDC")
    assert (pair.price_usd, pair.liquidity_usd, pair.volume24h_usd) == (1998.0, 3_996_000, 143_500.5)
    assert pair.quote_price_usd == pytest.approx(0.999)
    assert pair.base_side_usd == pytest.approx(1_998_000)
    assert pair.quote_side_usd == pytest.approx(1_998_000)
    assert pair.fdv_usd == 5_000_000_000
    assert pair.created_at == datetime(2023, 8, 16, 19, 5, tzinfo=UTC)
    assert (pair.buys24h, pair.sells24h) == (412, 398)
    assert pair.url == f"https://dexscreener.com/base/{PAIR}"


@pytest.mark.parametrize(("chain_id", "name"), CHAIN_NAMES.items())
async def test_each_chain_has_its_name(
    chain_id: int, name: str, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    row = build_row(chainId=name, url=f"https://dexscreener.com/{name}/{PAIR}")
    upstreams.set_response("dexscreener", f"/token-pairs/v1/{name}/{TOKEN}", [row])
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/{name}/{PAIR}", {"pairs": [row]})

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(chain_id, TOKEN)
        same = await dexscreener.pair(chain_id, PAIR)

    assert dexscreener.supports_chain(chain_id)
    assert pair == same


@pytest.mark.parametrize("body", [[], {"schemaVersion": "1.0.0", "pairs": None}])
async def test_token_without_pairs_is_no_data(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, body)

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        with pytest.raises(NoData, match=TOKEN):
            await dexscreener.pairs(BASE, TOKEN)

    assert dexscreener.trace.providers["dexscreener"]["status"] == "no_data"
    assert dexscreener.trace.warnings == []


@pytest.mark.parametrize(
    "body",
    [
        {"schemaVersion": "1.0.0", "pairs": None, "pair": None},
        {"pairs": []},
        {"pairs": [build_row(pairAddress="0x" + "05" * 20)]},
        {"pairs": None, "pair": build_row(pairAddress="0x" + "05" * 20)},
    ],
)
async def test_unknown_pair_is_no_data(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/base/{PAIR}", body)

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        with pytest.raises(NoData, match=PAIR):
            await dexscreener.pair(BASE, PAIR)


@pytest.mark.parametrize(
    "body",
    [
        {"pairs": [build_row(chainId="bsc")]},
        {"pairs": [build_row(chainId=None, url=f"https://dexscreener.com/bsc/{PAIR}")]},
        {"pairs": [build_row(url=f"https://dexscreener.com/bsc/{PAIR}")]},
        None,
    ],
)
async def test_foreign_chain_and_bare_null_are_failures(
    body: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/base/{PAIR}", body)
    serve_pairs(upstreams, body and body["pairs"])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        with pytest.raises(ProviderError):
            await dexscreener.pair(BASE, PAIR)
        with pytest.raises(ProviderError):
            await dexscreener.pairs(BASE, TOKEN)


async def test_row_with_page_of_other_chain_is_left_out(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row(url=f"https://dexscreener.com/bsc/{PAIR}", fdv=1), build_row()])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert pair.fdv_usd != 1


async def test_pair_beside_null_pairs_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.set_response(
        "dexscreener", f"/latest/dex/pairs/base/{PAIR}", {"pairs": None, "pair": build_row()}
    )

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        pair = await dexscreener.pair(BASE, PAIR)

    assert pair.address == PAIR


async def test_foreign_pairs_are_omitted(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    other = {"address": "0x" + "1" * 40, "symbol": "OTHER"}
    serve_pairs(upstreams, [build_row(chainId="bsc"), build_row(quoteToken=other), build_row()])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        pairs = await dexscreener.pairs(BASE, TOKEN)

    assert [pair.address for pair in pairs] == [PAIR]
    assert dexscreener.trace.warnings == []


async def test_pair_with_only_tokens_has_nulls(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    bare = {key: build_row()[key] for key in ("chainId", "pairAddress", "baseToken", "quoteToken")}
    serve_pairs(upstreams, [bare])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert (pair.price_usd, pair.quote_price_usd, pair.liquidity_usd, pair.volume24h_usd) == (None,) * 4
    assert (pair.base_side_usd, pair.quote_side_usd, pair.fdv_usd, pair.created_at) == (None,) * 4
    assert (pair.buys24h, pair.sells24h, pair.dex) == (None,) * 3


@pytest.mark.parametrize("odd", ODD_NUMBERS)
async def test_invalid_figures_are_null(odd: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(
        upstreams,
        [
            build_row(
                priceUsd=odd,
                liquidity={"usd": odd, "base": odd, "quote": odd},
                volume={"h24": odd},
                txns={"h24": {"buys": odd, "sells": odd}},
                fdv=odd,
                pairCreatedAt=odd,
            )
        ],
    )

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert (pair.price_usd, pair.quote_price_usd, pair.liquidity_usd, pair.volume24h_usd) == (None,) * 4
    assert (pair.base_side_usd, pair.quote_side_usd, pair.fdv_usd, pair.created_at) == (None,) * 4
    assert (pair.buys24h, pair.sells24h) == (None, None)


@pytest.mark.parametrize(("chain_id", "is_possible"), [(1, True), (8453, False)])
def test_pair_is_not_older_than_chain(chain_id: int, *, is_possible: bool) -> None:
    pair = parse_pair(build_row(pairCreatedAt=1_600_000_000_000), chain_id)

    assert pair
    assert (pair.created_at is not None) is is_possible


@pytest.mark.parametrize("in_quote", ["0", None, "NaN", "1e-320", "-2"])
async def test_quote_price_needs_native_price(
    in_quote: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_pairs(upstreams, [build_row(priceNative=in_quote)])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert pair.price_usd == 1998.0
    assert pair.quote_price_usd is None
    assert pair.quote_side_usd is None


async def test_zero_liquidity_is_zero_and_zero_price_unknown(
    upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_pairs(upstreams, [build_row(priceUsd="0", fdv=0, liquidity={"usd": 0, "base": 0, "quote": 0})])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert (pair.price_usd, pair.fdv_usd) == (None, None)
    assert pair.liquidity_usd == 0


@pytest.mark.parametrize(
    "broken",
    [
        7,
        None,
        "pair",
        build_row(pairAddress="unknown"),
        build_row(pairAddress=None),
        build_row(baseToken=None),
        build_row(baseToken={"symbol": "WETH"}),
    ],
)
async def test_invalid_row_does_not_affect_others(
    broken: Any, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    serve_pairs(upstreams, [broken, build_row()])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        pairs = await dexscreener.pairs(BASE, TOKEN)

    assert [pair.address for pair in pairs] == [PAIR]
    assert dexscreener.trace.warnings == ["DEX Screener: 1 of 2 pairs could not be read and are left out"]


async def test_only_invalid_rows_are_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row(pairAddress="unknown")])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        with pytest.raises(ProviderError, match="cannot be parsed"):
            await dexscreener.pairs(BASE, TOKEN)


@pytest.mark.parametrize("body", [{}, {"error": "no"}, {"pairs": 7}, {"pairs": {}}, 7, "text"])
async def test_unknown_format_is_failure(body: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, body)
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/base/{PAIR}", body)

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        with pytest.raises(ProviderError):
            await dexscreener.pairs(BASE, TOKEN)
        with pytest.raises(ProviderError):
            await dexscreener.pair(BASE, PAIR)


@pytest.mark.parametrize(
    "url", ["http://dexscreener.com/base/x", "https://evil.example/base", "javascript:alert(1)", 7, None]
)
async def test_only_own_page_urls_are_returned(url: Any, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row(url=url)])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert pair.url == f"https://dexscreener.com/base/{PAIR}"


async def test_symbols_are_cleaned(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    base = {"address": WETH, "symbol": "US\u202eDC\u200b\n" + "x" * 500}
    serve_pairs(upstreams, [build_row(baseToken=base, dexId=7)])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert pair.base.symbol is not None
    assert pair.base.symbol.startswith("USDC x")
    assert len(pair.base.symbol) == 64
    assert pair.dex is None


async def test_pool_id_of_32_bytes_is_address(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row(pairAddress="0x" + "AB" * 32)])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        (pair,) = await dexscreener.pairs(BASE, TOKEN)

    assert pair.address == "0x" + "ab" * 32


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(fault: Fault, upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row()])
    upstreams.faults["dexscreener"] = fault

    async with open_provider(
        DexScreener, tmp_path, url=upstreams.url_of("dexscreener"), timeout=2.5
    ) as dexscreener:
        with pytest.raises(ProviderFailure) as caught:
            await dexscreener.pairs(BASE, TOKEN)

    assert caught.value.code == FAULTS[fault][1]
    assert caught.value.provider == "dexscreener"
    assert dexscreener.trace.warnings == [caught.value.message]


async def test_rate_limit_is_distinguished(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.faults["dexscreener"] = "429"

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        with pytest.raises(ProviderRateLimited):
            await dexscreener.pair(BASE, PAIR)

    assert dexscreener.trace.providers["dexscreener"]["status"] == "rate_limited"


async def test_saved_pair_is_parsed(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    address = "0x" + "d1" * 20
    upstreams.set_response(
        "dexscreener", f"/latest/dex/pairs/base/{address}", load_body("dexscreener", "pair")
    )

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        pair = await dexscreener.pair(BASE, address)

    assert (pair.address, pair.base.symbol, pair.quote.symbol) == (address, "WETH", "USDC")
    assert (pair.price_usd, pair.liquidity_usd, pair.volume24h_usd) == (2502.5, 1_251_250, 98765.43)
    assert pair.quote_price_usd == pytest.approx(1.001)
    assert pair.quote_side_usd == pytest.approx(500_500)
    assert (pair.fdv_usd, pair.buys24h, pair.sells24h) == (750_000_000, 321, 123)
    assert pair.created_at == datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)


async def test_saved_rows_of_two_chains_are_separated(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    rows = load_body("dexscreener", "pairs_of_two_chains")["pairs"]
    upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{WETH}", rows)

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        pairs = await dexscreener.pairs(BASE, WETH)

    assert [(pair.dex, pair.created_at is None) for pair in pairs] == [
        ("uniswap", False),
        ("0x" + "Fa" * 20, True),
    ]
    assert dexscreener.trace.warnings == []


async def test_replayed_weth_pair_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    address = "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640"

    async with open_provider(DexScreener, tmp_path, url=f"{recordings_url}/dexscreener") as dexscreener:
        pair = await dexscreener.pair(1, address)

    assert (pair.address, pair.base.symbol, pair.quote.symbol) == (address, "WETH", "USDC")
    assert (pair.price_usd, pair.liquidity_usd) == (2701.37, 98107272.35)
    assert pair.quote_price_usd == pytest.approx(1, abs=1e-5)
    assert pair.quote_side_usd == pytest.approx(74867938, rel=1e-5)
    assert pair.created_at == datetime(2021, 5, 5, 21, 42, 11, tzinfo=UTC)


async def test_replayed_bnb_pair_is_parsed(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(DexScreener, tmp_path, url=f"{recordings_url}/dexscreener") as dexscreener:
        pair = await dexscreener.pair(56, "0xd0e226f674bbf064f54ab47f42473ff80db98cba")

    assert (pair.price_usd, pair.volume24h_usd, pair.fdv_usd) == (2210.75, 10003668.14, 1337470042)
    assert pair.quote_price_usd == pytest.approx(758.87, abs=0.01)
    assert (pair.buys24h, pair.sells24h) == (5393, 5302)


async def test_replayed_unknown_token_is_no_data(recordings_url: str, tmp_path: Path) -> None:
    async with open_provider(DexScreener, tmp_path, url=f"{recordings_url}/dexscreener") as dexscreener:
        with pytest.raises(NoData):
            await dexscreener.pairs(1, "0x" + "0" * 39 + "1")


@pytest.mark.recorded
async def test_recorded_rows_of_two_chains_are_separated(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    body = load_body("dexscreener", "search_eth_wbnb_30_pairs")
    wbnb = "0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c"
    upstreams.set_response("dexscreener", f"/token-pairs/v1/bsc/{wbnb}", body["pairs"])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        pairs = await dexscreener.pairs(56, wbnb)

    assert len(pairs) == sum(each["chainId"] == "bsc" for each in body["pairs"])
    assert any(pair.created_at is None for pair in pairs)
    assert any(pair.dex and pair.dex.startswith("0x") for pair in pairs)
    assert dexscreener.trace.warnings == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1e400", "7"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.extended
@given(
    st.dictionaries(st.sampled_from(sorted(build_row())), JSON | st.just({"h24": "-inf", "usd": math.nan}))
)
def test_figures_of_any_row_are_finite_or_null(odd: dict[str, Any]) -> None:
    pair = parse_pair(build_row(**odd), 8453)

    figures = [each for each in to_builtins(pair).values() if isinstance(each, float)] if pair else []
    assert all(math.isfinite(figure) and figure >= 0 for figure in figures)


@given(st.floats(1e-9, 1e9), st.floats(1e-6, 1e6))
def test_quote_price_agrees_with_base_price(price_usd: float, in_quote: float) -> None:
    pair = parse_pair(build_row(priceUsd=repr(price_usd), priceNative=repr(in_quote)), 8453)

    assert pair is not None
    assert pair.price_of(WETH) == price_usd
    assert (pair.price_of(TOKEN) or 0) * in_quote == pytest.approx(price_usd)


async def test_repeated_row_counts_once(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    serve_pairs(upstreams, [build_row(), build_row()])

    async with open_provider(DexScreener, tmp_path, url=upstreams.url_of("dexscreener")) as dexscreener:
        assert len(await dexscreener.pairs(BASE, TOKEN)) == 1
