"""Pairs of decentralised exchanges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

PairSource = Literal["dexscreener", "geckoterminal", "rpc"]


class PairToken(Struct, frozen=True):
    """One of a pair's two tokens."""

    address: str | None
    """Lower case."""
    symbol: str | None


Window = Literal["5m", "1h", "6h", "24h"]
WINDOWS: Mapping[Window, str] = {"5m": "m5", "1h": "h1", "6h": "h6", "24h": "h24"}
"""Periods up to now, with the names that both exchange indexes give them."""


class PairWindow(Struct, frozen=True):
    """Trading of a pair in one period up to now; of the base token. None is unknown."""

    price_change: float | None = None
    """Percent of the price in US dollars."""
    volume_usd: float | None = None
    buys: int | None = None
    sells: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if nothing is known of it."""
        return self == PairWindow()

    def for_quote(self) -> PairWindow:
        """Return it as seen from the quote token: who buys one token sells the other."""
        return replace(self, price_change=None, buys=self.sells, sells=self.buys)


class Pair(Struct, frozen=True):
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
    version: str | None = None
    """Version of the exchange, such as `v3`."""
    fee_percent: float | None = None
    """Percent of a trade that goes to the pool."""
    base_amount: float | None = None
    """Whole base tokens in the pool."""
    quote_amount: float | None = None
    market_cap_usd: float | None = None
    """US dollars for the circulating supply of the base token."""
    windows: Mapping[Window, PairWindow] = field(default_factory=dict[Window, PairWindow])
    indexed_at: datetime | None = None
    """The source's date of the pair if that is the day of its own indexing; `created_at` is then None."""

    def __hash__(self) -> int:
        """Hash the address alone: a dict, as `windows` is, has no hash."""
        return hash(self.address)

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


def collect_windows(read: Callable[[str], PairWindow]) -> dict[Window, PairWindow]:
    """Read each period by the name that the exchange indexes give it; leave out those without a figure."""
    windows: dict[Window, PairWindow] = {window: read(name) for window, name in WINDOWS.items()}
    return {window: figures for window, figures in windows.items() if not figures.is_empty}


def multiply_known(*figures: float | None) -> float | None:
    """Multiply figures; None if one is missing."""
    known = [figure for figure in figures if figure is not None]
    return math.prod(known) if len(known) == len(figures) else None
