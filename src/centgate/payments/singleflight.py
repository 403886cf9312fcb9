"""Single flight per payment in this process: concurrent identical requests share one execution.

The same payment for another request runs separately and fails at the journal, which alone knows the request
that the payment was used for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from centgate.errors import UNKNOWN_RESEND, InternalError, PaymentNote
from centgate.payments.authorization import Payment, signature_rejection
from centgate.payments.claim_values import RequestBinding, StoredAnswer
from centgate.payments.payment_key import PaymentKey

RETRY_AFTER = 5
"""Seconds after which a stopped server is likely to be running again."""

CANCEL_TIMEOUT = 1
"""Seconds that cancelled work gets to release its claim in the journal."""

FlightKey = tuple[PaymentKey | tuple[str, str], RequestBinding]
"""Key of a flight: the payment's key, or its payer with the idempotency key, and the request."""


@dataclass(slots=True)
class _Flight:
    payment: Payment
    task: asyncio.Task[None] = field(init=False)
    waiting: list[asyncio.Future[StoredAnswer]] = field(default_factory=list[asyncio.Future[StoredAnswer]])
    """The requests that get its result. `asyncio.shield` does the same at three times the cost."""


class SingleFlight:
    """Runs the work on each payment once for all concurrent requests, even if the buyer disconnects."""

    def __init__(self) -> None:
        self._flights: dict[FlightKey, _Flight] = {}
        self.draining = False
        """True while the process is stopping and should receive no new requests."""

    async def run(
        self, payment: Payment, binding: RequestBinding, work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> StoredAnswer:
        """Return the result of the work on this payment, starting it unless it is running.

        Raises what the work raises, and PaymentRequired for a signature that differs from the one in flight
        and is not verified as the payer's.
        """
        keys = _flight_keys(payment, binding)
        flight = self._find(keys)
        while flight and not flight.payment.signature_digest and not payment.is_signer_verified:
            # a signed-in payer redeems it, without a signature to compare with: the journal has one
            await asyncio.wait([flight.task])
            flight = self._find(keys)
        if flight is None:
            return await _await_result(self._start(payment, keys, work))
        if not payment.is_signer_verified and flight.payment.signature_digest != payment.signature_digest:
            raise signature_rejection()
        return replace(await _await_result(flight), replayed=True)

    def is_processing(self, payment: Payment, binding: RequestBinding) -> bool:
        """True if this process works on the payment for this request."""
        return any(key in self._flights for key in _flight_keys(payment, binding))

    def _find(self, keys: list[FlightKey]) -> _Flight | None:
        return next((self._flights[key] for key in keys if key in self._flights), None)

    def _start(
        self, payment: Payment, keys: list[FlightKey], work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> _Flight:
        flight = _Flight(payment)
        for key in keys:
            self._flights[key] = flight
        flight.task = asyncio.get_running_loop().create_task(self._work(flight, keys, work))
        return flight

    async def _work(
        self,
        flight: _Flight,
        keys: list[FlightKey],
        work: Callable[[], Coroutine[Any, Any, StoredAnswer]],
    ) -> None:
        """Do the work, and give its result to the requests that still wait for it."""
        outcome: StoredAnswer | Exception | None = None
        try:
            outcome = await work()
        except Exception as error:  # noqa: BLE001 - raised in the requests
            outcome = error
        finally:
            for key in keys:
                del self._flights[key]
            for request in flight.waiting:  # without an outcome, the work was cancelled before its claim
                _hand_over(request, outcome or interruption_error(UNKNOWN_RESEND))

    async def wait_running(self, max_wait: float) -> set[asyncio.Task[None]]:
        """Wait for the work that runs now; return what is unfinished after `max_wait` seconds."""
        tasks = {flight.task for flight in self._flights.values()}
        return (await asyncio.wait(tasks, timeout=max_wait))[1] if tasks else set()

    async def drain(self, max_wait: float) -> None:
        """Wait for running work, then cancel it; cancelled payments stay resolvable in the journal."""
        self.draining = True
        unfinished = await self.wait_running(max_wait)
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=CANCEL_TIMEOUT)


def interruption_error(note: PaymentNote) -> InternalError:
    """Return the error for work that the end of the server interrupts; `note` is the payment's state."""
    return InternalError(
        "the server is stopping before the answer is complete; send the same payment again",
        payment=note,
        retry_after=RETRY_AFTER,
    )


async def _await_result(flight: _Flight) -> StoredAnswer:
    """Return the result of the work.

    A server that stops cancels requests some seconds before `drain` ends their work. Until then there may be
    an answer; afterwards the work's error gives the state of the payment.
    """
    try:
        return await _request_result(flight)
    except asyncio.CancelledError:
        if flight.task.done():
            raise
        return await _request_result(flight)


def _request_result(flight: _Flight) -> asyncio.Future[StoredAnswer]:
    """Return a new future for the result of the work."""
    result: asyncio.Future[StoredAnswer] = asyncio.get_running_loop().create_future()
    flight.waiting.append(result)
    return result


def _hand_over(request: asyncio.Future[StoredAnswer], outcome: StoredAnswer | Exception) -> None:
    """Give the result of the work to a request that waits for it."""
    if request.done():  # the request was cancelled
        return
    if isinstance(outcome, Exception):
        request.set_exception(outcome)
    else:
        request.set_result(outcome)


def _flight_keys(payment: Payment, binding: RequestBinding) -> list[FlightKey]:
    if payment.identifier is None or not payment.is_signer_verified:
        return [(payment.key, binding)]
    return [(payment.key, binding), ((payment.key.payer, payment.identifier), binding)]
