"""Reconciler: when open payments are looked up without their buyers, in the background or by command.

`Settler.resolve` (settlement.py) decides the outcome of one payment; this module selects the payments, claims
them like requests do, and schedules the next attempt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import closing, suppress

import structlog
from msgspec import Struct

from centgate.catalog import all_services
from centgate.errors import CentgateError
from centgate.payments.chain.chain_client import BACKGROUND_TIMEOUT
from centgate.payments.chain.payment_node import open_node_session
from centgate.payments.claim_values import Claim
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import RowState
from centgate.payments.facilitator.facilitator import (
    SettlementNotSent,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
)
from centgate.payments.facilitator.facilitators import open_facilitators
from centgate.payments.heartbeat import keep_alive
from centgate.payments.journal.claims import ClaimLost
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.queries import FIRST_RETRY
from centgate.payments.payment_key import PaymentKey
from centgate.payments.settlement import Settler, build_settler
from centgate.settings import Settings

BATCH_SIZE = 20
"""Payments per batch."""
CONCURRENCY = 5
"""Payments that are reconciled concurrently."""
MAX_RETRY_INTERVAL = 600.0
"""Maximum seconds between two attempts for one payment, before jitter; less than `MAX_RETRY` with it."""
NO_LIMIT = 1_000_000


class ReconcileResult(Struct, frozen=True):
    """Result of one attempt to reconcile an open payment."""

    key: PaymentKey
    state_before: RowState
    state_after: RowState
    """Still `settling` if the outcome is not certain."""
    transaction: str | None
    reason: str | None
    """Reason of the refusal, or why it is still open; None once it is settled."""


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
            with closing(open_facilitators(settings)) as facilitators:
                settler = build_settler(settings, all_services(), component, facilitators, session)
                return await Reconciler(component, settler).reconcile_open()
    finally:
        await journal.deregister()
        await store.close()


def describe_results(results: Sequence[ReconcileResult]) -> str:
    """Describe how many payments were looked up and resolved, for operators and their log."""
    resolved = sum(each.state_after != "settling" for each in results)
    return f"{len(results)} open payments looked up, {resolved} resolved"


class Reconciler:
    """Selects and claims open payments, lets `Settler.resolve` look them up, schedules the next attempt."""

    def __init__(self, journal: Journal, settler: Settler) -> None:
        self._journal = journal
        """Journal of a component of this process, so that its claims differ from those of requests."""
        self._settler = settler
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def reconcile_due(self) -> bool:
        """Reconcile a batch of due payments; returns True if there may be more. Raises JournalUnavailable."""
        keys = await self._journal.list_open_payments(BATCH_SIZE, due_at=await self._journal.now())
        await self._reconcile_each(keys)
        return len(keys) == BATCH_SIZE

    async def reconcile_open(self) -> list[ReconcileResult]:
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
            async with self._slots, self._journal.claim_open_payment(key) as claim:
                return claim and await self._reconcile_claimed(claim)
        return None

    async def _reconcile_claimed(self, claim: Claim) -> ReconcileResult:
        before = claim.state
        result = await self._resolve(claim)
        reason = _outcome_reason(result)
        if isinstance(result, SettlementUnknown):
            if self._settler.facilitators.find(claim.facilitator) is None:
                # for the operator alone: a buyer is not told which facilitators there were
                reason = (
                    f"{reason}; it was presented to {claim.facilitator}, which is not a facilitator here any "
                    "more: name it in CENTGATE_FACILITATOR_FALLBACK_URL, or let a node decide"
                )
            retry_at = await self._journal.now() + _retry_delay(claim.attempts)
            await self._journal.schedule_retry(claim, retry_at, cause=result.open_cause)
        else:
            structlog.get_logger().info("a payment was resolved", service=claim.service, state=claim.state)
        return ReconcileResult(claim.key, before, claim.state, claim.transaction, reason)

    async def _resolve(self, claim: Claim) -> SettlementOutcome:
        try:
            return await self._settler.resolve(claim, max_wait=BACKGROUND_TIMEOUT)
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
