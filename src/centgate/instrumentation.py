"""Protocol for metric events, with a no-op implementation."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, Protocol

PaymentStateLabel = Literal["settling", "settled", "delivered", "refused", "unused"]
SettlementLabel = Literal["settled", "refused", "unsent", "unresolved"]
FacilitatorRank = Literal["first", "second"]
"""Which of a deployment's two facilitators."""
FallbackCause = Literal["connection", "rate_limit", "breaker"]
"""Why a payment went to the second facilitator: no connection to the first, its status 429, or the circuit
breaker, which is open after repeated ones of both.
"""
ListingStatus = Literal["success", "processing", "rejected", "other"]
"""Status that the facilitator's directory gave for a service."""
ProviderCallOutcome = Literal["ok", "no_data", "error", "timeout", "rate_limited", "unread", "cancelled"]
"""Outcome of a provider call. `unread`: the requested page cannot be read, which is not the provider's
fault; `cancelled`: the caller stopped waiting.
"""
CacheLevel = Literal["local", "shared"]
"""The cache that was queried: this process's own, or the shared one."""


WebhookOutcome = Literal["sent", "failed", "abandoned"]
"""Outcome of an attempt to send a webhook. `failed`: it is sent again; `abandoned`: that was the last one."""
LimitScope = Literal["address", "payment", "payer"]
"""The limit that refused a request: by client address, payment, or payer."""


class SharedCacheHealth(Protocol):
    """Health of the cache that several servers share."""

    is_up: bool | None
    """True if it can be used."""
    failures: int
    """Number of failed commands."""


class Meter(Protocol):
    """Receives metric events; never raises, and takes a few microseconds. `service` is always a slug."""

    def record_payment_state(self, state: PaymentStateLabel, service: str) -> None:
        """Count a payment that was written to the journal in this state."""
        ...

    def record_revenue(self, service: str, network: str, base_units: int) -> None:
        """Count revenue of a service on a network (CAIP-2); tokens of a test network have no value."""
        ...

    def record_redemption(self, service: str) -> None:
        """Count an answer delivered for the payment of an earlier request."""
        ...

    def record_settlement(
        self, settlement: SettlementLabel, seconds: float, facilitator: FacilitatorRank
    ) -> None:
        """Record a settlement by a facilitator, and its duration."""
        ...

    def record_fallback(self, cause: FallbackCause) -> None:
        """Count a payment that went to the second facilitator."""
        ...

    def record_directory_response(self, service: str, status: ListingStatus) -> None:
        """Count a response of the facilitator's directory to a settled payment."""
        ...

    def record_provider_call(self, provider: str, outcome: ProviderCallOutcome, seconds: float) -> None:
        """Record a provider call with all of its HTTP requests."""
        ...

    def record_breaker_change(self, provider: str, change: Literal[1, -1]) -> None:
        """Record that a circuit breaker of a provider opened (1) or closed (-1)."""
        ...

    def record_cache_lookup(self, service: str, place: CacheLevel, *, hit: bool) -> None:
        """Count a cache lookup."""
        ...

    def record_request_start(self) -> None:
        """Record the start of a request."""
        ...

    def record_request_end(self, service: str, status: int, seconds: float, *, replayed: bool) -> None:
        """Record the end of a request. `service` is `free` or `unknown` for routes without a service."""
        ...

    def record_rate_limit(self, by: LimitScope) -> None:
        """Count a request refused because of earlier unpaid or refused requests."""
        ...

    def record_webhook(self, outcome: WebhookOutcome) -> None:
        """Count an attempt to send a webhook."""
        ...

    def record_commit(self, seconds: float, units: int) -> None:
        """Record a journal commit: its duration and the number of units of work in it."""
        ...

    def observe_process(self, shared: SharedCacheHealth | None) -> AbstractAsyncContextManager[None]:
        """Return a context manager that observes the running event loop and the shared cache."""
        ...


class NullMeter:
    """Meter that ignores all events."""

    def record_payment_state(self, state: PaymentStateLabel, service: str) -> None: ...
    def record_revenue(self, service: str, network: str, base_units: int) -> None: ...
    def record_redemption(self, service: str) -> None: ...
    def record_settlement(
        self, settlement: SettlementLabel, seconds: float, facilitator: FacilitatorRank
    ) -> None: ...
    def record_fallback(self, cause: FallbackCause) -> None: ...
    def record_directory_response(self, service: str, status: ListingStatus) -> None: ...
    def record_provider_call(self, provider: str, outcome: ProviderCallOutcome, seconds: float) -> None: ...
    def record_breaker_change(self, provider: str, change: Literal[1, -1]) -> None: ...
    def record_cache_lookup(self, service: str, place: CacheLevel, *, hit: bool) -> None: ...
    def record_request_start(self) -> None: ...
    def record_request_end(self, service: str, status: int, seconds: float, *, replayed: bool) -> None: ...
    def record_rate_limit(self, by: LimitScope) -> None: ...
    def record_webhook(self, outcome: WebhookOutcome) -> None: ...
    def record_commit(self, seconds: float, units: int) -> None: ...

    def observe_process(self, shared: SharedCacheHealth | None) -> AbstractAsyncContextManager[None]:
        return nullcontext()


NULL_METER: Meter = NullMeter()
"""Default meter."""
