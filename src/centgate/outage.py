"""Refusals before payment: every source that could answer one request is known to be down, or too busy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from centgate.circuit_breaker import CircuitBreaker
from centgate.errors import PaymentNote, ProviderError, ProviderRateLimited
from centgate.provider import Provider


class Outage(Struct, frozen=True):
    """The sources that could answer a request, the primary first, and their open circuit breakers."""

    sources: Sequence[Provider]
    breakers: Sequence[CircuitBreaker]

    def reserve_due_trials(self) -> bool:
        """Return True if a trial request is due, and reserve all due trials for the caller."""
        due = [breaker for breaker in self.breakers if not breaker.seconds_until_trial]
        for breaker in due:
            breaker.reserve_trial()
        return bool(due)

    def to_error(self, payment: PaymentNote) -> ProviderError:
        """Return the error for a request that is refused because of the outage."""
        labels = " and ".join(source.info.label for source in self.sources)
        verb = "are" if len(self.sources) > 1 else "is"
        seconds = max(1, math.ceil(min(breaker.seconds_until_trial for breaker in self.breakers)))
        message = (
            f"{labels} {verb} unavailable after repeated failures; send the same payment again in {seconds} s"
        )
        return ProviderError(self.sources[0].info.name, message, payment=payment, retry_after=seconds)


MAX_WAIT_SHARE = 0.3
"""Share of a provider's time limit that a request may wait before its work starts."""


class Congestion(Struct, frozen=True):
    """A source with so much work, or so near to its rate limit, that a new request would not end in time."""

    source: Provider
    seconds: float
    """Expected wait before the work of the request starts."""

    @property
    def is_too_long(self) -> bool:
        return self.seconds > MAX_WAIT_SHARE * self.source.timeout

    def to_error(self, payment: PaymentNote) -> ProviderRateLimited:
        """Return the error for a request that is refused because of the queue."""
        info, seconds = self.source.info, max(1, math.ceil(self.seconds))
        message = (
            f"{info.label} takes no more requests at present; send the same payment again in {seconds} s"
        )
        return ProviderRateLimited(info.name, message, payment=payment, retry_after=seconds)
