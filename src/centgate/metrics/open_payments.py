"""What is open in the journal, asked of its database when metrics are read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import String, func, literal_column, select, union_all
from sqlalchemy.sql.elements import ColumnElement

from centgate.errors import CentgateError
from centgate.metrics import declared
from centgate.metrics.families import gauge
from centgate.payments.statements import Ask, Asking, Row, ago, now, statement
from centgate.payments.store import Store
from centgate.payments.tables import UNDELIVERED, payments

PATIENCE = 3.0
"""Seconds that the database has to answer, fewer than Prometheus waits for all."""


def _word(word: str) -> ColumnElement[str]:
    return literal_column(f"'{word}'", String)


_COUNT = statement(
    union_all(
        select(
            _word("settling").label("state"),
            func.count().label("number"),
            func.min(payments.c.created_at).label("oldest"),
            now().label("now"),
        ).where(UNDELIVERED, payments.c.state == _word("settling")),
        select(_word("redeemable"), func.count(), func.min(payments.c.updated_at), now()).where(
            UNDELIVERED,
            payments.c.state == _word("settled"),
            payments.c.updated_at >= ago("keep"),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Open:
    """Payments in one state, and how many seconds ago the oldest came there."""

    number: int
    age: float


def count(keep: float) -> Asking[dict[str, Open]]:
    """Open payments: `settling`, and `redeemable` as far as they were settled in the last `keep` seconds."""
    rows = yield Ask(_COUNT, {"keep": keep})
    return {row["state"]: Open(row["number"], _age(row)) for row in rows}


def _age(row: Row) -> float:
    """Seconds since the oldest payment of a row came to its state; 0 without one."""
    return max(0.0, row["now"] - (row["oldest"] or row["now"]))


class OpenPayments(Collector):
    """Shows what the database said when it was last asked."""

    def __init__(self, store: Store, *, keep_seconds: float) -> None:
        """`keep_seconds`: how long a payment can be redeemed."""
        self._store = store
        self._keep = keep_seconds
        self._found: dict[str, Open] | None = None

    async def ask(self) -> None:
        """Ask the database; what it does not answer in time it does not answer."""
        unit = partial(count, self._keep)
        try:
            async with asyncio.timeout(PATIENCE):
                self._found = await self._store.read(unit)
        except (CentgateError, TimeoutError):
            self._found = None

    def collect(self) -> Iterable[Metric]:
        found = self._found
        yield gauge(declared.JOURNAL_UP, int(found is not None))
        if found is None:
            return
        number = gauge(declared.OPEN)
        for state, each in found.items():
            number.add_metric([state], each.number)
        yield number
        yield gauge(declared.OLDEST_UNRESOLVED, found["settling"].age)
        yield gauge(declared.OLDEST_REDEEMABLE, found["redeemable"].age)
