"""Value a wallet's holdings and rank them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from centgate.crypto.wallet.wallets import (
    MIN_CONFIDENCE,
    Holding,
    NativeCoin,
    Price,
    PriceSource,
    to_whole_units,
    usd_value,
)


class PriceQuote(Struct, frozen=True):
    """A price with its source's confidence."""

    usd: float
    confidence: float | None
    source: PriceSource
    at: datetime | None = None
    """Time of the quote."""

    @property
    def is_doubtful(self) -> bool:
        """True if DefiLlama's confidence is too low or not given: ranked after other prices."""
        return self.source == "defillama" and (self.confidence is None or self.confidence < MIN_CONFIDENCE)


class ValuedHolding(Struct, frozen=True):
    """A holding with its decimals, price and value; None where unknown."""

    holding: Holding
    decimals: int | None
    quote: PriceQuote | None
    usd: float | None
    """Value of the whole holding in US dollars."""


def choose_quote(own_usd: float | None, price: Price | None) -> PriceQuote | None:
    """Return the price, unless it is missing, doubtful or only assumed and the explorer has one."""
    quote = PriceQuote(price.usd, price.confidence, price.source, price.at) if price else None
    if own_usd is not None and (quote is None or quote.is_doubtful or quote.source == "peg"):
        return PriceQuote(own_usd, None, "blockscout")
    return quote


def value_holding(holding: Holding, price: Price | None) -> ValuedHolding:
    """Value a holding; decimals missing from its source are taken from the price."""
    token = holding.token
    decimals = price.decimals if token.decimals is None and price else token.decimals
    quote = choose_quote(token.price_usd, price)
    usd = usd_value(to_whole_units(holding.amount, decimals), quote.usd) if quote else None
    return ValuedHolding(holding, decimals, quote if usd is not None else None, usd)


def value_coin(coin: NativeCoin, price: Price | None) -> tuple[PriceQuote, float] | None:
    """Return the price of the chain's native coin and the value of the balance; None if unknown."""
    quote = choose_quote(coin.price_usd, price)
    usd = usd_value(to_whole_units(coin.amount, 18), quote.usd) if quote else None
    return (quote, usd) if quote and usd is not None else None


class WalletTotal(Struct, frozen=True):
    """Value of a wallet's balances that can be told."""

    usd: float | None
    """Balances with a price that is not doubtful, in US dollars; None if balances exist but none has one."""
    doubtful_usd: float
    """Balances with a doubtful price, in US dollars."""
    unpriced_count: int
    """Balances without a price."""


def add_up(values: Iterable[tuple[PriceQuote, float] | None]) -> WalletTotal:
    """Add up the values of balances; None stands for a balance without a price."""
    known: list[float] = []
    doubtful: list[float] = []
    unpriced = 0
    for each in values:
        if each is None:
            unpriced += 1
        elif each[0].is_doubtful:
            doubtful.append(each[1])
        else:
            known.append(each[1])
    is_unknown = not known and bool(doubtful or unpriced)
    return WalletTotal(None if is_unknown else sum(known), sum(doubtful), unpriced)


def rank_holdings(holdings: Iterable[ValuedHolding]) -> list[ValuedHolding]:
    """Sort: the most valuable first, then those with a doubtful price, last those without one, by symbol."""
    return sorted(holdings, key=_sort_key)


def _sort_key(each: ValuedHolding) -> tuple[int, float, str, str]:
    token = each.holding.token
    price_class = 2 if each.quote is None else 1 if each.quote.is_doubtful else 0
    return price_class, -(each.usd or 0), (token.symbol or "\uffff").casefold(), token.address
