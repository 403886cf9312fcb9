"""Spending caps, and the signed amounts that count towards them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Caps:
    """Spending caps in US dollars: per call, and in total per wallet as counted by its ledger."""

    per_call: Decimal = Decimal("0.02")
    total: Decimal = Decimal("1.00")

    def __post_init__(self) -> None:
        for cap in (self.per_call, self.total):
            if not cap.is_finite() or cap < 0:
                raise ValueError(f"a cap is an amount in US dollars, not {cap}")

    def objection(self, usd: Decimal, *, signed: Decimal) -> str | None:
        """Return why an amount may not be signed when `signed` is already committed; None if it may."""
        if usd > self.per_call:
            return (
                f"the price is ${usd}, above the cap of ${self.per_call} per call: raise the "
                "cap (CENTGATE_CAP_PER_CALL) to pay it"
            )
        if signed + usd > self.total:
            return (
                f"total cap reached: ${signed} of ${self.total} is already committed, and this call "
                f"costs ${usd}: raise the cap (CENTGATE_CAP_TOTAL) to continue"
            )
        return None


DEFAULT_CAPS = Caps()
"""Default caps."""


class SignedAmounts:
    """Payments that count towards the total cap, by payer.

    A payment is identified by its nonce and counts once, even if its record is read several times.
    """

    def __init__(self) -> None:
        self._amounts: dict[str, dict[str, Decimal]] = {}
        self._totals: dict[str, Decimal] = {}

    def add(self, payer: str, nonce: str, usd: Decimal) -> None:
        """Count a payment that was signed."""
        amounts = self._amounts.setdefault(payer.lower(), {})
        if nonce not in amounts:
            amounts[nonce] = usd
            self._totals[payer.lower()] = self.total(payer) + usd

    def remove(self, payer: str, nonce: str) -> None:
        """Stop counting a payment that can no longer move."""
        usd = self._amounts.get(payer.lower(), {}).pop(nonce, None)
        if usd is not None:
            self._totals[payer.lower()] -= usd

    def reset(self, payer: str) -> None:
        """Reset the count of a payer to zero."""
        self._amounts.pop(payer.lower(), None)
        self._totals.pop(payer.lower(), None)

    def nonces(self, payer: str) -> frozenset[str]:
        """Return the nonces of a payer's payments that count."""
        return frozenset(self._amounts.get(payer.lower(), ()))

    def total(self, payer: str | None) -> Decimal:
        """Return the sum for a payer; for None the largest sum of any payer."""
        if payer is None:
            return max(self._totals.values(), default=Decimal(0))
        return self._totals.get(payer.lower(), Decimal(0))
