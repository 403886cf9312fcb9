"""Pairs of a token as exchange indexes list them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from centgate.crypto.token.security import TokenSource
from centgate.crypto.token.token_liquidity import Liquidity, sum_pair_liquidity
from centgate.errors import NoData, ProviderFailure, ProviderUnconfigured
from centgate.fallback import attempt
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal

MAX_INDEX_WAIT = 3.0
"""Seconds that the chain's pools wait for those that an exchange index lists."""


class ExchangeListing(Struct, frozen=True):
    """Result of the exchange indexes for a token."""

    liquidity: Liquidity | None = None
    pool_addresses: frozenset[str] = frozenset()
    missing: tuple[NoData | ProviderFailure, ...] = ()
    sources_without_pair: tuple[TokenSource, ...] = ()

    @property
    def has_failure(self) -> bool:
        """True if an exchange index that is configured did not answer."""
        return any(
            isinstance(each, ProviderFailure) and not isinstance(each, ProviderUnconfigured)
            for each in self.missing
        )


async def list_pairs(
    dexscreener: DexScreener, geckoterminal: GeckoTerminal, chain_id: int, token: str
) -> ExchangeListing:
    """Return the pairs of the first exchange index that has any."""
    missing: list[NoData | ProviderFailure] = []
    without_pair: list[TokenSource] = []
    indexes: tuple[tuple[TokenSource, DexScreener | GeckoTerminal], ...] = (
        ("dexscreener", dexscreener),
        ("geckoterminal", geckoterminal),
    )
    for source, index in indexes:
        if not index.supports_chain(chain_id):
            continue
        pairs = await attempt(index.pairs, chain_id, token)
        if isinstance(pairs, NoData):
            without_pair.append(source)
        if isinstance(pairs, NoData | ProviderFailure):
            missing.append(pairs)
            continue
        if any(isinstance(each, ProviderFailure) for each in missing):
            index.trace.add_warning(
                f"liquidity is from {index.info.label} instead of {dexscreener.info.label}"
            )
        addresses = frozenset(pair.address for pair in pairs)
        return ExchangeListing(
            sum_pair_liquidity(token, pairs, source), addresses, tuple(missing), tuple(without_pair)
        )
    return ExchangeListing(missing=tuple(missing), sources_without_pair=tuple(without_pair))


async def await_pools(listing: asyncio.Task[ExchangeListing]) -> Sequence[str]:
    """Return the pools that an exchange index lists, the deepest first; none if it is slow."""
    done, _ = await asyncio.wait([listing], timeout=MAX_INDEX_WAIT)
    if not done:
        return []
    listed = listing.result()
    top = listed.liquidity.top_pair if listed.liquidity else None
    return [*([top] if top else []), *sorted(listed.pool_addresses - {top})]
