"""Pools read from a chain: kinds of exchanges, prices, depth, and price impact of sales."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from facilitators import build_settings
from lookups.changing_node import ChangingNode, is_call_of

from centgate.crypto.token.pools import PoolState
from centgate.devchain.chain import EvmChain
from centgate.devchain.exchanges import NATIVE_COIN, Exchanges, install_exchanges
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.well_known import BASE, ETHEREUM, POLYGON
from centgate.errors import NoData, ProviderFailure
from centgate.lookups import pool_states
from centgate.lookups.chain_pools import find_pools, read_pool
from centgate.lookups.price_impact import quote_impacts
from centgate.provider import RequestTrace
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.settings import ProviderSettings

CHAIN = 84532
"""A development chain, which has Ethereum's contracts."""
TOKEN, COIN, DOLLAR = 10**9, 10**18, 10**6


@dataclass
class Market:
    """A chain with exchanges, and a token without a pool yet."""

    exchanges: Exchanges
    node: ChangingNode
    rpc: Rpc
    chain_id: int
    token: str

    async def pools(self) -> list[PoolState]:
        """Return the token's pools."""
        return await find_pools(self.rpc, self.chain_id, self.token)


def new_token(exchanges: Exchanges) -> str:
    """Create a token with 9 decimals."""
    return exchanges.create_token("Token", "TKN", decimals=9, supply=10**12 * TOKEN)


async def open_market(chain: EvmChain, exchanges: Exchanges, folder: Path) -> AsyncGenerator[Market]:
    """Serve a chain and open a provider for it."""
    node = ChangingNode(chain)
    with silence_libraries(), serve_app(node.app, 0) as url:
        nodes = {f"rpc_{chain.chain_id}": ProviderSettings(url=url)}
        settings = build_settings(folder, "http://127.0.0.1:9", providers=nodes)
        async with open_resources(settings) as resources:
            rpc = Rpc(settings, resources).bind(RequestTrace.start())
            yield Market(exchanges, node, rpc, chain.chain_id, new_token(exchanges))


@pytest.fixture
async def market(tmp_path: Path) -> AsyncGenerator[Market]:
    """A development chain."""
    chain = EvmChain(CHAIN, {})
    async for each in open_market(chain, install_exchanges(chain, ETHEREUM), tmp_path):
        yield each


@pytest.fixture
async def base_market(tmp_path: Path) -> AsyncGenerator[Market]:
    """A chain with the id and the contracts of Base."""
    chain = EvmChain(8453, {})
    exchanges, now = install_exchanges(chain, BASE), int(time.time())
    exchanges.set_feed(exchanges.addresses.sequencer_feed, 0, started_at=now - 10**6, updated_at=now)
    async for each in open_market(chain, exchanges, tmp_path):
        yield each


@pytest.mark.extended
async def test_v2_pool_has_exact_price_and_depth(market: Market) -> None:
    weth = market.exchanges.wrap(10 * COIN)
    pair = market.exchanges.add_v2_pool({market.token: 10**6 * TOKEN, weth: 10 * COIN})

    (pool,) = await market.pools()

    assert (pool.key.kind, pool.key.exchange, pool.key.address) == ("v2", "Uniswap v2", pair.lower())
    assert pool.token_symbol == "TKN"
    assert pool.price_in_quote == 1e-5
    assert pool.price_usd == pytest.approx(0.02)
    assert pool.liquidity_usd == pytest.approx(40_000)
    assert market.rpc.trace.warnings == []


