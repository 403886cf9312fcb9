"""Answers that are still good, and one piece of work for all who ask the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Protocol

import msgspec

from centgate.cache.shared_answers import SharedAnswers, Turn
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
    """Serves an answer again while it is fresh; errors and "nothing known" are not kept.

    What is kept here costs nothing to look up; behind it stands what other servers have made, or are making.
    """

    def __init__(self, cache: Cache, shared: SharedAnswers | None = None) -> None:
        self._cache = cache
        self._shared = shared
        self._at_work: dict[str, asyncio.Task[tuple[Answered, bool]]] = {}

    async def get(
        self, key: str, fresh_for: timedelta, work: Callable[[], Awaitable[Answered]]
    ) -> tuple[Answered, bool]:
        """The answer under `key`, and whether it was kept from before; raises what the work raises.

        With no time to be fresh for, the work is done for each who asks.
        """
        if not fresh_for:
            return await work(), False
        if (kept := await self._cache.get(key)) and (answered := _read(kept)):
            return answered, True
        task = self._at_work.get(key)
        if task is None:
            task = asyncio.create_task(self._work(key, fresh_for.total_seconds(), work))
            self._at_work[key] = task
            task.add_done_callback(lambda task: self._done(key, task))
        try:
            return await asyncio.shield(task)
        except CentgateError as error:
            raise error.again() from error

    async def has(self, key: str, fresh_for: timedelta) -> bool:
        """Report whether a fresh answer is kept under `key`, here or where servers share theirs."""
        if not fresh_for:
            return False
        if (kept := await self._cache.get(key)) and _read(kept):
            return True
        found = await self._shared.find(key) if self._shared else None
        if found is None or not _read(found.content):
            return False
        await self._cache.put(key, found.content, found.seconds)
        return True

    def _done(self, key: str, task: asyncio.Task[tuple[Answered, bool]]) -> None:
        del self._at_work[key]
        if not task.cancelled():
            task.exception()  # seen here, in case nobody waits for it any more

    async def _work(
        self, key: str, seconds: float, work: Callable[[], Awaitable[Answered]]
    ) -> tuple[Answered, bool]:
        async with self._shared.turn(key) if self._shared else nullcontext(Turn()) as turn:
            if (found := turn.found) and (answered := _read(found.content)):
                await self._cache.put(key, found.content, found.seconds)
                return answered, True
            answered = await work()
            if answered.degraded:
                seconds = min(seconds, DEGRADED_SECONDS)
            content = _written(answered)
            await self._cache.put(key, content, seconds)
            await turn.keep(content, seconds)
            return answered, False


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    data: msgspec.Raw
    providers: list[dict[str, Any]]
    warnings: list[str]


_READER = msgspec.json.Decoder(_Kept)
_WRITER = msgspec.json.Encoder()


def _written(answered: Answered) -> bytes:
    return _WRITER.encode(_Kept(msgspec.Raw(answered.data), answered.providers, answered.warnings))


def _read(content: bytes) -> Answered | None:
    """What was written; None for anything else that stands in its place."""
    try:
        kept = _READER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return Answered(bytes(kept.data), kept.providers, kept.warnings)
