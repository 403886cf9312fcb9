"""Payments in flight in this process: whoever presents one meanwhile joins the work on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from centgate.errors import CentgateError, PaymentConflict, PaymentNote, PaymentRequired
from centgate.payments.authorization import Payment, PaymentKey, bad_signature
from centgate.payments.journal import Order, StoredAnswer

Name = PaymentKey | tuple[str, str]
"""What a payment in flight goes by: its key, and its payer with the idempotency key, if it has one."""


@dataclass(frozen=True, slots=True)
class _Flight:
    payment: Payment
    order: Order
    task: asyncio.Task[StoredAnswer]


class Flights:
    """Work on a payment goes on when its buyer hangs up, and is done once for all who ask for it."""

    def __init__(self) -> None:
        self._flights: dict[Name, _Flight] = {}
        self.landing = False
        """Whether the process is ending and should be sent nothing new."""

    async def join(
        self, payment: Payment, order: Order, work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> StoredAnswer:
        """What comes of the work on this payment, started now unless it is under way.

        Raises what the work raises, and PaymentRequired or PaymentConflict when it is under way for another
        order.
        """
        flight = next((self._flights[name] for name in _names(payment) if name in self._flights), None)
        if flight is None:
            return await asyncio.shield(self._start(payment, order, work))
        if not payment.signer_known and flight.payment.proof != payment.proof:
            raise bad_signature()
        if flight.order != order:
            raise _busy_with_another(payment, flight.payment)
        return replace(await asyncio.shield(flight.task), replayed=True)

    def _start(
        self, payment: Payment, order: Order, work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> asyncio.Task[StoredAnswer]:
        task = asyncio.create_task(work())
        self._flights |= dict.fromkeys(_names(payment), _Flight(payment, order, task))

        def landed(task: asyncio.Task[StoredAnswer]) -> None:
            for name in _names(payment):
                del self._flights[name]
            if not task.cancelled():
                task.exception()  # seen here, in case nobody waits for it any more

        task.add_done_callback(landed)
        return task

    async def land(self, seconds: float) -> None:
        """Let what is in flight finish, for so long; what is cut off stays resolvable in the journal."""
        self.landing = True
        tasks = {flight.task for flight in self._flights.values()}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def _names(payment: Payment) -> list[Name]:
    if payment.identifier is None or not payment.signer_known:
        return [payment.key]
    return [payment.key, (payment.key.payer, payment.identifier)]


def _busy_with_another(payment: Payment, busy: Payment) -> CentgateError:
    note = PaymentNote("in_flight", charged=False, retry="new_payment")
    if payment.key != busy.key:
        return PaymentConflict("the idempotency key stands for another request", payment=note)
    return PaymentRequired(
        "the payment is being used for another request", reason="payment_already_used", payment=note
    )
