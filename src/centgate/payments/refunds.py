"""What was paid back: money that was taken for an answer which can no longer be given."""

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
    """A transaction by which a payment was paid back."""

    transaction: str
    at: float
    """When it is entered."""
    reason: str | None = None
    """`unchecked` where it was not looked up on the chain."""


async def enter_refund(
    store: Store, key: PaymentKey, refund: Refund, *, lapsed: float, was_taken: bool = False
) -> bool:
    """Enter that a payment was paid back in a transaction: from then on it buys nothing.

    False, and nothing entered, unless it was settled before `lapsed` and nobody works on it. One that was
    refused here can be entered if `was_taken`: the chain shows that its money came all the same.
    """
    return await store.run(partial(_enter, key, new_worker(), refund, lapsed, was_taken))


def _enter(
    key: PaymentKey,
    worker: Worker,
    refund: Refund,
    lapsed: float,
    was_taken: bool,  # noqa: FBT001 - as above
) -> Asking[bool]:
    row = yield from queries.find(key)
    if row is None or not _is_owed(row, lapsed, was_taken=was_taken):
        return False
    if row["refunded"]:
        if row["owner"] != worker.name:  # else it was us, and could not be heard
            return False
    elif not (yield from free(row["owner"], worker)) or not (
        yield from queries.enter_refund(row, worker.name, refund.transaction, refund.at)
    ):
        return False
    yield from queries.enter_refund_event(key, refund.transaction, refund.at, refund.reason)
    return True


def _is_owed(row: Row, lapsed: float, *, was_taken: bool) -> bool:
    if row["state"] == "settled":
        return row["updated_at"] < lapsed
    return was_taken and row["state"] in ("refused", "unused")
