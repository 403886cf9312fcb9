"""Money for simulated trades: wrapped native coins, and exchanges where these buy other tokens."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from centgate.chains import well_known_chain
from centgate.crypto.token.exchange_tables import EXCHANGES, QUOTE_TOKENS

_DEFAULT_EXCHANGES = ("Uniswap v2", "Uniswap v3")
_EXCHANGES: Mapping[int, tuple[str, str]] = {
    56: ("PancakeSwap v2", "PancakeSwap v3"),
    137: ("QuickSwap v2", "Uniswap v3"),
}
"""Exchanges with deep pools of the wrapped coin, by chain id: one of kind v2 and one of kind v3."""


class TradeFunding(Struct, frozen=True):
    """Contracts of one chain; addresses in lower case."""

    wrapped: str
    """Wrapped native coin, with the interface of WETH9. It holds the coins that a simulated trade spends."""
    v2_factory: str
    """Exchange with pairs of the wrapped coin and most quote tokens."""
    v3_factory: str


@cache
def trade_funding(chain_id: int) -> TradeFunding:
    """Return the contracts of a chain; those of ethereum for a development chain."""
    table = well_known_chain(chain_id)
    names = _EXCHANGES.get(table, _DEFAULT_EXCHANGES)
    wrapped = next(quote.address for quote in QUOTE_TOKENS[table] if quote.is_native)
    factories = {exchange.name: exchange.factory for exchange in EXCHANGES[table]}
    return TradeFunding(wrapped, *(factories[name] for name in names))
