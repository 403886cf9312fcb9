"""Payments in flight in this process: whoever presents one meanwhile joins the work on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from centgate.errors import PaymentNote, PaymentRequired
from centgate.payments.authorization import Payment, PaymentKey, bad_signature
from centgate.payments.journal import Order, StoredAnswer


@dataclass(frozen=True, slots=True)
class _Flight:
    order: Order
    proof: str
    task: asyncio.Task[StoredAnswer]


class Flights:
    """Work on a payment goes on when its buyer hangs up, and is done once for all who ask for it."""

    def __init__(self) -> None:
        self._flights: dict[PaymentKey, _Flight] = {}
        self.landing = False
        """Whether the process is ending and should be sent nothing new."""

    async def join(
        self, payment: Payment, order: Order, work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> StoredAnswer:
        """What comes of the work on this payment, started now unless it is under way.

        Raises what the work raises, and PaymentRequired when it is under way for another order.
        """
        flight = self._flights.get(payment.key)
        if flight is None:
            return await asyncio.shield(self._start(payment, order, work))
        if not payment.signer_known and flight.proof != payment.proof:
            raise bad_signature()
        if flight.order != order:
            raise PaymentRequired(
                "the payment is being used for another request",
                reason="payment_already_used",
                payment=PaymentNote("in_flight", charged=False, retry="new_payment"),
            )
        return replace(await asyncio.shield(flight.task), replayed=True)

    def _start(
        self, payment: Payment, order: Order, work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> asyncio.Task[StoredAnswer]:
        task = asyncio.create_task(work())
        self._flights[payment.key] = _Flight(order, payment.proof, task)

        def landed(task: asyncio.Task[StoredAnswer]) -> None:
            del self._flights[payment.key]
            if not task.cancelled():
                task.exception()  # seen here, in case nobody waits for it any more

        task.add_done_callback(landed)
        return task

    async def land(self, seconds: float) -> None:
        """Let what is in flight finish, for so long; what is cut off stays resolvable in the journal."""
        self.landing = True
        tasks = [flight.task for flight in self._flights.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
