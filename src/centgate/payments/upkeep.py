"""What one process does for all: resolve open payments, audit the journal, remove old answers, raise alerts.

Whichever process has the duty does it, and another takes it over within seconds. Nothing rests on there being
only one: each payment is claimed like a buyer's.
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
from centgate.payments.claiming import LEASE, Claim, LostClaim, State
from centgate.payments.daily_audit import DailyAudit
from centgate.payments.facilitator import Facilitator, NotSettled, Outcome, Unresolved, Unsent
from centgate.payments.gate import MAX_OPEN, Gate, open_gate
from centgate.payments.journal import Journal
from centgate.payments.onchain import BACKGROUND_TIMEOUT
from centgate.payments.queries import FIRST_RETRY, FORGET_AT_ONCE
from centgate.payments.store import JournalUnavailable, Store, open_store
from centgate.service import AnyService
from centgate.settings import Settings

DUTY = 6.0
"""Seconds for which the duty is taken; it is renewed three times as often."""
INTERVAL = 2.0
"""Seconds between two looks for payments that are due, and for alerts."""
AT_ONCE = 20
"""Payments that are looked for at a time."""
TOGETHER = 5
"""Of those, how many are asked about at once."""
LONGEST = 600.0
"""Seconds between two questions about one payment, at most."""
PRUNING = 10.0
"""Seconds between two looks for answers that need not be kept any longer."""
FIRST_AUDIT = (120.0, 480.0)
"""Seconds from the start of a server to its first audit: the least, and the most."""
AUDITING = (3000.0, 4200.0)
"""Seconds between two audits: the least, and the most."""
STOP_WITHIN = 2.0
"""Seconds that what is under way gets to let go."""
ALL = 1_000_000
COUNT_EVERY = 5
"""Beats between two counts of open payments."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What was tried to find out about one open payment, and what came of it."""

    key: PaymentKey
    before: State
    after: State
    """`settling` still, if nothing certain came."""
    transaction: str | None
    reason: str | None
    """Why it was refused, or why it is still open; None once it is settled."""


def open_upkeep(
    settings: Settings,
    catalog: Sequence[AnyService],
    journal: Journal,
    facilitator: Facilitator,
    session: aiohttp.ClientSession,
    *,
    store: Store,
    alerts: Alerts,
    first_audit: tuple[float, float] = FIRST_AUDIT,
) -> Upkeep:
    """The upkeep of a server, to be started; the journal is that of its process, kept in the store."""
    part = journal.part("upkeep")
    gate = open_gate(settings, catalog, part, facilitator, session)
    daily_audit = DailyAudit(settings, store, session)
    return Upkeep(part, Resolver(part, gate), alerts, daily_audit, first_audit=first_audit)


async def reconcile(settings: Settings) -> list[Resolution]:
    """Resolve all open payments once, now, whenever they were to be tried next; longest overdue first.

    Opens and closes what it needs. Payments that a living process is at work on are left out. Raises
    JournalUnavailable.
    """
    store = open_store(settings.database_url, connections=settings.database_connections)
    journal = Journal(store, keep_seconds=settings.redeem_hours * 3600)
    try:
        async with aiohttp.ClientSession(trust_env=False) as session, beating(journal):
            part = journal.part("reconcile")
            with closing(Facilitator(settings)) as facilitator:
                gate = open_gate(settings, all_services(), part, facilitator, session)
                return await Resolver(part, gate).resolve_all()
    finally:
        await journal.leave()
        await store.close()


@asynccontextmanager
async def beating(journal: Journal) -> AsyncGenerator[None]:
    """Keep this process known as alive in the journal."""
    heart = asyncio.create_task(_beat(journal))
    try:
        yield
    finally:
        heart.cancel()
        await asyncio.wait([heart], timeout=STOP_WITHIN)


async def _beat(journal: Journal) -> None:
    log = structlog.get_logger()
    for beat in count():
        try:
            await journal.beat()
            if beat % COUNT_EVERY == 0:
                await journal.count_open(MAX_OPEN)
        except CentgateError as error:
            log.warning("the journal cannot be written", error=str(error.__cause__ or error))
        except Exception:
            log.exception("the sign of life failed")
        await asyncio.sleep(LEASE / 3)


