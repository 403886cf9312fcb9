"""Claim rules: which worker may process a payment. Units are idempotent and may be retried.

A retried unit recognises what it wrote before the database failed: each claim has a unique owner name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import ceil
from typing import Any

from msgspec.structs import replace

from centgate.errors import (
    UNCHARGED_RESEND,
    UNKNOWN_RESEND,
    CentgateError,
    InternalError,
    PaymentConflict,
    PaymentNote,
    PaymentRequired,
    ProviderError,
)
from centgate.payments.authorization import (
    EXPIRED_REASON,
    Payment,
    PaymentKey,
    raise_if_rejected,
    signature_rejection,
)
from centgate.payments.claim_values import Claim, ClaimAttempt, ClaimedElsewhere, StoredAnswer
from centgate.payments.database.sql import ResultRow, UnitOfWork
from centgate.payments.database.tables import RowState
from centgate.payments.facilitator.facilitator import FACILITATOR_NAME, build_refusal_error
from centgate.payments.journal import process_queries, queries
from centgate.payments.worker_id import LEASE_SECONDS, Worker
from centgate.signing.assets import is_test_network

_UNPAID = ("refused", "unused")
"""States of payments that moved no money and may be submitted again."""


def claim_payment(attempt: ClaimAttempt) -> UnitOfWork[Claim | ClaimedElsewhere]:
    """Claim a payment, or the one that its payer made under the same idempotency key.

    Raises PaymentRequired or PaymentConflict, as `Journal.claim` does.
    """
    payment = attempt.payment
    attempt.possibly_claimed.add(payment.key)
    if not payment.rejection:
        values = _new_row_values(attempt)
        if (yield from queries.insert_payment(payment.key, values)):
            new = _build_new_claim(attempt, values)
            new.may_change_facilitator = True
            return new
    row = yield from queries.find_payment(payment.key)
    if row and (row["owner"], row["updated_at"]) == (attempt.worker.name, attempt.now):
        # inserted by an earlier try of this unit whose confirmation was lost
        return _build_new_claim(attempt, row)
    if row is None or row["state"] in _UNPAID:
        # its idempotency key may have been used for another payment since
        row = (yield from _find_by_identifier(payment)) or row
    if row is None:
        raise_if_rejected(payment)
        return ClaimedElsewhere()  # the conflicting row was removed in the meantime
    return (yield from _claim_existing(attempt, row))


def claim_open_payment(key: PaymentKey, worker: Worker) -> UnitOfWork[Claim | None]:
    """Claim a payment with an unknown outcome; None if it is resolved or another worker has it."""
    row = yield from queries.find_payment(key)
    if row is None or row["state"] != "settling" or not (yield from is_unclaimed(row["owner"], worker)):
        return None
    is_claimed = yield from queries.update_if_unchanged(row, {"owner": worker.name})
    return _build_claim(row, worker) if is_claimed else None


def update_claimed(
    key: PaymentKey, worker: Worker, values: dict[str, Any], history_entry: dict[str, Any] | None = None
) -> UnitOfWork[None]:
    """Update a row that the worker holds, and append to the payment's history (`payment_events`).

    Raises ClaimLost if another worker has claimed it.
    """
    if (yield from queries.update_owned(key, worker.name, values, history_entry)):
        return
    row = yield from queries.find_payment(key)
    if row is None or any(row[column] != value for column, value in values.items()):
        raise ClaimLost  # else an earlier try of this unit wrote it


def release_claim(key: PaymentKey, worker: Worker) -> UnitOfWork[None]:
    """Release a row, if the worker holds it."""
    yield from queries.update_owned(key, worker.name, {"owner": None})


def store_answer(
    claim: Claim, answer: StoredAnswer, now: float, webhook_row: dict[str, Any] | None = None
) -> UnitOfWork[None]:
    """Store the answer of a claimed payment, and its settlement if that is not in the journal yet.

    `webhook_row` has the columns of `webhook_events`, None without a receiver. Raises ClaimLost if another
    worker has claimed it.
    """
    values = {
        "status": answer.status,
        "request_id": answer.request_id,
        "receipt": answer.receipt,
        "body": answer.body,
        "stored_at": now,
    }
    settlement = {"transaction": claim.transaction, "settled_at": claim.settled_at}
    if (yield from queries.record_answer(claim.key, claim.worker.name, values, settlement, webhook_row)):
        return
    stored = yield from queries.find_answer(claim.key)
    if (
        stored is None or stored["request_id"] != answer.request_id
    ):  # else an earlier try of this unit stored it
        raise ClaimLost


def find_payment_note(payment: Payment) -> UnitOfWork[PaymentNote | None]:
    """Return the note on a payment, or on the one under its idempotency key; None if there is no row."""
    row = yield from queries.find_payment(payment.key)
    row = row or (yield from _find_by_identifier(payment))
    return _build_note(row) if row and _is_same_buyer(row, payment) else None


def is_unclaimed(owner: str | None, worker: Worker) -> UnitOfWork[bool]:
    """Return True if no other worker has the row: no owner, this claim, or a process past its lease."""
    if owner is None or owner == worker.name:
        return True
    if worker.is_same_process(owner):  # alive, and it releases its claims itself
        return False
    silent_seconds = yield from process_queries.seconds_since_heartbeat(owner)
    return silent_seconds is None or silent_seconds > LEASE_SECONDS


def heartbeat(worker: Worker) -> UnitOfWork[float]:
    """Record a heartbeat of a process, and remove long-dead processes; returns the database's time.

    Heartbeats from the future become current ones: the database's clock was set back, and only living
    processes repeat them.
    """
    database_time = yield from process_queries.record_heartbeat(worker.process)
    yield from process_queries.correct_heartbeats(LEASE_SECONDS)
    yield from process_queries.prune_workers(100 * LEASE_SECONDS)
    return database_time


def _claim_existing(attempt: ClaimAttempt, row: ResultRow) -> UnitOfWork[Claim | ClaimedElsewhere]:
    """Claim a payment that the journal has, with its answer if it is delivered.

    Raises the error that says why the request does not get it.
    """
    payment, worker = attempt.payment, attempt.worker
    is_reopened = _is_to_be_found_out(attempt, row)
    if row["state"] in _UNPAID and not is_reopened:
        return (yield from _claim_unpaid(attempt, row))
    if not _is_same_buyer(row, payment):
        raise signature_rejection()
    if row["binding"] != attempt.binding.digest or not _is_same_transfer(row, payment):
        raise _other_request_error(payment, row)
    if row["state"] == "delivered":
        return (yield from _replay_answer(attempt, row))
    if is_test_network(row["network"]) != payment.is_on_test_network:
        raise _test_network_error(payment, row)
    if row["state"] == "settled" and (row["refunded"] or row["updated_at"] < attempt.redeem_cutoff):
        raise _expired_redemption_error(payment, row)
    if not (yield from is_unclaimed(row["owner"], worker)):
        return ClaimedElsewhere()
    attempt.possibly_claimed.add(queries.key_of(row))
    values = {"owner": worker.name} | ({"state": "settling", "attempts": 0} if is_reopened else {})
    if not (yield from queries.update_if_unchanged(row, values)):
        return ClaimedElsewhere()  # another worker was faster
    claim = _build_claim(row, worker)
    return replace(claim, state="settling", outcome_unknown=True, attempts=0) if is_reopened else claim


def _claim_unpaid(attempt: ClaimAttempt, row: ResultRow) -> UnitOfWork[Claim | ClaimedElsewhere]:
    """Claim a refused or unused payment again, for any request.

    If the row is that of another payment with the same idempotency key, it loses the key; the next attempt
    then claims the buyer's payment.
    """
    is_same = queries.key_of(row) == attempt.payment.key
    _require_presentable(attempt, row, is_same=is_same)
    if not is_same:
        yield from queries.update_if_unchanged(row, {"identifier": None})
        return ClaimedElsewhere()
    earlier = _earlier_facilitator(attempt, row)
    values = _new_row_values(attempt) | _first_submission_values(attempt, row)
    values["facilitator"] = earlier or _preferred_facilitator(attempt)
    if row["state"] == "unused" and row["facilitator"] and earlier is None and attempt.facilitators:
        values["presentations"] += 1  # the one that answered for it was removed, and may have sent it
    if not (yield from queries.update_if_unchanged(row, values)):
        return ClaimedElsewhere()
    new = _build_new_claim(attempt, values)
    new.may_change_facilitator = earlier is None
    return new


def _require_presentable(attempt: ClaimAttempt, row: ResultRow, *, is_same: bool) -> None:
    """Raise the error of a refused or unused payment that is not submitted, or not now.

    `is_same` is False for another payment with the same idempotency key.
    """
    payment = attempt.payment
    if _may_be_sent(row) and (payment.rejection or not is_same):
        raise _maybe_sent_error(row, attempt.now)
    if payment.rejection and is_same:
        advised = payment.rejection.payment.retry if payment.rejection.payment else "new_payment"
        payment.rejection.payment = dataclasses.replace(_build_note(row), retry=advised)
    raise_if_rejected(payment)
    if is_same and row["refunded"]:  # refused here, received and refunded
        raise _expired_redemption_error(payment, row)
    if is_same and _is_refused_while_waiting(attempt, row):
        # submitting it once more could settle it after a buyer was asked for a new signature
        raise build_refusal_error(payment.key, row["reason"])


def _is_to_be_found_out(attempt: ClaimAttempt, row: ResultRow) -> bool:
    """Return True for an expired, unused payment that one of two facilitators may have sent all the same.

    A buyer who is told that it was not used signs another payment, and would pay twice. The same happens if
    another payment with the same idempotency key took its place.
    """
    rejection = attempt.payment.rejection
    if queries.key_of(row) == attempt.payment.key:
        has_expired = rejection is not None and rejection.reason == EXPIRED_REASON
    else:
        has_expired = rejection is None and row["valid_before"] <= attempt.now
    return has_expired and _may_be_sent(row)


def _may_be_sent(row: ResultRow) -> bool:
    """Return True if a facilitator may have sent an unused payment; not if it was received and refunded."""
    return queries.may_be_sent(row) and not row["refunded"]


def _preferred_facilitator(attempt: ClaimAttempt) -> str | None:
    return attempt.facilitators.preferred if attempt.facilitators else None


def _earlier_facilitator(attempt: ClaimAttempt, row: ResultRow) -> str | None:
    """Return the facilitator that has answered for a payment that moved no money, None if there is none.

    A refusal holds for both: what one facilitator refused is not tried at the other one. It ends with the
    configuration of that facilitator.
    """
    names = attempt.facilitators.names if attempt.facilitators else ()
    earlier = row["facilitator"]
    if earlier is None and row["state"] == "refused" and names:
        earlier = names[0]  # the row is older than the column
    return earlier if earlier in names else None


def _is_refused_while_waiting(attempt: ClaimAttempt, row: ResultRow) -> bool:
    """Return True if another process has just returned the refusal of the same payment."""
    since = attempt.waiting_since
    return since is not None and row["state"] == "refused" and row["updated_at"] >= since


def _maybe_sent_error(row: ResultRow, now: float) -> ProviderError:
    """Return the error for a payment that may have been sent, and cannot be submitted for this request.

    Neither 402 nor "unused", at which a buyer signs another one: its outcome is found out after its end.
    """
    return ProviderError(
        FACILITATOR_NAME,
        "the facilitator took no more payments, but may have sent this one: whether it moved is not known "
        "before it expires; send the same payment again then",
        payment=UNKNOWN_RESEND,
        retry_after=max(1, ceil(row["valid_before"] - now)),
    )


def _first_submission_values(attempt: ClaimAttempt, row: ResultRow) -> dict[str, Any]:
    """Return the column values that survive from an earlier submission without an outcome.

    After a refusal the next submission counts as the first: a transfer before it does not pay for it. Its
    block is never lower than the earlier one, even if no node returns the newest block at the moment.
    """
    if row["state"] == "refused":
        blocks = [block for block in (row["claim_block"], attempt.claim_block) if block is not None]
        return {"claim_block": max(blocks, default=None)}
    return {name: row[name] for name in ("created_at", "claim_block", "presentations")}


def _replay_answer(attempt: ClaimAttempt, row: ResultRow) -> UnitOfWork[Claim]:
    stored = yield from queries.find_answer(queries.key_of(row))
    if stored is None:
        raise _expired_redemption_error(attempt.payment, row)
    answer = StoredAnswer(
        stored["status"],
        stored["body"],
        stored["request_id"],
        stored["receipt"],
        transaction=row["transaction"],
        settled_at=row["settled_at"],
        replayed=True,
    )
    return _build_claim(row, attempt.worker, answer)


def _build_new_claim(attempt: ClaimAttempt, row: Mapping[str, Any] | ResultRow) -> Claim:
    """Build the claim of a payment that is submitted as if for the first time, from the row it just got."""
    payment = attempt.payment
    return Claim(
        payment.key,
        attempt.worker,
        "settling",
        outcome_unknown=False,
        presented_at=row["created_at"],
        valid_before=payment.valid_before,
        claim_block=row["claim_block"],
        service=attempt.binding.service,
        amount=payment.terms.amount,
        pay_to=payment.terms.pay_to.lower(),
        resubmission_json=payment.resubmission_json,
        presentations=row["presentations"],
        facilitator=row["facilitator"],
    )


def _build_claim(row: ResultRow, worker: Worker, answer: StoredAnswer | None = None) -> Claim:
    """Build a claim that continues the work recorded in a row."""
    return Claim(
        queries.key_of(row),
        worker,
        row["state"],
        outcome_unknown=row["state"] == "settling",
        presented_at=row["created_at"],
        valid_before=row["valid_before"],
        service=row["service"],
        amount=int(row["amount"]),
        pay_to=row["pay_to"],
        resubmission_json=row["signed"],
        claim_block=row["claim_block"],
        presentations=row["presentations"],
        facilitator=row["facilitator"],
        transaction=row["transaction"],
        settled_at=row["settled_at"],
        attempts=row["attempts"],
        answer=answer,
    )


def _new_row_values(attempt: ClaimAttempt) -> dict[str, Any]:
    payment = attempt.payment
    return {
        "state": "settling",
        "owner": attempt.worker.name,
        "binding": attempt.binding.digest,
        "service": attempt.binding.service,
        "identifier": payment.identifier if payment.is_signer_verified else None,
        "proof": payment.signature_digest,
        "signer_known": int(payment.is_signer_verified),
        "amount": str(payment.terms.amount),
        "pay_to": payment.terms.pay_to.lower(),
        "valid_before": payment.valid_before,
        "transaction": None,
        "reason": None,
        "created_at": attempt.now,
        "updated_at": attempt.now,
        "signed": payment.resubmission_json,
        "attempts": 0,
        "retry_at": None,
        "settled_at": None,
        "request_id": None,
        "status": None,
        "claim_block": attempt.claim_block,
        "presentations": 1,
        "facilitator": _preferred_facilitator(attempt),
        "open_cause": None,
    }


def _find_by_identifier(payment: Payment) -> UnitOfWork[ResultRow | None]:
    """Find the payer's payment under the same idempotency key; None unless the signer is verified."""
    if payment.identifier is None or not payment.is_signer_verified:
        return None
    return (yield from queries.find_by_identifier(payment.key.payer, payment.identifier))


