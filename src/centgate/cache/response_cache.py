"""Cache of service results; concurrent requests for the same key share one computation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import msgspec
from cachetools import TLRUCache
from msgspec import Struct

from centgate.cache.redis_responses import ComputeLease, SharedResponses
from centgate.envelope import ServiceResult
from centgate.errors import CentgateError

MAX_DEGRADED_TTL = 30.0
"""Maximum TTL of a result in seconds if one of its providers failed."""


class _MemoryEntry(Struct, frozen=True):
    content: bytes
    seconds: float


class MemoryCache:
    """LRU cache of one process with a TTL per entry and a maximum size in bytes."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._entries = TLRUCache[str, _MemoryEntry](
            max_bytes,
            ttu=lambda _key, entry, now: now + entry.seconds,
            timer=time.monotonic,
            getsizeof=lambda entry: len(entry.content) + 512,
        )

    def get(self, key: str) -> bytes | None:
        """Return the content of a key; None if missing or expired."""
        entry = self._entries.get(key)
        return entry.content if entry else None

    def put(self, key: str, content: bytes, ttl_seconds: float) -> None:
        """Store content with a TTL in seconds; content larger than the whole cache is not stored."""
        if len(content) + 512 <= self._entries.maxsize:
            self._entries[key] = _MemoryEntry(content, ttl_seconds)


class ResponseCache:
    """Caches results until their TTL ends; errors and NoData are not cached.

    The local cache is checked first, then the cache and the work in progress of other servers.
    """

    def __init__(self, cache: MemoryCache, shared: SharedResponses | None = None) -> None:
        self._cache = cache
        self._shared = shared
        self._tasks: dict[str, asyncio.Task[tuple[ServiceResult, bool]]] = {}

    async def get_or_compute(
        self, key: str, ttl: timedelta, compute: Callable[[], Awaitable[ServiceResult]]
    ) -> tuple[ServiceResult, bool]:
        """Return the result under `key`, and True if it came from a cache. Raises the errors of `compute`.

        With a TTL of 0, `compute` runs for each call.
        """
        if not ttl:
            return await compute(), False
        if (stored := self._cache.get(key)) and (result := _decode(stored)):
            return result, True
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(self._compute(key, ttl.total_seconds(), compute))
            self._tasks[key] = task
            task.add_done_callback(lambda task: self._remove_task(key, task))
        try:
            return await asyncio.shield(task)
        except CentgateError as error:
            raise error.copy_for_caller() from error

    def is_computing(self, key: str) -> bool:
        """True if this process computes the result under `key`, which all who ask for it share."""
        return key in self._tasks

    async def has_fresh(self, key: str, ttl: timedelta) -> bool:
        """True if a fresh result is cached under `key`, locally or in the shared cache."""
        if not ttl:
            return False
        if (stored := self._cache.get(key)) and _decode(stored):
            return True
        shared_result = await self._shared.find_response(key) if self._shared else None
        if shared_result is None or not _decode(shared_result.content):
            return False
        self._cache.put(key, shared_result.content, shared_result.ttl_seconds)
        return True

    def _remove_task(self, key: str, task: asyncio.Task[tuple[ServiceResult, bool]]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # retrieved here, in case no caller waits for it any more

    async def _compute(
        self, key: str, seconds: float, work: Callable[[], Awaitable[ServiceResult]]
    ) -> tuple[ServiceResult, bool]:
        async with self._shared.acquire_lease(key) if self._shared else nullcontext(ComputeLease()) as lease:
            if (shared_result := lease.cached) and (result := _decode(shared_result.content)):
                self._cache.put(key, shared_result.content, shared_result.ttl_seconds)
                return result, True
            result = await work()
            if result.is_degraded:
                seconds = min(seconds, MAX_DEGRADED_TTL)
            content = _encode(result)
            self._cache.put(key, content, seconds)
            await lease.store_result(content, seconds)
            return result, False


class _StoredResult(Struct, array_like=True, frozen=True):
    data: msgspec.Raw
    providers: list[dict[str, Any]]
    warnings: list[str]


_DECODER = msgspec.json.Decoder(_StoredResult)
_ENCODER = msgspec.json.Encoder()


def _encode(result: ServiceResult) -> bytes:
    return _ENCODER.encode(_StoredResult(msgspec.Raw(result.data), result.providers, result.warnings))


def _decode(content: bytes) -> ServiceResult | None:
    """Decode a cached result; return None for any other content."""
    try:
        stored = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return ServiceResult(bytes(stored.data), stored.providers, stored.warnings)
