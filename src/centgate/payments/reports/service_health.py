"""Outcomes of services' calls in the journal's database: small mergeable counts per service and period.

Each process writes rows of its own, with the totals that it has counted. So a write can be repeated without
counting twice, and servers never wait for each other's rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, cast

import orjson
from msgspec import Struct, field
from sqlalchemy import BigInteger, Float, Integer, String, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from centgate.payments.database.sql import (
    AFFECTED_ROW,
    BoundStatement,
    ResultRow,
    UnitOfWork,
    compile_statement,
)
from centgate.payments.database.tables import service_health

RETENTION = {300: 2 * 3600, 3600: 26 * 3600, 86400: 91 * 86400}
"""Seconds for which the rows of each period are kept, by the length of the period in seconds."""
BUCKET_RATIO = 1.15
"""Ratio of the upper bounds of neighbouring latency buckets: a percentile is exact within 7 percent."""
MAX_BUCKET = 90
"""Last latency bucket: all answers above about five minutes."""

_COUNTS = ("answered", "failed", "refused", "outage_seconds")
_TIMES = ("answered_at", "failed_at", "refused_at", "outage_at")


class HealthKey(Struct, frozen=True):
    """A service and a period of time."""

    service: str
    period: int
    """Length in seconds."""
    start: int
    """Seconds since 1970."""


class HealthCounts(Struct):
    """Outcomes of the calls of one service in one period; times are in seconds since 1970."""

    answered: int = 0
    failed: int = 0
    refused: int = 0
    """Requests refused before payment, because no source could answer."""
    answered_at: float | None = None
    failed_at: float | None = None
    refused_at: float | None = None
    outage_seconds: float = 0.0
    """Seconds in which the circuit breakers of all sources were open."""
    outage_at: float | None = None
    """Time when that was last seen."""
    latency: Counter[int] = field(default_factory=Counter[int])
    """Answers by latency bucket."""

    @property
    def attempts(self) -> int:
        """Number of calls that were answered, failed or were refused for lack of a source."""
        return self.answered + self.failed + self.refused

    @property
    def is_empty(self) -> bool:
        return not self.attempts and not self.outage_seconds

    @property
    def success_share(self) -> float | None:
        """Share of answered calls from 0 to 1; None without calls."""
        return round(self.answered / self.attempts, 4) if self.attempts else None

    def add(self, other: HealthCounts) -> None:
        """Add the counts of another period or process."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _TIMES:
            times = [each for each in (getattr(self, name), getattr(other, name)) if each is not None]
            setattr(self, name, max(times, default=None))
        self.latency.update(other.latency)

    def percentile_ms(self, share: float) -> int | None:
        """Return the latency in milliseconds that a share of the answers did not exceed; None without any."""
        rank, seen = share * self.latency.total(), 0
        for bucket in sorted(self.latency):
            seen += self.latency[bucket]
            if seen >= rank:
                return round(BUCKET_RATIO ** (bucket - 0.5)) or 1
        return None


def find_bucket(seconds: float) -> int:
    """Return the number of the latency bucket of an answer: the powers of `BUCKET_RATIO` in milliseconds."""
    return min(MAX_BUCKET, math.ceil(math.log(max(1.0, seconds * 1000), BUCKET_RATIO)))


def merge_counts(counts: Iterable[HealthCounts]) -> HealthCounts:
    """Return the sum of counts."""
    total = HealthCounts()
    for each in counts:
        total.add(each)
    return total


_TYPES = {
    "start": BigInteger,
    **dict.fromkeys(("period", "answered", "failed", "refused"), Integer),
    **dict.fromkeys((*_TIMES, "outage_seconds"), Float),
}
_KEY = ("service", "period", "start", "process")
_VALUES = (*_COUNTS, *_TIMES, "latency")
_NEW = insert(service_health).values(
    {name: bindparam(name, type_=cast(Any, _TYPES.get(name, String))) for name in (*_KEY, *_VALUES)}
)
_STORE = compile_statement(
    _NEW.on_conflict_do_update(
        index_elements=[service_health.c[name] for name in _KEY],
        set_={name: _NEW.excluded[name] for name in _VALUES},
    ).returning(AFFECTED_ROW)
)
_FIND = compile_statement(
    select(service_health).where(
        service_health.c.period == bindparam("period", type_=Integer),
        service_health.c.start > bindparam("since", type_=BigInteger),
    )
)
_PRUNE = compile_statement(
    delete(service_health)
    .where(
        service_health.c.period == bindparam("period", type_=Integer),
        service_health.c.start < bindparam("before", type_=BigInteger),
    )
    .returning(AFFECTED_ROW)
)


def store_counts(
    process: str, changed: Collection[tuple[HealthKey, HealthCounts]], now: float
) -> UnitOfWork[None]:
    """Store the totals of a process, and delete the rows that are too old."""
    for key, counts in changed:
        yield BoundStatement(_STORE, _row_parameters(process, key, counts))
    for period, seconds in RETENTION.items():
        yield BoundStatement(_PRUNE, {"period": period, "before": int(now - seconds - period)})


def _row_parameters(process: str, key: HealthKey, counts: HealthCounts) -> dict[str, Any]:
    values = {name: getattr(counts, name) for name in (*_COUNTS, *_TIMES)}
    latency = orjson.dumps({str(bucket): number for bucket, number in counts.latency.items()}).decode()
    place = {"service": key.service, "period": key.period, "start": key.start, "process": process}
    return {**place, **values, "latency": latency}


def list_rows(period: int, since: float) -> UnitOfWork[list[ResultRow]]:
    """Return the rows of all processes for the periods of one length that start after a time."""
    return (yield BoundStatement(_FIND, {"period": period, "since": int(since)}))


def merge_rows(rows: list[ResultRow]) -> dict[HealthKey, HealthCounts]:
    """Return the counts of all processes, added up by service and period; `rows` is empty afterwards.

    Freeing a hundred thousand rows takes as long as many payments. So they are freed here, in the thread that
    merges them, and not by the event loop that has read them.
    """
    merged: dict[HealthKey, HealthCounts] = {}
    while rows:
        row = rows.pop()
        key, counts = HealthKey(row["service"], row["period"], row["start"]), _parse_counts(row)
        if key in merged:
            merged[key].add(counts)
        else:
            merged[key] = counts
    return merged


def _parse_counts(row: ResultRow) -> HealthCounts:
    values = {name: row[name] for name in (*_COUNTS, *_TIMES)}
    latency = cast(dict[str, int], orjson.loads(row["latency"]))
    return HealthCounts(**values, latency=Counter({int(key): value for key, value in latency.items()}))
