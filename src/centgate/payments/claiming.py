"""Claim rules: which worker may process a payment. Units are idempotent and may be retried.

A retried unit recognises what it wrote before the database failed: each claim has a unique owner name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from centgate.dollars import is_test_network
from centgate.errors import (
    UNCHARGED_RESEND,
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
"""States of payments that moved no money and may be submitted again."""
LEASE = 3.0
"""Seconds without a heartbeat after which a process counts as dead."""

State = Literal["settling", "settled", "delivered", "refused", "unused"]
"""`unused`: never reached the facilitator; may be submitted again, for any request."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A delivered answer, replayed byte for byte when the request is repeated."""

    status: int
    body: bytes
    request_id: str
    receipt: str
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The request that a payment is claimed for: service, and digest of method, path and canonical body."""

    service: str
    binding: str


@dataclass(slots=True)
class Claim:
    """The exclusive right to process one payment, held by this process until the `async with` ends."""

    key: PaymentKey
    worker: Worker
    """Worker with a name that is unique to this claim."""
    state: State
    doubtful: bool
    """True if an earlier attempt to settle it has an unknown outcome."""
    since: float
    """Time of the payment's first submission, in seconds since 1970."""
    valid_before: int
    """End of the authorization, in seconds since 1970."""
    service: str
    amount: int
    """In the token's base units."""
    pay_to: str
    signed: str | None
    """`Payment.resubmission_json` of its first submission, while its outcome is unknown."""
    claim_block: int | None = None
    """Newest block number known at the payment's first submission."""
    presentations: int = 1
    """Number of submissions to the facilitator, including one that may have been interrupted."""
    transaction: str | None = None
    attempts: int = 0
    """Number of attempts to reconcile it without its buyer."""
    answer: StoredAnswer | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Another worker is processing the payment."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to claim a payment for a request."""

    payment: Payment
    order: Order
    worker: Worker
    """Unique to this claim, so that a write whose confirmation was lost is recognised as its own."""
    now: float
    lapsed: float
    """Payments settled before this time can no longer be redeemed, in seconds since 1970."""
    claim_block: int | None
    """Newest block number known at this attempt."""
    waiting_since: float | None
    """Time at which it began to wait for another process; None if it did not wait."""
    touched: set[PaymentKey]
    """Payments that may have been claimed; each is added before the claim is tried."""


def taken(attempt: Attempt) -> Asking[Claim | Held]:
    """Claim a payment, or the one that its payer made under the same idempotency key.

    Raises PaymentRequired or PaymentConflict, as `Journal.claim` does.
    """
    payment = attempt.payment
    attempt.touched.add(payment.key)
    if not payment.unfit and (yield from queries.insert_payment(payment.key, _new_row_values(attempt))):
        return _build_new_claim(attempt, attempt.now, attempt.claim_block)
    row = yield from queries.find(payment.key)
    if row and (row["owner"], row["updated_at"]) == (attempt.worker.name, attempt.now):
        return _build_new_claim(
            attempt, row["created_at"], row["claim_block"]
        )  # inserted by an earlier try of this unit whose confirmation was lost
    if (
        row is None or row["state"] in _PRESENTABLE
    ):  # its idempotency key may have been used for another payment since
        row = (yield from _find_by_identifier(payment)) or row
    if row is None:
        require_fit(payment)
        return Held()  # the conflicting row was removed in the meantime
    return (yield from _claim_existing(attempt, row))


def taken_up(key: PaymentKey, worker: Worker) -> Asking[Claim | None]:
    """Claim a payment with an unknown outcome; None if it is resolved or another worker has it."""
    row = yield from queries.find(key)
    if row is None or row["state"] != "settling" or not (yield from free(row["owner"], worker)):
        return None
    is_claimed = yield from queries.change_seen(row, {"owner": worker.name})
    return _build_claim(row, worker) if is_claimed else None


def change(key: PaymentKey, worker: Worker, values: dict[str, Any]) -> Asking[None]:
    """Update a row that the worker holds. Raises LostClaim if another worker has claimed it."""
    if (yield from queries.change(key, worker.name, values)):
        return
    row = yield from queries.find(key)
    if row is None or any(row[column] != value for column, value in values.items()):
        raise LostClaim  # else an earlier try of this unit wrote it


