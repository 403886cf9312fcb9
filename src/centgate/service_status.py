"""Public status of the services: counted from real calls, shared through the journal's database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import orjson

from centgate.client.status_report import StatusWord
from centgate.errors import CentgateError, InternalError, NoData, PageUnread, ProviderFailure
from centgate.payments.database.store import Store
from centgate.payments.heartbeat import run_repeatedly
from centgate.payments.journal.journal import Journal
from centgate.payments.reports.service_health import (
    RETENTION,
    HealthCounts,
    HealthKey,
    find_bucket,
    list_rows,
    merge_counts,
    merge_rows,
    store_counts,
)
from centgate.provider import Provider
from centgate.service import AnyService
from centgate.timestamps import format_unix_time

STORE_INTERVAL = 10.0
"""Seconds between two writes of the counts."""
REPORT_TTL = 5.0
"""Seconds for which a report is sent again."""
CURRENT_SECONDS = 3600.0
"""Age of the newest call above which the state of a service is unknown."""
RECENT_SECONDS = 900
"""Seconds in which failures beside answers count as degradation."""
DAY = 86400
"""Seconds."""
DAYS = 90
"""Days of the daily states, today included."""
OUTAGE_FAILURES = 3
"""Unanswered calls without one answer that are an outage even if the circuit breakers are closed."""
DEGRADED_SHARE = 0.05
"""Share of unanswered calls from which a service is degraded."""
FINAL_STORE_TIMEOUT = 1.0
"""Seconds for the last write at the end of a process."""


class StatusRecorder:
    """Counts of this process: added up in memory, stored in the background, never on a request's path."""

    def __init__(
        self,
        catalog: Sequence[AnyService],
        providers: Mapping[str, Mapping[str, Provider]],
        journal: Journal,
        store: Store,
    ) -> None:
        self._catalog = catalog
        self._providers = providers
        self._journal = journal
        self._store = store
        self._pending: dict[str, HealthCounts] = {}
        """Counts by service since the last write."""
        self._totals: dict[HealthKey, HealthCounts] = {}
        """Totals of this process in the periods that are not over."""
        self._unsaved: set[HealthKey] = set()
        self._stored_at = time.monotonic()
        self._report: tuple[float, bytes] | None = None
        self._past_days: tuple[int, dict[HealthKey, HealthCounts]] = (0, {})
        """The start of yesterday, and the counts up to then, which do not change any more."""
        self._lock = asyncio.Lock()

    def record_answer(self, service: str, seconds: float) -> None:
        """Count an answer of the sources, also "no data", that took some seconds."""
        counts = self._pending_counts(service)
        counts.answered += 1
        counts.answered_at = time.monotonic()
        counts.latency[find_bucket(seconds)] += 1

    def record_error(self, service: str, error: Exception, seconds: float) -> None:
        """Count the outcome of a call that raised: "no data" is an answer, a page unread says nothing."""
        if isinstance(error, NoData):
            self.record_answer(service, seconds)
        elif not isinstance(error, CentgateError) or (
            isinstance(error, ProviderFailure | InternalError) and not isinstance(error, PageUnread)
        ):
            counts = self._pending_counts(service)
            counts.failed += 1
            counts.failed_at = time.monotonic()

    def record_refusal(self, service: str) -> None:
        """Count a request that was refused before payment, because no source could answer."""
        counts = self._pending_counts(service)
        counts.refused += 1
        counts.refused_at = time.monotonic()

    def _pending_counts(self, service: str) -> HealthCounts:
        counts = self._pending.get(service)
        if counts is None:
            counts = self._pending[service] = HealthCounts()
        return counts

    @asynccontextmanager
    async def run_in_background(self) -> AsyncGenerator[None]:
        """Store the counts repeatedly while the context is open, and once at its end."""
        task = asyncio.create_task(run_repeatedly(self.store, STORE_INTERVAL))
        try:
            yield
        finally:
            task.cancel()
            with suppress(TimeoutError, CentgateError):
                async with asyncio.timeout(FINAL_STORE_TIMEOUT):
                    await self.store()

    async def store(self) -> None:
        """Store what was counted since the last write. Raises JournalUnavailable; nothing is lost then."""
        now = await self._journal.now()
        async with self._lock:
            self._observe_outages()
            self._add_pending(now)
            changed = [(key, self._totals[key]) for key in self._unsaved]
            if not changed:
                return
            process = self._journal.worker.process
            await self._store.run(partial(store_counts, process, changed, now))
            self._unsaved.difference_update(key for key, _ in changed)
            self._drop_ended_periods(now)

    def _observe_outages(self) -> None:
        """Add the time since the last write to services whose sources are all known to be down."""
        now = time.monotonic()
        passed, self._stored_at = now - self._stored_at, now
        for service in self._catalog:
            if self._is_down(service):
                counts = self._pending_counts(service.slug)
                counts.outage_seconds += passed
                counts.outage_at = now

    def _add_pending(self, now: float) -> None:
        """Add pending counts to the totals of each current period; their times become the database's."""
        pending, self._pending = self._pending, {}
        offset = now - time.monotonic()
        for slug, counts in pending.items():
            for name in ("answered_at", "failed_at", "refused_at", "outage_at"):
                moment = getattr(counts, name)
                setattr(counts, name, None if moment is None else moment + offset)
            for period in RETENTION:
                key = HealthKey(slug, period, int(now // period) * period)
                self._totals.setdefault(key, HealthCounts()).add(counts)
                self._unsaved.add(key)

    def _drop_ended_periods(self, now: float) -> None:
        for key in [
            key for key in self._totals if key.start + key.period <= now and key not in self._unsaved
        ]:
            del self._totals[key]

    def _is_down(self, service: AnyService) -> bool:
        """Return True if the circuit breakers of all sources are open for the example request."""
        return service.find_outage(service.example_request, self._providers[service.slug]) is not None

    def _is_configured(self, service: AnyService) -> bool:
        providers = self._providers[service.slug]
        return any(providers[source.info.name].is_configured for source in service.leads)

    async def render_report(self) -> bytes:
        """Return the report as JSON, at most `REPORT_TTL` seconds old. Raises JournalUnavailable."""
        if self._report and time.monotonic() - self._report[0] < REPORT_TTL:
            return self._report[1]
        await self.store()
        async with self._lock:
            if self._report and time.monotonic() - self._report[0] < REPORT_TTL:
                return self._report[1]
            now = await self._journal.now()
            rows = await self._read_counts(now)
            content = await asyncio.to_thread(lambda: orjson.dumps(self._build_report(rows, now)))
            self._report = (time.monotonic(), content)
            return content

    async def _read_counts(self, now: float) -> dict[HealthKey, HealthCounts]:
        """Read the counts of every period that is kept; days that are over are read once."""
        yesterday = (int(now // DAY) - 1) * DAY
        if self._past_days[0] != yesterday:
            self._past_days = yesterday, await self._read_period(DAY, now - RETENTION[DAY] - DAY)
        counts = dict(self._past_days[1])
        for period, seconds in RETENTION.items():
            since = yesterday - 1 if period == DAY else now - seconds - period
            counts |= await self._read_period(period, since)
        return counts

    async def _read_period(self, period: int, since: float) -> dict[HealthKey, HealthCounts]:
        """Read the counts of periods that start after a time; they are parsed in a thread."""
        rows = await self._store.read(partial(list_rows, period, since))
        return await asyncio.to_thread(merge_rows, rows)

    def _build_report(self, rows: Mapping[HealthKey, HealthCounts], now: float) -> dict[str, Any]:
        services = [self._describe_service(service, rows, now) for service in self._catalog]
        return {"status": _worst_state(services), "time": _format_time(now), "services": services}

    def _describe_service(
        self, service: AnyService, rows: Mapping[HealthKey, HealthCounts], now: float
    ) -> dict[str, Any]:
        own = {key: counts for key, counts in rows.items() if key.service == service.slug}
        total = merge_counts(counts for key, counts in own.items() if key.period == DAY)
        state = self._find_state(service, own, now)
        return {
            "slug": service.slug,
            "title": service.title,
            "state": state,
            "available": state not in ("outage", "unconfigured"),
            "lastAnswerAt": _format_time(total.answered_at),
            "lastHour": _describe_counts(_sum_since(own, 300, now - 3600)),
            "lastDay": _describe_counts(_sum_since(own, 3600, now - DAY)),
            "days": _describe_days(own, now),
        }

    def _find_state(
        self, service: AnyService, own: Mapping[HealthKey, HealthCounts], now: float
    ) -> StatusWord:
        if not self._is_configured(service):
            return "unconfigured"
        hour = _sum_since(own, 300, now - CURRENT_SECONDS)
        if hour.is_empty:
            return "unknown"
        if is_unanswered(hour, now):
            return "outage"
        return _judge_counts(_sum_since(own, 300, now - RECENT_SECONDS), otherwise=_judge_counts(hour))


def is_unanswered(counts: HealthCounts, now: float) -> bool:
    """Return True if buyers were refused, or sources were seen down, after the last answer."""
    answered_at = counts.answered_at or 0.0
    seen_down = counts.outage_at is not None and counts.outage_at > max(answered_at, now - 3 * STORE_INTERVAL)
    return seen_down or (counts.refused_at or 0.0) > answered_at


def _judge_counts(counts: HealthCounts, *, otherwise: StatusWord = "unknown") -> StatusWord:
    """Return the state that counts show; `otherwise` if there were no calls."""
    if not counts.attempts:
        return "outage" if counts.outage_seconds else otherwise
    unanswered = counts.failed + counts.refused
    if not counts.answered and (unanswered >= OUTAGE_FAILURES or counts.refused):
        return "outage"
    is_degraded = counts.outage_seconds or unanswered >= DEGRADED_SHARE * counts.attempts
    return "degraded" if is_degraded else "operational"


def _sum_since(own: Mapping[HealthKey, HealthCounts], period: int, since: float) -> HealthCounts:
    """Add up the periods of one length that end after a time."""
    return merge_counts(
        counts for key, counts in own.items() if key.period == period and key.start + period > since
    )


def _describe_counts(counts: HealthCounts) -> dict[str, Any]:
    return {
        "calls": counts.attempts,
        "successShare": counts.success_share,
        "p50Ms": counts.percentile_ms(0.5),
        "p95Ms": counts.percentile_ms(0.95),
    }


def _describe_days(own: Mapping[HealthKey, HealthCounts], now: float) -> list[dict[str, Any]]:
    """Return the last days in UTC, oldest first; what was not measured is null."""
    by_start = {key.start: counts for key, counts in own.items() if key.period == DAY}
    today = int(now // DAY) * DAY
    return [
        {"date": _format_time(start)[:10], "state": None, **_describe_day(by_start.get(start))}
        for start in range(today - (DAYS - 1) * DAY, today + 1, DAY)
    ]


def _describe_day(counts: HealthCounts | None) -> dict[str, Any]:
    figures = _describe_counts(counts or HealthCounts())
    if counts is None:
        return {**figures, "outageSeconds": None}
    return {"state": _judge_counts(counts), **figures, "outageSeconds": round(counts.outage_seconds)}


def _worst_state(services: Sequence[Mapping[str, Any]]) -> StatusWord:
    """Return the worst state of the configured services: outage only if none of them answers."""
    states = [each["state"] for each in services if each["state"] != "unconfigured"]
    if not states:
        return "unconfigured"
    if all(state == "outage" for state in states):
        return "outage"
    if "outage" in states or "degraded" in states:
        return "degraded"
    return "operational" if "operational" in states else "unknown"


def _format_time(moment: float | None) -> Any:
    return None if moment is None else format_unix_time(moment)
