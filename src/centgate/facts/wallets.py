"""What wallets hold and move, as every source tells it, and the arithmetic of amounts."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any, Literal

from centgate.readings import MOST_USD, base_units

WalletSource = Literal["alchemy", "blockscout", "rpc"]

CONFIDENT = 0.9
"""DefiLlama's own confidence in a price under which it is doubtful."""

_EXACT = Context(prec=400)
_TRANSACTION = re.compile("0x[0-9a-f]{64}")
_LAST_BLOCK = 2**53 - 1
"""Numbers beyond it are not exact where JSON is read."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token as a source tells it. Symbol and name are as the token wrote them: a stranger's words."""

    address: str
    """Lower case."""
    symbol: str | None = None
    name: str | None = None
    decimals: int | None = None
    price_usd: float | None = None
    """What the source itself says that one unit costs."""
    accused: str | None = None
    """What the source itself says against it, in its words."""
    supply: int | None = None
    """All there is of it, in base units."""

    def completed(self, other: Token | None) -> Token:
        """With what the other tells of it where this one is silent."""
        if other is None:
            return self
        return replace(
            self,
            symbol=self.symbol or other.symbol,
            name=self.name or other.name,
            decimals=other.decimals if self.decimals is None else self.decimals,
            supply=other.supply if self.supply is None else self.supply,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """What one unit of a token costs."""

    usd: float
    confidence: float | None
    """From 0 to 1 in the source's own judgement; under 0.9 is doubtful."""
    symbol: str | None
    decimals: int | None
    at: datetime | None
    """When it was seen."""

    @property
    def confident(self) -> bool:
        """Whether its source is sure enough of it that the token can be taken for one that trades."""
        return self.confidence is not None and self.confidence >= CONFIDENT


@dataclass(frozen=True, slots=True)
class Holding:
    """How much of a token a wallet has."""

    token: Token
    amount: int
    """In base units, never 0."""


@dataclass(frozen=True, slots=True)
class Coin:
    """How much of the chain's own coin a wallet has."""

    amount: int | None
    """In wei; None when nobody knows."""
    price_usd: float | None = None
    """What the source itself says that one unit costs."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A transfer of a token or of the chain's own coin."""

    transaction: str
    sender: str
    recipient: str | None
    """Lower case; None when a contract was created."""
    token: Token | None
    """None for the chain's own coin."""
    amount: int | None
    """In base units."""
    block: int | None
    at: datetime | None
    place: int = 0
    """Where it stands among the movements of its block, as far as the source tells."""

    def counterparty(self, wallet: str) -> str | None:
        """The other side; the wallet itself when it pays itself."""
        return self.recipient if self.sender == wallet else self.sender


_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def newest_first(movements: list[Movement]) -> list[Movement]:
    """In the order in which they happened, the latest first; one without a time has that of its block, or
    of the last block before it whose time is known."""
    times = sorted((each.block, each.at) for each in movements if each.block is not None and each.at)
    blocks = [block for block, _ in times]

    def when(each: Movement) -> datetime:
        if each.at or each.block is None:
            return each.at or _LONG_AGO
        earlier = bisect_right(blocks, each.block)
        return times[earlier - 1][1] if earlier else _LONG_AGO

    return sorted(movements, key=lambda each: (when(each), each.block or 0, each.place), reverse=True)


def transaction_hash(value: Any) -> str | None:
    """The hash of a transaction, in lower case; None for anything else."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _TRANSACTION.fullmatch(lower) else None


def block_number(value: Any) -> int | None:
    """The number of a block, in any spelling; None for one that no chain has."""
    number = base_units(value)
    return number if number is not None and number <= _LAST_BLOCK else None


def scaled(amount: int | None, decimals: int | None) -> Decimal | None:
    """An amount in whole units, exact; None when either is unknown."""
    if amount is None or decimals is None:
        return None
    return _EXACT.scaleb(Decimal(amount), -decimals)


def worth(units: Decimal | None, price_usd: float) -> float | None:
    """US dollars for an amount in whole units; None when unknown, or more than all that is owned."""
    usd = _EXACT.multiply(units, Decimal(repr(price_usd))) if units is not None else None
    return finite(usd) if usd is not None and usd <= MOST_USD else None


def finite(number: Decimal | None) -> float | None:
    """As a number that JSON can carry; None where there is none."""
    if number is None:
        return None
    near = float(number)
    return near if math.isfinite(near) else None
