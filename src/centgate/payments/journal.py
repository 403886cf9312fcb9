"""The payment journal: who has presented which payment for what, and what came of it.

A payment is claimed by inserting its primary key; whoever inserts it works on it, everyone else waits for
that work or is told. The states of a row:

    settling ──> settled ──> delivered
        └──────> refused ──> settling        nothing moved, so it may be presented again

`settling` is on the disk before the facilitator hears of the payment, so a row found in it, with nobody at
work, is a payment whose outcome is unknown; one found `settled` is money taken for an answer still owed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection, RowMapping

from centgate.errors import (
    UNTOUCHED,
    CentgateError,
    InternalError,
    PaymentConflict,
    PaymentNote,
    PaymentRequired,
)
from centgate.payments import queries
from centgate.payments.authorization import Payment, PaymentKey, bad_signature, unexpired
from centgate.payments.store import JournalUnavailable, Store, Unit
from centgate.payments.worker import new_worker, surely_dead

LEASE = 3.0
"""Seconds after which a process that was not seen is taken for dead."""
POLL = 0.05
"""Seconds between two looks at a payment that another process works on."""

T = TypeVar("T")
State = Literal["settling", "settled", "delivered", "refused"]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as it was delivered: what a repetition of the request gets, byte for byte."""

    status: int
    body: bytes
    request_id: str
    receipt: str
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What a payment is claimed for: the service, and a digest of method, path and canonical body."""

    service: str
    binding: str


@dataclass(slots=True)
class Claim:
    """The right to work on one payment, held by this process until the `async with` ends."""

    key: PaymentKey
    state: State
    doubtful: bool
    """Whether an earlier attempt to settle it has an unknown outcome."""
    since: float
    """When the payment was first presented, in seconds since 1970."""
    valid_before: int
    """When its authorization ends, in seconds since 1970."""
    transaction: str | None
    answer: StoredAnswer | None


@dataclass(frozen=True, slots=True)
class _Held:
    """Somebody else is at work on the payment."""


class Journal:
    """The handful of questions and entries that money asks for."""

    def __init__(self, store: Store, *, keep_seconds: float, clock: Any = time.time) -> None:
        self._store = store
        self._keep = keep_seconds
        self._clock = clock
        self.worker = new_worker()

    @asynccontextmanager
    async def claim(self, payment: Payment, order: Order) -> AsyncGenerator[Claim]:
        """Take the payment for this order, waiting while another process works on it.

        Raises PaymentRequired when it is bound to another order, was redeemed too late or has expired unused,
        PaymentConflict when its idempotency key stands for another order, JournalUnavailable when the journal
        cannot be written. At the end whatever was not delivered is let go, for the next request to take up.
        """
        claim = await self._take(payment, order)
        try:
            yield claim
        finally:
            if claim.state in ("settling", "settled"):
                # if this fails the row stays ours, which does not hinder us
                with suppress(CentgateError):
                    await self._store.run(partial(_release, claim.key, self.worker))

    async def settled(self, claim: Claim, transaction: str) -> None:
        """Enter that the money is ours and the answer is owed."""
        await self._enter(claim, "settled", transaction=transaction, reason=None)
        claim.transaction = transaction

    async def refused(self, claim: Claim, reason: str) -> None:
        """Enter that nothing moved and nothing will."""
        await self._enter(claim, "refused", transaction=None, reason=reason, owner=None)

    async def pending(self, claim: Claim, transaction: str) -> None:
        """Enter the transaction that an unresolved settlement may have landed in."""
        await self._enter(claim, "settling", transaction=transaction)

    async def delivered(self, claim: Claim, answer: StoredAnswer) -> None:
        """Enter the answer; from here on it is what every repetition gets."""
        entry = partial(_deliver, claim.key, self.worker, answer, self._clock())
        await self._run(
            entry, PaymentNote("settled", charged=True, retry="same_payment", transaction=claim.transaction)
        )
        claim.state = "delivered"

    async def note(self, payment: Payment) -> PaymentNote | None:
        """What is known of a payment that cannot be worked on now; None when it was never taken."""
        row = await self._run(lambda connection: queries.find(connection, payment.key), UNTOUCHED)
        return _note(row) if row and _may_ask(row, payment) else None

    async def beat(self) -> None:
        """Say that this process lives, and forget what need not be kept."""
        await self._store.run(partial(_beat, self.worker, self._clock(), self._keep))

    async def leave(self) -> None:
        """Say that this process ends, so that nobody waits for it."""
        with suppress(CentgateError):
            await self._store.run(lambda connection: queries.leave(connection, self.worker))

    async def _enter(self, claim: Claim, state: State, **values: Any) -> None:
        entry = partial(_change, claim.key, self.worker, state=state, updated_at=self._clock(), **values)
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

    async def _take(self, payment: Payment, order: Order) -> Claim:
        while True:
            found = await self._run(partial(self._taken, payment, order), UNTOUCHED)
            if isinstance(found, Claim):
                return found
            await asyncio.sleep(POLL)

    def _taken(self, payment: Payment, order: Order, connection: Connection) -> Claim | _Held:
        now = self._clock()
        values = _values(payment, order, self.worker, now)
        if not payment.expired and queries.insert_payment(connection, payment.key, values):
            return _fresh(payment, now)
        row = queries.find(connection, payment.key)
        if row is None or row["state"] == "refused":  # its idempotency key may have bought something since
            row = _by_identifier(payment, connection) or row
        if row is None:
            unexpired(payment)
            raise LookupError("a payment that could not be claimed is not in the journal")
        return self._taken_over(payment, order, row, connection)

    def _taken_over(
        self, payment: Payment, order: Order, row: RowMapping, connection: Connection
    ) -> Claim | _Held:
        now = self._clock()
        key = PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])
        if row["state"] == "refused":
            return self._again(payment, order, key, connection)
        if not _may_ask(row, payment):
            raise bad_signature()
        if row["binding"] != order.binding:
            raise _bound_elsewhere(payment, key, row)
        if row["state"] == "delivered":
            return _redelivery(key, row, connection)
        if row["state"] == "settled" and row["updated_at"] < now - self._keep:
            raise _too_late(row)
        if not _free(row["owner"], self.worker, now, connection):
            return _Held()
        _change(key, row["owner"], connection, owner=self.worker)
        return Claim(
            key,
            row["state"],
            doubtful=row["state"] == "settling",
            since=row["created_at"],
            valid_before=row["valid_before"],
            transaction=row["transaction"],
            answer=None,
        )

    def _again(
        self, payment: Payment, order: Order, key: PaymentKey, connection: Connection
    ) -> Claim | _Held:
        """A payment that was refused moved nothing: it may be presented again, for anything."""
        unexpired(payment)
        if key != payment.key:  # the refused one only shares its idempotency key with this one
            _change(key, None, connection, identifier=None)
            return _Held()
        values = _values(payment, order, self.worker, now := self._clock())
        _change(key, None, connection, **values)
        return _fresh(payment, now)


def _fresh(payment: Payment, now: float) -> Claim:
    return Claim(
        payment.key,
        "settling",
        doubtful=False,
        since=now,
        valid_before=payment.valid_before,
        transaction=None,
        answer=None,
    )


def _values(payment: Payment, order: Order, worker: str, now: float) -> dict[str, Any]:
    return {
        "state": "settling",
        "owner": worker,
        "binding": order.binding,
        "service": order.service,
        "identifier": payment.identifier if payment.signer_known else None,
        "proof": payment.proof,
        "signer_known": int(payment.signer_known),
        "amount": str(payment.terms.amount),
        "pay_to": payment.terms.pay_to.lower(),
        "valid_before": payment.valid_before,
        "transaction": None,
        "reason": None,
        "created_at": now,
        "updated_at": now,
    }


def _by_identifier(payment: Payment, connection: Connection) -> RowMapping | None:
    """The payment that this payer made under the same idempotency key, once the signature proved who asks."""
    if payment.identifier is None or not payment.signer_known:
        return None
    return queries.find_by_identifier(connection, payment.key.payer, payment.identifier)


def _may_ask(row: RowMapping, payment: Payment) -> bool:
    """Whether who presents this payment is who made it: its signer, or one who has the same signature."""
    return payment.signer_known or row["proof"] == payment.proof


def _free(owner: str | None, worker: str, now: float, connection: Connection) -> bool:
    """Whether nobody else is at work: no owner, this process (which does one thing at a time with a payment,
    see `flights`), or one that has died.
    """
    if owner is None or owner == worker or surely_dead(owner):
        return True
    seen = queries.seen(connection, owner)
    return seen is None or seen < now - LEASE


def _change(key: PaymentKey, owner: str | None, connection: Connection, /, **values: Any) -> None:
    """Change a row that `owner` holds; LostClaim when another process has taken it over."""
    if not queries.change(connection, key, owner, values):
        raise LostClaim


def _release(key: PaymentKey, worker: str, connection: Connection) -> None:
    queries.change(connection, key, worker, {"owner": None})


def _deliver(key: PaymentKey, worker: str, answer: StoredAnswer, now: float, connection: Connection) -> None:
    _change(key, worker, connection, state="delivered", owner=None, updated_at=now)
    kept = {"status": answer.status, "request_id": answer.request_id, "receipt": answer.receipt}
    queries.insert_answer(connection, key, {**kept, "body": answer.body, "stored_at": now})


def _redelivery(key: PaymentKey, row: RowMapping, connection: Connection) -> Claim:
    kept = queries.find_answer(connection, key)
    if kept is None:
        raise _too_late(row)
    answer = StoredAnswer(kept["status"], kept["body"], kept["request_id"], kept["receipt"], replayed=True)
    return Claim(
        key,
        "delivered",
        doubtful=False,
        since=row["created_at"],
        valid_before=row["valid_before"],
        transaction=row["transaction"],
        answer=answer,
    )


def _beat(worker: str, now: float, keep: float, connection: Connection) -> None:
    queries.beat(connection, worker, now)
    queries.forget_workers(connection, now - 100 * LEASE)
    queries.forget_answers(connection, now - keep)


def _note(row: RowMapping) -> PaymentNote:
    """What a row says of the buyer's money."""
    match row["state"]:
        case "settling":
            return PaymentNote(
                "in_flight", charged=False, retry="same_payment", transaction=row["transaction"]
            )
        case "settled":
            return PaymentNote("settled", charged=True, retry="same_payment", transaction=row["transaction"])
        case "delivered":
            return PaymentNote(
                "delivered", charged=True, retry="same_payment", transaction=row["transaction"]
            )
        case _:
            return PaymentNote("refused", charged=False, retry="new_payment")


def _bound_elsewhere(payment: Payment, key: PaymentKey, row: RowMapping) -> CentgateError:
    note = replace(_note(row), retry="new_payment")
    if key != payment.key:  # the payment that came is untouched, only its idempotency key is taken
        return PaymentConflict("the idempotency key stands for another request", payment=UNTOUCHED)
    return PaymentRequired(
        "the payment was already used for another request", reason="payment_already_used", payment=note
    )


def _too_late(row: RowMapping) -> CentgateError:
    message = "the payment was used, and its answer is no longer kept"
    return PaymentRequired(
        message, reason="payment_already_used", payment=replace(_note(row), retry="new_payment")
    )


class LostClaim(InternalError):
    """Another process took this one for dead and works on the payment now."""

    def __init__(self) -> None:
        note = PaymentNote("in_flight", charged=False, retry="same_payment")
        super().__init__("another server took the payment over; send it again", payment=note)
