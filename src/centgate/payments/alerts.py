"""Alerts: what an operator should look at is POSTed to a webhook, as JSON.

kind           settlements_failing, payments_unresolved or audit_findings
state          raised, then reminder at growing intervals, and over once
message        a sentence
text           the same with where it happens: what Slack and Mattermost show
count          unresolved payments; of the latest settlements, those that failed; findings of the audit
oldestSeconds  how long ago the oldest unresolved payment was presented, null where it has no meaning
network        CAIP-2
server         the public address
time           ISO 8601
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import aiohttp
import structlog

from centgate.payments.audit import describe_counts
from centgate.payments.facilitator import REVERTED, Outcome, Unresolved, Unsent
from centgate.payments.journal import Journal
from centgate.payments.periods import age
from centgate.settings import Settings
from centgate.text import timestamp

IN_A_ROW = 3
"""Settlements that fail until that is worth an alert; when as many went well it is over."""
LATEST = 20
"""Settlements that are remembered: when half of them failed, that is worth an alert too."""
MEMORY = 900.0
"""Seconds after which a settlement is forgotten."""
FIRST_REMINDER = 1800.0
"""Seconds after which a situation that lasts is told again; each further reminder takes twice as long."""
LONGEST = 86400.0
"""Seconds between two reminders at most."""
PATIENCE = aiohttp.ClientTimeout(total=10)
"""How long the webhook may take."""
AGAIN = 30.0
"""Seconds after which an alert is sent again that did not arrive."""
TRIES = 20
"""How often it is tried to say that something is over."""
HOLD = 60.0
"""Seconds for which one server speaks for all of those that see settlements fail."""

CAUSED_BY_BUYERS = frozenset({REVERTED, "invalid_exact_evm_nonce_already_used", "invalid_transaction_state"})
"""Reasons in doubt that follow from a nonce that its owner has used."""

Kind = Literal["settlements_failing", "payments_unresolved", "audit_findings"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How things are with one kind of trouble."""

    trouble: bool
    message: str
    count: int = 0
    oldest_seconds: int | None = None


@dataclass(slots=True)
class _Told:
    """What was said of one kind of trouble so far."""

    times: int = 0
    """How often it was told and arrived."""
    remind_at: float = 0.0
    wait_until: float = 0.0
    """When to try again after an alert did not arrive."""
    failed: int = 0
    """How often it could not be said that it is over."""


class Alerts:
    """What one server has to tell its operator. A webhook that fails or is slow holds up nothing else."""

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
        self._latest = deque[tuple[float, bool]](maxlen=LATEST)
        """When each of the latest settlements was through, and whether it failed."""
        self._told: dict[Kind, _Told] = {kind: _Told() for kind in get_args(Kind)}
        self._audit: Finding | None = None
        """How the last audit ended; None before the first."""

    def notice(self, outcome: Outcome) -> None:
        """Record a settlement outcome; what buyers can cause does not count as the facilitator's failure."""
        doubtful = isinstance(outcome, Unresolved) and outcome.reason not in CAUSED_BY_BUYERS
        self._latest.append((self._clock(), doubtful or isinstance(outcome, Unsent)))

    async def settlements(self) -> None:
        """Tell that settlements fail, or do no longer; one server speaks for all. JournalUnavailable."""
        if self._settings.alert_webhook is None:
            return
        told = self._told["settlements_failing"]
        finding = self._settling(already=told.times > 0)
        if not finding.trouble and not told.times:
            return
        if not await self._journal.take_duty("settlement alerts", HOLD):
            return
        await self._tell("settlements_failing", finding)
        if not self._told["settlements_failing"].times:  # it is over
            self._latest.clear()
            await self._journal.give_up_duty("settlement alerts")

    async def unresolved(self) -> None:
        """Tell that payments have been unresolved for long, or are no longer. JournalUnavailable."""
        if self._settings.alert_webhook is None:
            return
        now = await self._journal.now()
        count, oldest = await self._journal.unresolved_since(now - 60 * self._settings.alert_minutes)
        await self._tell("payments_unresolved", _waiting(count, now - oldest))

    def notice_audit(self, counts: Mapping[str, int]) -> None:
        """Record how many findings of each kind an audit had."""
        self._audit = _audited(counts)

    async def audit_findings(self) -> None:
        """Tell what the last audit found, or that it found nothing any more."""
        if self._settings.alert_webhook is not None and self._audit is not None:
            await self._tell("audit_findings", self._audit)

    def _settling(self, *, already: bool) -> Finding:
        recent = [failed for at, failed in self._latest if at > self._clock() - MEMORY]
        failed = sum(recent)
        if already:
            trouble = failed > 0 and any(recent[-IN_A_ROW:])
        else:
            trouble = 2 * failed >= LATEST or (len(recent) >= IN_A_ROW and all(recent[-IN_A_ROW:]))
        if not trouble:
            return Finding(trouble, "settlements go well again")
        message = (
            f"{failed} of the last {len(recent)} settlements failed: the facilitator does not do its part"
        )
        return Finding(trouble, message, failed)

    async def _tell(self, kind: Kind, finding: Finding) -> None:
        """Say what is new, has lasted or is over; what did not arrive is said again."""
        told, now = self._told[kind], self._clock()
        if now < told.wait_until:
            return
        if finding.trouble and now >= told.remind_at:
            if await self._post(kind, "reminder" if told.times else "raised", finding):
                pause = min(FIRST_REMINDER * 2 ** min(told.times, 10), LONGEST)
                self._told[kind] = _Told(told.times + 1, remind_at=now + pause)
            else:
                told.wait_until = now + AGAIN
        elif told.times and not finding.trouble:
            told.failed += 1
            told.wait_until = now + AGAIN
            if await self._post(kind, "over", finding) or told.failed == TRIES:
                self._told[kind] = _Told()

    async def _post(self, kind: Kind, state: str, finding: Finding) -> bool:
        """Whether the webhook took it."""
        network = self._settings.network
        content: dict[str, Any] = {
            "kind": kind,
            "state": state,
            "message": finding.message,
            "text": f"Centgate on {network}: {finding.message}",
            "count": finding.count,
            "oldestSeconds": finding.oldest_seconds,
            "network": network,
            "server": self._settings.address,
            "time": timestamp(),
        }
        try:
            async with self._session.post(
                self._settings.alert_webhook or "", json=content, timeout=PATIENCE, allow_redirects=False
            ) as response:
                taken, answer = 200 <= response.status < 300, f"status {response.status}"
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            taken, answer = False, type(error).__name__  # its message may hold the address, which is a secret
        if not taken:
            structlog.get_logger().warning("the alert webhook failed", kind=kind, answer=answer)
        return taken


def _waiting(count: int, oldest: float) -> Finding:
    if not count:
        return Finding(trouble=False, message="no payment is unresolved for long any more")
    some = "1 payment is" if count == 1 else f"{count} payments are"
    message = f"{some} unresolved, the oldest for {age(oldest)}: it is not known whether the money moved"
    return Finding(trouble=True, message=message, count=count, oldest_seconds=int(oldest))


def _audited(counts: Mapping[str, int]) -> Finding:
    total = sum(counts.values())
    if not total:
        return Finding(trouble=False, message="journal and chain agree again")
    message = (
        f"journal and chain differ over {'1 payment' if total == 1 else f'{total} payments'} "
        f"({describe_counts(counts)}): see `centgate payments audit`"
    )
    return Finding(trouble=True, message=message, count=total)
