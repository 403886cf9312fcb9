"""The facilitators of a deployment: the first, and perhaps a second for payments that never reached it.

Which of them has a payment is in the journal (column `facilitator`), by name, before it is called. A payment
that may have reached a facilitator is never presented to the other one (decision 33).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from centgate.circuit_breaker import CircuitBreaker
from centgate.instrumentation import NULL_METER, FacilitatorRank, Meter
from centgate.payments.authorization import Payment
from centgate.payments.claim_values import FacilitatorChoice
from centgate.payments.facilitator.extension_responses import DirectoryResponses
from centgate.payments.facilitator.facilitator import (
    FACILITATOR_NAME,
    FacilitatorClient,
    SettlementNotSent,
    SettlementOutcome,
)
from centgate.settings import Settings

CONNECT_TIMEOUT = 5.0
"""Seconds for a connection to the first facilitator if there is a second one."""


class SettlementClient(Protocol):
    """Part of a facilitator's client that this module uses."""

    @property
    def name(self) -> str:
        """Its name in the journal."""
        ...

    async def settle(self, payment: Payment, *, connect_timeout: float | None = None) -> SettlementOutcome:
        """Submit a payment. Never raises for anything the facilitator does."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


class SettlementObserver(Protocol):
    """Receives the outcomes of settlements, for alerts."""

    def record_settlement(self, outcome: SettlementOutcome) -> None:
        """Record the outcome of a payment's presentation."""
        ...

    def record_rank(self, rank: FacilitatorRank) -> None:
        """Record which facilitator a new payment was presented to."""
        ...


class Facilitators:
    """One or two facilitators, and a circuit breaker that keeps new payments from a first that is down."""

    def __init__(
        self,
        clients: Sequence[SettlementClient],
        *,
        observer: SettlementObserver | None = None,
        meter: Meter = NULL_METER,
    ) -> None:
        """`clients`: the first facilitator, and the second if there is one."""
        self._clients = tuple(clients)
        self.names = tuple(client.name for client in clients)
        """Their names, the first facilitator's first."""
        self.has_second = len(self._clients) > 1
        """True if there are two."""
        self._observer = observer
        self._breaker = CircuitBreaker(
            on_change=lambda change: meter.record_breaker_change(FACILITATOR_NAME, change)
        )

    def choose(self) -> FacilitatorChoice:
        """Return the facilitator for a new payment: the second while the circuit breaker is open."""
        skip_first = self.has_second and self._breaker.seconds_until_trial > 0
        return FacilitatorChoice(self.names, self.names[1 if skip_first else 0])

    def find(self, name: str | None) -> SettlementClient | None:
        """Return the facilitator that has a payment, None if it is not configured any more.

        A payment without a name is older than the column, or than the settings: the first has it.
        """
        if name is None:
            return self._clients[0]
        return next((client for client in self._clients if client.name == name), None)

    def rank(self, client: SettlementClient) -> FacilitatorRank:
        """Return whether a facilitator is the first or the second."""
        return "first" if client is self._clients[0] else "second"

    async def settle_new(self, client: SettlementClient, payment: Payment) -> SettlementOutcome:
        """Submit a payment that no facilitator has seen; SettlementNotSent if the circuit breaker is open."""
        if self.find_fallback(client) is None:
            return await client.settle(payment)
        if not self._breaker.allow_call():
            return SettlementNotSent("error", "the facilitator is not called (circuit open)", "breaker")
        result = await client.settle(payment, connect_timeout=CONNECT_TIMEOUT)
        unreached = isinstance(result, SettlementNotSent) and not result.was_answered
        self._breaker.record_outcome(failure=unreached)
        return result

    def find_fallback(self, client: SettlementClient) -> SettlementClient | None:
        """Return the second facilitator for payments that `client` has not got; None if `client` is last."""
        return self._clients[1] if self.has_second and client is self._clients[0] else None

    def report(self, outcome: SettlementOutcome, *, new_at: SettlementClient | None = None) -> None:
        """Report an outcome for alerts; `new_at`: the facilitator of a payment that was new."""
        if self._observer is None:
            return
        self._observer.record_settlement(outcome)
        if new_at is not None and self.has_second:
            self._observer.record_rank(self.rank(new_at))

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()


def open_facilitators(
    settings: Settings,
    *,
    observer: SettlementObserver | None = None,
    directory: DirectoryResponses | None = None,
    meter: Meter = NULL_METER,
) -> Facilitators:
    """Return the facilitators of a deployment, to be closed by the caller.

    Raises ValueError, with the name of the setting, for an address that cannot be used.
    """
    clients: list[FacilitatorClient] = []
    for account in settings.facilitators:
        try:
            client = FacilitatorClient(account, timeout=settings.facilitator_timeout, directory=directory)
        except ValueError as error:
            raise ValueError(f"{account.setting}_URL: not a valid address") from error
        clients.append(client)
    return Facilitators(clients, observer=observer, meter=meter)