def change_with_event(
    key: PaymentKey, worker: Worker, values: dict[str, Any], event: dict[str, Any]
) -> Asking[None]:
    """Update a row that the worker holds and append an event.

    Raises LostClaim if another worker has claimed it.
    """
    if (yield from queries.change_with_event(key, worker.name, values, event)):
        return
    row = yield from queries.find(key)
    if row is None or any(row[column] != value for column, value in values.items()):
        raise LostClaim  # else an earlier try of this unit wrote it


def release(key: PaymentKey, worker: Worker) -> Asking[None]:
    """Release a row, if the worker holds it."""
    yield from queries.change(key, worker.name, {"owner": None})


def deliver(key: PaymentKey, worker: Worker, answer: StoredAnswer, now: float) -> Asking[None]:
    """Store the answer of a payment that the worker holds.

    Raises LostClaim if another worker has claimed it.
    """
    values = {
        "status": answer.status,
        "request_id": answer.request_id,
        "receipt": answer.receipt,
        "body": answer.body,
        "stored_at": now,
    }
    if (yield from queries.deliver(key, worker.name, values)):
        return
    stored = yield from queries.find_answer(key)
    if (
        stored is None or stored["request_id"] != answer.request_id
    ):  # else an earlier try of this unit stored it
        raise LostClaim


def known(payment: Payment) -> Asking[PaymentNote | None]:
    """Return the note on a payment, or on the one under its idempotency key; None if there is no row."""
    row = yield from queries.find(payment.key)
    row = row or (yield from _find_by_identifier(payment))
    return _build_note(row) if row and _is_same_buyer(row, payment) else None


def free(owner: str | None, worker: Worker) -> Asking[bool]:
    """Return True if no other worker has the row: no owner, this claim, or a process past its lease."""
    if owner is None or owner == worker.name:
        return True
    if worker.shares_process(owner):  # alive, and it releases its claims itself
        return False
    silent_seconds = yield from queries.unseen_for(owner)
    return silent_seconds is None or silent_seconds > LEASE


def beat(worker: Worker) -> Asking[float]:
    """Record a heartbeat of a process, and remove long-dead processes; returns the database's time."""
    database_time = yield from queries.beat(worker.process)
    yield from queries.forget_workers(100 * LEASE)
    return database_time


def _claim_existing(attempt: Attempt, row: Row) -> Asking[Claim | Held]:
    payment, worker = attempt.payment, attempt.worker
    if row["state"] in _PRESENTABLE:
        return (yield from _reclaim_refused(attempt, row))
    if not _is_same_buyer(row, payment):
        raise bad_signature()
    if row["binding"] != attempt.order.binding or not _is_same_transfer(row, payment):
        raise _other_request_error(payment, row)
    if row["state"] == "delivered":
        return (yield from _replay_answer(attempt, row))
    if is_test_network(row["network"]) != payment.asks_test_money:
        raise _test_network_error(payment, row)
    if row["state"] == "settled" and (row["refunded"] or row["updated_at"] < attempt.lapsed):
        raise _expired_redemption_error(payment, row)
    if not (yield from free(row["owner"], worker)):
        return Held()
    attempt.touched.add(queries.key_of(row))
    if not (yield from queries.change_seen(row, {"owner": worker.name})):
        return Held()  # another worker was faster
    return _build_claim(row, worker)


def _reclaim_refused(attempt: Attempt, row: Row) -> Asking[Claim | Held]:
    """Claim a payment that moved no money once more, for any request."""
    payment = attempt.payment
    if payment.unfit and queries.key_of(row) == payment.key:
        payment.unfit.payment = replace(_build_note(row), retry="new_payment")
    require_fit(payment)
    if queries.key_of(row) == payment.key and _is_refused_while_waiting(attempt, row):
        raise _concurrent_refusal(row)
    if queries.key_of(row) != payment.key:  # another payment with the same idempotency key
        yield from queries.change_seen(row, {"identifier": None})
        return Held()
    values = _new_row_values(attempt) | _first_submission_values(attempt, row)
    if not (yield from queries.change_seen(row, values)):
        return Held()
    return _build_new_claim(attempt, values["created_at"], values["claim_block"])


def _is_refused_while_waiting(attempt: Attempt, row: Row) -> bool:
    since = attempt.waiting_since
    return since is not None and row["state"] == "refused" and row["updated_at"] >= since


