"""Who may work on a payment: what the journal's rows allow, as units that may be begun anew.

A unit that was begun anew finds what it entered before the database failed: an owner's name is that of one
claim, and no other has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from centgate.dollars import is_test_network
from centgate.errors import (
    UNTOUCHED,
    CentgateError,
    InternalError,
    PaymentConflict,
    PaymentNote,
    PaymentRequired,
)
from centgate.payments import queries
from centgate.payments.authorization import Payment, PaymentKey, bad_signature, require_fit
from centgate.payments.statements import Asking, Row
from centgate.payments.worker import Worker

_PRESENTABLE = ("refused", "unused")
"""States of payments that moved nothing and may be presented again."""
LEASE = 3.0
"""Seconds after which a process that was not seen is taken for dead."""

State = Literal["settling", "settled", "delivered", "refused", "unused"]
"""`unused`: it never reached the facilitator, and may be presented again, for anything."""


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
    worker: Worker
    """Who works on it: of a name that no other claim has."""
    state: State
    doubtful: bool
    """Whether an earlier attempt to settle it has an unknown outcome."""
    since: float
    """When the payment was first presented, in seconds since 1970."""
    valid_before: int
    """When its authorization ends, in seconds since 1970."""
    service: str
    amount: int
    """In the token's base units."""
    pay_to: str
    signed: str | None
    """`Payment.signed` of when it was first presented, while its outcome is unknown."""
    claim_block: int | None = None
    """Newest block number known when the payment was first presented."""
    presentations: int = 1
    """How often it was presented to the facilitator, counting one that may have been cut off."""
    transaction: str | None = None
    attempts: int = 0
    """How often its outcome was asked for without its buyer."""
    answer: StoredAnswer | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else is at work on the payment."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to take a payment for an order."""

    payment: Payment
    order: Order
    worker: Worker
    """Of this claim alone, so that what it entered without hearing of it is known for its own."""
    now: float
    lapsed: float
    """What was settled before this can no longer be redeemed."""
    claim_block: int | None
    """Newest block number known now."""
    waiting_since: float | None
    """When it began to wait for another process; None if it has not had to."""
    touched: set[PaymentKey]
    """Payments that may have been taken: they are named here before."""


def taken(attempt: Attempt) -> Asking[Claim | Held]:
    """Take a payment, or the one that its payer made under the same idempotency key.

    Raises PaymentRequired or PaymentConflict, as `Journal.claim` does.
    """
    payment = attempt.payment
    attempt.touched.add(payment.key)
    if not payment.unfit and (yield from queries.insert_payment(payment.key, _values(attempt))):
        return _fresh(attempt, attempt.now, attempt.claim_block)
    row = yield from queries.find(payment.key)
    if row and (row["owner"], row["updated_at"]) == (attempt.worker.name, attempt.now):
        return _fresh(
            attempt, row["created_at"], row["claim_block"]
        )  # entered just now, which could not be heard
    if row is None or row["state"] in _PRESENTABLE:  # its idempotency key may have bought something since
        row = (yield from _by_identifier(payment)) or row
    if row is None:
        require_fit(payment)
        return Held()  # what was in the way has gone in between
    return (yield from _taken_over(attempt, row))


def taken_up(key: PaymentKey, worker: Worker) -> Asking[Claim | None]:
    """Take a payment whose outcome is unknown; None if it is known by now or somebody works on it."""
    row = yield from queries.find(key)
    if row is None or row["state"] != "settling" or not (yield from free(row["owner"], worker)):
        return None
    taken = yield from queries.change_seen(row, {"owner": worker.name})
    return _claim(row, worker) if taken else None


def change(key: PaymentKey, worker: Worker, values: dict[str, Any]) -> Asking[None]:
    """Change a row that the worker holds; LostClaim when another has taken it over."""
    if (yield from queries.change(key, worker.name, values)):
        return
    row = yield from queries.find(key)
    if row is None or any(row[column] != value for column, value in values.items()):
        raise LostClaim  # else it was us, and could not be heard


def change_with_event(
    key: PaymentKey, worker: Worker, values: dict[str, Any], event: dict[str, Any]
) -> Asking[None]:
    """Change a row that the worker holds and append an event; LostClaim when another has taken it over."""
    if (yield from queries.change_with_event(key, worker.name, values, event)):
        return
    row = yield from queries.find(key)
    if row is None or any(row[column] != value for column, value in values.items()):
        raise LostClaim  # else it was us, and could not be heard


def release(key: PaymentKey, worker: Worker) -> Asking[None]:
    """Let go of a row, if the worker holds it."""
    yield from queries.change(key, worker.name, {"owner": None})


