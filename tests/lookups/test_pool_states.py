"""States of pools: answers that are lost or impossible, and the choice among many pools."""

from __future__ import annotations

import pytest
from exchange_market import NATIVE_COIN
from lookups.changing_node import is_call_of
from lookups.pool_market import COIN, DOLLAR, TOKEN, Market

from centgate.errors import ProviderFailure
from centgate.lookups import pool_states


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


async def test_pool_whose_balance_was_lost_is_read(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_states, "MAX_POOLS", 1)
    exchanges, token = market.exchanges, market.token
    usdc = exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    exchanges.add_v2_pool({token: TOKEN, usdc: 10 * DOLLAR})
    deep = exchanges.add_v3_pool({token: 10**5 * TOKEN, usdc: 10**5 * DOLLAR}).lower()
    losses = iter([True])
    market.node.lose_answers(
        lambda call, _answer: (
            is_call_of(call, "balanceOf(address)") and deep[2:] in call.data.hex() and next(losses, False)
        )
    )

    (pool,) = await market.pools()

    assert (pool.key.address, list(losses)) == (deep, [])


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


async def test_unread_fee_is_told_from_none(base_market: Market) -> None:
    exchanges, token = base_market.exchanges, base_market.token
    usdc = exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    exchanges.add_solidly_pool({token: 10**5 * TOKEN, usdc: 10**5 * DOLLAR}, stable=True)
    exchanges.add_slipstream_pool({token: 10**4 * TOKEN, usdc: 10**4 * DOLLAR})
    exchanges.add_v3_pool({token: 10**3 * TOKEN, usdc: 10**3 * DOLLAR})
    base_market.node.lose_answers(lambda call, _answer: is_call_of(call, "getFee(address,bool)", "fee()"))

    pools = await base_market.pools()

    assert [(each.key.exchange, each.key.fee, each.is_fee_unread) for each in pools] == [
        ("Aerodrome", None, True),
        ("Aerodrome Slipstream", None, True),
        ("Uniswap v3", 3000, False),  # found by its fee
    ]