class Resolver:
    """Finds out what became of open payments, without their buyers."""

    def __init__(self, journal: Journal, gate: Gate) -> None:
        self._journal = journal
        """That of a part of this process, so that a buyer's request is told apart from this work."""
        self._gate = gate
        self._turns = asyncio.Semaphore(TOGETHER)

    async def resolve_due(self) -> bool:
        """Ask about some of those that are due; whether there may be more of them. JournalUnavailable."""
        keys = await self._journal.open_payments(AT_ONCE, due_at=await self._journal.now())
        await self._resolve_each(keys)
        return len(keys) == AT_ONCE

    async def resolve_all(self) -> list[Resolution]:
        """Ask about every one; what came of each that nobody else worked on. JournalUnavailable."""
        return await self._resolve_each(await self._journal.open_payments(ALL))

    async def _resolve_each(self, keys: list[PaymentKey]) -> list[Resolution]:
        # those that are through are entered, whatever becomes of the others
        done = await asyncio.gather(*map(self._resolve, keys), return_exceptions=True)
        for failure in done:
            if isinstance(failure, BaseException):
                raise failure
        return [resolution for resolution in done if isinstance(resolution, Resolution)]

    async def _resolve(self, key: PaymentKey) -> Resolution | None:
        with suppress(LostClaim):  # whoever took it over sees to it
            async with self._turns, self._journal.take_up(key) as claim:
                return claim and await self._resolve_claimed(claim)
        return None

    async def _resolve_claimed(self, claim: Claim) -> Resolution:
        before = claim.state
        result = await self._outcome(claim)
        if isinstance(result, Unresolved):
            await self._journal.later(claim, await self._journal.now() + _pause(claim.attempts))
        else:
            structlog.get_logger().info("payment resolved", service=claim.service, state=claim.state)
        return Resolution(claim.key, before, claim.state, claim.transaction, _reason(result))

    async def _outcome(self, claim: Claim) -> Outcome:
        try:
            return await self._gate.resolve(claim, max_wait=BACKGROUND_TIMEOUT)
        except CentgateError:
            raise
        except Exception:  # noqa: BLE001 - one payment that nobody foresaw must not hold up the others
            structlog.get_logger().exception("a payment cannot be resolved", service=claim.service)
            return Unresolved("error", "looking into the payment failed unexpectedly")


def _pause(attempts: int) -> float:
    """Seconds until a payment is asked about again, not the same for those that failed together."""
    return min(FIRST_RETRY * 2 ** min(attempts, 20), LONGEST) * random.uniform(0.8, 1.2)


def _reason(result: Outcome) -> str | None:
    match result:
        case NotSettled(reason):
            return reason
        case Unresolved(_, message) | Unsent(_, message):
            return message
        case _:
            return None


class Upkeep:
    """The work that goes on beside the requests of a server, and harms none of them."""

    def __init__(
        self,
        journal: Journal,
        resolver: Resolver,
        alerts: Alerts,
        daily_audit: DailyAudit,
        *,
        first_audit: tuple[float, float],
    ) -> None:
        self._journal = journal
        self._resolver = resolver
        self._alerts = alerts
        self._daily_audit = daily_audit
        self._audit_in = first_audit
        """Seconds until the next audit: the least, and the most."""
        self._on_duty = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; the duty is taken as soon as it can be had."""
        work = (
            (self._take_duty, DUTY / 3),
            (self._resolve, INTERVAL),
            (self._prune, PRUNING),
            (self._tell, INTERVAL),
            (self._audit, INTERVAL),
        )
        self._tasks = [asyncio.create_task(_repeated(each, seconds)) for each, seconds in work]

    async def stop(self) -> None:
        """End within seconds, and leave the duty to another. What is cut off stays resolvable."""
        for task in self._tasks:
            task.cancel()
        ending = [*self._tasks, asyncio.create_task(self._give_up_duty())]
        _, late = await asyncio.wait(ending, timeout=STOP_WITHIN)
        for task in late:
            task.cancel()

    async def _take_duty(self) -> None:
        try:
            taken = await self._journal.take_duty("upkeep", DUTY)
        except JournalUnavailable:
            self._on_duty.clear()
            raise
        if not taken:
            self._on_duty.clear()
        elif not self._on_duty.is_set():
            structlog.get_logger().debug("this process does the upkeep")
            self._on_duty.set()
        await self._journal.release_again()

    async def _give_up_duty(self) -> None:
        if self._on_duty.is_set():
            with suppress(CentgateError):
                await self._journal.give_up_duty("upkeep")

    async def _resolve(self) -> None:
        while await self._on_duty.wait() and await self._resolver.resolve_due():
            pass

    async def _prune(self) -> None:
        """Remove old answers a few at a time, and leave most of the time to payments."""
        removed = FORGET_AT_ONCE
        while await self._on_duty.wait() and removed == FORGET_AT_ONCE:
            started = time.monotonic()
            removed = await self._journal.prune(self._daily_audit.networks)
            await asyncio.sleep(4 * (time.monotonic() - started))

    async def _tell(self) -> None:
        await self._alerts.settlements()
        if self._on_duty.is_set():
            await self._alerts.unresolved()
            await self._alerts.audit_findings()

    async def _audit(self) -> None:
        """Wait until it is time, and compare the last day with the chain."""
        await asyncio.sleep(random.uniform(*self._audit_in))
        self._audit_in = AUDITING
        await self._on_duty.wait()
        counts = await self._daily_audit.run()
        if counts is not None:
            self._alerts.notice_audit(counts)


async def _repeated(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Do it again and again, whatever comes of it."""
    while True:
        try:
            await work()
        except JournalUnavailable:
            pass  # the beat of this process says so, once a second
        except Exception:  # noqa: BLE001 - nothing may end the upkeep but the end of the process
            structlog.get_logger().exception("the upkeep failed")
        await asyncio.sleep(seconds)
