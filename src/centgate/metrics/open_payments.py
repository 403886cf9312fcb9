"""What is open in the journal, and what the last audit found, asked of its database when metrics are read."""

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
from centgate.payments.audit import KINDS
from centgate.payments.audit_queries import LastAudit, last_audit
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
        self._audit: LastAudit | None = None

    async def ask(self) -> None:
        """Ask the database; what it does not answer in time it does not answer."""
        unit = partial(_read, self._keep)
        try:
            async with asyncio.timeout(PATIENCE):
                self._found, self._audit = await self._store.read(unit)
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
        yield from _audit_metrics(self._audit)


def _read(keep: float) -> Asking[tuple[dict[str, Open], LastAudit | None]]:
    found = yield from count(keep)
    return found, (yield from last_audit())


def _audit_metrics(audit: LastAudit | None) -> Iterable[Metric]:
    findings = gauge(declared.AUDIT_FINDINGS)
    for kind in KINDS if audit else ():
        findings.add_metric([kind], audit.findings.get(kind, 0) if audit else 0)
    yield findings
    yield gauge(declared.AUDITED_AT, audit and audit.completed_at)
