"""The payment journal: every payment, the request it was submitted for, and its outcome.

A payment is claimed by inserting its primary key; the process that inserts it works on it, all others wait
for its result or get an error. The states of a row:

    settling ──> settled ──> delivered
        ├──────> refused ──> settling        no money moved, so it may be submitted again
        └──────> unused ───> settling        never reached the facilitator, so likewise

`settling` is on the disk before the facilitator receives the payment, so a row in this state without a worker
is a payment with an unknown outcome; a row in `settled` is money received for an answer that is still owed.
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

from centgate.errors import UNCHARGED_RESEND, CentgateError, PaymentNote
from centgate.instrumentation import NULL_METER, Meter
from centgate.payments import claims, queries
from centgate.payments.authorization import Payment, PaymentKey
from centgate.payments.claims import (
    Claim,
    ClaimAttempt,
    ClaimLost,
    RequestBinding,
    StoredAnswer,
)
from centgate.payments.store import JournalUnavailable, Store, UnitFactory
from centgate.payments.tables import RowState
from centgate.payments.worker_id import Worker, create_worker
from centgate.signing.assets import is_test_network

POLL_INTERVAL = 0.05
"""Seconds between two checks of a payment that another process works on."""
REFUSED_RETENTION = 2 * 86400
"""Minimum retention of a refused payment in seconds: its day is audited first."""
UNAUDITED_RETENTION = 30 * 86400
"""Maximum retention of a refused payment in seconds while its day has not been audited."""
MAX_UNRESOLVED = 10_000
"""Unresolved payments from which on new ones are refused. Expired authorizations do not count."""
RELEASE_BATCH = 1000
"""Releases per retry: few enough that the heartbeat stays in time."""

T = TypeVar("T")


class Journal:
    """Durable state of every payment: claim, settle, deliver, look up."""

    def __init__(
        self,
        store: Store,
        *,
        keep_seconds: float,
        worker: Worker | None = None,
        clock: Callable[[], float] | None = None,
        meter: Meter = NULL_METER,
    ) -> None:
        """Create a journal; `clock` replaces the database's time."""
        self._store = store
        self._retention = keep_seconds
        self._clock = clock or DatabaseClock()
        self.meter = meter
        self.worker = worker or create_worker()
        self._settleable_count = 0
        """Unresolved payments that can still be settled, at the last count."""
        self._claim_numbers = count(1)
        self._pending_releases: set[tuple[PaymentKey, Worker]] = set()
        """Claims without a worker whose release failed, or may have failed, in the journal."""

    def for_component(self, name: str) -> Journal:
        """Return a journal for a component of this process that claims payments on its own."""
        return Journal(
            self._store,
            keep_seconds=self._retention,
            worker=self.worker.for_component(name),
            clock=self._clock,
            meter=self.meter,
        )

    @asynccontextmanager
    async def claim(
        self, payment: Payment, request: RequestBinding, *, claim_block: int | None = None
    ) -> AsyncGenerator[Claim]:
        """Claim a payment for a request, waiting while another process works on it.

        `claim_block` is the newest known block number, stored with a payment that is new to the journal.

        Raises PaymentRequired if the payment is bound to another request, is redeemed too late or can no
        longer be settled, PaymentConflict if its idempotency key belongs to another request,
        JournalUnavailable if the journal cannot be written. On exit an undelivered claim is released for the
        next request.
        """
        claim = await self._acquire_claim(payment, request, claim_block)
        try:
            yield claim
        finally:
            if claim.state in ("settling", "settled"):
                await self._release(claim)

    @asynccontextmanager
    async def claim_unresolved(self, key: PaymentKey) -> AsyncGenerator[Claim | None]:
        """Claim a payment with an unknown outcome; None if it is resolved or another worker has it.

        Raises JournalUnavailable.
        """
        worker = self._new_claim_worker()
        await self.now()
        with self._release_on_failure({key}, worker):
            claim = await self._store.run(partial(claims.claim_unresolved, key, worker))
        try:
            yield claim
        finally:
            if claim and claim.state in ("settling", "settled"):
                await self._release(claim)

    async def list_open_payments(self, limit: int, *, due_at: float = inf) -> list[PaymentKey]:
        """Return payments with an unknown outcome and no worker, longest overdue first.

        Only those whose next attempt is due until `due_at`. Raises JournalUnavailable.
        """
        return await self._store.read(partial(queries.list_open_payments, due_at, limit))

    async def schedule_retry(self, claim: Claim, retry_at: float) -> None:
        """Record the time of the next attempt to reconcile a payment that is still open."""
        claim.attempts += 1
        values = {"attempts": claim.attempts, "retry_at": retry_at}
        await self._store.run(partial(claims.update_claimed, claim.key, claim.worker, values))

    async def count_unresolved(self, before: float) -> tuple[int, float]:
        """Count unresolved payments submitted before a time; returns the count and the oldest time."""
        return await self._store.read(partial(queries.count_unresolved, before))

    async def now(self) -> float:
        """Return the database's time, in seconds since 1970. Raises JournalUnavailable."""
        if isinstance(self._clock, DatabaseClock) and not self._clock.is_set:
            try:
                await self.heartbeat()  # before the first claim, so that this process counts as alive
            except JournalUnavailable as error:
                error.payment = UNCHARGED_RESEND
                raise
        return self._clock()

    async def prune(self, audited_networks: Collection[str] = ()) -> int:
        """Remove some expired rows; returns the largest number of removed rows of one kind.

        Refused payments of `audited_networks` are kept until their day has been audited.
        """
        refused_retention = max(self._retention, REFUSED_RETENTION)
        unaudited_retention = max(self._retention, UNAUDITED_RETENTION)
        return max(
            await self._store.run(partial(queries.prune_answers, self._retention)),
            await self._store.run(
                partial(queries.prune_refused, refused_retention, unaudited_retention, audited_networks)
            ),
            await self._store.run(queries.prune_unused),
        )

    async def acquire_leadership(self, name: str, seconds: float) -> bool:
        """Acquire or renew leadership of a background job for some seconds; False while another has it."""
        return await self._store.run(partial(queries.acquire_leadership, name, self.worker.name, seconds))

    async def release_leadership(self, name: str) -> None:
        """Release leadership of a background job, so that another process can acquire it."""
        await self.acquire_leadership(name, -1)

    async def record_settled(self, claim: Claim, transaction: str) -> None:
        """Record that the money was received and the answer is owed."""
        settled_at = await self.now()
        values = {"transaction": transaction, "reason": None, "signed": None, "settled_at": settled_at}
        await self._update(claim, "settled", values)
        claim.transaction = transaction
        self.meter.record_payment_state("settled", claim.service)
        test_network = is_test_network(claim.key.network)
        self.meter.record_revenue(claim.service, claim.amount, test_network=test_network)

    async def record_refused(self, claim: Claim, reason: str) -> None:
        """Record that no money moved and none will."""
        event = {"event": "refused", "reason": reason, "transaction": claim.transaction}
        values = {"transaction": None, "reason": reason, "owner": None, "signed": None}
        await self._update(claim, "refused", values, event)
        self.meter.record_payment_state("refused", claim.service)

    async def record_unsent(self, claim: Claim, reason: str) -> None:
        """Record that the payment never reached the facilitator and is still valid."""
        await self._update(claim, "unused", {"reason": reason, "owner": None, "signed": None})
        self.meter.record_payment_state("unused", claim.service)

    async def record_presentation(self, claim: Claim) -> None:
        """Record a repeated submission, before it is made."""
        await self._update(claim, "settling", {"presentations": claim.presentations + 1})
        claim.presentations += 1

    async def record_transaction(self, claim: Claim, transaction: str, reason: str | None) -> None:
        """Record the transaction that the facilitator named for a settlement with an unknown outcome."""
        event = {"event": "in_doubt", "reason": reason, "transaction": transaction}
        await self._update(claim, "settling", {"transaction": transaction}, event)
        claim.transaction = transaction

    @property
    def is_overloaded(self) -> bool:
        """True while too many payments are unresolved, at the last count, for new ones to be accepted."""
        return self._settleable_count >= MAX_UNRESOLVED

    async def count_settleable(self) -> None:
        """Count unresolved payments that can still be settled. Raises JournalUnavailable."""
        self._settleable_count = await self._store.read(partial(queries.count_settleable, MAX_UNRESOLVED))

    async def record_delivered(self, claim: Claim, answer: StoredAnswer) -> None:
        """Store the answer; from now on every repetition of the request gets it."""
        entry = partial(claims.store_answer, claim.key, claim.worker, answer, await self.now())
        await self._run_unit(
            entry, PaymentNote("settled", charged=True, retry="same_payment", transaction=claim.transaction)
        )
        claim.state = "delivered"
        self.meter.record_payment_state("delivered", claim.service)

    async def find_note(self, payment: Payment) -> PaymentNote | None:
        """Return the note on a payment that is in the journal, None if it is not."""
        return await self._run_unit(partial(claims.find_payment_note, payment), UNCHARGED_RESEND)

    async def heartbeat(self) -> None:
        """Record a heartbeat of this process, synchronise the clock, and retry failed releases."""
        asked_at = time.monotonic()
        database_time = await self._run_unit(partial(claims.heartbeat, self.worker), UNCHARGED_RESEND)
        if isinstance(self._clock, DatabaseClock):
            self._clock.synchronize(database_time, asked_at=asked_at)
        await self.retry_releases()

    async def retry_releases(self) -> None:
        """Retry releasing claims whose release failed earlier."""
        batch = tuple(islice(self._pending_releases, RELEASE_BATCH))
        await asyncio.gather(*(self._store.run(partial(claims.release_claim, *each)) for each in batch))
        self._pending_releases.difference_update(batch)

    async def deregister(self) -> None:
        """Deregister this process at its end, so that no other waits for it."""
        with suppress(CentgateError):
            await self._store.run(partial(queries.remove_worker, self.worker.process))

    def _new_claim_worker(self) -> Worker:
        """Return a worker with a unique name for one claim."""
        return self.worker.for_component(str(next(self._claim_numbers)))

    @contextmanager
    def _release_on_failure(self, keys: set[PaymentKey], worker: Worker) -> Generator[None]:
        """Schedule a release of payments if it is unknown whether they were claimed."""
        try:
            yield
        except (JournalUnavailable, asyncio.CancelledError):
            self._pending_releases |= {(key, worker) for key in keys}
            raise

    async def _release(self, claim: Claim) -> None:
        try:
            await self._store.run(partial(claims.release_claim, claim.key, claim.worker))
        except CentgateError:  # the row keeps its owner, which blocks all others
            self._pending_releases.add((claim.key, claim.worker))

    async def _update(
        self, claim: Claim, state: RowState, values: dict[str, Any], event: dict[str, Any] | None = None
    ) -> None:
        """Change a claimed payment; `event` keeps what the change overwrites."""
        now = await self.now()
        changed = {"state": state, "updated_at": now, **values}
        entry = partial(
            claims.update_claimed, claim.key, claim.worker, changed, event and {"at": now, **event}
        )
        note = PaymentNote("in_flight", charged=False, retry="same_payment", transaction=claim.transaction)
        await self._run_unit(entry, note)
        claim.state = state

    async def _run_unit(self, unit: UnitFactory[T], note_on_failure: PaymentNote) -> T:
        """Run a unit; the error of a failed database or a lost claim carries the given payment note."""
        try:
            return await self._store.run(unit)
        except (JournalUnavailable, ClaimLost) as error:
            error.payment = note_on_failure
            raise

    async def _acquire_claim(self, payment: Payment, order: RequestBinding, claim_block: int | None) -> Claim:
        worker, possibly_claimed = self._new_claim_worker(), set[PaymentKey]()
        waiting_since: float | None = None
        with self._release_on_failure(possibly_claimed, worker):
            while True:
                now = await self.now()
                attempt = ClaimAttempt(
                    payment,
                    order,
                    worker,
                    now,
                    now - self._retention,
                    claim_block,
                    waiting_since,
                    possibly_claimed,
                )
                result = await self._run_unit(partial(claims.claim_payment, attempt), UNCHARGED_RESEND)
                if isinstance(result, Claim):
                    break
                waiting_since = waiting_since or now
                await asyncio.sleep(POLL_INTERVAL)
        if result.state == "settling" and not result.outcome_unknown:
            self.meter.record_payment_state("settling", result.service)
        return result


class DatabaseClock:
    """Seconds since 1970 by the database's clock.

    The clocks of machines that share a journal may differ. The database's time is read at each heartbeat of
    the process; in between the clock advances with `time.monotonic`, so that setting the machine's clock
    changes nothing.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._offset: float | None = None
        """Offset from the monotonic clock to the database's, in seconds."""

    @property
    def is_set(self) -> bool:
        """True once the database's time has been read."""
        return self._offset is not None

    def __call__(self) -> float:
        """Return the time; the clock must have been set."""
        if self._offset is None:
            raise RuntimeError("the database's time has not been read yet")
        return self.monotonic() + self._offset

    def synchronize(self, database_time: float, *, asked_at: float) -> None:
        """Synchronise with the database's time, read between `asked_at` and now on the monotonic clock.

        The round trip allows a range of offsets. An offset within it is kept, so that the clock does not jump
        back and forth with the network's latency.
        """
        lowest, highest = database_time - self.monotonic(), database_time - asked_at
        self._offset = lowest if self._offset is None else min(max(self._offset, lowest), highest)