def _is_same_buyer(row: ResultRow, payment: Payment) -> bool:
    """Return True if the sender is the payment's buyer: verified signer, or the same signature."""
    return payment.is_signer_verified or row["proof"] == payment.signature_digest


def _is_same_transfer(row: ResultRow, payment: Payment) -> bool:
    """Return True if recipient and amount equal those first submitted under the payment's nonce."""
    submitted = (payment.terms.pay_to.lower(), str(payment.terms.amount))
    return queries.key_of(row) != payment.key or (row["pay_to"], row["amount"]) == submitted


def _build_note(row: ResultRow) -> PaymentNote:
    return build_note(row["state"], row["transaction"], is_used=bool(row["refunded"]))


def build_note(state: RowState, transaction: str | None, *, is_used: bool = False) -> PaymentNote:
    """Build the buyer's note on a payment from its state in the journal.

    `is_used` is True if this payment gets no answer any more: it was refunded, it can no longer be redeemed,
    its answer is no longer stored, or it was made for another request. Only a new one gets an answer then,
    which the 402 for it asks for.
    """
    if is_used:
        return dataclasses.replace(build_note(state, transaction), retry="new_payment")
    match state:
        case "settling":
            return PaymentNote("in_flight", charged=False, retry="same_payment", transaction=transaction)
        case "settled":
            return PaymentNote("settled", charged=True, retry="same_payment", transaction=transaction)
        case "delivered":
            return PaymentNote("delivered", charged=True, retry="same_payment", transaction=transaction)
        case "unused":
            return UNCHARGED_RESEND
        case _:
            return PaymentNote("refused", charged=False, retry="new_payment")


