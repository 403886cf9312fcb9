"""Balance of a chain's native coin with its value, as several answers have it."""

from __future__ import annotations

from pydantic import Field

from centgate.chains import CHAIN_BY_ID
from centgate.crypto.wallet.valuation import PriceQuote, value_coin
from centgate.crypto.wallet.wallets import (
    NativeCoin,
    Price,
    PriceSource,
    WalletSource,
    format_base_units,
    to_finite_float,
    to_whole_units,
)
from centgate.schema import Data
from centgate.timestamps import format_timestamp

NATIVE_DECIMALS = 18
"""On every EVM chain."""


class Worth(Data):
    """Value of one unit and of the whole balance."""

    price_usd: float = Field(description="US dollars for one unit.")
    value_usd: float = Field(description="US dollars for the balance.")
    confidence: float | None = Field(
        description="The price source's own confidence, from 0 to 1; null when it gives none."
    )
    doubtful: bool = Field(
        description="True if the confidence is under 0.9 or not given by DefiLlama: ranked after all prices "
        "that are not doubtful."
    )
    priced_at: str | None = Field(
        description="Time of the price, ISO 8601, UTC; null when its source gives none."
    )
    source: PriceSource = Field(
        description="`chainlink`: its feed on the chain, of the native coin and its wrapped form; `peg`: a "
        "known dollar stablecoin, counted as one dollar whatever it is worth. A wallet's balances have both "
        "only without DefiLlama."
    )


class NativeBalance(Data):
    """Balance of the chain's native coin."""

    symbol: str
    amount_base_units: str | None = Field(
        description="In base units (wei), a decimal string; null when no source knows it."
    )
    decimals: int = Field(description="Decimals between base units and the scaled amount.")
    amount: float | None = Field(description="Scaled by the decimals.")
    worth: Worth | None = Field(description="Null when no source has a price.")
    source: WalletSource | None


def build_native_balance(
    chain_id: int, coin: NativeCoin, price: Price | None, source: WalletSource | None
) -> NativeBalance:
    """Return the balance of the native coin, with its value if the coin itself or `price` tells one."""
    value = value_coin(coin, price)
    return NativeBalance(
        symbol=native_symbol(chain_id),
        amount_base_units=format_base_units(coin.amount),
        decimals=NATIVE_DECIMALS,
        amount=to_finite_float(to_whole_units(coin.amount, NATIVE_DECIMALS)),
        worth=build_worth(*value) if value else None,
        source=source,
    )


def build_worth(quote: PriceQuote, usd: float) -> Worth:
    """Return the price of one unit, and the value of the balance in US dollars."""
    return Worth(
        price_usd=quote.usd,
        value_usd=usd,
        confidence=quote.confidence,
        doubtful=quote.is_doubtful,
        priced_at=format_timestamp(quote.at) if quote.at else None,
        source=quote.source,
    )


def native_symbol(chain_id: int) -> str:
    """Return the symbol of the native coin; development chains use ETH."""
    return CHAIN_BY_ID[chain_id].native if chain_id in CHAIN_BY_ID else "ETH"
