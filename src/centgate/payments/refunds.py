"""Recording of refunds: payments whose answer can no longer be delivered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from centgate.payments import queries
from centgate.payments.authorization import PaymentKey
from centgate.payments.claims import is_unclaimed
from centgate.payments.sql import ResultRow, UnitOfWork
from centgate.payments.store import Store
from centgate.payments.worker_id import Worker, create_worker


@dataclass(frozen=True, slots=True)
class Refund:
    """A transaction that refunded a payment."""

    transaction: str
    at: float
    """Time of recording, in seconds since 1970."""
    reason: str | None = None
    """`unchecked` if it was not checked on the chain."""


async def record_refund(
    store: Store, key: PaymentKey, refund: Refund, *, redeem_cutoff: float, was_received: bool = False
) -> bool:
    """Record the refund of a payment; from then on it cannot be used.

    Returns False without a change unless it was settled before the cutoff and no worker has it. A refused
    payment can be recorded if the chain shows that its money was received all the same.
    """
    return await store.run(partial(_record_refund, key, create_worker(), refund, redeem_cutoff, was_received))


def _record_refund(
    key: PaymentKey,
    worker: Worker,
    refund: Refund,
    redeem_cutoff: float,
    was_received: bool,  # noqa: FBT001 - as above
) -> UnitOfWork[bool]:
    row = yield from queries.find_payment(key)
    if row is None or not _is_refundable(row, redeem_cutoff, was_received=was_received):
        return False
    if row["refunded"]:
        if row["owner"] != worker.name:  # else an earlier try of this unit recorded it
            return False
    elif not (yield from is_unclaimed(row["owner"], worker)) or not (
        yield from queries.record_refund(row, worker.name, refund.transaction, refund.at)
    ):
        return False
    yield from queries.record_refund_event(key, refund.transaction, refund.at, refund.reason)
    return True


def _is_refundable(row: ResultRow, redeem_cutoff: float, *, was_received: bool) -> bool:
    if row["state"] == "settled":
        return row["updated_at"] < redeem_cutoff
    return was_received and row["state"] in ("refused", "unused")
