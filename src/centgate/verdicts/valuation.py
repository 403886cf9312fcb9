"""What a wallet's tokens are worth, and which come first: rules without any I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from centgate.facts.wallets import CONFIDENT, Coin, Holding, Price, scaled, worth


@dataclass(frozen=True, slots=True)
class Quote:
    """A price, with what its source thinks of it."""

    usd: float
    confidence: float | None
    source: Literal["blockscout", "defillama"]

    @property
    def doubtful(self) -> bool:
        """Whether it may not rank before prices that are not."""
        return self.confidence is not None and self.confidence < CONFIDENT


@dataclass(frozen=True, slots=True)
class Valued:
    """A holding with its decimals, its price and its worth, each as far as known."""

    holding: Holding
    decimals: int | None
    quote: Quote | None
    usd: float | None
    """US dollars for all of it."""


def quoted(own_usd: float | None, price: Price | None) -> Quote | None:
    """The better of two prices: DefiLlama's, unless it is doubtful and the explorer has one of its own."""
    llama = Quote(price.usd, price.confidence, "defillama") if price else None
    if own_usd is not None and (llama is None or llama.doubtful):
        return Quote(own_usd, None, "blockscout")
    return llama


def valued(holding: Holding, price: Price | None) -> Valued:
    """A holding with its worth; decimals that its source does not say are taken from the price's."""
    token = holding.token
    decimals = price.decimals if token.decimals is None and price else token.decimals
    quote = quoted(token.price_usd, price)
    usd = worth(scaled(holding.amount, decimals), quote.usd) if quote else None
    return Valued(holding, decimals, quote if usd is not None else None, usd)


def coin_worth(coin: Coin, price: Price | None) -> tuple[Quote, float] | None:
    """The price of the chain's own coin, and what all of it is worth; None when nobody knows."""
    quote = quoted(coin.price_usd, price)
    usd = worth(scaled(coin.amount, 18), quote.usd) if quote else None
    return (quote, usd) if quote and usd is not None else None


def ranked(holdings: Iterable[Valued]) -> list[Valued]:
    """The most valuable first, then those with a doubtful price, last those without one, by symbol."""
    return sorted(holdings, key=_rank)


def _rank(each: Valued) -> tuple[int, float, str, str]:
    token = each.holding.token
    standing = 2 if each.quote is None else 1 if each.quote.doubtful else 0
    return standing, -(each.usd or 0), (token.symbol or "\uffff").casefold(), token.address
