"""Records of simulated trades, as the simulator contract writes them: raw words of 32 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.token.revert_reasons import FailureReason, parse_failure
from centgate.crypto.token.trades import TOTAL_TAX

RECORD_BYTES: Final = 512
FUNDED, BOUGHT, APPROVED, SOLD = 1, 2, 3, 4
"""Stages of a trade."""
OUT_OF_GAS: Final = 3_500_000
"""Gas of a failed step without a reason that has used up its limit (4 million)."""
MAX_DECIMALS = 255
MAX_POOL_COST = 0.3
"""Share of a round trip that fees, a pool's price, and a token's sale of collected fees may cost."""
MIN_HOLDING = 10**-5
"""Part of the pool's tokens from which a holding counts: strangers make holders of less for little money."""
_ROUNDING_UNITS = 2
"""Base units that a token with shares may lose in a transfer."""


class TradeRecord(Struct, frozen=True):
    """One attempt to buy, to sell, or both. Amounts are in base units."""

    stage: int
    """Last stage that was reached."""
    quote_in: int
    pair_out: int
    received: int
    amount: int
    """Tokens that were to be sold."""
    left: int
    """Tokens that left the seller."""
    pair_in: int
    quote_out: int
    gas_used: int
    reason: bytes
    """Revert data of the step that failed, cut."""

    @property
    def has_bought(self) -> bool:
        return self.stage >= BOUGHT

    @property
    def has_sold(self) -> bool:
        """True if the tokens were sold, and not all of them went to a tax."""
        return self.stage == SOLD and (self.sell_tax or 0) < TOTAL_TAX

    @property
    def buy_tax(self) -> float | None:
        """Percent of the tokens that did not reach the buyer."""
        return _share_lost(self.pair_out, self.received) if self.has_bought else None

    @property
    def sell_tax(self) -> float | None:
        """Percent of the seller's tokens that did not reach the pool, or that it did not pay for; None if
        nothing moved.
        """
        lost = _share_lost(self.left, self.pair_in) if self.left else None
        paid = self._paid_share
        if lost is None or paid is None or paid >= 1 - MAX_POOL_COST:
            return lost
        return round(100 - (100 - lost) * paid, 4)

    @property
    def _paid_share(self) -> float | None:
        """Price that the pool paid, as a share of the one at which it sold; None without both trades.

        A token can make the pool's price collapse within a sale. What the pool sold is rounded down.
        """
        if self.stage != SOLD or not (self.quote_in and self.pair_out and self.pair_in and self.quote_out):
            return None
        return self.quote_out * (self.pair_out + 1) / (self.pair_in * self.quote_in)

    @property
    def is_siphoned(self) -> bool:
        """True if the sale took more from the seller than was sold."""
        return self.left > self.amount * 101 // 100 + _ROUNDING_UNITS

    @property
    def failure(self) -> FailureReason:
        """Reason why the next stage was not reached."""
        if not any(self.reason) and self.gas_used > OUT_OF_GAS:
            return FailureReason("out_of_gas", None)
        failure = parse_failure(self.reason)
        if failure.code == "nothing_arrived" and not self.left:
            return FailureReason("nothing_moved", None)
        if failure.code == "no_capital" and self.stage:  # the token's own: the simulator has its capital
            return FailureReason(None, f"error 0x{self.reason[:4].hex()}")
        return failure

    def priced_by(self, purchase: TradeRecord | None) -> TradeRecord:
        """Return a sale with the price of a purchase of another account."""
        if purchase is None or not purchase.has_bought:
            return self
        return replace(self, quote_in=purchase.quote_in, pair_out=purchase.pair_out)


class PurchaseProbe(Struct, frozen=True):
    """Trades of new accounts in one pool. A record is None if it was not tried."""

    quotes: int
    """The other token in the pool."""
    tokens: int
    quote_decimals: int | None
    """None if the token tells none, or more than 255."""
    token_decimals: int | None
    small: TradeRecord | None
    large: TradeRecord | None
    transfer: TradeRecord | None
    with_code: TradeRecord | None
    """Round trip of an account that has code."""
    other_way: TradeRecord | None
    """Sale in a way that routers do not use."""
    largest_buy: TradeRecord | None
    largest_sale: TradeRecord | None
    as_wallet: TradeRecord | None
    """Small trade after an approval without limit, with little more gas than it needs."""

    @property
    def has_sold(self) -> bool:
        return self.small is not None and self.small.has_sold

    @property
    def has_bought(self) -> bool:
        return self.small is not None and self.small.has_bought

    @property
    def is_empty(self) -> bool:
        """True if the pool lacks one of its sides."""
        return not self.quotes or not self.tokens


