"""When the sources of token-risk know enough for an answer."""

from __future__ import annotations

from typing import Any

import pytest

from centgate.crypto.token.security import Simulation
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.crypto.token.trade_verdict import NO_FEATURES, NOT_BOUGHT
from centgate.errors import NoData, ProviderFailure
from centgate.lookups.chain_evidence import ChainEvidence
from centgate.lookups.exchange_pairs import ExchangeListing
from centgate.lookups.token_sources import TokenSources

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