async def test_all_kinds_of_pools_agree_on_price(market: Market) -> None:
    exchanges, token = market.exchanges, market.token
    weth, usdc = exchanges.wrap(40 * COIN), exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    exchanges.add_v2_pool({token: 10**6 * TOKEN, weth: 10 * COIN})
    exchanges.add_v3_pool({token: 2 * 10**6 * TOKEN, usdc: 40_000 * DOLLAR})
    exchanges.add_v3_pool(
        {token: 10**5 * TOKEN, weth: 1 * COIN}, fee=2500, factory=exchanges.addresses.pancake_v3_factory
    )
    exchanges.add_v4_pool({NATIVE_COIN: 5 * COIN, token: 5 * 10**5 * TOKEN})

    pools = await market.pools()

    assert [pool.key.exchange for pool in pools] == [
        *("Uniswap v3", "Uniswap v2", "PancakeSwap v3", "Uniswap v4"),
    ]
    assert [pool.price_usd for pool in pools] == pytest.approx([0.02] * 4)
    assert pools[-1].liquidity_usd is None


async def test_empty_pools_do_not_hide_a_deep_one(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_states, "MAX_POOLS", 1)
    exchanges, token = market.exchanges, market.token
    exchanges.operator.send(
        exchanges.addresses.v4_manager,
        "initialize((address,address,uint24,int24,address),uint160)",
        *((NATIVE_COIN, token, 3000, 60, NATIVE_COIN), 2**96),
    )
    usdc = exchanges.stablecoin("USDC", 10**4 * DOLLAR)
    exchanges.add_v2_pool({token: TOKEN, usdc: 10 * DOLLAR})
    exchanges.add_v3_pool(
        {token: 10**5 * TOKEN, exchanges.wrap(COIN): COIN},
        fee=2500,
        factory=exchanges.addresses.pancake_v3_factory,
    )

    (pool,) = await market.pools()

    assert pool.key.exchange == "PancakeSwap v3"
    assert [each for each in market.rpc.trace.warnings if "were not read" in each] == [
        "1 of 3 pools on the chain were not read: those with the least of the other token"
    ]


@pytest.mark.parametrize(("lost", "kind"), [("getReserves()", "v4"), ("getLiquidity(bytes32)", "v2")])
async def test_unread_pool_is_not_taken_for_an_empty_one(market: Market, lost: str, kind: str) -> None:
    exchanges, token = market.exchanges, market.token
    exchanges.add_v2_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    exchanges.add_v4_pool({NATIVE_COIN: 5 * COIN, token: 5 * 10**5 * TOKEN})
    market.node.lose_answers(lambda call, _answer: is_call_of(call, lost))

    (pool,) = await market.pools()

    assert pool.key.kind == kind
    assert any("did not tell the state of 1 pools" in each for each in market.rpc.trace.warnings)
    market.node.lose_answers(
        lambda call, _answer: is_call_of(call, "getReserves()", "getLiquidity(bytes32)"),
    )
    with pytest.raises(ProviderFailure):
        await market.pools()


@pytest.mark.parametrize("garbage", [b"\xff" * 96, b"\1" * 31], ids=["all ones", "short"])
@pytest.mark.parametrize(
    "changed", ["getReserves()", "slot0()", "getSlot0(bytes32)", "getLiquidity(bytes32)"]
)
async def test_impossible_state_gives_no_price(market: Market, changed: str, garbage: bytes) -> None:
    exchanges, token = market.exchanges, market.token
    exchanges.add_v2_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    exchanges.add_v3_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    exchanges.add_v4_pool({NATIVE_COIN: 5 * COIN, token: 5 * 10**5 * TOKEN})
    market.node.change = (
        # an answer of zeros is that of a pool which does not exist
        lambda call, answer: garbage if is_call_of(call, changed) and any(answer or b"") else answer
    )

    pools = await market.pools()

    assert [pool.price_usd for pool in pools] == pytest.approx([0.02] * 2)
    assert any("the node did not tell" in each for each in market.rpc.trace.warnings)


@pytest.mark.parametrize("garbage", [b"\xff" * 32, b"\1" * 31, None], ids=["all ones", "short", "lost"])
async def test_garbled_factory_does_not_deny_its_pool(market: Market, garbage: bytes | None) -> None:
    exchanges, token = market.exchanges, market.token
    address = exchanges.add_v2_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN}).lower()
    market.node.change = lambda call, answer: (
        garbage if is_call_of(call, "getPair(address,address)") and any(answer or b"") else answer
    )

    for reading in (market.pools(), read_pool(market.rpc, market.chain_id, address)):
        with pytest.raises(ProviderFailure):
            await reading


