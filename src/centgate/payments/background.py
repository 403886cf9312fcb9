"""Background work of one elected process: reconcile open payments, audit, prune, send alerts and webhooks.

If the leader stops, another process takes over within seconds. Nothing relies on a single leader: each
payment is claimed as for a buyer's request.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress

import aiohttp
import structlog

from centgate.errors import CentgateError
from centgate.payments.audit.daily_audit import DailyAudit
from centgate.payments.database.store import JournalUnavailable, Store
from centgate.payments.facilitator.facilitators import Facilitators
from centgate.payments.heartbeat import STOP_TIMEOUT, run_repeatedly
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.pruning import PRUNE_BATCH
from centgate.payments.notifications.alerts import Alerts
from centgate.payments.notifications.webhook_sender import WebhookSender
from centgate.payments.reconciler import Reconciler
from centgate.payments.settlement import build_settler
from centgate.service import AnyService
from centgate.settings import Settings

DUTY = "upkeep"
"""Name of this work in the journal: of the leader's duty, and of the worker that claims its payments."""
LEADER_LEASE = 6.0
"""Duration of leadership in seconds; it is renewed three times as often."""
INTERVAL = 2.0
"""Seconds between two checks for due payments, and for alerts."""
PRUNE_INTERVAL = 10.0
"""Seconds between two prunings."""
CHECK_INTERVAL = 10.0
"""Seconds between two looks for stuck payments, and for webhooks that do not arrive."""
FIRST_AUDIT = (120.0, 480.0)
"""Minimum and maximum seconds from the start of a server to its first audit."""
AUDIT_INTERVAL = (3000.0, 4200.0)
"""Minimum and maximum seconds between two audits."""


def build_background_work(
    settings: Settings,
    catalog: Sequence[AnyService],
    journal: Journal,
    facilitators: Facilitators,
    session: aiohttp.ClientSession,
    *,
    store: Store,
    alerts: Alerts,
    webhooks: WebhookSender,
    first_audit: tuple[float, float] = FIRST_AUDIT,
) -> BackgroundWork:
    """Build the background work of a server, not started yet; `journal` is its journal in `store`."""
    component = journal.for_component(DUTY)
    settler = build_settler(settings, catalog, component, facilitators, session)
    daily_audit = DailyAudit(settings, store, session)
    reconciler = Reconciler(component, settler)
    return BackgroundWork(
        component, reconciler, alerts, daily_audit, webhooks=webhooks, first_audit=first_audit
    )


class BackgroundWork:
    """Background tasks of a server, isolated from its requests."""

    def __init__(
        self,
        journal: Journal,
        reconciler: Reconciler,
        alerts: Alerts,
        daily_audit: DailyAudit,
        *,
        webhooks: WebhookSender,
        first_audit: tuple[float, float],
    ) -> None:
        self._journal = journal
        self._reconciler = reconciler
        self._alerts = alerts
        self._daily_audit = daily_audit
        self._webhooks = webhooks
        self._audit_delay = first_audit
        """Minimum and maximum seconds until the next audit."""
        self._is_leader = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the tasks; leadership is acquired as soon as possible."""
        jobs = (
            (self._acquire_leadership, LEADER_LEASE / 3),
            (self._reconcile, INTERVAL),
            (self._prune, PRUNE_INTERVAL),
            (self._send_alerts, INTERVAL),
            (self._audit, INTERVAL),
            (self._send_webhooks, INTERVAL),
            (self._check_webhooks, CHECK_INTERVAL),
        )
        self._tasks = [asyncio.create_task(run_repeatedly(each, seconds)) for each, seconds in jobs]

    async def stop(self) -> None:
        """Stop within seconds and release leadership. Interrupted payments stay resolvable."""
        for task in self._tasks:
            task.cancel()
        tasks = [*self._tasks, asyncio.create_task(self._release_leadership())]
        _, unfinished = await asyncio.wait(tasks, timeout=STOP_TIMEOUT)
        for task in unfinished:
            task.cancel()

    async def _acquire_leadership(self) -> None:
        try:
            is_acquired = await self._journal.acquire_leadership(DUTY, LEADER_LEASE)
        except JournalUnavailable:
            self._is_leader.clear()
            raise
        if not is_acquired:
            self._is_leader.clear()
        elif not self._is_leader.is_set():
            structlog.get_logger().debug("this process is the leader for background work")
            self._is_leader.set()
        await self._journal.retry_releases()

    async def _release_leadership(self) -> None:
        if self._is_leader.is_set():
            with suppress(CentgateError):
                await self._journal.release_leadership(DUTY)

    async def _reconcile(self) -> None:
        while await self._is_leader.wait() and await self._reconciler.reconcile_due():
            pass

    async def _prune(self) -> None:
        """Prune in small batches, leaving most of the time to payments."""
        removed = PRUNE_BATCH
        while await self._is_leader.wait() and removed == PRUNE_BATCH:
            started = time.monotonic()
            removed = await self._journal.prune(self._daily_audit.networks)
            await asyncio.sleep(4 * (time.monotonic() - started))

    async def _send_alerts(self) -> None:
        await self._alerts.report_settlements()
        if self._is_leader.is_set():
            await self._alerts.report_unresolved()
            await self._alerts.report_audit_findings()
            await self._alerts.report_webhooks()

    async def _send_webhooks(self) -> None:
        while await self._is_leader.wait() and await self._webhooks.send_due():
            pass

    async def _check_webhooks(self) -> None:
        """Write the events of stuck payments, and look for a receiver that accepts nothing."""
        await self._is_leader.wait()
        await self._webhooks.limit_waits()
        await self._webhooks.record_stuck_payments()
        self._alerts.record_webhooks(await self._webhooks.find_trouble())

    async def _audit(self) -> None:
        """Wait for the next audit time, then compare the last day with the chain."""
        await asyncio.sleep(random.uniform(*self._audit_delay))
        self._audit_delay = AUDIT_INTERVAL
        await self._is_leader.wait()
        counts = await self._daily_audit.run()
        if counts is not None:
            self._alerts.record_audit(counts)
