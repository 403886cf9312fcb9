"""Background work done by one elected process: reconcile open payments, audit, prune answers, send alerts.

If the leader stops, another process takes over within seconds. Nothing relies on a single leader: each
payment is claimed as for a buyer's request.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from itertools import count

import aiohttp
import structlog

from centgate.catalog import all_services
from centgate.errors import CentgateError
from centgate.payments.alerts import Alerts
from centgate.payments.authorization import PaymentKey
from centgate.payments.chain_client import BACKGROUND_TIMEOUT
from centgate.payments.claims import LEASE_SECONDS, Claim, ClaimLost, PaymentState
from centgate.payments.daily_audit import DailyAudit
from centgate.payments.facilitator import (
    FacilitatorClient,
    SettlementNotSent,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
)
from centgate.payments.gate import MAX_OPEN, PaymentGate, build_gate
from centgate.payments.journal import Journal
from centgate.payments.payment_node import open_node_session
from centgate.payments.queries import FIRST_RETRY, PRUNE_BATCH
from centgate.payments.store import JournalUnavailable, Store
from centgate.payments.store_factory import open_store
from centgate.service import AnyService
from centgate.settings import Settings

LEADER_LEASE = 6.0
"""Duration of leadership in seconds; it is renewed three times as often."""
INTERVAL = 2.0
"""Seconds between two checks for due payments, and for alerts."""
BATCH_SIZE = 20
"""Payments per batch."""
CONCURRENCY = 5
"""Payments that are reconciled concurrently."""
MAX_RETRY_INTERVAL = 600.0
"""Maximum seconds between two attempts for one payment."""
PRUNE_INTERVAL = 10.0
"""Seconds between two prunings."""
FIRST_AUDIT = (120.0, 480.0)
"""Minimum and maximum seconds from the start of a server to its first audit."""
AUDIT_INTERVAL = (3000.0, 4200.0)
"""Minimum and maximum seconds between two audits."""
STOP_TIMEOUT = 2.0
"""Seconds that running work gets to release its claims at the end."""
NO_LIMIT = 1_000_000
COUNT_EVERY = 5
"""Heartbeats between two counts of open payments."""


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """Result of one attempt to reconcile an open payment."""

    key: PaymentKey
    state_before: PaymentState
    state_after: PaymentState
    """Still `settling` if the outcome is not certain."""
    transaction: str | None
    reason: str | None
    """Reason of the refusal, or why it is still open; None once it is settled."""


def build_background_work(
    settings: Settings,
    catalog: Sequence[AnyService],
    journal: Journal,
    facilitator: FacilitatorClient,
    session: aiohttp.ClientSession,
    *,
    store: Store,
    alerts: Alerts,
    first_audit: tuple[float, float] = FIRST_AUDIT,
) -> BackgroundWork:
    """Build the background work of a server, not started yet; `journal` is its journal in `store`."""
    component = journal.for_component("upkeep")
    gate = build_gate(settings, catalog, component, facilitator, session)
    daily_audit = DailyAudit(settings, store, session)
    return BackgroundWork(
        component, Reconciler(component, gate), alerts, daily_audit, first_audit=first_audit
    )


async def reconcile_all(settings: Settings) -> list[ReconcileResult]:
    """Reconcile all open payments once, now, regardless of their next attempt; longest overdue first.

    Opens and closes the store and sessions itself. Payments with a live worker are skipped. Raises
    JournalUnavailable.
    """
    store = open_store(settings.database_url, connections=settings.database_connections)
    journal = Journal(store, keep_seconds=settings.redeem_hours * 3600)
    try:
        async with open_node_session() as session, keep_alive(journal):
            component = journal.for_component("reconcile")
            with closing(FacilitatorClient(settings)) as facilitator:
                gate = build_gate(settings, all_services(), component, facilitator, session)
                return await Reconciler(component, gate).reconcile_all()
    finally:
        await journal.deregister()
        await store.close()


@asynccontextmanager
async def keep_alive(journal: Journal) -> AsyncGenerator[None]:
    """Send heartbeats of this process to the journal while the context is open."""
    task = asyncio.create_task(_send_heartbeats(journal))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=STOP_TIMEOUT)


async def _send_heartbeats(journal: Journal) -> None:
    log = structlog.get_logger()
    for number in count():
        try:
            await journal.heartbeat()
            if number % COUNT_EVERY == 0:
                await journal.count_open(MAX_OPEN)
        except CentgateError as error:
            log.warning("the journal cannot be written", error=str(error.__cause__ or error))
        except Exception:
            log.exception("the heartbeat failed")
        await asyncio.sleep(LEASE_SECONDS / 3)


class Reconciler:
    """Finds the outcome of open payments, without their buyers."""

    def __init__(self, journal: Journal, gate: PaymentGate) -> None:
        self._journal = journal
        """Journal of a component of this process, so that its claims differ from those of requests."""
        self._gate = gate
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def reconcile_due(self) -> bool:
        """Reconcile a batch of due payments; returns True if there may be more. Raises JournalUnavailable."""
        keys = await self._journal.list_open_payments(BATCH_SIZE, due_at=await self._journal.now())
        await self._reconcile_each(keys)
        return len(keys) == BATCH_SIZE

    async def reconcile_all(self) -> list[ReconcileResult]:
        """Reconcile all open payments without another worker. Raises JournalUnavailable."""
        return await self._reconcile_each(await self._journal.list_open_payments(NO_LIMIT))

    async def _reconcile_each(self, keys: list[PaymentKey]) -> list[ReconcileResult]:
        # results are recorded one by one, even if other payments fail
        results = await asyncio.gather(*map(self._reconcile, keys), return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException):
                raise failure
        return [resolution for resolution in results if isinstance(resolution, ReconcileResult)]

    async def _reconcile(self, key: PaymentKey) -> ReconcileResult | None:
        with suppress(ClaimLost):  # the worker that claimed it continues
            async with self._slots, self._journal.claim_unresolved(key) as claim:
                return claim and await self._reconcile_claimed(claim)
        return None

    async def _reconcile_claimed(self, claim: Claim) -> ReconcileResult:
        before = claim.state
        result = await self._find_outcome(claim)
        if isinstance(result, SettlementUnknown):
            await self._journal.schedule_retry(
                claim, await self._journal.now() + _retry_delay(claim.attempts)
            )
        else:
            structlog.get_logger().info("payment resolved", service=claim.service, state=claim.state)
        return ReconcileResult(claim.key, before, claim.state, claim.transaction, _outcome_reason(result))

    async def _find_outcome(self, claim: Claim) -> SettlementOutcome:
        try:
            return await self._gate.reconcile(claim, max_wait=BACKGROUND_TIMEOUT)
        except CentgateError:
            raise
        except Exception:  # noqa: BLE001 - an unexpected failure of one payment must not block the others
            structlog.get_logger().exception("a payment cannot be resolved", service=claim.service)
            return SettlementUnknown("error", "reconciling the payment failed unexpectedly")


def _retry_delay(attempts: int) -> float:
    """Return the seconds until the next attempt: exponential backoff with jitter."""
    return min(FIRST_RETRY * 2 ** min(attempts, 20), MAX_RETRY_INTERVAL) * random.uniform(0.8, 1.2)


def _outcome_reason(result: SettlementOutcome) -> str | None:
    match result:
        case SettlementRefused(reason):
            return reason
        case SettlementUnknown(_, message) | SettlementNotSent(_, message):
            return message
        case _:
            return None


class BackgroundWork:
    """Background tasks of a server, isolated from its requests."""

    def __init__(
        self,
        journal: Journal,
        resolver: Reconciler,
        alerts: Alerts,
        daily_audit: DailyAudit,
        *,
        first_audit: tuple[float, float],
    ) -> None:
        self._journal = journal
        self._resolver = resolver
        self._alerts = alerts
        self._daily_audit = daily_audit
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
        )
        self._tasks = [asyncio.create_task(_run_repeatedly(each, seconds)) for each, seconds in jobs]

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
            is_acquired = await self._journal.acquire_leadership("upkeep", LEADER_LEASE)
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
                await self._journal.release_leadership("upkeep")

    async def _reconcile(self) -> None:
        while await self._is_leader.wait() and await self._resolver.reconcile_due():
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

    async def _audit(self) -> None:
        """Wait for the next audit time, then compare the last day with the chain."""
        await asyncio.sleep(random.uniform(*self._audit_delay))
        self._audit_delay = AUDIT_INTERVAL
        await self._is_leader.wait()
        counts = await self._daily_audit.run()
        if counts is not None:
            self._alerts.record_audit(counts)


async def _run_repeatedly(work: Callable[[], Awaitable[None]], interval: float) -> None:
    """Run work repeatedly, even if it fails."""
    while True:
        try:
            await work()
        except JournalUnavailable:
            pass  # the heartbeat of this process logs it, once a second
        except Exception:  # noqa: BLE001 - only the end of the process may end background work
            structlog.get_logger().exception("background work failed")
        await asyncio.sleep(interval)
