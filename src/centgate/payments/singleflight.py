"""Single flight per payment in this process: concurrent identical requests share one execution.

The same payment for another request runs separately and fails at the journal, which alone knows the request
that the payment was used for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from centgate.errors import InternalError, PaymentNote
from centgate.payments.authorization import Payment, PaymentKey, signature_rejection
from centgate.payments.claims import RequestBinding, StoredAnswer

RETRY_AFTER = 5
"""Seconds after which a stopped server is likely to be running again."""

CANCEL_TIMEOUT = 1
"""Seconds that cancelled work gets to release its claim in the journal."""

FlightKey = tuple[PaymentKey | tuple[str, str], RequestBinding]
"""Key of a flight: the payment's key, or its payer with the idempotency key, and the request."""


@dataclass(frozen=True, slots=True)
class _Flight:
    payment: Payment
    task: asyncio.Task[StoredAnswer]


class SingleFlight:
    """Runs the work on each payment once for all concurrent requests, even if the buyer disconnects."""

    def __init__(self) -> None:
        self._flights: dict[FlightKey, _Flight] = {}
        self.draining = False
        """True while the process is stopping and should receive no new requests."""

    async def run(
        self, payment: Payment, request: RequestBinding, work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> StoredAnswer:
        """Return the result of the work on this payment, starting it unless it is running.

        Raises what the work raises, and PaymentRequired for a signature that differs from the one in flight
        and is not verified as the payer's.
        """
        keys = _flight_keys(payment, request)
        flight = next((self._flights[key] for key in keys if key in self._flights), None)
        if flight is None:
            return await _await_result(self._start(payment, keys, work))
        if not payment.is_signer_verified and flight.payment.signature_digest != payment.signature_digest:
            raise signature_rejection()
        return replace(await _await_result(flight.task), replayed=True)

    def is_in_flight(self, payment: Payment, request: RequestBinding) -> bool:
        """True if this process works on the payment for this order."""
        return any(key in self._flights for key in _flight_keys(payment, request))

    def _start(
        self, payment: Payment, keys: list[FlightKey], work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> asyncio.Task[StoredAnswer]:
        task = asyncio.create_task(work())
        self._flights |= dict.fromkeys(keys, _Flight(payment, task))

        def on_done(task: asyncio.Task[StoredAnswer]) -> None:
            for key in keys:
                del self._flights[key]
            if not task.cancelled():
                task.exception()  # retrieved here, in case no request waits for it any more

        task.add_done_callback(on_done)
        return task

    async def drain(self, max_wait: float) -> None:
        """Wait for running work, then cancel it; cancelled payments stay resolvable in the journal."""
        self.draining = True
        tasks = {flight.task for flight in self._flights.values()}
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=max_wait)
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=CANCEL_TIMEOUT)


async def _await_result(task: asyncio.Task[StoredAnswer]) -> StoredAnswer:
    """Return the result of the work. Raises InternalError if the server stops first."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        raise InternalError(
            "the server is stopping before the payment is complete; send the same payment again",
            payment=PaymentNote("in_flight", charged=False, retry="same_payment"),
            retry_after=RETRY_AFTER,
        ) from None


def _flight_keys(payment: Payment, order: RequestBinding) -> list[FlightKey]:
    if payment.identifier is None or not payment.is_signer_verified:
        return [(payment.key, order)]
    return [(payment.key, order), ((payment.key.payer, payment.identifier), order)]
