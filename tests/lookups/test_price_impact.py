"""Price impact of sales, by exchange and by size."""

from __future__ import annotations

from decimal import Decimal

import pytest
from exchange_market import NATIVE_COIN
from lookups.pool_market import COIN, DOLLAR, TOKEN, Market

from centgate.lookups.chain_pools import find_pools
from centgate.lookups.price_impact import quote_impacts


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


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        pytest.param((-32000, "out of gas"), [], id="limit of the node"),
        pytest.param((3, "execution reverted"), [None, None, None], id="refusal of the pool"),
    ],
)
async def test_lost_quote_is_no_refusal_of_the_pool(
    market: Market, failure: tuple[int, str], expected: list[float | None]
) -> None:
    exchanges, token = market.exchanges, market.token
    exchanges.add_v3_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    (pool,) = await market.pools()
    market.node.failure = failure
    market.node.lose_answers(lambda _call, _answer: True)

    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    assert [each.percent for each in impacts] == expected
    lost = "the sale of $100, $1,000, $10,000 is left out: the node did not quote it"
    assert market.rpc.trace.warnings == ([] if expected else [lost])


async def test_quote_that_is_lost_once_is_asked_for_again(market: Market) -> None:
    exchanges, token = market.exchanges, market.token
    exchanges.add_v3_pool({token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    (pool,) = await market.pools()
    losses = iter([True])
    market.node.lose_answers(lambda _call, _answer: next(losses, False))

    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    assert all(each.percent for each in impacts)
    assert (len(impacts), list(losses), market.rpc.trace.warnings) == (3, [], [])


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


async def test_sale_that_pool_takes_in_part_has_no_loss(market: Market) -> None:
    exchanges = market.exchanges
    token = exchanges.create_token("Like a coin", "LIKE", supply=COIN)
    exchanges.add_v3_pool({token: COIN, exchanges.wrap(COIN): COIN}, ticks=(-60, 60))
    (pool,) = await find_pools(market.rpc, market.chain_id, token.lower())

    impacts = await quote_impacts(market.rpc, market.chain_id, pool)

    assert [(each.usd, each.percent) for each in impacts] == [(100, 0.3149), (1_000, 0.4486), (10_000, None)]


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
