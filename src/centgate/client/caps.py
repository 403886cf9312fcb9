"""Spending caps, and the signed amounts that count towards them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
"""Periods of the caps over time; each ends now."""
PER_CALL_OPTION = "`Caps.per_call`, CENTGATE_CAP_PER_CALL"
"""Options that set the cap per call, unless a call or a command has its own."""


def parse_dollars(amount: Decimal | str | float) -> Decimal:
    """Parse an amount in US dollars, such as `0.02` or `$0.02`. Raises ValueError."""
    try:
        usd = Decimal(str(amount).removeprefix("$"))
    except InvalidOperation:
        usd = Decimal("NaN")
    if not usd.is_finite() or usd < 0:
        raise ValueError(f"an amount in US dollars is expected, such as 0.02, not {str(amount)[:40]!r}")
    return usd


@dataclass(frozen=True, slots=True)
class Spent:
    """US dollars that a wallet has signed for, as its ledger counts them."""

    total: Decimal = Decimal(0)
    """Since the count began, or was reset."""
    last_hour: Decimal = Decimal(0)
    last_day: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Caps:
    """Spending caps in US dollars: per call, and per wallet in total and over time, as its ledger counts.

    The hour and the day end now. None is no cap over that time. Amounts may be given as texts or numbers too.
    """

    per_call: Decimal = Decimal("0.02")
    total: Decimal = Decimal("1.00")
    per_hour: Decimal | None = None
    per_day: Decimal | None = None

    def __post_init__(self) -> None:
        for name in ("per_call", "total", "per_hour", "per_day"):
            if (cap := getattr(self, name)) is not None:
                object.__setattr__(self, name, parse_dollars(cap))

    def objection(self, usd: Decimal, *, spent: Spent, option: str = PER_CALL_OPTION) -> str | None:
        """Return why an amount may not be signed after what was spent; None if it may.

        `option` is the name of the option that sets the cap per call.
        """
        if usd > self.per_call:
            return (
                f"the price is ${usd}, above the cap of ${self.per_call} per call: raise the "
                f"cap ({option}) to pay it"
            )
        if spent.total + usd > self.total:
            return (
                f"total cap reached: ${spent.total} of ${self.total} is already committed, and this call "
                f"costs ${usd}: raise the cap (`Caps.total`, CENTGATE_CAP_TOTAL) to continue"
            )
        return _period_objection("hour", usd, spent.last_hour, self.per_hour) or _period_objection(
            "day", usd, spent.last_day, self.per_day
        )


def _period_objection(period: str, usd: Decimal, spent: Decimal, cap: Decimal | None) -> str | None:
    if cap is None or spent + usd <= cap:
        return None
    return (
        f"cap per {period} reached: ${spent} of ${cap} was signed for in the last {period}, and this call "
        f"costs ${usd}: wait, or raise the cap (`Caps.per_{period}`, CENTGATE_CAP_PER_{period.upper()})"
    )


DEFAULT_CAPS = Caps()
"""Default caps."""


@dataclass(frozen=True, slots=True)
class _SignedAmount:
    usd: Decimal
    time: datetime


class SignedAmounts:
    """Payments that count towards the caps, by payer.

    A payment is identified by its nonce and counts once, even if its record is read several times.
    """

    def __init__(self) -> None:
        self._amounts: dict[str, dict[str, _SignedAmount]] = {}
        self._totals: dict[str, Decimal] = {}

    def add(self, payer: str, nonce: str, usd: Decimal, *, time: datetime | None = None) -> None:
        """Count a payment that was signed at a time; None is now."""
        amounts = self._amounts.setdefault(payer.lower(), {})
        if nonce not in amounts:
            signed_at = time or datetime.now(UTC)
            amounts[nonce] = _SignedAmount(
                usd, signed_at if signed_at.tzinfo else signed_at.replace(tzinfo=UTC)
            )
            self._totals[payer.lower()] = self.total(payer) + usd

    def remove(self, payer: str, nonce: str) -> None:
        """Stop counting a payment that can no longer move."""
        amount = self._amounts.get(payer.lower(), {}).pop(nonce, None)
        if amount is not None:
            self._totals[payer.lower()] -= amount.usd

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

    def spent(self, payer: str | None, now: datetime) -> Spent:
        """Return the sums for a payer; for None the largest sums of any payer.

        A payment whose time is in the future, because a clock was changed, counts in every period.
        """
        payers = list(self._amounts) if payer is None else [payer]
        return Spent(
            self.total(payer),
            max((self._sum_since(each, now - HOUR) for each in payers), default=Decimal(0)),
            max((self._sum_since(each, now - DAY) for each in payers), default=Decimal(0)),
        )

    def _sum_since(self, payer: str, start: datetime) -> Decimal:
        amounts = self._amounts.get(payer.lower(), {}).values()
        return sum((each.usd for each in amounts if each.time > start), Decimal(0))
