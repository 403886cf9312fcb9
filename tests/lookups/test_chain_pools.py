"""Pools read from a chain: kinds of exchanges, prices and depth."""

from __future__ import annotations

from pathlib import Path

import pytest
from exchange_market import NATIVE_COIN, install_market
from lookups.changing_node import is_call_of
from lookups.pool_market import (
    COIN,
    DOLLAR,
    LAUNCHPAD_HOOKS,
    REFUSE,
    TOKEN,
    Market,
    create_fee_hooks,
    open_market,
)

from centgate.crypto.abi import encode_uint
from centgate.crypto.token.pools import DYNAMIC_FEE
from centgate.devchain.chain import EvmChain
from centgate.devchain.well_known import ETHEREUM, POLYGON
from centgate.errors import NoData, ProviderFailure
from centgate.lookups.chain_pools import read_pool
from centgate.lookups.price_impact import quote_impacts


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


async def test_pool_with_hooks_of_launchpad_is_found(market: Market) -> None:
    exchanges, token = market.exchanges, market.token
    hooks = create_fee_hooks(exchanges, LAUNCHPAD_HOOKS)
    exchanges.add_v4_pool(
        {token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN},
        fee=DYNAMIC_FEE,
        tick_spacing=200,
        hooks=hooks,
    )
    exchanges.operator.send(hooks, "set(uint24,bool)", 100_000, not REFUSE)

    (pool,) = await market.pools()
    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    assert (pool.key.exchange, pool.key.hooks, pool.key.fee) == ("Uniswap v4", hooks, None)
    assert pool.price_usd == pytest.approx(0.02)
    assert impacts[0].percent == pytest.approx(10.4, abs=0.1)


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
    async for market in open_market(chain, install_market(chain, ETHEREUM), tmp_path):
        with pytest.raises(NoData):
            await market.pools()

        (absent,) = [each for each in market.rpc.trace.warnings if "not at this node" in each]
        assert "Velodrome v2" in absent
        assert "Uniswap v3" not in absent  # at its address on Ethereum


@pytest.mark.extended
async def test_algebra_pools_are_found(tmp_path: Path) -> None:
    chain = EvmChain(137, {})
    async for market in open_market(chain, install_market(chain, POLYGON), tmp_path):
        usdc = market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
        market.exchanges.add_algebra_pool({market.token: 10**4 * TOKEN, usdc: 10**4 * DOLLAR})

        (pool,) = await market.pools()
        (small, *_) = await quote_impacts(market.rpc, market.chain_id, pool)

        assert (pool.key.exchange, pool.price_usd) == ("QuickSwap v3", pytest.approx(1.0))
        assert small.percent == pytest.approx(1.0, abs=0.1)


@pytest.mark.extended
async def test_pool_is_read_by_address(market: Market) -> None:
    usdc = market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    address = market.exchanges.add_v3_pool({market.token: 10**6 * TOKEN, usdc: 20_000 * DOLLAR}).lower()

    pool = await read_pool(market.rpc, market.chain_id, address)

    assert (pool.token, pool.quote.symbol, pool.key.fee) == (market.token.lower(), "USDC", 3000)
    assert pool.price_usd == pytest.approx(0.02)


async def test_function_of_other_kind_of_pool_is_not_read(base_market: Market) -> None:
    usdc = base_market.exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    sides = {base_market.token: 10**5 * TOKEN, usdc: 10**5 * DOLLAR}
    address = base_market.exchanges.add_solidly_pool(sides, stable=True).lower()
    base_market.node.change = lambda call, answer: encode_uint(30) if is_call_of(call, "fee()") else answer

    pool = await read_pool(base_market.rpc, base_market.chain_id, address)

    assert pool.key.fee == 500


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