def deliver(key: PaymentKey, worker: Worker, answer: StoredAnswer, now: float) -> Asking[None]:
    """Enter the answer of a payment that the worker holds; LostClaim when another has taken it over."""
    kept = {
        "status": answer.status,
        "request_id": answer.request_id,
        "receipt": answer.receipt,
        "body": answer.body,
        "stored_at": now,
    }
    if (yield from queries.deliver(key, worker.name, kept)):
        return
    there = yield from queries.find_answer(key)
    if there is None or there["request_id"] != answer.request_id:  # else we did, and could not hear it
        raise LostClaim


def known(payment: Payment) -> Asking[PaymentNote | None]:
    """What is known of a payment, or of the one under its idempotency key; None when it was never taken."""
    row = yield from queries.find(payment.key)
    row = row or (yield from _by_identifier(payment))
    return _note(row) if row and _may_ask(row, payment) else None


def free(owner: str | None, worker: Worker) -> Asking[bool]:
    """Whether nobody else is at work: no owner, this very claim, or a process whose lease has ended."""
    if owner is None or owner == worker.name:
        return True
    if worker.shares_process(owner):  # which lives, and lets go of what nobody works on
        return False
    unseen = yield from queries.unseen_for(owner)
    return unseen is None or unseen > LEASE


def beat(worker: Worker) -> Asking[float]:
    """Say that a process lives, and forget those that died long ago; returns the database's time."""
    told = yield from queries.beat(worker.process)
    yield from queries.forget_workers(100 * LEASE)
    return told


def _taken_over(attempt: Attempt, row: Row) -> Asking[Claim | Held]:
    payment, worker = attempt.payment, attempt.worker
    if row["state"] in _PRESENTABLE:
        return (yield from _again(attempt, row))
    if not _may_ask(row, payment):
        raise bad_signature()
    if row["binding"] != attempt.order.binding or not _same_money(row, payment):
        raise _bound_elsewhere(payment, row)
    if row["state"] == "delivered":
        return (yield from _redelivery(attempt, row))
    if is_test_network(row["network"]) != payment.asks_test_money:
        raise _other_kind_of_money(payment, row)
    if row["state"] == "settled" and (row["refunded"] or row["updated_at"] < attempt.lapsed):
        raise _too_late(payment, row)
    if not (yield from free(row["owner"], worker)):
        return Held()
    attempt.touched.add(queries.key_of(row))
    if not (yield from queries.change_seen(row, {"owner": worker.name})):
        return Held()  # another was quicker
    return _claim(row, worker)


def _again(attempt: Attempt, row: Row) -> Asking[Claim | Held]:
    """Claim a payment that moved nothing once more, for anything."""
    payment = attempt.payment
    if payment.unfit and queries.key_of(row) == payment.key:
        payment.unfit.payment = replace(_note(row), retry="new_payment")
    require_fit(payment)
    if queries.key_of(row) == payment.key and _was_refused_meanwhile(attempt, row):
        raise _refused_meanwhile(row)
    if queries.key_of(row) != payment.key:  # the one before only shares its idempotency key with this one
        yield from queries.change_seen(row, {"identifier": None})
        return Held()
    values = _values(attempt) | _first_presentation(attempt, row)
    if not (yield from queries.change_seen(row, values)):
        return Held()
    return _fresh(attempt, values["created_at"], values["claim_block"])


def _was_refused_meanwhile(attempt: Attempt, row: Row) -> bool:
    since = attempt.waiting_since
    return since is not None and row["state"] == "refused" and row["updated_at"] >= since


def _refused_meanwhile(row: Row) -> PaymentRequired:
    """Return the refusal that another process has just told for the same payment.

    To present it once more could settle it after a buyer was told to sign anew.
    """
    reason = row["reason"]
    return PaymentRequired(f"the payment was refused: {reason}", reason=reason, payment=_note(row))


def _first_presentation(attempt: Attempt, row: Row) -> dict[str, Any]:
    """Return what stays of a payment's first presentation, where that never reached the facilitator.

    After a refusal the next presentation is the first: a transfer before it is not what it bought. Its block
    is never lower than that of the one before, as it would be while no node tells the newest.
    """
    if row["state"] == "refused":
        blocks = [block for block in (row["claim_block"], attempt.claim_block) if block is not None]
        return {"claim_block": max(blocks, default=None)}
    return {"created_at": row["created_at"], "claim_block": row["claim_block"]}


def _redelivery(attempt: Attempt, row: Row) -> Asking[Claim]:
    kept = yield from queries.find_answer(queries.key_of(row))
    if kept is None:
        raise _too_late(attempt.payment, row)
    answer = StoredAnswer(kept["status"], kept["body"], kept["request_id"], kept["receipt"], replayed=True)
    return _claim(row, attempt.worker, answer)


