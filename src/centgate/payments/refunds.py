"""What was paid back: money that was taken for an answer which can no longer be given."""

from __future__ import annotations

from functools import partial

from centgate.payments import queries
from centgate.payments.authorization import PaymentKey
from centgate.payments.claiming import free
from centgate.payments.statements import Asking
from centgate.payments.store import Store
from centgate.payments.worker import Worker, new_worker


async def enter_refund(store: Store, key: PaymentKey, transaction: str, *, lapsed: float, now: float) -> bool:
    """Enter that a payment was paid back in a transaction: from then on it buys nothing.

    False, and nothing entered, unless it was settled before `lapsed` and nobody works on it.
    """
    return await store.run(partial(_enter, key, new_worker(), transaction, lapsed, now))


def _enter(key: PaymentKey, worker: Worker, transaction: str, lapsed: float, now: float) -> Asking[bool]:
    row = yield from queries.find(key)
    if row is None or row["state"] != "settled" or row["updated_at"] >= lapsed:
        return False
    if row["refunded"]:
        return row["owner"] == worker.name  # it was us, and could not be heard
    if not (yield from free(row["owner"], worker)):
        return False
    return (yield from queries.enter_refund(row, worker.name, transaction, now))
