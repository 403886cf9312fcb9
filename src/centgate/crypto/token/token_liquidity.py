"""Liquidity of a token's pairs, as each kind of source tells it. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from centgate.crypto.token.pairs import Pair
from centgate.crypto.token.pools import PoolState
from centgate.crypto.token.security import Simulation, TokenFlags, TokenSource
from centgate.crypto.token.top_pair import choose_top_pair, pair_depth

COMPARABLE_DEPTH_SHARE = 0.5
"""Share of the top pair's depth from which another pair counts for how long the token has been traded."""


class Liquidity(Struct, frozen=True):
    """Liquidity of a token's pairs on one chain, as listed by one source."""

    source: TokenSource
    total_usd: float | None
    pair_count: int
    other_side_usd: float | None = None
    """US dollars of the other tokens in its pairs, which a sale can pay out. None if not reported."""
    top_pair: str | None = None
    top_dex: str | None = None
    top_usd: float | None = None
    top_created_at: datetime | None = None
    trading_since: datetime | None = None
    """Creation time of the top pair or of an older one about as deep: a new pair does not reset the age."""
    unmeasured_count: int = 0
    """Pools of the chain that the amounts leave out, as their depth in US dollars is not known."""

    @property
    def usable_usd(self) -> float | None:
        """The lower of the total and twice the other side: the other side is what backs the price."""
        if self.total_usd is None or self.other_side_usd is None:
            return self.total_usd
        return min(self.total_usd, 2 * self.other_side_usd)


def sum_pair_liquidity(token: str, pairs: Sequence[Pair], source: TokenSource) -> Liquidity:
    """Return the liquidity of a token's pairs as listed by an exchange index; `pairs` must not be empty."""
    choice = choose_top_pair(pairs, token)
    top = choice.pair
    depths = [pair.liquidity_usd for pair in pairs if pair.liquidity_usd is not None]
    other_sides = _list_other_sides_usd(token, pairs)
    min_depth = COMPARABLE_DEPTH_SHARE * (pair_depth(top) or 0)
    comparable = [
        pair for pair in pairs if (pair_depth(pair) or 0) >= min_depth and pair not in choice.price_outliers
    ]
    return Liquidity(
        source=source,
        total_usd=math.fsum(depths) if depths else None,
        pair_count=len(pairs),
        other_side_usd=math.fsum(other_sides) if other_sides else None,
        top_pair=top.address,
        top_dex=top.dex,
        top_usd=top.liquidity_usd,
        top_created_at=top.created_at,
        trading_since=min((pair.created_at for pair in comparable if pair.created_at), default=None),
    )


def _list_other_sides_usd(token: str, pairs: Sequence[Pair]) -> list[float]:
    """Return the US dollars on the other side of each pair.

    Returns [] if a pair with at least a tenth of the largest liquidity lacks the figure.
    """
    significant_usd = max((pair.liquidity_usd or 0 for pair in pairs), default=0) / 10
    other_sides = [(pair.liquidity_usd or 0, _other_side_usd(token, pair)) for pair in pairs]
    if any(liquidity >= significant_usd and other is None for liquidity, other in other_sides):
        return []
    return [min(other, liquidity) for liquidity, other in other_sides if other is not None]


def _other_side_usd(token: str, pair: Pair) -> float | None:
    return pair.quote_side_usd if pair.base.address == token else pair.base_side_usd


def sum_pool_liquidity(flags: TokenFlags) -> Liquidity | None:
    """Return the liquidity listed by the contract analysis, or None if it lists none."""
    pools = flags.pools or ()
    valued_pools = [pool for pool in pools if pool.liquidity_usd is not None]
    if not valued_pools:
        return None
    top = max(valued_pools, key=lambda pool: pool.liquidity_usd or 0)
    return Liquidity(
        source="goplus",
        total_usd=math.fsum(pool.liquidity_usd or 0 for pool in valued_pools),
        pair_count=len(pools),
        top_pair=top.pair,
        top_dex=top.name,
        top_usd=top.liquidity_usd,
    )


def sum_chain_liquidity(states: Sequence[PoolState]) -> Liquidity:
    """Return the liquidity of a token's pools on the chain, the deepest first; `states` must not be empty."""
    totals = [state.liquidity_usd for state in states if state.liquidity_usd is not None]
    other_sides = [state.quote_side_usd for state in states if state.quote_side_usd is not None]
    top = states[0]
    return Liquidity(
        source="onchain",
        total_usd=math.fsum(totals) if totals else None,
        pair_count=len(states),
        other_side_usd=math.fsum(other_sides) if other_sides else None,
        top_pair=top.key.pool_id or top.key.address,
        top_dex=top.key.exchange,
        top_usd=top.liquidity_usd,
        unmeasured_count=len(states) - len(totals),
    )


def sum_simulated_liquidity(simulation: Simulation) -> Liquidity | None:
    """Return the liquidity of the pair that a simulation used, or None if it tells none."""
    if simulation.liquidity_usd is None or simulation.pair_address is None or simulation.pair_empty:
        return None
    return Liquidity(
        source="honeypotis",
        total_usd=simulation.liquidity_usd,
        pair_count=1,
        top_pair=simulation.pair_address,
        top_usd=simulation.liquidity_usd,
        top_created_at=simulation.pair_created_at,
        trading_since=simulation.pair_created_at,
    )
