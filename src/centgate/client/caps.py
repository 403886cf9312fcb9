"""Limits on what a wallet signs for, and the amounts that count against them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Caps:
    """US dollars that may be signed for: for one call, and by a wallet in all, as its ledger counts."""

    per_call: Decimal = Decimal("0.02")
    total: Decimal = Decimal("1.00")

    def __post_init__(self) -> None:
        for cap in (self.per_call, self.total):
            if not cap.is_finite() or cap < 0:
                raise ValueError(f"a cap is an amount in US dollars, not {cap}")

    def objection(self, usd: Decimal, *, signed: Decimal) -> str | None:
        """Return why an amount may not be signed for after `signed` in all; None when it may."""
        if usd > self.per_call:
            return (
                f"the price is ${usd}, above the cap of ${self.per_call} a call: raise the "
                "cap (CENTGATE_CAP_PER_CALL) if you mean to pay it"
            )
        if signed + usd > self.total:
            return (
                f"${signed} of the cap of ${self.total} in all is signed for, and this call "
                f"costs ${usd}: raise the cap (CENTGATE_CAP_TOTAL) if you mean to go on"
            )
        return None


CAPS = Caps()
"""What may be spent unless the caller says otherwise."""


class SignedAmounts:
    """The payments that count against the total cap, by payer.

    A payment is known by its nonce and counts once, however often its record is read.
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
        """Begin a new count for a payer."""
        self._amounts.pop(payer.lower(), None)
        self._totals.pop(payer.lower(), None)

    def nonces(self, payer: str) -> frozenset[str]:
        """Return the nonces of a payer's payments that count."""
        return frozenset(self._amounts.get(payer.lower(), ()))

    def total(self, payer: str | None) -> Decimal:
        """Return the sum for a payer; for None the largest of all payers."""
        if payer is None:
            return max(self._totals.values(), default=Decimal(0))
        return self._totals.get(payer.lower(), Decimal(0))
