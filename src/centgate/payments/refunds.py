"""Recording of refunds: payments whose answer can no longer be delivered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from centgate.payments import queries
from centgate.payments.authorization import PaymentKey
from centgate.payments.claiming import free
from centgate.payments.statements import Asking, Row
from centgate.payments.store import Store
from centgate.payments.worker import Worker, new_worker


@dataclass(frozen=True, slots=True)
class Refund:
    """A transaction that refunded a payment."""

    transaction: str
    at: float
    """Time of recording, in seconds since 1970."""
    reason: str | None = None
    """`unchecked` if it was not checked on the chain."""


async def enter_refund(
    store: Store, key: PaymentKey, refund: Refund, *, lapsed: float, was_taken: bool = False
) -> bool:
    """Record the refund of a payment; from then on it cannot be used.

    Returns False without a change unless it was settled before the cutoff and no worker has it. A refused
    payment can be recorded if the chain shows that its money was received all the same.
    """
    return await store.run(partial(_record_refund, key, new_worker(), refund, lapsed, was_taken))


def _record_refund(
    key: PaymentKey,
    worker: Worker,
    refund: Refund,
    lapsed: float,
    was_taken: bool,  # noqa: FBT001 - as above
) -> Asking[bool]:
    row = yield from queries.find(key)
    if row is None or not _is_refundable(row, lapsed, was_taken=was_taken):
        return False
    if row["refunded"]:
        if row["owner"] != worker.name:  # else an earlier try of this unit recorded it
            return False
    elif not (yield from free(row["owner"], worker)) or not (
        yield from queries.enter_refund(row, worker.name, refund.transaction, refund.at)
    ):
        return False
    yield from queries.enter_refund_event(key, refund.transaction, refund.at, refund.reason)
    return True


def _is_refundable(row: Row, lapsed: float, *, was_taken: bool) -> bool:
    if row["state"] == "settled":
        return row["updated_at"] < lapsed
    return was_taken and row["state"] in ("refused", "unused")
