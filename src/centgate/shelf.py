"""A thing that is dear to fetch and good for a while: fetched once for all, used when old if need be."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, TypeVar

from centgate.errors import ProviderFailure

T = TypeVar("T")

FRESH_SECONDS = 15 * 60
STALE_SECONDS = 6 * 3600
"""How long a thing is used when no newer one can be had."""
FETCH_SECONDS = 60
"""How long a fetch may be under way; whoever waits for it gives up earlier."""
RETRY_SECONDS = 30
"""How long an old thing is used, after a newer one could not be had, before that is tried again."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """A thing and when it was fetched; stale when it is old and no newer one could be had."""

    thing: T
    at: datetime
    stale: bool = False


class Shelf(Generic[T]):
    """A thing as last fetched; fetched anew when it is old, once for all who ask meanwhile."""

    def __init__(
        self, fetch: Callable[[], Awaitable[T]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self.clock = clock
        self._kept: Kept[T] | None = None
        self._fetched_at = self._failed_at = -math.inf
        self._under_way: asyncio.Task[None] | None = None

    @property
    def is_usable(self) -> bool:
        """True while the last thing fetched may be used when no newer one can be had."""
        return self._kept is not None and self.clock() - self._fetched_at <= STALE_SECONDS

    async def get(self, patience: float) -> Kept[T]:
        """The thing. With an old one at hand a newer one is waited for at most `patience` seconds.

        Raises what fetching raises when there is none to fall back on.
        """
        kept, age = self._kept, self.clock() - self._fetched_at
        if kept and age < FRESH_SECONDS:
            return kept
        if kept is None or age > STALE_SECONDS:
            return await self._first()
        if self.clock() - self._failed_at >= RETRY_SECONDS:
            await asyncio.wait({self._fetching()}, timeout=patience)
        return self._kept if self._kept and self._kept is not kept else replace(kept, stale=True)

    async def _first(self) -> Kept[T]:
        try:
            await asyncio.shield(self._fetching())
        except ProviderFailure as failure:
            raise failure.again() from failure
        assert self._kept
        return self._kept

    def _fetching(self) -> asyncio.Task[None]:
        """The fetch under way; it goes on when those who wait for it give up."""
        if self._under_way is None:
            self._under_way = asyncio.create_task(self._renew())
            self._under_way.add_done_callback(self._done)
        return self._under_way

    async def _renew(self) -> None:
        async with asyncio.timeout(FETCH_SECONDS):
            thing = await self._fetch()
        self._kept, self._fetched_at = Kept(thing, datetime.now(UTC)), self.clock()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way = None
        if not task.cancelled() and task.exception():
            self._failed_at = self.clock()
