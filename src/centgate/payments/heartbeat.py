"""Heartbeat of a process: without one for `LEASE_SECONDS`, others may take over its claims."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

import structlog

from centgate.errors import CentgateError
from centgate.payments.claims import LEASE_SECONDS
from centgate.payments.journal import Journal

STOP_TIMEOUT = 2.0
"""Seconds that a running heartbeat gets at the end."""
COUNT_EVERY = 5
"""Heartbeats between two counts of unresolved payments."""


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
                await journal.count_settleable()
        except CentgateError as error:
            log.warning("the journal cannot be written", error=str(error.__cause__ or error))
        except Exception:
            log.exception("the heartbeat failed")
        await asyncio.sleep(LEASE_SECONDS / 3)
