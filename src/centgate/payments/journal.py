"""The payment journal: who has presented which payment for what, and what came of it.

A payment is claimed by inserting its primary key; whoever inserts it works on it, everyone else waits for
that work or is told. The states of a row:

    settling ──> settled ──> delivered
        ├──────> refused ──> settling        nothing moved, so it may be presented again
        └──────> unused ───> settling        the facilitator never got it, so likewise

`settling` is on the disk before the facilitator hears of the payment, so a row found in it, with nobody at
work, is a payment whose outcome is unknown; one found `settled` is money taken for an answer still owed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count, islice
from math import inf
from typing import Any, TypeVar

from centgate.dollars import is_test_network
from centgate.errors import UNTOUCHED, CentgateError, PaymentNote
from centgate.meter import SILENT, Meter
from centgate.payments import claiming, queries
from centgate.payments.authorization import Payment, PaymentKey
from centgate.payments.claiming import LEASE, Attempt, Claim, Order, State, StoredAnswer
from centgate.payments.clock import DatabaseClock
from centgate.payments.store import JournalUnavailable, Store, Unit
from centgate.payments.worker import Worker, new_worker

POLL = 0.05
"""Seconds between two looks at a payment that another process works on."""
MOVED_NOTHING_KEPT = 2 * 86400
"""Seconds that a refused payment is kept at least: its day is audited first."""
UNAUDITED_KEPT = 30 * 86400
"""Seconds that a refused payment is kept at most while the audit has not read its day."""
RELEASED_AT_ONCE = 1000
"""So few that a process still says in time that it lives."""

T = TypeVar("T")


class Journal:
    """The handful of questions and entries that money asks for."""

    def __init__(
        self,
        store: Store,
        *,
        keep_seconds: float,
        worker: Worker | None = None,
        clock: Callable[[], float] | None = None,
        meter: Meter = SILENT,
    ) -> None:
        """`clock` gives the time in place of the database's."""
        self._store = store
        self._keep = keep_seconds
        self._clock = clock or DatabaseClock()
        self.meter = meter
        self.worker = worker or new_worker()
        self.open_count = 0
        """Payments whose outcome is unknown and that can still be settled, as last counted."""
        self._claims = count(1)
        self._unreleased: set[tuple[PaymentKey, Worker]] = set()
        """What nobody works on, or would not know of it, although the journal could not be told so."""

    def part(self, name: str) -> Journal:
        """The journal for a part of this process that takes up payments by itself."""
        return Journal(
            self._store,
            keep_seconds=self._keep,
            worker=self.worker.part(name),
            clock=self._clock,
            meter=self.meter,
        )

    @asynccontextmanager
    async def claim(
        self, payment: Payment, order: Order, *, claim_block: int | None = None
    ) -> AsyncGenerator[Claim]:
        """Take the payment for this order, waiting while another process works on it.

        `claim_block` is the newest block number known, which is kept with a payment that is new here.

        Raises PaymentRequired when it is bound to another order, was redeemed too late or can no longer be
        settled, PaymentConflict when its idempotency key stands for another order, JournalUnavailable when
        the journal cannot be written. At the end whatever was not delivered is let go, for the next request
        to take up.
        """
        claim = await self._take(payment, order, claim_block)
        try:
            yield claim
        finally:
            if claim.state in ("settling", "settled"):
                await self._release(claim)

    @asynccontextmanager
    async def take_up(self, key: PaymentKey) -> AsyncGenerator[Claim | None]:
        """Take a payment whose outcome is unknown; None if it is known by now or somebody works on it.

        Raises JournalUnavailable.
        """
        worker = self._claimant()
        await self.now()
        with self._taking({key}, worker):
            claim = await self._store.run(partial(claiming.taken_up, key, worker))
        try:
            yield claim
        finally:
            if claim and claim.state in ("settling", "settled"):
                await self._release(claim)

    async def open_payments(self, limit: int, *, due_at: float = inf) -> list[PaymentKey]:
        """Payments whose outcome is unknown and that nobody works on, longest overdue first.

        Only those that are to be asked about until `due_at`. Raises JournalUnavailable.
        """
        return await self._store.read(partial(queries.open_payments, due_at, LEASE, limit))

    async def later(self, claim: Claim, retry_at: float) -> None:
        """Enter when to ask next what became of a payment that is still open."""
        claim.attempts += 1
        values = {"attempts": claim.attempts, "retry_at": retry_at}
        await self._store.run(partial(claiming.change, claim.key, claim.worker, values))

    async def unresolved_since(self, before: float) -> tuple[int, float]:
        """How many payments presented before a time are still unresolved, and when the oldest was."""
        return await self._store.read(partial(queries.unresolved, before))

    async def now(self) -> float:
        """Return the database's time, in seconds since 1970. Raises JournalUnavailable."""
        if isinstance(self._clock, DatabaseClock) and not self._clock.is_set:
            try:
                await self.beat()  # which also makes the first claim that of a process known to live
            except JournalUnavailable as error:
                error.payment = UNTOUCHED
                raise
        return self._clock()

    async def prune(self, audited_networks: Collection[str] = ()) -> int:
        """Remove some of what need not be kept any longer; the largest number of rows of one kind.

        Refused payments of `audited_networks` are kept until the audit has read their day.
        """
        keep = max(self._keep, MOVED_NOTHING_KEPT)
        unaudited = max(self._keep, UNAUDITED_KEPT)
        return max(
            await self._store.run(partial(queries.forget_answers, self._keep)),
            await self._store.run(partial(queries.prune_refused, keep, unaudited, audited_networks)),
            await self._store.run(queries.prune_unused),
        )

    async def take_duty(self, name: str, seconds: float) -> bool:
        """Take, or keep for so long, what one process does for all; False while another has it."""
        return await self._store.run(partial(queries.take_duty, name, self.worker.name, seconds))

    async def give_up_duty(self, name: str) -> None:
        """Leave to another what this process has done for all."""
        await self.take_duty(name, -1)

    async def settled(self, claim: Claim, transaction: str) -> None:
        """Enter that the money is ours and the answer is owed."""
        settled_at = await self.now()
        await self._enter(
            claim, "settled", transaction=transaction, reason=None, signed=None, settled_at=settled_at
        )
        claim.transaction = transaction
        self.meter.entered("settled", claim.service)
        test_network = is_test_network(claim.key.network)
        self.meter.earned(claim.service, claim.amount, test_network=test_network)

    async def refused(self, claim: Claim, reason: str) -> None:
        """Enter that nothing moved and nothing will."""
        event = {"event": "refused", "reason": reason, "transaction": claim.transaction}
        values = {"transaction": None, "reason": reason, "owner": None, "signed": None}
        await self._enter_event(claim, "refused", values, event)
        self.meter.entered("refused", claim.service)

    async def unsent(self, claim: Claim, reason: str) -> None:
        """Enter that the payment never reached the facilitator: it is as good as before."""
        await self._enter(claim, "unused", reason=reason, owner=None, signed=None)
        self.meter.entered("unused", claim.service)

    async def presenting(self, claim: Claim) -> None:
        """Enter that the payment is presented once more, before it is."""
        await self._enter(claim, "settling", presentations=claim.presentations + 1)
        claim.presentations += 1

    async def pending(self, claim: Claim, transaction: str, reason: str | None) -> None:
        """Enter the transaction that the facilitator named for a settlement whose outcome is unknown."""
        event = {"event": "in_doubt", "reason": reason, "transaction": transaction}
        await self._enter_event(claim, "settling", {"transaction": transaction}, event)
        claim.transaction = transaction

    async def count_open(self, most: int) -> None:
        """Count payments that are open and can still be settled, up to `most`. Raises JournalUnavailable."""
        self.open_count = await self._store.read(partial(queries.count_open, most))

    async def delivered(self, claim: Claim, answer: StoredAnswer) -> None:
        """Enter the answer; from here on it is what every repetition gets."""
        entry = partial(claiming.deliver, claim.key, claim.worker, answer, await self.now())
        await self._run(
            entry, PaymentNote("settled", charged=True, retry="same_payment", transaction=claim.transaction)
        )
        claim.state = "delivered"
        self.meter.entered("delivered", claim.service)

    async def note(self, payment: Payment) -> PaymentNote | None:
        """What is known of a payment that cannot be worked on now; None when it was never taken."""
        return await self._run(partial(claiming.known, payment), UNTOUCHED)

    async def beat(self) -> None:
        """Say that this process lives, and learn the database's time."""
        asked_at = time.monotonic()
        told = await self._run(partial(claiming.beat, self.worker), UNTOUCHED)
        if isinstance(self._clock, DatabaseClock):
            self._clock.correct(told, asked_at=asked_at)
        await self.release_again()

    async def release_again(self) -> None:
        """Let go of some of what could not be let go of when it should have been."""
        some = tuple(islice(self._unreleased, RELEASED_AT_ONCE))
        await asyncio.gather(*(self._store.run(partial(claiming.release, *each)) for each in some))
        self._unreleased.difference_update(some)

    async def leave(self) -> None:
        """Say that this process ends, so that nobody waits for it."""
        with suppress(CentgateError):
            await self._store.run(partial(queries.leave, self.worker.process))

    def _claimant(self) -> Worker:
        """A name for one claim."""
        return self.worker.part(str(next(self._claims)))

    @contextmanager
    def _taking(self, keys: set[PaymentKey], worker: Worker) -> Generator[None]:
        """Should it not be heard whether they were taken, they are let go of for others to take."""
        try:
            yield
        except (JournalUnavailable, asyncio.CancelledError):
            self._unreleased |= {(key, worker) for key in keys}
            raise

    async def _release(self, claim: Claim) -> None:
        try:
            await self._store.run(partial(claiming.release, claim.key, claim.worker))
        except CentgateError:  # the row stays ours, which hinders all others
            self._unreleased.add((claim.key, claim.worker))

    async def _enter(self, claim: Claim, state: State, **values: Any) -> None:
        changed = {"state": state, "updated_at": await self.now(), **values}
        entry = partial(claiming.change, claim.key, claim.worker, changed)
        await self._run(
            entry,
            PaymentNote("in_flight", charged=False, retry="same_payment", transaction=claim.transaction),
        )
        claim.state = state

    async def _enter_event(
        self, claim: Claim, state: State, values: dict[str, Any], event: dict[str, Any]
    ) -> None:
        now = await self.now()
        changed = {"state": state, "updated_at": now, **values}
        entry = partial(claiming.change_with_event, claim.key, claim.worker, changed, {"at": now, **event})
        await self._run(
            entry,
            PaymentNote("in_flight", charged=False, retry="same_payment", transaction=claim.transaction),
        )
        claim.state = state

    async def _run(self, unit: Unit[T], otherwise: PaymentNote) -> T:
        """Run a unit; should the database fail, `otherwise` is what the buyer is told of the payment."""
        try:
            return await self._store.run(unit)
        except JournalUnavailable as error:
            error.payment = otherwise
            raise

    async def _take(self, payment: Payment, order: Order, claim_block: int | None) -> Claim:
        worker, touched = self._claimant(), set[PaymentKey]()
        waiting_since: float | None = None
        with self._taking(touched, worker):
            while True:
                now = await self.now()
                attempt = Attempt(
                    payment, order, worker, now, now - self._keep, claim_block, waiting_since, touched
                )
                found = await self._run(partial(claiming.taken, attempt), UNTOUCHED)
                if isinstance(found, Claim):
                    break
                waiting_since = waiting_since or now
                await asyncio.sleep(POLL)
        if found.state == "settling" and not found.doubtful:
            self.meter.entered("settling", found.service)
        return found
