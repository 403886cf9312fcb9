"""Heartbeat of a process: without one for `LEASE_SECONDS`, others may take over its claims."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import structlog

from centgate.errors import CentgateError
from centgate.payments.database.store import JournalUnavailable
from centgate.payments.journal.journal import Journal
from centgate.payments.worker_id import LEASE_SECONDS

STOP_TIMEOUT = 2.0
"""Seconds that running work gets at the end."""
COUNT_INTERVAL = 5.0
"""Seconds between two counts of unresolved payments."""


@asynccontextmanager
async def keep_alive(journal: Journal) -> AsyncGenerator[None]:
    """Send heartbeats of this process, and count unresolved payments, while the context is open."""
    # two tasks: if a slow count delayed a heartbeat, other processes would take over claims
    tasks = [
        asyncio.create_task(_send_heartbeats(journal)),
        asyncio.create_task(run_repeatedly(partial(_count_settleable, journal), COUNT_INTERVAL)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=STOP_TIMEOUT)


async def run_repeatedly(work: Callable[[], Awaitable[None]], interval: float) -> None:
    """Run work repeatedly, even if it fails."""
    while True:
        try:
            await work()
        except JournalUnavailable:
            pass  # the heartbeat of this process logs it, once a second
        except Exception:  # noqa: BLE001 - only the end of the process may end background work
            structlog.get_logger().exception("background work failed")
        await asyncio.sleep(interval)


async def _send_heartbeats(journal: Journal) -> None:
    log = structlog.get_logger()
    while True:
        try:
            await journal.heartbeat()
        except CentgateError as error:
            log.warning("the journal cannot be written", error=str(error.__cause__ or error))
        except Exception:
            log.exception("the heartbeat failed")
        await asyncio.sleep(LEASE_SECONDS / 3)


async def _count_settleable(journal: Journal) -> None:
    try:
        await journal.count_settleable()
    except JournalUnavailable as error:  # reads have a connection of their own, so heartbeats may succeed
        structlog.get_logger().warning("unresolved payments cannot be counted", error=error.detail)
