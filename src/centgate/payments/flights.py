"""Payments in flight in this process: whoever presents one for the same order joins the work on it.

For another order there is a flight of its own, which ends at the journal: only that knows for which of them
the payment was used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from centgate.errors import InternalError, PaymentNote
from centgate.payments.authorization import Payment, PaymentKey, bad_signature
from centgate.payments.claiming import Order, StoredAnswer

RETRY_AFTER = 5
"""Seconds after which a server that ended is likely to be back."""

LETTING_GO = 1
"""Seconds that what is cut off gets to say so in the journal."""

Name = tuple[PaymentKey | tuple[str, str], Order]
"""What a flight goes by: the payment's key, or its payer with the idempotency key, and the order."""


@dataclass(frozen=True, slots=True)
class _Flight:
    payment: Payment
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

        Raises what the work raises, and PaymentRequired for a signature that is not the one in flight and not
        known to be the payer's.
        """
        names = _names(payment, order)
        flight = next((self._flights[name] for name in names if name in self._flights), None)
        if flight is None:
            return await _landing(self._start(payment, names, work))
        if not payment.signer_known and flight.payment.proof != payment.proof:
            raise bad_signature()
        return replace(await _landing(flight.task), replayed=True)

    def is_under_way(self, payment: Payment, order: Order) -> bool:
        """True if this process works on the payment for this order."""
        return any(name in self._flights for name in _names(payment, order))

    def _start(
        self, payment: Payment, names: list[Name], work: Callable[[], Coroutine[Any, Any, StoredAnswer]]
    ) -> asyncio.Task[StoredAnswer]:
        task = asyncio.create_task(work())
        self._flights |= dict.fromkeys(names, _Flight(payment, task))

        def landed(task: asyncio.Task[StoredAnswer]) -> None:
            for name in names:
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
        if late:
            await asyncio.wait(late, timeout=LETTING_GO)


async def _landing(task: asyncio.Task[StoredAnswer]) -> StoredAnswer:
    """What comes of the work; InternalError when the server ends before it does."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        raise InternalError(
            "the server is ending before the payment is through; send the same payment again",
            payment=PaymentNote("in_flight", charged=False, retry="same_payment"),
            retry_after=RETRY_AFTER,
        ) from None


def _names(payment: Payment, order: Order) -> list[Name]:
    if payment.identifier is None or not payment.signer_known:
        return [(payment.key, order)]
    return [(payment.key, order), ((payment.key.payer, payment.identifier), order)]