def _concurrent_refusal(row: Row) -> PaymentRequired:
    """Return the refusal that another process has just returned for the same payment.

    Submitting it once more could settle it after a buyer was asked for a new signature.
    """
    reason = row["reason"]
    return PaymentRequired(f"the payment was refused: {reason}", reason=reason, payment=_build_note(row))


def _first_submission_values(attempt: Attempt, row: Row) -> dict[str, Any]:
    """Return the column values that survive from a first submission that never reached the facilitator.

    After a refusal the next submission counts as the first: a transfer before it does not pay for it. Its
    block is never lower than the earlier one, even if no node returns the newest block at the moment.
    """
    if row["state"] == "refused":
        blocks = [block for block in (row["claim_block"], attempt.claim_block) if block is not None]
        return {"claim_block": max(blocks, default=None)}
    return {"created_at": row["created_at"], "claim_block": row["claim_block"]}


def _replay_answer(attempt: Attempt, row: Row) -> Asking[Claim]:
    stored = yield from queries.find_answer(queries.key_of(row))
    if stored is None:
        raise _expired_redemption_error(attempt.payment, row)
    answer = StoredAnswer(
        stored["status"], stored["body"], stored["request_id"], stored["receipt"], replayed=True
    )
    return _build_claim(row, attempt.worker, answer)


def _build_new_claim(attempt: Attempt, since: float, claim_block: int | None) -> Claim:
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


def _build_claim(row: Row, worker: Worker, answer: StoredAnswer | None = None) -> Claim:
    """Build a claim that continues the work recorded in a row."""
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


def _new_row_values(attempt: Attempt) -> dict[str, Any]:
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


def _find_by_identifier(payment: Payment) -> Asking[Row | None]:
    """Find the payer's payment under the same idempotency key; None unless the signer is verified."""
    if payment.identifier is None or not payment.signer_known:
        return None
    return (yield from queries.find_by_identifier(payment.key.payer, payment.identifier))


def _is_same_buyer(row: Row, payment: Payment) -> bool:
    """Return True if the sender is the payment's buyer: verified signer, or the same signature."""
    return payment.signer_known or row["proof"] == payment.proof


def _is_same_transfer(row: Row, payment: Payment) -> bool:
    """Return True if recipient and amount equal those first submitted under the payment's nonce."""
    submitted = (payment.terms.pay_to.lower(), str(payment.terms.amount))
    return queries.key_of(row) != payment.key or (row["pay_to"], row["amount"]) == submitted


def _build_note(row: Row) -> PaymentNote:
    """Build the buyer's payment note from a row."""
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
            return UNCHARGED_RESEND
        case _:
            return PaymentNote("refused", charged=False, retry="new_payment")


def _other_request_error(payment: Payment, row: Row) -> CentgateError:
    if queries.key_of(row) != payment.key:
        return _idempotency_conflict("the idempotency key was already used for another request")
    return _already_used_error("the payment was already used for another request", row)


def _expired_redemption_error(payment: Payment, row: Row) -> CentgateError:
    if queries.key_of(row) != payment.key:
        return _idempotency_conflict(
            "the idempotency key belongs to a payment that was used; use another key"
        )
    if row["refunded"]:
        return _already_used_error("the payment was refunded and cannot be used any more", row)
    return _already_used_error("the payment was used, and its answer is no longer stored", row)


def _test_network_error(payment: Payment, row: Row) -> CentgateError:
    """Return the error for test money where real money is required, and the reverse.

    Delivered answers are replayed all the same; only what would run the service is refused.
    """
    if queries.key_of(row) != payment.key or payment.unfit is None:
        return _idempotency_conflict(
            "the idempotency key belongs to a payment on another network; use another key"
        )
    payment.unfit.payment = replace(_build_note(row), retry="new_payment")
    return payment.unfit


def _idempotency_conflict(message: str) -> PaymentConflict:
    """Return a conflict over an idempotency key; the payment itself is untouched."""
    return PaymentConflict(message, payment=UNCHARGED_RESEND)


def _already_used_error(message: str, row: Row) -> PaymentRequired:
    note = replace(_build_note(row), retry="new_payment")
    return PaymentRequired(message, reason="payment_already_used", payment=note)


class LostClaim(InternalError):
    """Another process considered this one dead and processes the payment now."""

    def __init__(self) -> None:
        note = PaymentNote("in_flight", charged=False, retry="same_payment")
        super().__init__(
            "another server is processing the payment; send it again", payment=note, retry_after=1
        )
