"""Stale-while-revalidate cache for one expensive value, with a single refresh in flight."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from centgate.errors import ProviderFailure

T = TypeVar("T")

FRESH_SECONDS = 15 * 60
STALE_SECONDS = 6 * 3600
"""Maximum age in seconds of a value that is used while refreshing fails."""
FETCH_SECONDS = 60
"""Timeout of a fetch in seconds; its callers give up earlier."""
RETRY_SECONDS = 30
"""Seconds between a failed refresh and the next one; the old value is used meanwhile."""


class CacheEntry(Struct, Generic[T], frozen=True):
    """A value with its fetch time; `is_stale` if it is old and refreshing failed or is too slow."""

    value: T
    fetched_at: datetime
    is_stale: bool = False


class StaleWhileRevalidate(Generic[T]):
    """Holds the last fetched value and refreshes it when it is old; concurrent callers share one fetch."""

    def __init__(
        self, fetch: Callable[[], Awaitable[T]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self.clock = clock
        self._entry: CacheEntry[T] | None = None
        self._fetched_at = self._failed_at = -math.inf
        self._fetch_task: asyncio.Task[None] | None = None

    @property
    def is_usable(self) -> bool:
        """True while the last value may be used if refreshing fails."""
        return self._entry is not None and self.clock() - self._fetched_at <= STALE_SECONDS

    async def get(self, max_wait: float) -> CacheEntry[T]:
        """Return the value; after `FRESH_SECONDS`, wait at most `max_wait` seconds for a new one.

        Without a usable value, wait until it is fetched.

        Raises the error of the fetch if there is no value to fall back on.
        """
        entry, age = self._entry, self.clock() - self._fetched_at
        if entry and age < FRESH_SECONDS:
            return entry
        if entry is None or age > STALE_SECONDS:
            return await self._fetch_first()
        if self.clock() - self._failed_at >= RETRY_SECONDS:
            await asyncio.wait({self._start_fetch()}, timeout=max_wait)
        return self._entry if self._entry and self._entry is not entry else replace(entry, is_stale=True)

    async def _fetch_first(self) -> CacheEntry[T]:
        try:
            await asyncio.shield(self._start_fetch())
        except ProviderFailure as failure:
            raise failure.copy_for_caller() from failure
        assert self._entry
        return self._entry

    def _start_fetch(self) -> asyncio.Task[None]:
        """Return the fetch in progress, or start one; it continues if its callers are cancelled."""
        if self._fetch_task is None:
            self._fetch_task = asyncio.create_task(self._refresh())
            self._fetch_task.add_done_callback(self._finish_fetch)
        return self._fetch_task

    async def _refresh(self) -> None:
        async with asyncio.timeout(FETCH_SECONDS):
            value = await self._fetch()
        self._entry, self._fetched_at = CacheEntry(value, datetime.now(UTC)), self.clock()

    def _finish_fetch(self, task: asyncio.Task[None]) -> None:
        self._fetch_task = None
        if not task.cancelled() and task.exception():
            self._failed_at = self.clock()