def _fresh(attempt: Attempt, since: float, claim_block: int | None) -> Claim:
    payment = attempt.payment
    return Claim(
        payment.key,
        attempt.worker,
        "settling",
        doubtful=False,
        since=since,
        valid_before=payment.valid_before,
        claim_block=claim_block,
        service=attempt.order.service,
        amount=payment.terms.amount,
        pay_to=payment.terms.pay_to.lower(),
        signed=payment.signed,
    )


def _claim(row: Row, worker: Worker, answer: StoredAnswer | None = None) -> Claim:
    """The right to what a row says was begun."""
    return Claim(
        queries.key_of(row),
        worker,
        row["state"],
        doubtful=row["state"] == "settling",
        since=row["created_at"],
        valid_before=row["valid_before"],
        service=row["service"],
        amount=int(row["amount"]),
        pay_to=row["pay_to"],
        signed=row["signed"],
        claim_block=row["claim_block"],
        presentations=row["presentations"],
        transaction=row["transaction"],
        attempts=row["attempts"],
        answer=answer,
    )


def _values(attempt: Attempt) -> dict[str, Any]:
    payment = attempt.payment
    return {
        "state": "settling",
        "owner": attempt.worker.name,
        "binding": attempt.order.binding,
        "service": attempt.order.service,
        "identifier": payment.identifier if payment.signer_known else None,
        "proof": payment.proof,
        "signer_known": int(payment.signer_known),
        "amount": str(payment.terms.amount),
        "pay_to": payment.terms.pay_to.lower(),
        "valid_before": payment.valid_before,
        "transaction": None,
        "reason": None,
        "created_at": attempt.now,
        "updated_at": attempt.now,
        "signed": payment.signed,
        "attempts": 0,
        "retry_at": None,
        "settled_at": None,
        "request_id": None,
        "status": None,
        "claim_block": attempt.claim_block,
        "presentations": 1,
    }


def _by_identifier(payment: Payment) -> Asking[Row | None]:
    """The payment that this payer made under the same idempotency key, once the signature proved who asks."""
    if payment.identifier is None or not payment.signer_known:
        return None
    return (yield from queries.find_by_identifier(payment.key.payer, payment.identifier))


def _may_ask(row: Row, payment: Payment) -> bool:
    """Whether who presents this payment is who made it: its signer, or one who has the same signature."""
    return payment.signer_known or row["proof"] == payment.proof


def _same_money(row: Row, payment: Payment) -> bool:
    """Whether a payment is over the same as what was first presented under its nonce."""
    theirs = (payment.terms.pay_to.lower(), str(payment.terms.amount))
    return queries.key_of(row) != payment.key or (row["pay_to"], row["amount"]) == theirs


def _note(row: Row) -> PaymentNote:
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
        case "unused":
            return UNTOUCHED
        case _:
            return PaymentNote("refused", charged=False, retry="new_payment")


def _bound_elsewhere(payment: Payment, row: Row) -> CentgateError:
    if queries.key_of(row) != payment.key:
        return _key_taken("the idempotency key stands for another request")
    return _used("the payment was already used for another request", row)


def _too_late(payment: Payment, row: Row) -> CentgateError:
    if queries.key_of(row) != payment.key:
        return _key_taken("the idempotency key stands for a payment that was used; take another key")
    if row["refunded"]:
        return _used("the payment was paid back, and buys nothing any more", row)
    return _used("the payment was used, and its answer is no longer kept", row)


def _other_kind_of_money(payment: Payment, row: Row) -> CentgateError:
    """Refuse test money where real money is asked for, and the other way round.

    What was delivered is repeated all the same; what would run the service is not taken.
    """
    if queries.key_of(row) != payment.key or payment.unfit is None:
        return _key_taken("the idempotency key stands for a payment on another network; take another key")
    payment.unfit.payment = replace(_note(row), retry="new_payment")
    return payment.unfit


def _key_taken(message: str) -> PaymentConflict:
    """The payment that came is untouched, only its idempotency key is taken."""
    return PaymentConflict(message, payment=UNTOUCHED)


def _used(message: str, row: Row) -> PaymentRequired:
    note = replace(_note(row), retry="new_payment")
    return PaymentRequired(message, reason="payment_already_used", payment=note)


class LostClaim(InternalError):
    """Another process took this one for dead and works on the payment now."""

    def __init__(self) -> None:
        note = PaymentNote("in_flight", charged=False, retry="same_payment")
        super().__init__("another server took the payment over; send it again", payment=note, retry_after=1)
