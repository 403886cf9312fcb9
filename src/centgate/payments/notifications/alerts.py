"""Alerts: conditions that need an operator's attention are POSTed to a webhook, as JSON.

docs/alerts.md describes the members of an alert, and what to do about each kind.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import aiohttp
import structlog
from msgspec import Struct

from centgate.instrumentation import FacilitatorRank
from centgate.payments.audit.audit import describe_counts
from centgate.payments.facilitator.facilitator import (
    REVERTED,
    SettlementNotSent,
    SettlementOutcome,
    SettlementUnknown,
)
from centgate.payments.journal.journal import Journal
from centgate.payments.notifications.webhook_sender import WebhookTrouble
from centgate.payments.time_format import format_age
from centgate.settings import Settings
from centgate.timestamps import format_timestamp

STREAK = 3
"""Consecutive failed settlements that raise an alert; as many successes end it."""
WINDOW_SIZE = 20
"""Number of settlements in the window: if half of them failed, an alert is raised too."""
WINDOW_SECONDS = 900.0
"""Age in seconds after which a settlement leaves the window."""
FIRST_REMINDER_AFTER = 1800.0
"""Seconds until the first reminder; the interval doubles with each further one."""
MAX_REMINDER_INTERVAL = 86400.0
"""Maximum seconds between two reminders."""
WEBHOOK_TIMEOUT = aiohttp.ClientTimeout(total=10)
"""Timeout of a webhook request."""
RETRY_INTERVAL = 30.0
"""Seconds until an undelivered alert is sent again."""
MAX_OVER_ATTEMPTS = 20
"""Maximum attempts to deliver an `over` message."""
LEADER_LEASE = 60.0
"""Seconds for which one server sends the settlement alerts of all servers."""

BUYER_REASONS = frozenset({REVERTED, "invalid_exact_evm_nonce_already_used", "invalid_transaction_state"})
"""Reasons that a buyer can cause by using the nonce elsewhere."""

AlertKind = Literal[
    "settlements_failing", "fallback_in_use", "payments_unresolved", "audit_findings", "webhooks_failing"
]


class _WindowAlert(Struct, frozen=True):
    """An alert about the latest settlements, which each server finds by itself."""

    kind: AlertKind
    duty: str
    """Name of the leadership of the one server that reports it for all."""
    raised: str
    """Message while it lasts, with the places `failed` and `number`."""
    over: str
    lapsed: str
    """Message at its end if nothing happened lately that would show it."""


_SETTLEMENTS_FAILING = _WindowAlert(
    "settlements_failing",
    duty="settlement alerts",
    raised="{failed} of the last {number} settlements failed: the facilitator does not work reliably",
    over="settlements succeed again",
    lapsed="no payment was settled in the last 15 minutes: it is not known if settlements succeed again",
)
_FALLBACK_IN_USE = _WindowAlert(
    "fallback_in_use",
    duty="fallback alerts",
    raised="{failed} of the last {number} payments went to the second facilitator: the first cannot be "
    "reached, or limits requests",
    over="payments go to the first facilitator again",
    lapsed="no new payment was made in the last 15 minutes: it is not known which facilitator takes one",
)


class AlertCondition(Struct, frozen=True):
    """Current condition of one alert kind."""

    trouble: bool
    message: str
    count: int = 0
    oldest_seconds: int | None = None


class _AlertState(Struct):
    """Delivery state of one alert kind."""

    times: int = 0
    """Number of delivered alerts since it was raised."""
    remind_at: float = 0.0
    wait_until: float = 0.0
    """Time of the next attempt after a failed delivery."""
    failed: int = 0
    """Failed attempts to deliver `over`."""


class Alerts:
    """Alerts of one server to its operator. A failing or slow webhook blocks nothing else."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        session: aiohttp.ClientSession,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._session = session
        self._clock = clock
        self._latest = deque[tuple[float, bool]](maxlen=WINDOW_SIZE)
        """Time of each of the latest settlements, and True if it failed."""
        self._latest_fallbacks = deque[tuple[float, bool]](maxlen=WINDOW_SIZE)
        """Time of each of the latest new payments, and True if it went to the second facilitator."""
        self._states: dict[AlertKind, _AlertState] = {kind: _AlertState() for kind in get_args(AlertKind)}
        self._audit: AlertCondition | None = None
        """Condition after the last audit; None before the first."""
        self._webhooks: WebhookTrouble | None = None

    def record_settlement(self, outcome: SettlementOutcome) -> None:
        """Record a settlement outcome.

        Failures that buyers can cause do not count against the facilitator.
        """
        doubtful = isinstance(outcome, SettlementUnknown) and outcome.reason not in BUYER_REASONS
        self._latest.append((self._clock(), doubtful or isinstance(outcome, SettlementNotSent)))

    def record_rank(self, rank: FacilitatorRank) -> None:
        """Record which facilitator a new payment was presented to."""
        self._latest_fallbacks.append((self._clock(), rank == "second"))

    async def report_settlements(self) -> None:
        """Report failing settlements and the use of the second facilitator, or their end.

        One server reports each for all. Raises JournalUnavailable.
        """
        if self._settings.alert_webhook is None:
            return
        await self._report_for_all(_SETTLEMENTS_FAILING, self._latest)
        await self._report_for_all(_FALLBACK_IN_USE, self._latest_fallbacks)

    async def _report_for_all(self, alert: _WindowAlert, window: deque[tuple[float, bool]]) -> None:
        """Update an alert by the window of this server, if this is the one that reports it."""
        finding = self._window_condition(alert, window)
        if not finding.trouble and not self._states[alert.kind].times:
            return
        if not await self._journal.acquire_leadership(alert.duty, LEADER_LEASE):
            return
        await self._update_alert(alert.kind, finding)
        if not self._states[alert.kind].times:  # it is over
            window.clear()
            await self._journal.release_leadership(alert.duty)

    async def report_unresolved(self) -> None:
        """Report payments that stay unresolved, or their end. Raises JournalUnavailable."""
        if self._settings.alert_webhook is None:
            return
        now = await self._journal.now()
        count, oldest = await self._journal.count_unresolved(now - 60 * self._settings.alert_minutes)
        await self._update_alert("payments_unresolved", _unresolved_condition(count, now - oldest))

    def record_audit(self, counts: Mapping[str, int]) -> None:
        """Record the number of findings of an audit by kind."""
        self._audit = _audit_condition(counts)

    async def report_audit_findings(self) -> None:
        """Report the findings of the last audit, or that no findings remain."""
        if self._settings.alert_webhook is not None and self._audit is not None:
            await self._update_alert("audit_findings", self._audit)

    def record_webhooks(self, trouble: WebhookTrouble | None) -> None:
        """Record why webhooks do not arrive, None if they do."""
        self._webhooks = trouble

    async def report_webhooks(self) -> None:
        """Report that the receiver of webhooks has accepted nothing for long, or the end of that."""
        if self._settings.alert_webhook is not None:
            await self._update_alert("webhooks_failing", _webhook_condition(self._webhooks))

    def _window_condition(self, alert: _WindowAlert, window: deque[tuple[float, bool]]) -> AlertCondition:
        already = self._states[alert.kind].times > 0
        recent = [failed for at, failed in window if at > self._clock() - WINDOW_SECONDS]
        failed = sum(recent)
        if already:
            trouble = failed > 0 and any(recent[-STREAK:])
        else:
            trouble = 2 * failed >= WINDOW_SIZE or (len(recent) >= STREAK and all(recent[-STREAK:]))
        if not trouble:
            return AlertCondition(trouble=False, message=alert.over if recent else alert.lapsed)
        message = alert.raised.format(failed=failed, number=len(recent))
        return AlertCondition(trouble=True, message=message, count=failed)

    async def _update_alert(self, kind: AlertKind, finding: AlertCondition) -> None:
        """Send `raised`, `reminder` or `over` for a condition; failed deliveries are retried."""
        state, now = self._states[kind], self._clock()
        if now < state.wait_until:
            return
        if finding.trouble and now >= state.remind_at:
            if await self._post_to_webhook(kind, "reminder" if state.times else "raised", finding):
                pause = min(FIRST_REMINDER_AFTER * 2 ** min(state.times, 10), MAX_REMINDER_INTERVAL)
                self._states[kind] = _AlertState(state.times + 1, remind_at=now + pause)
            else:
                state.wait_until = now + RETRY_INTERVAL
        elif state.times and not finding.trouble:
            state.failed += 1
            state.wait_until = now + RETRY_INTERVAL
            if await self._post_to_webhook(kind, "over", finding) or state.failed == MAX_OVER_ATTEMPTS:
                self._states[kind] = _AlertState()

    async def _post_to_webhook(self, kind: AlertKind, state: str, finding: AlertCondition) -> bool:
        """Send an alert; return True if the webhook accepted it."""
        try:
            async with self._session.post(
                self._settings.alert_webhook or "",
                json=build_alert(self._settings, kind, state, finding),
                timeout=WEBHOOK_TIMEOUT,
                allow_redirects=False,
            ) as response:
                is_accepted, answer = 200 <= response.status < 300, f"status {response.status}"
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # the error's message may contain the URL, which is a secret
            is_accepted, answer = False, type(error).__name__
        if not is_accepted:
            structlog.get_logger().warning("the alert webhook failed", kind=kind, answer=answer)
        return is_accepted


