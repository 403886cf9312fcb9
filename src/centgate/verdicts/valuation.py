"""Value a wallet's holdings and rank them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from centgate.facts.wallets import MIN_CONFIDENCE, Holding, NativeCoin, Price, to_whole_units, usd_value


@dataclass(frozen=True, slots=True)
class Quote:
    """A price with its source's confidence."""

    usd: float
    confidence: float | None
    source: Literal["blockscout", "defillama"]

    @property
    def doubtful(self) -> bool:
        """True if the confidence is too low: ranked after prices that are not doubtful."""
        return self.confidence is not None and self.confidence < MIN_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Valued:
    """A holding with its decimals, price and value; None where unknown."""

    holding: Holding
    decimals: int | None
    quote: Quote | None
    usd: float | None
    """Value of the whole holding in US dollars."""


def quoted(own_usd: float | None, price: Price | None) -> Quote | None:
    """Return DefiLlama's price, unless it is missing or doubtful and the explorer has one."""
    llama = Quote(price.usd, price.confidence, "defillama") if price else None
    if own_usd is not None and (llama is None or llama.doubtful):
        return Quote(own_usd, None, "blockscout")
    return llama


def valued(holding: Holding, price: Price | None) -> Valued:
    """Value a holding; decimals missing from its source are taken from the price."""
    token = holding.token
    decimals = price.decimals if token.decimals is None and price else token.decimals
    quote = quoted(token.price_usd, price)
    usd = usd_value(to_whole_units(holding.amount, decimals), quote.usd) if quote else None
    return Valued(holding, decimals, quote if usd is not None else None, usd)


def coin_worth(coin: NativeCoin, price: Price | None) -> tuple[Quote, float] | None:
    """Return the price of the chain's native coin and the value of the balance; None if unknown."""
    quote = quoted(coin.price_usd, price)
    usd = usd_value(to_whole_units(coin.amount, 18), quote.usd) if quote else None
    return (quote, usd) if quote and usd is not None else None


def ranked(holdings: Iterable[Valued]) -> list[Valued]:
    """Sort: the most valuable first, then those with a doubtful price, last those without one, by symbol."""
    return sorted(holdings, key=_sort_key)


def _sort_key(each: Valued) -> tuple[int, float, str, str]:
    token = each.holding.token
    price_class = 2 if each.quote is None else 1 if each.quote.doubtful else 0
    return price_class, -(each.usd or 0), (token.symbol or "\uffff").casefold(), token.address
