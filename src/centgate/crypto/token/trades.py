"""Simulated trades of a token, by source. No I/O."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from msgspec import Struct

from centgate.crypto.token.security import HolderSales, Simulation, TokenSource

TaxName = Literal["buy_tax", "sell_tax", "transfer_tax"]
HONEYPOT_RISK = 90
"""Rating of the risk from which it stands for a honeypot."""
TOTAL_TAX = 99.0
"""Percent from which a tax takes the whole: the rest is a rounding."""
MANY_FAILED_PERCENT = 50.0
"""Percent of the tried holders whose failure outweighs the sale of one account."""
MIN_FAILED_HOLDERS = 3
"""Holders that must fail before their share counts as the share of all holders."""


class SimulatedTrade(Struct, frozen=True, dict=True):
    """A purchase and a sale that one source simulated."""

    source: TokenSource
    result: Simulation

    @cached_property
    def is_pair_empty(self) -> bool:
        """True if it used an empty pair: its result then says nothing about the token's code."""
        return self.result.pair_empty is True and not self.result.is_transfer_blocked

    @cached_property
    def has_failed(self) -> bool:
        """True if any of its fields says that the token cannot be sold, on a pair with liquidity."""
        result = self.result
        is_honeypot = (
            result.honeypot is True
            or (result.risk_level or 0) >= HONEYPOT_RISK
            or (result.sell_tax or 0) >= TOTAL_TAX
        )
        return is_honeypot and not self.is_pair_empty

    @cached_property
    def has_sold(self) -> bool:
        """True if a sale on a pair with liquidity succeeded."""
        succeeded = self.result.succeeded and self.result.honeypot is False
        return succeeded and not (self.has_failed or self.is_pair_empty)

    @cached_property
    def is_unproven(self) -> bool:
        """True if a purchase succeeded and no sale, without proof that nobody can sell."""
        result = self.result
        is_open = result.succeeded and result.honeypot is None and result.sell_tax is None
        return is_open and result.buy_tax is not None and not self.is_pair_empty

    @cached_property
    def has_result(self) -> bool:
        """True if it says anything about a sale."""
        result = self.result
        has_tax = result.sell_tax is not None and "honeypotResult.isHoneypot" not in result.unreadable
        is_told = result.honeypot is not None or has_tax or self.is_unproven
        return (result.succeeded and is_told) or self.has_failed

    @cached_property
    def holder_sales(self) -> HolderSales:
        """Sales at real holders; all None if there were none, or only on an empty pair."""
        sales = None if self.is_pair_empty else self.result.holder_sales
        return sales or HolderSales()

    @property
    def failed_percent(self) -> float | None:
        """Percent of the tried holders that cannot sell."""
        return _percent(self.holder_sales.failed, self.holder_sales.tested)

    @property
    def do_most_holders_fail(self) -> bool:
        """True if at least half of the tried holders cannot sell, and they are not only one or two."""
        is_most = (self.failed_percent or 0) >= MANY_FAILED_PERCENT
        return is_most and (self.holder_sales.failed or 0) >= MIN_FAILED_HOLDERS

    @property
    def siphoned_percent(self) -> float | None:
        """Percent of the tried holders whose balance was taken away."""
        return _percent(self.holder_sales.siphoned, self.holder_sales.tested)


def _percent(count: int | None, tested: int | None) -> float | None:
    """Return a share in percent; 100 if the number tried is missing or too small to be right."""
    if count is None:
        return None
    whole = max(tested or 0, count)
    return 100 * count / whole if whole else 0.0
