"""Answers that are still good, and one piece of work for all who ask the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

import orjson

from centgate.envelope import Answered
from centgate.errors import CentgateError

DEGRADED_SECONDS = 30.0
"""How long an answer is kept at most when one of its sources failed."""


class Cache(Protocol):
    """Where answers are kept."""

    async def get(self, key: str) -> bytes | None:
        """What was put under a key, while it is good."""
        ...

    async def put(self, key: str, content: bytes, seconds: float) -> None:
        """Keep content for so long."""
        ...


class Answers:
    """Serves an answer again while it is fresh; errors and "nothing known" are not kept."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._at_work: dict[str, asyncio.Task[Answered]] = {}

    async def get(
        self, key: str, fresh_for: timedelta, work: Callable[[], Awaitable[Answered]]
    ) -> tuple[Answered, bool]:
        """The answer under `key`, and whether it was kept from before; raises what the work raises.

        With no time to be fresh for, the work is done for each who asks.
        """
        if not fresh_for:
            return await work(), False
        if kept := await self._cache.get(key):
            data, providers, warnings = orjson.loads(kept)
            return Answered(data.encode(), providers, warnings), True
        task = self._at_work.get(key)
        if task is None:
            task = asyncio.create_task(self._work(key, fresh_for.total_seconds(), work))
            self._at_work[key] = task
            task.add_done_callback(lambda task: self._done(key, task))
        try:
            return await asyncio.shield(task), False
        except CentgateError as error:
            raise error.again() from error

    def _done(self, key: str, task: asyncio.Task[Answered]) -> None:
        del self._at_work[key]
        if not task.cancelled():
            task.exception()  # seen here, in case nobody waits for it any more

    async def _work(self, key: str, seconds: float, work: Callable[[], Awaitable[Answered]]) -> Answered:
        answered = await work()
        if answered.degraded:
            seconds = min(seconds, DEGRADED_SECONDS)
        content = [answered.data.decode(), answered.providers, answered.warnings]
        await self._cache.put(key, orjson.dumps(content), seconds)
        return answered