def build_alert(
    settings: Settings, kind: AlertKind | Literal["test"], state: str, finding: AlertCondition
) -> dict[str, Any]:
    """Build the body of an alert."""
    networks = settings.payment_networks
    return {
        "kind": kind,
        "state": state,
        "message": finding.message,
        "text": f"Centgate on {', '.join(networks)}: {finding.message}",
        "count": finding.count,
        "oldestSeconds": finding.oldest_seconds,
        "network": networks[0],
        "networks": networks,
        "server": settings.base_url,
        "time": format_timestamp(),
    }


def _unresolved_condition(count: int, oldest: float) -> AlertCondition:
    if not count:
        return AlertCondition(trouble=False, message="no payment has been unresolved for too long any more")
    subject = "1 payment is" if count == 1 else f"{count} payments are"
    message = (
        f"{subject} unresolved, the oldest for {format_age(oldest)}: it is not known whether the money moved"
    )
    return AlertCondition(trouble=True, message=message, count=count, oldest_seconds=int(oldest))


def _webhook_condition(trouble: WebhookTrouble | None) -> AlertCondition:
    if trouble is None:
        return AlertCondition(trouble=False, message="webhooks are accepted again")
    why = (
        "answered 410, so that nothing more is sent to it"
        if trouble.is_disabled
        else f"has accepted nothing for {format_age(trouble.seconds)}"
    )
    waiting = "1 event waits" if trouble.pending == 1 else f"{trouble.pending} events wait"
    message = f"the receiver of webhooks {why}, {waiting}: see `centgate payments webhooks status`"
    return AlertCondition(
        trouble=True, message=message, count=trouble.pending, oldest_seconds=int(trouble.oldest_seconds)
    )


def _audit_condition(counts: Mapping[str, int]) -> AlertCondition:
    total = sum(counts.values())
    if not total:
        return AlertCondition(trouble=False, message="journal and chain agree again")
    message = (
        f"journal and chain differ over {'1 payment' if total == 1 else f'{total} payments'} "
        f"({describe_counts(counts)}): see `centgate payments audit`"
    )
    return AlertCondition(trouble=True, message=message, count=total)