async def test_impossible_quote_is_no_loss_of_zero(market: Market) -> None:
    exchanges, token = market.exchanges, market.token
    exchanges.add_v3_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    (pool,) = await market.pools()
    market.node.change = lambda _call, _answer: b"\xff" * 128

    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    assert impacts == []
    assert market.rpc.trace.warnings == [
        "the sale of $100, $1,000, $10,000 is left out: the node's quote of it cannot be true"
    ]


async def test_lost_look_up_does_not_prove_that_no_pool_exists(market: Market) -> None:
    exchanges, token = market.exchanges, market.token
    weth = exchanges.wrap(10 * COIN)
    exchanges.add_v2_pool({token: 10**6 * TOKEN, weth: 10 * COIN})
    # the node runs out of gas for the one call that finds the pool
    market.node.lose_answers(
        lambda call, answer: is_call_of(call, "getPair(address,address)") and any(answer or b""),
    )

    with pytest.raises(ProviderFailure):
        await market.pools()


@pytest.mark.extended
async def test_silent_factory_does_not_prove_that_no_pool_exists(base_market: Market) -> None:
    exchanges, token = base_market.exchanges, base_market.token
    exchanges.add_v2_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    base_market.node.lose_answers(lambda call, _answer: is_call_of(call, "getPair(address,address)"))

    with pytest.raises(ProviderFailure, match="which pools"):
        await base_market.pools()


def add_quoted_pool(market: Market) -> str:
    """Add a v2 pool of the token, of which it costs 0.02 dollars; return its address in lower case."""
    weth = market.exchanges.wrap(10 * COIN)
    return market.exchanges.add_v2_pool({market.token: 10**6 * TOKEN, weth: 10 * COIN}).lower()


@pytest.mark.parametrize("by_address", [False, True], ids=["of the token", "by address"])
async def test_decimals_lost_once_are_asked_for_again(market: Market, *, by_address: bool) -> None:
    address, losses = add_quoted_pool(market), iter([True])
    market.node.lose_answers(lambda call, _answer: is_call_of(call, "decimals()") and next(losses, False))

    if by_address:
        pool = await read_pool(market.rpc, market.chain_id, address)
    else:
        (pool,) = await market.pools()

    assert pool.price_usd == pytest.approx(0.02)
    assert list(losses) == []


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        pytest.param((-32000, "out of gas"), ProviderFailure, id="limit of the node"),
        pytest.param((3, "execution reverted"), NoData, id="refusal of the token"),
    ],
)
async def test_unread_decimals_are_no_fact_of_the_token(
    market: Market, failure: tuple[int, str], error: type[Exception]
) -> None:
    address = add_quoted_pool(market)
    market.node.failure = failure
    market.node.lose_answers(lambda call, _answer: is_call_of(call, "decimals()"))

    for reading in (market.pools(), read_pool(market.rpc, market.chain_id, address)):
        with pytest.raises(error, match="decimals"):
            await reading


@pytest.mark.extended
async def test_donated_tokens_do_not_make_pool_deepest(market: Market) -> None:
    exchanges, token = market.exchanges, market.token
    weth = exchanges.wrap(11 * COIN)
    exchanges.add_v2_pool({token: 10**6 * TOKEN, weth: 10 * COIN})
    decoy = exchanges.add_v3_pool({token: TOKEN, weth: COIN})
    exchanges.operator.send(token, "transfer(address,uint256)", decoy, 10**11 * TOKEN)

    pools = await market.pools()

    assert [pool.key.exchange for pool in pools] == ["Uniswap v2", "Uniswap v3"]
    assert (pools[1].liquidity_usd or 0) > (pools[0].liquidity_usd or 0)


