"""When the sources of token-risk know enough for an answer."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_upstreams import FakeUpstreams
from lookups.chain_providers import CHAIN_ID, open_providers

from centgate.crypto.token.security import Holder, Simulation, TokenFlags, TokenLock
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.trade_verdict import NO_FEATURES, NOT_BOUGHT
from centgate.devchain.chain import EvmChain, GenesisAccount
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.errors import NoData, ProviderFailure
from centgate.lookups.chain_evidence import ChainEvidence
from centgate.lookups.exchange_pairs import ExchangeListing
from centgate.lookups.token_sources import TokenSources, find_wallets_called_locked
from centgate.settings import Settings

TOKEN = "0x" + "1" * 40
UNUSED: Any = None


@pytest.mark.parametrize(("explanation", "is_answered"), [(NOT_BOUGHT, True), (NO_FEATURES, False)])
def test_pools_are_enough_once_trades_were_tried(explanation: str, *, is_answered: bool):
    failure = ProviderFailure("honeypotis", "did not answer")
    chain = ChainEvidence(
        simulation=Simulation(explanation=explanation), liquidity=Liquidity("onchain", 50_000, 1)
    )
    sources = TokenSources(NoData("no such token"), failure, ExchangeListing(), chain)

    assert sources.find_missing(UNUSED, UNUSED, TOKEN) is (None if is_answered else failure)


@pytest.mark.parametrize(("usd", "is_dated"), [(40_000, True), (2_000, False)])
def test_refuted_pair_dates_only_pools_that_are_not_much_deeper(usd: float, *, is_dated: bool):
    listed_pair, deep_pool = "0x" + "2" * 40, "0x" + "3" * 40
    since = datetime.now(UTC) - timedelta(days=400)
    listed = Liquidity("dexscreener", 9e6, 1, top_pair=listed_pair, top_usd=9e6, trading_since=since)
    shown = Liquidity("onchain", 62_000, 2, top_pair=deep_pool, top_usd=60_000)
    chain = ChainEvidence(liquidity=shown, usd_by_pool={listed_pair: usd, deep_pool: 60_000})
    sources = TokenSources(TokenFlags(), None, ExchangeListing(listed), chain)

    evidence = sources.build_evidence(CHAIN_ID)

    assert (evidence.liquidity and evidence.liquidity.source) == "onchain"
    assert (evidence.market.trading_age is not None) is is_dated


async def test_holders_called_locked_are_looked_up(chain_settings: Settings):
    wallet, delegated, locker, dated, burned, owner = (f"0x{digit * 40}" for digit in "abcd0e")
    accounts = {
        delegated: GenesisAccount(code=bytes.fromhex("ef0100" + locker[2:])),
        locker: GenesisAccount(code=b"\0"),
    }
    rows = (
        *(Holder(each, None, contract=True, locked=True, percent=10) for each in (wallet, delegated, locker)),
        Holder(dated, None, contract=None, locked=True, percent=10, locks=(TokenLock(10, None),)),
        Holder(burned, None, contract=None, locked=True, percent=10),
        Holder(owner, None, contract=None, locked=False, percent=10),
    )

    async def analyse() -> TokenFlags:
        return TokenFlags(lp_holders=rows)

    with serve_app(create_rpc_app(EvmChain(CHAIN_ID, accounts)), 0) as url:
        async with open_providers(chain_settings, url) as (rpc, _):
            found = await find_wallets_called_locked(rpc, CHAIN_ID, analyse(), max_wait=8)

    assert found == {wallet, delegated}
    sources = TokenSources(TokenFlags(lp_holders=rows), None, ExchangeListing(), ChainEvidence(), None, found)
    shares = sources.build_evidence(CHAIN_ID).lp_holders.shares
    assert shares is not None
    assert {hand.address for hand in shares.hands} == {wallet, delegated, owner}
    assert (shares.refuted_percent, shares.locked_percent) == (20, 30)


async def test_node_that_hangs_about_holders_called_locked_is_named(
    chain_settings: Settings, upstreams: FakeUpstreams
):
    rows = (Holder("0x" + "a" * 40, None, contract=None, locked=True, percent=90),)
    upstreams.delay = 3

    async def analyse() -> TokenFlags:
        return TokenFlags(lp_holders=rows)

    started = time.monotonic()
    async with open_providers(chain_settings, upstreams.url_of("node")) as (rpc, _):
        found = await find_wallets_called_locked(rpc, CHAIN_ID, analyse(), max_wait=0.5)

        assert time.monotonic() - started < 2
        assert found == frozenset()
        assert rpc.trace.warnings == [
            "not checked: whether holders of liquidity that GoPlus Security calls locked are wallets, as the "
            "node did not tell"
        ]
