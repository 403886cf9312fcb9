"""Pairs of decentralised exchanges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PairSource = Literal["dexscreener", "geckoterminal", "rpc"]


@dataclass(frozen=True, slots=True)
class PairToken:
    """One of a pair's two tokens."""

    address: str | None
    """Lower case."""
    symbol: str | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Pool of two tokens. None where the source gives no value; it never means 0."""

    address: str
    """Lower case; 32 bytes where the exchange's pools have no contract of their own."""
    dex: str | None
    base: PairToken
    quote: PairToken
    price_usd: float | None
    """US dollars for one base token."""
    quote_price_usd: float | None
    """US dollars for one quote token."""
    liquidity_usd: float | None
    """US dollars on both sides together."""
    base_side_usd: float | None
    """US dollars on the base side alone."""
    quote_side_usd: float | None
    """US dollars on the quote side alone, which the token's creator cannot mint."""
    volume24h_usd: float | None
    fdv_usd: float | None
    """US dollars for the whole supply of the base token."""
    created_at: datetime | None
    buys24h: int | None
    sells24h: int | None
    url: str | None
    source: PairSource

    def has_token(self, token: str) -> bool:
        """True if a token (lower case) is one of the two."""
        return token in (self.base.address, self.quote.address)

    def price_of(self, token: str) -> float | None:
        """Return US dollars for one unit of either token (lower case)."""
        if token == self.base.address:
            return self.price_usd
        return self.quote_price_usd if token == self.quote.address else None

    @property
    def lesser_side_usd(self) -> float | None:
        """US dollars on the side that is worth less; None if neither side is known."""
        known = [side for side in (self.base_side_usd, self.quote_side_usd) if side is not None]
        return min(known, default=None)


def multiply_known(*figures: float | None) -> float | None:
    """Multiply figures; None if one is missing."""
    known = [figure for figure in figures if figure is not None]
    return math.prod(known) if len(known) == len(figures) else None
