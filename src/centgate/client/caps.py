"""What a client may spend, and what it has spent of that."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from decimal import Decimal

from centgate.client.errors import CapExceeded


@dataclass(frozen=True, slots=True)
class Caps:
    """US dollars that may be spent on one call, and in all by one client object."""

    per_call: Decimal = Decimal("0.02")
    total: Decimal = Decimal("1.00")

    def __post_init__(self) -> None:
        for cap in (self.per_call, self.total):
            if not cap.is_finite() or cap < 0:
                raise ValueError(f"a cap is an amount in US dollars, not {cap}")


CAPS = Caps()
"""What may be spent unless the caller says otherwise."""


class Purse:
    """What is spent. Threads and tasks may share it.

    It counts as spent before a payment is signed, and stays so whatever the API says came of it: an API may
    say that it refused, and use the signature all the same.
    """

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self._spent = Decimal(0)
        self._lock = threading.Lock()

    def objection(self, usd: Decimal) -> str | None:
        """Why so much may not be spent; None when it may."""
        with self._lock:
            return self._objection(usd)

    def spend(self, usd: Decimal) -> None:
        """Count an amount that is about to be signed for; CapExceeded when there is not so much."""
        with self._lock:
            if objection := self._objection(usd):
                raise CapExceeded(objection)
            self._spent += usd

    def give_back(self, usd: Decimal) -> None:
        """Nothing was signed for it, or nobody will hear of it."""
        with self._lock:
            self._spent -= usd

    def _objection(self, usd: Decimal) -> str | None:
        if usd > self.caps.per_call:
            return (
                f"the price is ${usd}, above the cap of ${self.caps.per_call} a call: raise the "
                "cap (CENTGATE_CAP_PER_CALL) if you mean to pay it"
            )
        if self._spent + usd > self.caps.total:
            return (
                f"${self._spent} of the cap of ${self.caps.total} in all is signed for, and this call "
                f"costs ${usd}: raise the cap (CENTGATE_CAP_TOTAL) if you mean to go on"
            )
        return None
