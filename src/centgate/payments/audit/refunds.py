"""Recording of refunds: payments whose answer can no longer be delivered."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct

from centgate.payments.database.sql import ResultRow, UnitOfWork
from centgate.payments.database.store import Store
from centgate.payments.journal import queries
from centgate.payments.journal.claims import is_unclaimed
from centgate.payments.journal.webhook_events import EventBuilder, EventPayment
from centgate.payments.payment_key import PaymentKey
from centgate.payments.worker_id import Worker, create_worker


class Refund(Struct, frozen=True):
    """A transaction that refunded a payment."""

    transaction: str
    at: float
    """Time of recording, in seconds since 1970."""
    moved_amount: int | None = None
    """Amount that the transaction moved to the payer, in base units; None if it was not checked."""

    @property
    def reason(self) -> str | None:
        """Reason in the payment's history."""
        return "unchecked" if self.moved_amount is None else None


async def record_refund(
    store: Store,
    key: PaymentKey,
    refund: Refund,
    *,
    redeem_cutoff: float,
    was_received: bool = False,
    events: EventBuilder | None = None,
) -> bool:
    """Record the refund of a payment; from then on it cannot be used. `events` writes its webhook.

    Returns False without a change unless the payment was settled before the cutoff, no worker has it, and the
    transaction's amount covers it in addition to the refunds already recorded. A refused payment can be
    recorded if the chain shows that its money was received all the same.
    """
    unit = partial(
        _record_refund,
        key,
        create_worker(),
        refund,
        redeem_cutoff=redeem_cutoff,
        was_received=was_received,
        events=events,
    )
    return await store.run_serializable(unit)


def _record_refund(
    key: PaymentKey,
    worker: Worker,
    refund: Refund,
    *,
    redeem_cutoff: float,
    was_received: bool,
    events: EventBuilder | None,
) -> UnitOfWork[bool]:
    row = yield from queries.find_payment(key)
    if row is None or not _is_refundable(row, redeem_cutoff, was_received=was_received):
        return False
    if row["refunded"]:
        is_recorded = row["owner"] == worker.name  # by an earlier try of this unit
    else:
        is_recorded = yield from _insert_refund(row, worker, refund, events)
    if is_recorded:
        yield from queries.append_refund_entry(key, refund.transaction, refund.at, refund.reason)
    return is_recorded


def _insert_refund(
    row: ResultRow, worker: Worker, refund: Refund, events: EventBuilder | None
) -> UnitOfWork[bool]:
    """Insert the refund of a payment; False if another worker has it, or the amount does not cover it."""
    if not (yield from is_unclaimed(row["owner"], worker)) or not (yield from _covers(refund, row)):
        return False
    webhook_row = _build_webhook_row(row, refund, events)
    return (
        yield from queries.record_refund(
            row, worker.name, refund.transaction, refund.at, webhook_row=webhook_row
        )
    )


def _covers(refund: Refund, row: ResultRow) -> UnitOfWork[bool]:
    """Return True if the amount of a refund's transaction covers one more payment, or was not checked."""
    if refund.moved_amount is None:
        return True
    refunded_amount = yield from queries.sum_refunds(queries.key_of(row), refund.transaction)
    return refund.moved_amount - refunded_amount >= int(row["amount"])


def _build_webhook_row(row: ResultRow, refund: Refund, events: EventBuilder | None) -> dict[str, Any] | None:
    """Return the row of the webhook of a refund, None without a receiver."""
    if events is None:
        return None
    payment = EventPayment(
        queries.key_of(row),
        "refunded",
        service=row["service"],
        amount=int(row["amount"]),
        pay_to=row["pay_to"],
        presented_at=row["created_at"],
        transaction=row["transaction"],
        refund=refund.transaction,
        refund_checked=refund.moved_amount is not None,
    )
    return events.build_row("payment.refunded", payment, refund.at)


def _is_refundable(row: ResultRow, redeem_cutoff: float, *, was_received: bool) -> bool:
    if row["state"] == "settled":
        return row["updated_at"] < redeem_cutoff
    return was_received and row["state"] in ("refused", "unused")
