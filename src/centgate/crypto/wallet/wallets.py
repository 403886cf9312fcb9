"""Holdings and transfers of wallets, and the arithmetic of amounts."""

from __future__ import annotations

import math
from bisect import bisect_right
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from centgate.coercion import MAX_USD

WalletSource = Literal["alchemy", "blockscout", "rpc"]
PriceSource = Literal["blockscout", "chainlink", "defillama", "peg"]
"""Source of a price; `peg`: a dollar stablecoin that is counted as one dollar, whatever it is worth."""

MIN_CONFIDENCE = 0.9
"""Below this confidence (DefiLlama's own) a price is doubtful."""

_EXACT = Context(prec=400)


class Token(Struct, frozen=True):
    """Token as reported by a source. Symbol and name are the token's own: untrusted text."""

    address: str
    """Lower case."""
    symbol: str | None = None
    name: str | None = None
    decimals: int | None = None
    price_usd: float | None = None
    """Price of one unit according to the source itself."""
    accusation: str | None = None
    """Accusation by the source itself, in its words."""
    supply: int | None = None
    """Total supply, in base units."""

    def fill_missing(self, other: Token | None) -> Token:
        """Return a copy with missing values filled from another record of the token."""
        if other is None:
            return self
        return replace(
            self,
            symbol=self.symbol or other.symbol,
            name=self.name or other.name,
            decimals=other.decimals if self.decimals is None else self.decimals,
            supply=other.supply if self.supply is None else self.supply,
        )


class Price(Struct, frozen=True):
    """Price of one unit of a token."""

    usd: float
    confidence: float | None
    """From 0 to 1 as rated by the source; under 0.9 is doubtful."""
    symbol: str | None
    decimals: int | None
    at: datetime | None
    """Time of the quote."""
    source: PriceSource = "defillama"

    @property
    def is_confident(self) -> bool:
        """True if the source is confident enough to treat the token as traded; only DefiLlama may not be."""
        if self.source != "defillama":
            return True
        return self.confidence is not None and self.confidence >= MIN_CONFIDENCE


class Holding(Struct, frozen=True):
    """Balance of a token in a wallet."""

    token: Token
    amount: int
    """In base units; balances of 0 are left out of lists."""


class NativeCoin(Struct, frozen=True):
    """Balance of the native coin of an account."""

    amount: int | None
    """In wei; None if unknown."""
    price_usd: float | None = None
    """Price of one unit according to the source itself."""


class Transfer(Struct, frozen=True):
    """Transfer of a token or of the native coin."""

    transaction: str
    sender: str
    recipient: str | None
    """Lower case; None when a contract was created."""
    token: Token | None
    """None for the native coin."""
    amount: int | None
    """In base units."""
    block: int | None
    at: datetime | None
    position: int = 0
    """Position among the transfers of its block, as far as the source gives it."""

    def counterparty(self, wallet: str) -> str | None:
        """Return the other side; the wallet itself for a transfer to itself."""
        return self.recipient if self.sender == wallet else self.sender

    def is_of(self, wallet: str) -> bool:
        """True if a wallet sent or received it, or may be the contract that it created."""
        return wallet in (self.sender, self.recipient) or self.recipient is None

    def is_funding(self, wallet: str) -> bool:
        """True if it brought native coins to a wallet."""
        return self.recipient == wallet and self.token is None and bool(self.amount)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sort_newest_first(transfers: list[Transfer]) -> list[Transfer]:
    """Sort transfers, the latest first.

    One without a time gets that of its block, or of the last block before it whose time is known.
    """
    known_times = sorted((each.block, each.at) for each in transfers if each.block is not None and each.at)
    blocks = [block for block, _ in known_times]

    def effective_time(each: Transfer) -> datetime:
        if each.at or each.block is None:
            return each.at or _EPOCH
        position = bisect_right(blocks, each.block)
        return known_times[position - 1][1] if position else _EPOCH

    return sorted(
        transfers, key=lambda each: (effective_time(each), each.block or 0, each.position), reverse=True
    )


def format_base_units(amount: int | None) -> str | None:
    """Format an amount as digits, which a reader of JSON cannot round; None for an unknown one."""
    return None if amount is None else str(amount)


def to_whole_units(amount: int | None, decimals: int | None) -> Decimal | None:
    """Convert an amount to whole units, exactly; None if either is unknown."""
    if amount is None or decimals is None:
        return None
    return _EXACT.scaleb(Decimal(amount), -decimals)


def usd_value(units: Decimal | None, price_usd: float) -> float | None:
    """Return the value of an amount in US dollars; None if unknown, or above MAX_USD."""
    usd = _EXACT.multiply(units, Decimal(repr(price_usd))) if units is not None else None
    return to_finite_float(usd) if usd is not None and usd <= MAX_USD else None


def to_finite_float(number: Decimal | None) -> float | None:
    """Convert to a float for JSON; None if it is missing or not finite."""
    if number is None:
        return None
    converted = float(number)
    return converted if math.isfinite(converted) else None
