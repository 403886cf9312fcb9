"""Money for simulated trades: wrapped native coins, and exchanges where these buy other tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from centgate.chains import well_known_chain


@dataclass(frozen=True, slots=True)
class TradeFunding:
    """Contracts of one chain; addresses in lower case."""

    wrapped: str
    """Wrapped native coin, with the interface of WETH9. It holds the coins that a simulated trade spends."""
    v2_factory: str
    """Exchange with pairs of the wrapped coin and most quote tokens."""
    v3_factory: str


_UNISWAP_V3 = "0x1f98431c8ad98523631ae4a59f267346ea31f984"

TRADE_FUNDING: Mapping[int, TradeFunding] = {
    1: TradeFunding(
        "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2",
        "0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f",
        _UNISWAP_V3,
    ),
    8453: TradeFunding(
        "0x4200000000000000000000000000000000000006",
        "0x8909dc15e40173ff4699343b6eb8132c65e18ec6",
        "0x33128a8fc17869897dce68ed026d694621f6fdfd",
    ),
    56: TradeFunding(
        "0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c",
        "0xca143ce32fe78f1f7019d7d551a6402fc5350c73",
        "0xdb1d10011ad0ff90774d0c6bb92e5c5c8b4461f7",
    ),
    137: TradeFunding(
        "0x0d500b1d8e8ef31e21c99d1db9a6444d3adf1270",
        "0x5757371414417b8c6caad45baef941abc7d3ab32",
        _UNISWAP_V3,
    ),
    42161: TradeFunding(
        "0x82af49447d8a07e3bd95bd0d56f35241523fbab1",
        "0xf1d7cc64fb4452f05c498126312ebe29f30fbcf9",
        _UNISWAP_V3,
    ),
    10: TradeFunding(
        "0x4200000000000000000000000000000000000006",
        "0x0c3c1c532f1e39edf36be9fe0be1410313e074bf",
        _UNISWAP_V3,
    ),
}
"""By chain id: Uniswap's factories (Uniswap/sdks, sdk-core/src/addresses.ts), PancakeSwap's v2 on bsc
(developer.pancakeswap.finance) and QuickSwap's on polygon (docs.quickswap.exchange)."""


def trade_funding(chain_id: int) -> TradeFunding:
    """Return the contracts of a chain; those of ethereum for a development chain."""
    return TRADE_FUNDING[well_known_chain(chain_id)]
