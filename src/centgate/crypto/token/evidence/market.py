"""Evidence about the market of a token: whether it has pairs, how deep, and since when. No I/O."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from math import inf

from msgspec import Struct

from centgate.crypto.token.evidence.simulations import SimulationEvidence
from centgate.crypto.token.security import TokenFlags, TokenSource
from centgate.crypto.token.token_liquidity import COMPARABLE_DEPTH_SHARE, Liquidity

MIN_SELLABLE_USD = 1_000
"""US dollars in its pairs below which a token cannot be sold in practice."""


class MarketEvidence(Struct, frozen=True, dict=True):
    """Evidence about the pairs in which a token is traded."""

    now: datetime
    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    liquidity: Liquidity | None
    sources_without_pair: tuple[TokenSource, ...]
    """Exchange indexes that list no pair of the token."""
    simulations: SimulationEvidence

    @cached_property
    def usable_usd(self) -> float | None:
        """US dollars that a sale can use; None if unknown."""
        return self.liquidity.usable_usd if self.liquidity else None

    @cached_property
    def is_sellable(self) -> bool:
        """True if the token's pairs hold liquidity, even if the pair that a simulation used is empty."""
        return (self.usable_usd or 0) >= MIN_SELLABLE_USD

    @cached_property
    def has_no_pair(self) -> bool:
        """True if an exchange index lists no pair and no other source contradicts it."""
        if not self.sources_without_pair or self.liquidity is not None or self.simulations.pair_sources:
            return False
        is_trusted = self.flags.trusted is True
        return not self.flags.in_dex or (len(self.sources_without_pair) > 1 and not is_trusted)

    @cached_property
    def trading_age(self) -> timedelta | None:
        """Time since trading began; None if unknown."""
        return max(self.now - self._since, timedelta(0)) if self._since else None

    @property
    def is_dated_by_simulation(self) -> bool:
        """True if the date of the simulation service's pair is the one that counts."""
        return self._since is not None and self._since == self.simulations.service_result.pair_created_at

    @cached_property
    def _since(self) -> datetime | None:
        """Time when trading began; None if unknown."""
        since = self.liquidity.trading_since if self.liquidity else None
        return since or (self.simulations.service_result.pair_created_at if self._dates_pair else None)

    @property
    def _dates_pair(self) -> bool:
        """True if the pair of the simulation service is the top pair, or about as deep.

        An old shallow pair does not tell since when a token is traded in a deeper one.
        """
        simulated, liquidity = self.simulations.service_result, self.liquidity
        if liquidity is None:
            return True
        if liquidity.source not in ("onchain", "goplus"):
            return False
        min_depth = COMPARABLE_DEPTH_SHARE * (liquidity.top_usd or inf)
        return simulated.pair_address == liquidity.top_pair or (simulated.liquidity_usd or 0) >= min_depth