def _other_request_error(payment: Payment, row: ResultRow) -> CentgateError:
    if queries.key_of(row) != payment.key:
        return _idempotency_conflict(
            "the idempotency key was already used for another request; use another key"
        )
    return _already_used_error("the payment was already used for another request", row)


def _expired_redemption_error(payment: Payment, row: ResultRow) -> CentgateError:
    if queries.key_of(row) != payment.key:
        return _idempotency_conflict(
            "the idempotency key belongs to a payment that was used; use another key"
        )
    if row["refunded"]:
        return _already_used_error("the payment was refunded and cannot be used any more", row)
    if row["state"] == "settled":
        message = "the payment was settled, but not answered in time: the operator owes the amount back"
        return _already_used_error(message, row)
    return _already_used_error("the payment was used, and its answer is no longer stored", row)


def _test_network_error(payment: Payment, row: ResultRow) -> CentgateError:
    """Return the error for test money where real money is required, and the reverse.

    Delivered answers are replayed all the same; only what would run the service is refused.
    """
    if queries.key_of(row) != payment.key or payment.rejection is None:
        return _idempotency_conflict(
            "the idempotency key belongs to a payment on another network; use another key"
        )
    payment.rejection.payment = dataclasses.replace(_build_note(row), retry="new_payment")
    return payment.rejection


def _idempotency_conflict(message: str) -> PaymentConflict:
    """Return a conflict over an idempotency key; the payment itself is untouched."""
    return PaymentConflict(message, payment=UNCHARGED_RESEND)


def _already_used_error(message: str, row: ResultRow) -> PaymentRequired:
    note = build_note(row["state"], row["transaction"], is_used=True)
    return PaymentRequired(message, reason="payment_already_used", payment=note)


class ClaimLost(InternalError):
    """Another process considered this one dead and processes the payment now."""

    def __init__(self) -> None:
        super().__init__("another server is processing the payment; send it again", retry_after=1)