@pytest.mark.extended
async def test_base_pools_are_found(base_market: Market) -> None:
    exchanges, token = base_market.exchanges, base_market.token
    usdc = exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    exchanges.add_solidly_pool({token: 10**5 * TOKEN, usdc: 10**5 * DOLLAR}, stable=True)
    exchanges.add_solidly_pool({token: 10**4 * TOKEN, usdc: 10**4 * DOLLAR}, stable=False)
    exchanges.add_slipstream_pool({token: 10**3 * TOKEN, usdc: 10**3 * DOLLAR})

    pools = await base_market.pools()

    assert [(pool.key.exchange, pool.key.stable) for pool in pools] == [
        ("Aerodrome", True),
        ("Aerodrome", False),
        ("Aerodrome Slipstream", False),
    ]
    assert [pool.price_usd for pool in pools] == pytest.approx([1.0] * 3)
    assert [pool.key.fee for pool in pools[:2]] == [500, 3000]
    assert base_market.rpc.trace.warnings == []


@pytest.mark.extended
async def test_absent_factories_are_named(tmp_path: Path) -> None:
    chain = EvmChain(10, {})
    async for market in open_market(chain, install_exchanges(chain, ETHEREUM), tmp_path):
        with pytest.raises(NoData):
            await market.pools()

        (absent,) = [each for each in market.rpc.trace.warnings if "not at this node" in each]
        assert "Velodrome v2" in absent
        assert "Uniswap v3" not in absent  # at its address on Ethereum


@pytest.mark.extended
async def test_algebra_pools_are_found(tmp_path: Path) -> None:
    chain = EvmChain(137, {})
    async for market in open_market(chain, install_exchanges(chain, POLYGON), tmp_path):
        usdc = market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
        market.exchanges.add_algebra_pool({market.token: 10**4 * TOKEN, usdc: 10**4 * DOLLAR})

        (pool,) = await market.pools()
        (small, *_) = await quote_impacts(market.rpc, market.chain_id, pool)

        assert (pool.key.exchange, pool.price_usd) == ("QuickSwap v3", pytest.approx(1.0))
        assert small.percent == pytest.approx(1.0, abs=0.1)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["v2", "v3", "v4"])
async def test_impact_of_full_range_pool_matches_formula(market: Market, kind: str) -> None:
    exchanges, token = market.exchanges, market.token
    match kind:
        case "v2":
            exchanges.add_v2_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
        case "v3":
            exchanges.add_v3_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
        case _:
            exchanges.add_v4_pool({NATIVE_COIN: 10 * COIN, token: 10**6 * TOKEN})
    (pool,) = await market.pools()

    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    side = Decimal(20_000)
    expected = [
        float(100 * (1 - Decimal("0.997") * side / (side + Decimal("0.997") * usd)))
        for usd in (100, 1_000, 10_000)
    ]
    assert [each.usd for each in impacts] == [100, 1_000, 10_000]
    assert [each.percent for each in impacts] == pytest.approx(expected, rel=1e-3)


async def test_sale_below_smallest_unit_is_not_called_impossible(market: Market) -> None:
    exchanges = market.exchanges
    token = exchanges.create_token("Whole", "WHOLE", decimals=0, supply=10**6)
    exchanges.add_v2_pool({token: 1_000, exchanges.stablecoin("USDC", 10**6 * DOLLAR): 500_000 * DOLLAR})
    (pool,) = await find_pools(market.rpc, market.chain_id, token.lower())

    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    assert [(each.usd, each.percent) for each in impacts] == [(1_000, 0.4984), (10_000, 2.2492)]
    assert market.rpc.trace.warnings == [
        "no sale of $100 was quoted: the smallest unit of the token is worth more"
    ]


@pytest.mark.extended
async def test_stable_pool_is_quoted_by_itself(base_market: Market) -> None:
    usdc = base_market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    base_market.exchanges.add_solidly_pool(
        {base_market.token: 10**5 * TOKEN, usdc: 10**5 * DOLLAR}, stable=True
    )
    (pool,) = await base_market.pools()

    impacts = await quote_impacts(base_market.rpc, base_market.chain_id, pool)

    assert all(each.percent is not None and each.percent < 0.2 for each in impacts)


