"""Sender of webhooks: posts the events of the outbox to the receiver, signed, until it accepts them.

An event may arrive more than once, and events in any order; the id tells a receiver what it has had.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from functools import partial

import aiohttp
import structlog
from msgspec import Struct
from msgspec.structs import replace

from centgate.instrumentation import NULL_METER, Meter
from centgate.payments.database.store import Store
from centgate.payments.journal import webhook_outbox
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.webhook_events import EventBuilder
from centgate.payments.journal.webhook_outbox import DueEvent, ReceiverState
from centgate.payments.notifications.webhook_receiver import (
    MAX_RETRY_AFTER,
    Receiver,
    SendResult,
    create_receiver,
)
from centgate.settings import Settings

BATCH_SIZE = 20
"""Events that are sent at once."""
LEASE_SECONDS = 60.0
"""Seconds for which an event belongs to the process that sends it; longer than an attempt."""
RETRY_DELAYS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds between two attempts, three days in all: the schedule that Standard Webhooks recommends."""
JITTER = 0.2
"""Share by which a delay is shortened or prolonged at random."""
LONGEST_WAIT = max(RETRY_DELAYS[-1] * (1 + JITTER), MAX_RETRY_AFTER)
"""Seconds until the next attempt, at most: a later one was set before the database's clock was set back."""
CLOCK_MARGIN = 60.0
"""Seconds by which a time in the outbox must be too late before the clock counts as set back.

An event may have been claimed after the time was read that it is compared with, or by a process whose clock
is ahead: if it were made due, it would be sent twice at once.
"""
SUCCESS_INTERVAL = 60.0
"""Seconds after which a further success is written, so that not every event writes one."""
TROUBLE_SECONDS = 3600.0
"""Seconds without an accepted event after which an alert is sent."""


class WebhookTrouble(Struct, frozen=True):
    """A receiver that was disabled, or that has accepted nothing for long."""

    is_disabled: bool
    seconds: float
    """Seconds since it was disabled, or since the first event that it did not accept."""
    pending: int
    oldest_seconds: float
    """Age of the oldest event that waits."""


class WebhookSender:
    """Sends the events of a journal's outbox. A slow or dead receiver blocks nothing else."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        store: Store,
        session: aiohttp.ClientSession,
        *,
        meter: Meter = NULL_METER,
    ) -> None:
        self._receiver = create_receiver(settings)
        self._events = EventBuilder(settings.base_url)
        self._stuck_seconds = 60 * settings.alert_minutes
        self._journal = journal
        self._store = store
        self._session = session
        self._meter = meter
        self._is_accepting = True
        """False after a batch of which nothing was accepted: then one event at a time is tried."""

    async def send_due(self) -> bool:
        """Send a batch of due events; return True if there may be more. Raises JournalUnavailable."""
        receiver = self._receiver
        if receiver is None:
            return False
        state = await self._store.read(partial(webhook_outbox.find_receiver, receiver.digest))
        if state.disabled_at is not None:
            return False
        limit, at = BATCH_SIZE if self._is_accepting else 1, await self._journal.now()
        events = await self._store.run(partial(webhook_outbox.claim_due, at, limit, LEASE_SECONDS))
        if not events:
            return False
        results = await asyncio.gather(*(self._send_event(receiver, each) for each in events))
        await self._record_receiver(receiver, state, results)
        return self._is_accepting and len(events) == limit

    async def limit_waits(self) -> None:
        """Make events due that were to be sent before the clock was set back. Raises JournalUnavailable."""
        if self._receiver is not None:
            now = await self._journal.now()
            unit = partial(
                webhook_outbox.limit_waits, now, LONGEST_WAIT + CLOCK_MARGIN, LEASE_SECONDS + CLOCK_MARGIN
            )
            await self._store.run(unit)

    async def record_stuck_payments(self) -> None:
        """Write an event for each payment that has been unresolved for long. Raises JournalUnavailable."""
        if self._receiver is None:
            return
        now = await self._journal.now()
        find = partial(webhook_outbox.list_stuck_payments, now - self._stuck_seconds)
        while rows := await self._store.read(find):
            await self._store.run(partial(webhook_outbox.record_stuck, rows, self._events, now))
            if len(rows) < webhook_outbox.STUCK_BATCH:
                return

    async def find_trouble(self) -> WebhookTrouble | None:
        """Return why events do not arrive, None if they do. Raises JournalUnavailable."""
        if self._receiver is None:
            return None
        state = await self._store.read(partial(webhook_outbox.find_receiver, self._receiver.digest))
        now, since = await self._journal.now(), state.disabled_at or state.failing_since
        if since is None or (state.disabled_at is None and now - since < TROUBLE_SECONDS):
            return None
        summary = await self._store.read(webhook_outbox.summarize_outbox)
        return WebhookTrouble(
            is_disabled=state.disabled_at is not None,
            seconds=now - since,
            pending=summary.pending,
            oldest_seconds=now - (summary.oldest or now),
        )

    async def _send_event(self, receiver: Receiver, event: DueEvent) -> SendResult:
        result = await receiver.send(self._session, event.event, event.payload.encode())
        now = await self._journal.now()
        if result.outcome == "accepted":
            self._meter.record_webhook("sent")
            await self._store.run(partial(webhook_outbox.record_sent, event, now))
            return result
        delay = _retry_delay(event.attempts, result.retry_after)
        if delay is None:
            next_at = None
            self._meter.record_webhook("abandoned")
            structlog.get_logger().error("a webhook was given up", id=event.event, why=result.error)
        else:
            next_at = now + delay
            self._meter.record_webhook("failed")
        await self._store.run(
            partial(webhook_outbox.record_failure, event, result.error or result.outcome, next_at)
        )
        return result

    async def _record_receiver(
        self, receiver: Receiver, before: ReceiverState, results: Sequence[SendResult]
    ) -> None:
        """Store what a batch says of the receiver, if that is new."""
        now, log = await self._journal.now(), structlog.get_logger()
        outcomes = {each.outcome for each in results}
        self._is_accepting, after = "accepted" in outcomes, before
        if self._is_accepting:
            if before.failing_since is not None:
                log.info("the webhook receiver accepts events again")
            if before.failing_since is not None or now - (before.succeeded_at or 0) >= SUCCESS_INTERVAL:
                after = ReceiverState(succeeded_at=now)
        elif before.failing_since is None:
            log.warning("the webhook receiver does not accept events", why=results[0].error)
            after = replace(before, failing_since=now)
        if "gone" in outcomes:
            log.error(
                "the webhook receiver answered 410: nothing more is sent to it until it is enabled by "
                "`centgate payments webhooks enable`"
            )
            after = replace(after, disabled_at=now)
        if after != before:
            await self._store.run(partial(webhook_outbox.save_receiver, receiver.digest, after))


def _retry_delay(attempts: int, retry_after: float) -> float | None:
    """Return the seconds until the next attempt; None if this was the last one."""
    if attempts > len(RETRY_DELAYS):
        return None
    return max(RETRY_DELAYS[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER), retry_after)