class HolderProbe(Struct, frozen=True):
    """Sales of one holder."""

    holder: str
    balance: int
    largest: int
    """Largest amount that was sold."""
    depth: int
    """Tokens in the pool."""
    small: TradeRecord | None
    full: TradeRecord | None
    other_way: TradeRecord | None
    drained: bool = False
    """True if its tokens are gone without a transfer."""
    can_send: bool | None = None
    """True if its wallet, as it is, can send tokens to the pool itself; None if that is not known."""

    @property
    def is_tested(self) -> bool:
        has_tokens = self.balance >= self.depth * MIN_HOLDING
        return (self.small is not None and has_tokens) or self.drained

    @property
    def can_sell(self) -> bool:
        return self.small is not None and self.small.has_sold

    @property
    def is_siphoned(self) -> bool:
        """True if its tokens are gone, or a sale takes those that were not sold too."""
        return self.drained or (self.can_sell and self.small is not None and self.small.is_siphoned)

    @property
    def tax(self) -> float | None:
        """Percent of its sale, the highest over the amounts; None if it cannot sell.

        Of a sale that takes the whole holding, only that of everything says what a sale costs.
        """
        sales = [each for each in (self.small, self.full) if each is not None and each.has_sold]
        if not self.can_sell or not sales:
            return None
        if len(sales) > 1 and self.is_siphoned:
            sales = sales[1:]
        return max((each.sell_tax for each in sales if each.sell_tax is not None), default=None)

    @property
    def is_limited(self) -> bool:
        """True if it can sell, and not all at once."""
        return self.can_sell and self.full is not None and not self.full.has_sold

    def priced_by(self, purchase: TradeRecord | None, *, is_pair: bool) -> HolderProbe:
        """Return it with the price of a purchase as small as its small sale.

        In a pair, that of a larger sale follows from the pool's tokens.
        """
        small = self.small.priced_by(purchase) if self.small else None
        full = self.full
        if is_pair and full is not None:
            priced = full.priced_by(purchase)
            quote_in = priced.quote_in * self.depth // max(1, self.depth + full.amount)
            full = replace(priced, quote_in=quote_in)
        return replace(self, small=small, full=full)


def parse_purchase_probe(data: bytes) -> PurchaseProbe:
    """Parse what the simulator returns. Raises ValueError if it is not in its format."""
    if len(data) != 6 * 32 + 8 * RECORD_BYTES:
        raise ValueError("not the records of a simulation")
    quotes, tokens, quote_decimals, token_decimals, _, _ = _parse_words(data, 6)
    return PurchaseProbe(
        quotes,
        tokens,
        quote_decimals if quote_decimals <= MAX_DECIMALS else None,
        token_decimals if token_decimals <= MAX_DECIMALS else None,
        *_parse_records(data[6 * 32 :]),
    )


def parse_holder_probe(holder: str, data: bytes) -> HolderProbe:
    """Parse what a sale at a holder returns. Raises ValueError if it is not in its format."""
    if len(data) != 3 * 32 + 3 * RECORD_BYTES:
        raise ValueError("not the records of a holder")
    balance, depth, largest = _parse_words(data, 3)
    small, full, other_way = _parse_records(data[3 * 32 :])
    return HolderProbe(holder, balance, largest, depth, small, full, other_way)


def parse_purchase_and_sale(data: bytes) -> tuple[TradeRecord | None, TradeRecord | None]:
    """Parse a purchase and the sale after it. Raises ValueError if it is not in its format."""
    if len(data) != 2 * RECORD_BYTES:
        raise ValueError("not the records of a purchase and a sale")
    bought, sold = _parse_records(data)
    return bought, None if sold is None else sold.priced_by(bought)


def _parse_records(data: bytes) -> Sequence[TradeRecord | None]:
    return [_parse_record(data[at : at + RECORD_BYTES]) for at in range(0, len(data), RECORD_BYTES)]


def _parse_record(data: bytes) -> TradeRecord | None:
    """Parse a record; None for one that was not tried, which is zero."""
    if not any(data):
        return None
    *numbers, length = _parse_words(data, 10)
    return TradeRecord(*numbers, reason=data[320 : 320 + min(length, RECORD_BYTES - 320)])


def _parse_words(data: bytes, count: int) -> list[int]:
    return [int.from_bytes(data[at : at + 32], "big") for at in range(0, 32 * count, 32)]


def _share_lost(sent: int, arrived: int) -> float | None:
    """Return the percent of an amount that did not arrive, to four digits; None without an amount."""
    if not sent:
        return None
    if sent - arrived <= _ROUNDING_UNITS:
        return 0.0
    return round((sent - arrived) * 1_000_000 / sent) / 10_000