@pytest.mark.extended
@pytest.mark.parametrize("age", [0, 3 * 3600, -2 * 3600])
async def test_stale_feed_gives_no_usd_price(market: Market, age: int) -> None:
    exchanges = market.exchanges
    exchanges.add_v2_pool({market.token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    exchanges.set_feed(exchanges.addresses.native_feed, 3_000 * 10**8, updated_at=int(time.time()) - age)

    (pool,) = await market.pools()

    assert pool.price_in_quote == 1e-5
    assert pool.price_usd == (None if age else pytest.approx(0.03))
    assert bool(market.rpc.trace.warnings) is bool(age)


@pytest.mark.extended
@pytest.mark.parametrize(("answer", "started"), [(1, 10**6), (0, 60)], ids=["down", "just restarted"])
async def test_sequencer_outage_gives_no_usd_price(base_market: Market, answer: int, started: int) -> None:
    exchanges, now = base_market.exchanges, int(time.time())
    exchanges.add_v2_pool({base_market.token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    feed = exchanges.addresses.sequencer_feed
    exchanges.set_feed(feed, answer, started_at=now - started, updated_at=now)

    (pool,) = await base_market.pools()

    assert pool.price_usd is None
    assert any("sequencer" in warning for warning in base_market.rpc.trace.warnings)


async def test_sequencer_feed_without_round_gives_no_usd_price(base_market: Market) -> None:
    exchanges = base_market.exchanges
    exchanges.add_v2_pool({base_market.token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    feed = exchanges.addresses.sequencer_feed.lower()
    base_market.node.change = lambda call, answer: bytes(160) if call.to == feed else answer

    (pool,) = await base_market.pools()

    assert pool.price_usd is None
    assert any("sequencer" in warning for warning in base_market.rpc.trace.warnings)


@pytest.mark.extended
async def test_pool_is_read_by_address(market: Market) -> None:
    usdc = market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    address = market.exchanges.add_v3_pool({market.token: 10**6 * TOKEN, usdc: 20_000 * DOLLAR}).lower()

    pool = await read_pool(market.rpc, market.chain_id, address)

    assert (pool.token, pool.quote.symbol, pool.key.fee) == (market.token.lower(), "USDC", 3000)
    assert pool.price_usd == pytest.approx(0.02)


@pytest.mark.parametrize("lost", ["token0()", "token1()", "factory()", "fee()"])
async def test_unread_pool_is_no_other_contract(market: Market, lost: str) -> None:
    usdc = market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    address = market.exchanges.add_v3_pool({market.token: 10**6 * TOKEN, usdc: 20_000 * DOLLAR}).lower()
    losses = iter([True])
    market.node.lose_answers(lambda call, _answer: is_call_of(call, lost) and next(losses, False))

    pool = await read_pool(market.rpc, market.chain_id, address)

    assert pool.key.fee == 3000
    assert list(losses) == []
    market.node.lose_answers(lambda call, _answer: is_call_of(call, lost))
    with pytest.raises(ProviderFailure, match="could not read"):
        await read_pool(market.rpc, market.chain_id, address)


@pytest.mark.extended
async def test_other_address_is_no_pool(market: Market) -> None:
    for address in (market.token, "0x" + "12" * 20):
        with pytest.raises(NoData):
            await read_pool(market.rpc, market.chain_id, address.lower())


@pytest.mark.extended
async def test_token_without_pool_is_no_data(market: Market) -> None:
    with pytest.raises(NoData):
        await market.pools()


@pytest.mark.extended
async def test_pool_of_unknown_factory_is_ignored(market: Market) -> None:
    usdc = market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    factory = market.exchanges.operator.deploy_named("UniswapV2", "UniswapV2Factory", 30)
    market.exchanges.operator.send(factory, "createPair(address,address)", market.token, usdc)
    pair = market.exchanges.operator.read(
        factory, "getPair(address,address)", market.token, usdc, returns="address"
    )

    with pytest.raises(NoData):
        await read_pool(market.rpc, market.chain_id, pair.lower())
