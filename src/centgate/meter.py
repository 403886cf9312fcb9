"""What is worth counting, in the words of those who see it happen; silent where nobody listens."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, Protocol

PaymentState = Literal["settling", "settled", "delivered", "refused", "unused"]
Settlement = Literal["settled", "refused", "unsent", "unresolved"]
Asked = Literal["ok", "no_data", "error", "timeout", "rate_limited", "unread", "cancelled"]
"""What came of a question to a provider. `unread`: the page it was to read cannot be read, which is not its
fault; `cancelled`: who asked has stopped waiting.
"""
Place = Literal["local", "shared"]
"""Where an answer was looked for: in this process, or in what several servers share."""


LimitedBy = Literal["address", "payment", "payer"]
"""Whose limit a request ran into: that of its client's address, of its payment, or of its payer."""


class SharedCache(Protocol):
    """What several servers share."""

    up: bool | None
    """Whether it can be used."""
    failures: int
    """Commands that failed."""


class Meter(Protocol):
    """Is told what happens; never raises, and takes a few microseconds. `service` is always a slug."""

    def entered(self, state: PaymentState, service: str) -> None:
        """A payment was entered in the journal in this state."""
        ...

    def earned(self, service: str, base_units: int, *, test_network: bool) -> None:
        """Money for a service reached us; on a test network it is worth nothing."""
        ...

    def redeemed(self, service: str) -> None:
        """What an earlier request had paid for was delivered."""
        ...

    def presented(self, settlement: Settlement, seconds: float) -> None:
        """The facilitator was asked to settle a payment, and how long its answer took."""
        ...

    def asked(self, provider: str, outcome: Asked, seconds: float) -> None:
        """A provider was asked a question, with all the calls that took."""
        ...

    def tripped(self, provider: str, change: Literal[1, -1]) -> None:
        """A breaker of a provider has opened, or closed."""
        ...

    def looked_up(self, service: str, place: Place, *, hit: bool) -> None:
        """A fresh answer was looked for in the cache."""
        ...

    def came(self) -> None:
        """A request has come in."""
        ...

    def went(self, service: str, status: int, seconds: float, *, replayed: bool) -> None:
        """A request was answered, after so long. `service` is `free` or `unknown` where none was asked."""
        ...

    def limited(self, by: LimitedBy) -> None:
        """A request was refused because of unpaid or refused requests before it."""
        ...

    def committed(self, seconds: float, units: int) -> None:
        """The journal has made so many pieces of work durable, in so long."""
        ...

    def watching(self, shared: SharedCache | None) -> AbstractAsyncContextManager[None]:
        """Watch the event loop that this is entered in, and what several servers share, until it is left."""
        ...


class Silent:
    """Counts nothing."""

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
"""For who is given no other."""
