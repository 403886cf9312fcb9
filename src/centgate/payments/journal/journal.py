"""The payment journal: every payment, the request it was submitted for, and its outcome.

A payment is claimed by inserting its primary key; the process that inserts it works on it, all others wait
for its result or get an error. The states of a row:

    settling ──> settled ──> delivered
        ├──────> refused ──> settling        no money moved, so it may be submitted again
        └──────> unused ───> settling        no facilitator took it, so likewise

`settling` is on the disk before the facilitator receives the payment, so a row in this state without a worker
is a payment with an unknown outcome. A row in `settled` is money received for an answer that is still owed.
`settled` is written while the service runs, and is on the disk before any response is sent. If the answer is
there at once, `settled` and `delivered` are one write.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from itertools import count, islice
from math import inf
from typing import Any, TypeVar

from centgate.context_managers import AsyncScope
from centgate.errors import UNKNOWN_RESEND, CentgateError, PaymentNote
from centgate.instrumentation import NULL_METER, Meter
from centgate.payments.authorization import Payment
from centgate.payments.claim_values import (
    Claim,
    ClaimAttempt,
    FacilitatorChoice,
    PendingSettlement,
    RequestBinding,
    StoredAnswer,
)
from centgate.payments.database.store import JournalUnavailable, Store, UnitFactory
from centgate.payments.database.tables import OpenCause, RowState
from centgate.payments.journal import (
    claims,
    process_queries,
    pruning,
    queries,
    sign_in_nonces,
    webhook_outbox,
)
from centgate.payments.journal.claims import ClaimLost, build_note
from centgate.payments.journal.webhook_events import EventBuilder, EventPayment
from centgate.payments.payment_key import PaymentKey
from centgate.payments.shared_timer import SharedTimer
from centgate.payments.worker_id import Worker, create_worker

POLL_INTERVAL = 0.05
"""Seconds between two checks of a payment that another process works on."""
REFUSED_RETENTION = 2 * 86400
"""Minimum retention of a refused payment in seconds: its day is audited first."""
UNAUDITED_RETENTION = 30 * 86400
"""Maximum retention of a refused payment in seconds while its day has not been audited."""
MAX_UNRESOLVED = 10_000
"""Unresolved payments from which on new ones are refused. Expired authorizations do not count."""
PROBE_SECONDS = 0.8
"""Seconds that a check of the journal waits for its write."""
MAX_UNWRITTEN_SECONDS = 12.0
"""Seconds without a heartbeat after which a journal that does not answer counts as unavailable.

