"""Collector of unfinished payments, unsent webhooks and the last audit's findings, read at each scrape."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from msgspec import Struct
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import String, func, literal_column, select, union_all
from sqlalchemy.sql.elements import ColumnElement

from centgate.errors import CentgateError
from centgate.metrics import definitions
from centgate.metrics.families import create_gauge
from centgate.payments.audit.audit import FINDING_KINDS
from centgate.payments.audit.audit_queries import LastAudit, find_last_audit
from centgate.payments.database.sql import (
    BoundStatement,
    ResultRow,
    UnitOfWork,
    compile_statement,
    now,
    seconds_ago,
)
from centgate.payments.database.store import Store
from centgate.payments.database.tables import UNDELIVERED, is_state, payments
from centgate.payments.journal.process_queries import read_time
from centgate.payments.journal.queries import CheckedPayments, count_checked_payments
from centgate.payments.journal.webhook_outbox import OutboxSummary, summarize_outbox

QUERY_TIMEOUT = 3.0
"""Timeout of the database query in seconds, less than Prometheus' scrape timeout."""


def _literal(word: str) -> ColumnElement[str]:
    return literal_column(f"'{word}'", String)


_COUNT = compile_statement(
    union_all(
        select(
            _literal("settling").label("state"),
            func.count().label("number"),
            func.min(payments.c.created_at).label("oldest"),
            now().label("now"),
        ).where(UNDELIVERED, is_state("settling")),
        select(_literal("redeemable"), func.count(), func.min(payments.c.updated_at), now()).where(
            UNDELIVERED,
            is_state("settled"),
            payments.c.updated_at >= seconds_ago("keep"),
        ),
    )
)


class UnfinishedCount(Struct, frozen=True):
    """Number of payments in one state, and the age of the oldest in that state in seconds."""

    number: int
    age: float


def count_unfinished(keep: float) -> UnitOfWork[dict[str, UnfinishedCount]]:
    """Count payments in `settling`, and the `redeemable` ones: settled in the last `keep` seconds."""
    rows = yield BoundStatement(_COUNT, {"keep": keep})
    return {row["state"]: UnfinishedCount(row["number"], _age(row)) for row in rows}


def _age(row: ResultRow) -> float:
    """Return the seconds since the oldest payment of a row entered its state; 0 without one."""
    return max(0.0, row["now"] - (row["oldest"] or row["now"]))


class UnfinishedPaymentsCollector(Collector):
    """Publishes the results of the last database query."""

    def __init__(self, store: Store, *, keep_seconds: float) -> None:
        """`keep_seconds`: time in which a settled payment can be redeemed."""
        self._store = store
        self._keep = keep_seconds
        self._counts: dict[str, UnfinishedCount] | None = None
        self._audit: LastAudit | None = None
        self._checked: CheckedPayments | None = None
        self._outbox = OutboxSummary()
        self._read_at = 0.0
        """Time of the last query by the database's clock, in seconds since 1970."""

    async def refresh(self) -> None:
        """Query the database; a timeout counts as unavailable."""
        unit = partial(_read_metrics, self._keep)
        try:
            async with asyncio.timeout(QUERY_TIMEOUT):
                found = await self._store.read(unit)
            self._counts, self._checked, self._audit, self._outbox, self._read_at = found
        except (CentgateError, TimeoutError):
            self._counts = None

    def collect(self) -> Iterable[Metric]:
        found = self._counts
        yield create_gauge(definitions.JOURNAL_UP, int(found is not None))
        if found is None:
            return
        number = create_gauge(definitions.OPEN_PAYMENTS)
        for state, each in found.items():
            number.add_metric([state], each.number)
        yield number
        by_cause = create_gauge(definitions.OPEN_BY_CAUSE)
        for cause, still_open in self._checked.by_cause.items() if self._checked else ():
            by_cause.add_metric([cause], still_open)
        yield by_cause
        yield create_gauge(definitions.OLDEST_UNRESOLVED, found["settling"].age)
        yield create_gauge(definitions.OLDEST_REDEEMABLE, found["redeemable"].age)
        yield from _audit_metrics(self._audit)
        yield from _webhook_metrics(self._outbox, self._read_at)


def _read_metrics(
    keep: float,
) -> UnitOfWork[tuple[dict[str, UnfinishedCount], CheckedPayments, LastAudit | None, OutboxSummary, float]]:
    found = yield from count_unfinished(keep)
    checked = yield from count_checked_payments()
    audit = yield from find_last_audit()
    outbox = yield from summarize_outbox()
    return found, checked, audit, outbox, (yield from read_time()) or 0.0


def _webhook_metrics(outbox: OutboxSummary, read_at: float) -> Iterable[Metric]:
    number = create_gauge(definitions.WEBHOOK_EVENTS)
    number.add_metric(["pending"], outbox.pending)
    number.add_metric(["failed"], outbox.failed)
    yield number
    age = 0.0 if outbox.oldest is None else max(0.0, read_at - outbox.oldest)
    yield create_gauge(definitions.OLDEST_WEBHOOK, age)


def _audit_metrics(audit: LastAudit | None) -> Iterable[Metric]:
    findings = create_gauge(definitions.AUDIT_FINDINGS)
    for kind in FINDING_KINDS if audit else ():
        findings.add_metric([kind], audit.findings.get(kind, 0) if audit else 0)
    yield findings
    yield create_gauge(definitions.AUDITED_AT, audit and audit.completed_at)
