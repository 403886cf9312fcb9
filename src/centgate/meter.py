"""Protocol for metric events, with a no-op implementation."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, Protocol

PaymentState = Literal["settling", "settled", "delivered", "refused", "unused"]
Settlement = Literal["settled", "refused", "unsent", "unresolved"]
Asked = Literal["ok", "no_data", "error", "timeout", "rate_limited", "unread", "cancelled"]
"""Outcome of a provider call. `unread`: the requested page cannot be read, which is not the provider's
fault; `cancelled`: the caller stopped waiting.
"""
Place = Literal["local", "shared"]
"""The cache that was queried: this process's own, or the shared one."""


LimitedBy = Literal["address", "payment", "payer"]
"""The limit that refused a request: by client address, payment, or payer."""


class SharedCache(Protocol):
    """Health of the cache that several servers share."""

    up: bool | None
    """True if it can be used."""
    failures: int
    """Number of failed commands."""


class Meter(Protocol):
    """Receives metric events; never raises, and takes a few microseconds. `service` is always a slug."""

    def entered(self, state: PaymentState, service: str) -> None:
        """Count a payment that was written to the journal in this state."""
        ...

    def earned(self, service: str, base_units: int, *, test_network: bool) -> None:
        """Count revenue of a service; tokens of a test network have no value."""
        ...

    def redeemed(self, service: str) -> None:
        """Count an answer delivered for the payment of an earlier request."""
        ...

    def presented(self, settlement: Settlement, seconds: float) -> None:
        """Record a settlement by the facilitator, and its duration."""
        ...

    def asked(self, provider: str, outcome: Asked, seconds: float) -> None:
        """Record a provider call with all of its HTTP requests."""
        ...

    def tripped(self, provider: str, change: Literal[1, -1]) -> None:
        """Record that a circuit breaker of a provider opened (1) or closed (-1)."""
        ...

    def looked_up(self, service: str, place: Place, *, hit: bool) -> None:
        """Count a cache lookup."""
        ...

    def came(self) -> None:
        """Record the start of a request."""
        ...

    def went(self, service: str, status: int, seconds: float, *, replayed: bool) -> None:
        """Record the end of a request. `service` is `free` or `unknown` for routes without a service."""
        ...

    def limited(self, by: LimitedBy) -> None:
        """Count a request refused because of earlier unpaid or refused requests."""
        ...

    def committed(self, seconds: float, units: int) -> None:
        """Record a journal commit: its duration and the number of units of work in it."""
        ...

    def watching(self, shared: SharedCache | None) -> AbstractAsyncContextManager[None]:
        """Return a context manager that observes the running event loop and the shared cache."""
        ...


class Silent:
    """Meter that ignores all events."""

    def entered(self, state: PaymentState, service: str) -> None: ...
    def earned(self, service: str, base_units: int, *, test_network: bool) -> None: ...
    def redeemed(self, service: str) -> None: ...
    def presented(self, settlement: Settlement, seconds: float) -> None: ...
    def asked(self, provider: str, outcome: Asked, seconds: float) -> None: ...
    def tripped(self, provider: str, change: Literal[1, -1]) -> None: ...
    def looked_up(self, service: str, place: Place, *, hit: bool) -> None: ...
    def came(self) -> None: ...
    def went(self, service: str, status: int, seconds: float, *, replayed: bool) -> None: ...
    def limited(self, by: LimitedBy) -> None: ...
    def committed(self, seconds: float, units: int) -> None: ...

    def watching(self, shared: SharedCache | None) -> AbstractAsyncContextManager[None]:
        return nullcontext()


SILENT: Meter = Silent()
"""Default meter."""