They are more than a payment waits for the lock of another process (`BUSY_SECONDS`) after a heartbeat.
"""
RELEASE_BATCH = 1000
"""Releases per retry: few enough that the heartbeat stays in time."""

MAYBE_WRITTEN = (JournalUnavailable, asyncio.CancelledError)
"""Errors after which it is unknown whether a payment was claimed: its release is retried."""
SETTLED_WRITE_DELAY = 0.002
"""Seconds for an answer of this machine or its cache, before a settlement is written without it."""

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
        events: EventBuilder | None = None,
    ) -> None:
        """Create a journal; `clock` replaces the database's time, `events` writes a webhook per delivery."""
        self._store = store
        self._events = events
        self._retention = keep_seconds
        self._clock = clock or DatabaseClock()
        self.meter = meter
        self.worker = worker or create_worker()
        self._settleable_count = 0
        """Unresolved payments that can still be settled, at the last count."""
        self._claim_numbers = count(1)
        self._timer = SharedTimer()
        """Starts the writes of settlements whose answer is not there at once."""
        self._probe: asyncio.Task[bool] | None = None
        """Write of a check that may still be waiting."""
        self._written_at = -inf
        """Time of the last heartbeat, on the monotonic clock."""
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
            events=self._events,
        )

    def claim(
        self,
        payment: Payment,
        binding: RequestBinding,
        *,
        claim_block: int | None = None,
        facilitators: FacilitatorChoice | None = None,
    ) -> AbstractAsyncContextManager[Claim]:
        """Claim a payment for a request, waiting while another process works on it.

        `claim_block` is the newest known block number. It is stored with a payment that is new to the
        journal, and so is the facilitator of `facilitators` that it goes to (None for the first).

        Raises PaymentRequired if the payment is bound to another request, is redeemed too late or can no
        longer be settled. Raises PaymentConflict if its idempotency key belongs to another request, and
        JournalUnavailable if the journal cannot be written. On exit an undelivered claim is released for the
        next request.
        """
        acquire = partial(self._acquire_claim, payment, binding, claim_block, facilitators)
        return AsyncScope(acquire, self._end_claim)

    async def _end_claim(self, claim: Claim, _: BaseException | None) -> None:
        """Write a pending settlement, and release a claim that is not delivered."""
        try:
            await self._finish_settled(claim)  # an error tells the state that the journal has
        finally:
            if claim.pending_settlement:
                # the server stops; a release could overtake the write and void it
                self._pending_releases.add((claim.key, claim.worker))
            elif claim.state in ("settling", "settled"):
                await self._release(claim)

    @asynccontextmanager
    async def claim_open_payment(self, key: PaymentKey) -> AsyncGenerator[Claim | None]:
        """Claim a payment with an unknown outcome; None if it is resolved or another worker has it.

        Raises JournalUnavailable.
        """
        worker = self._new_claim_worker()
        await self.now()
        try:
            claim = await self._store.run(partial(claims.claim_open_payment, key, worker))
        except MAYBE_WRITTEN:
            self._pending_releases.add((key, worker))
            raise
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

    async def schedule_retry(self, claim: Claim, retry_at: float, *, cause: OpenCause | None) -> None:
        """Record the time of the next attempt to reconcile a payment, and why it is still open, if known."""
        claim.attempts += 1
        values = {"attempts": claim.attempts, "retry_at": retry_at, "open_cause": cause}
        await self._store.run(partial(claims.update_claimed, claim.key, claim.worker, values))

    async def count_unresolved(self, before: float) -> tuple[int, float]:
        """Count unresolved payments submitted before a time; returns the count and the oldest time."""
        return await self._store.read(partial(queries.count_unresolved, before))

    async def now(self) -> float:
        """Return the database's time, in seconds since 1970. Raises JournalUnavailable."""
        if isinstance(self._clock, DatabaseClock) and not self._clock.is_set:
            await self.heartbeat()  # before the first claim, so that this process counts as alive
        return self._clock()

    def estimate_now(self) -> float:
        """Return the database's time, or this machine's if the database was not reached yet."""
        is_known = not isinstance(self._clock, DatabaseClock) or self._clock.is_set
        return self._clock() if is_known else time.time()

    async def prune(self, audited_networks: Collection[str] = ()) -> int:
        """Remove some expired rows; returns the largest number of removed rows of one kind.

        Refused payments of `audited_networks` are kept until their day has been audited.
        """
        refused_retention = max(self._retention, REFUSED_RETENTION)
        unaudited_retention = max(self._retention, UNAUDITED_RETENTION)
        return max(
            await self._store.run(partial(pruning.prune_answers, self._retention)),
            await self._store.run(
                partial(pruning.prune_refused, refused_retention, unaudited_retention, audited_networks)
            ),
            await self._store.run(pruning.prune_unused),
            await self._store.run(sign_in_nonces.prune_nonces),
            await self._store.run(webhook_outbox.prune_events),
        )

    async def acquire_leadership(self, name: str, seconds: float) -> bool:
        """Acquire or renew leadership of a background job for some seconds; False while another has it."""
        return await self._store.run(
            partial(process_queries.acquire_leadership, name, self.worker.name, seconds)
        )

    async def release_leadership(self, name: str) -> None:
        """Release leadership of a background job, so that another process can acquire it."""
        await self.acquire_leadership(name, -1)

    async def record_settled(self, claim: Claim, transaction: str) -> None:
        """Record that the money was received and the answer is owed."""
        claim.settled_at = await self.now()
        await self._write_settled(claim, transaction)

    async def begin_settled(self, claim: Claim, transaction: str) -> None:
        """Record the same while the service runs: alone, or together with an answer that is there at once.

        The journal has it when `record_delivered` or `claim` ends. A server that dies before leaves the
        payment in `settling`, whose outcome the chain or the facilitator tells.
        """
        claim.settled_at = await self.now()
        claim.state, claim.transaction = "settled", transaction
        pending = claim.pending_settlement = PendingSettlement()
        latest = asyncio.get_running_loop().time() + SETTLED_WRITE_DELAY
        self._timer.call_at(latest, pending, partial(self._start_settled_write, claim))

    async def record_refused(self, claim: Claim, reason: str) -> None:
        """Record that no money moved and none will."""
        history_entry = {"event": "refused", "reason": reason, "transaction": claim.transaction}
        values = {"transaction": None, "reason": reason, "owner": None, "signed": None}
        await self._update(claim, "refused", values, history_entry)
        self.meter.record_payment_state("refused", claim.service)

    async def record_unsent(
        self, claim: Claim, reason: str, *, was_answered: bool, may_be_sent: bool
    ) -> None:
        """Record that the payment was not sent by the facilitator and is still valid.

        `was_answered`: True if a facilitator has answered for it, now or earlier, which then keeps it.
        `may_be_sent`: as for `record_fallback`.
        """
        values = {"reason": reason, "owner": None, "signed": None}
        facilitator = claim.facilitator if was_answered else None
        claim.presentations += may_be_sent
        values |= {"facilitator": facilitator, "presentations": claim.presentations}
        await self._update(claim, "unused", values)
        self.meter.record_payment_state("unused", claim.service)

    async def record_fallback(
        self, claim: Claim, facilitator: str, reason: str, *, may_be_sent: bool
    ) -> None:
        """Record that another facilitator gets a payment, before it is called.

        `reason`: why the earlier one has not got it. `may_be_sent`: that is not certain, so that the one to
        come is not the only presentation, and the end of its transaction is not that of the payment.
        """
        history_entry = {"event": "fallback", "reason": reason, "transaction": None}
        presentations = claim.presentations + may_be_sent
        values = {"facilitator": facilitator, "presentations": presentations}
        await self._update(claim, "settling", values, history_entry)
        claim.facilitator, claim.presentations = facilitator, presentations

    async def record_resubmission(self, claim: Claim) -> None:
        """Record that a payment is submitted once more, before it is."""
        await self._update(claim, "settling", {"presentations": claim.presentations + 1})
        claim.presentations += 1

    async def record_transaction(self, claim: Claim, transaction: str, reason: str | None) -> None:
        """Record the transaction that the facilitator named for a settlement with an unknown outcome."""
        history_entry = {"event": "in_doubt", "reason": reason, "transaction": transaction}
        await self._update(claim, "settling", {"transaction": transaction}, history_entry)
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
        pending = claim.pending_settlement
        if pending is None or pending.write:
            await self._finish_settled(claim)
            await self._store_answer(claim, answer, build_note("settled", claim.transaction))
        else:
            self._timer.cancel(pending)
            claim.pending_settlement = None
            try:
                await self._store_answer(claim, answer, build_note("settling", claim.transaction))
            except BaseException:
                claim.state = "settling"  # the journal may not have the settlement
                raise
            self._count_settled(claim)
        claim.state = "delivered"
        self.meter.record_payment_state("delivered", claim.service)

    async def _store_answer(self, claim: Claim, answer: StoredAnswer, note_on_failure: PaymentNote) -> None:
        now = await self.now()
        events = self._events
        webhook_row = events and events.build_row("payment.delivered", _describe(claim, answer), now)
        await self._run_unit(partial(claims.store_answer, claim, answer, now, webhook_row), note_on_failure)

    def _start_settled_write(self, claim: Claim) -> asyncio.Task[None]:
        """Start to write a pending settlement, unless that was done before; return its task."""
        pending = claim.pending_settlement
        assert pending is not None
        if pending.write is None:
            self._timer.cancel(pending)
            pending.write = asyncio.create_task(self._write_settled(claim, claim.transaction or ""))
        return pending.write

    async def _finish_settled(self, claim: Claim) -> None:
        """Wait until a pending settlement is in the journal. Raises JournalUnavailable or ClaimLost."""
        if claim.pending_settlement is None:
            return
        write = self._start_settled_write(claim)
        try:
            await asyncio.shield(write)
        finally:
            if write.done():
                claim.pending_settlement = None

    async def _write_settled(self, claim: Claim, transaction: str) -> None:
        values = {
            "transaction": transaction,
            "reason": None,
            "signed": None,
            "settled_at": claim.settled_at,
        }
        try:
            await self._update(claim, "settled", values)
        except BaseException:
            claim.state = "settling"  # the journal may not have the settlement
            raise
        claim.transaction = transaction
        self._count_settled(claim)

    def _count_settled(self, claim: Claim) -> None:
        self.meter.record_payment_state("settled", claim.service)
        self.meter.record_revenue(claim.service, claim.key.network, claim.amount)

    async def find_note(self, payment: Payment) -> PaymentNote | None:
        """Return the note on a payment that is in the journal, None if it is not."""
        return await self._run_unit(partial(claims.find_payment_note, payment), UNKNOWN_RESEND)

    async def heartbeat(self) -> None:
        """Record a heartbeat of this process, synchronise the clock, and retry failed releases."""
        asked_at = time.monotonic()
        database_time = await self._store.run(partial(claims.heartbeat, self.worker))
        self._written_at = time.monotonic()
        if isinstance(self._clock, DatabaseClock):
            self._clock.synchronize(database_time, asked_at=asked_at)
        await self.retry_releases()

    async def is_writable(self) -> bool:
        """Return True if the journal can be written: test it with a write, for less than a second.

        While another process has the lock, writes are late and do not fail: the last heartbeat decides then.
        Checks share one write, so that they do not pile up behind the lock.
        """
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._try_heartbeat())
        probe = self._probe
        await asyncio.wait({probe}, timeout=PROBE_SECONDS)
        if probe.done():
            return probe.result()
        return time.monotonic() - self._written_at < MAX_UNWRITTEN_SECONDS

    async def _try_heartbeat(self) -> bool:
        try:
            await self.heartbeat()
        except CentgateError:
            return False
        return True

    async def retry_releases(self) -> None:
        """Retry releasing claims whose release failed earlier."""
        batch = tuple(islice(self._pending_releases, RELEASE_BATCH))
        await asyncio.gather(*(self._store.run(partial(claims.release_claim, *each)) for each in batch))
        self._pending_releases.difference_update(batch)

    async def deregister(self) -> None:
        """Deregister this process at its end, so that no other waits for it."""
        with suppress(CentgateError):
            await self._store.run(partial(process_queries.remove_worker, self.worker.process))

    def _new_claim_worker(self) -> Worker:
        """Return a worker with a unique name for one claim."""
        return self.worker.for_component(str(next(self._claim_numbers)))

    async def _release(self, claim: Claim) -> None:
        try:
            await self._store.run(partial(claims.release_claim, claim.key, claim.worker))
        except CentgateError:  # the row keeps its owner, which blocks all others
            self._pending_releases.add((claim.key, claim.worker))

    async def _update(
        self,
        claim: Claim,
        state: RowState,
        values: dict[str, Any],
        history_entry: dict[str, Any] | None = None,
    ) -> None:
        """Change a claimed payment; `history_entry` keeps what the change overwrites."""
        now = await self.now()
        new_values = {"state": state, "updated_at": now, **values}
        dated_entry = history_entry and {"at": now, **history_entry}
        unit = partial(claims.update_claimed, claim.key, claim.worker, new_values, dated_entry)
        note = PaymentNote("in_flight", charged=False, retry="same_payment", transaction=claim.transaction)
        await self._run_unit(unit, note)
        claim.state = state

    async def _run_unit(self, unit: UnitFactory[T], note_on_failure: PaymentNote) -> T:
        """Run a unit; the error of a failed database or a lost claim carries the given payment note."""
        try:
            return await self._store.run(unit)
        except (JournalUnavailable, ClaimLost) as error:
            error.payment = note_on_failure
            raise

    async def _acquire_claim(
        self,
        payment: Payment,
        binding: RequestBinding,
        claim_block: int | None,
        facilitators: FacilitatorChoice | None,
    ) -> Claim:
        worker, possibly_claimed = self._new_claim_worker(), set[PaymentKey]()
        waiting_since: float | None = None
        try:
            while True:
                now = await self.now()
                attempt = ClaimAttempt(
                    payment=payment,
                    binding=binding,
                    worker=worker,
                    now=now,
                    redeem_cutoff=now - self._retention,
                    claim_block=claim_block,
                    waiting_since=waiting_since,
                    possibly_claimed=possibly_claimed,
                    facilitators=facilitators,
                )
                result = await self._run_unit(partial(claims.claim_payment, attempt), UNKNOWN_RESEND)
                if isinstance(result, Claim):
                    break
                waiting_since = waiting_since or now
                await asyncio.sleep(POLL_INTERVAL)
        except MAYBE_WRITTEN:
            self._pending_releases |= {(key, worker) for key in possibly_claimed}
            raise
        if result.state == "settling" and not result.outcome_unknown:
            self.meter.record_payment_state("settling", result.service)
        return result


def _describe(claim: Claim, answer: StoredAnswer) -> EventPayment:
    """Describe a payment that is being delivered."""
    return EventPayment(
        claim.key,
        "delivered",
        service=claim.service,
        amount=claim.amount,
        pay_to=claim.pay_to,
        presented_at=claim.presented_at,
        transaction=claim.transaction,
        request_id=answer.request_id,
        status=answer.status,
    )


class DatabaseClock:
    """Seconds since 1970 by the database's clock.

    The clocks of machines that share a journal may differ. The database's time is read at each heartbeat of
    the process. In between the clock advances with `time.monotonic`, so that a change of the machine's clock
    has no effect.
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
