"""Chainlink's price of the native coin: stale feeds, and outages of the sequencer."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from lookups.pool_market import COIN, DOLLAR, TOKEN, Market

from centgate.timestamps import format_timestamp


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


@pytest.mark.parametrize("age", [3_000, 3_700, 6_000])
async def test_price_older_than_an_hour_is_said(market: Market, age: int) -> None:
    exchanges, updated_at = market.exchanges, int(time.time()) - age
    exchanges.add_v2_pool({market.token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    exchanges.set_feed(exchanges.addresses.native_feed, 3_000 * 10**8, updated_at=updated_at)

    (pool,) = await market.pools()

    written = format_timestamp(datetime.fromtimestamp(updated_at, UTC))
    warning = f"Chainlink's price of the native coin is older than an hour: of {written}"
    assert pool.price_usd == pytest.approx(0.03)
    assert market.rpc.trace.warnings == ([warning] if age == 6_000 else [])


async def test_old_price_of_coin_is_no_matter_of_pool_without_it(market: Market) -> None:
    exchanges, updated_at = market.exchanges, int(time.time()) - 6_000
    usdc = exchanges.stablecoin("USDC", 10**6 * DOLLAR)
    exchanges.add_v2_pool({market.token: 10**6 * TOKEN, usdc: 30_000 * DOLLAR})
    exchanges.set_feed(exchanges.addresses.native_feed, 3_000 * 10**8, updated_at=updated_at)

    (pool,) = await market.pools()

    assert pool.price_usd == pytest.approx(0.03)
    assert market.rpc.trace.warnings == []


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


@pytest.mark.parametrize("told", [bytes(160), b"", None], ids=["without a round", "without code", "lost"])
async def test_unread_sequencer_feed_is_no_outage(base_market: Market, told: bytes | None) -> None:
    exchanges = base_market.exchanges
    exchanges.add_v2_pool({base_market.token: 10**6 * TOKEN, exchanges.wrap(10 * COIN): 10 * COIN})
    feed = exchanges.addresses.sequencer_feed.lower()
    base_market.node.change = lambda call, answer: told if call.to == feed else answer

    (pool,) = await base_market.pools()

    assert pool.price_usd is None
    warning = "whether the chain's sequencer is up is not known, so Chainlink's prices are not used"
    assert base_market.rpc.trace.warnings == [warning]
