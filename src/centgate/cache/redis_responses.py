"""Results shared by several servers: one server computes a result, all can use it.

The computing server holds a lease on the key, which expires shortly after that server dies.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from centgate import __version__

if TYPE_CHECKING:
    from centgate.cache.redis import SharedRedis

LEASE_SECONDS = 5.0
"""Duration of a lease in seconds unless renewed: the maximum wait for a server that died."""
MAX_WAIT_SECONDS = 10.0
"""Maximum wait for another server's work in seconds; leaves as much time again before buyers give up."""
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.1
"""Shortest and longest interval in seconds between two checks if another server has finished."""
MAX_RESPONSE_BYTES = 1 << 20
"""Maximum size of a shared result in bytes."""

_FIND = """
-- KEYS: answer. Returns the answer and its remaining milliseconds, or an empty list.
local answer = redis.call('GET', KEYS[1])
if answer then return {answer, redis.call('PTTL', KEYS[1])} end
return {}
"""
_ACQUIRE = """
-- KEYS: answer, lease. ARGV: token, milliseconds.
-- Returns the answer and its remaining milliseconds; an empty list if the lease is acquired; else {'wait'}.
local answer = redis.call('GET', KEYS[1])
if answer then return {answer, redis.call('PTTL', KEYS[1])} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {} end
-- a command that is resent after a lost connection finds its own lease
if redis.call('GET', KEYS[2]) == ARGV[1] then return {} end
return {'wait'}
"""
_STORE = """
-- KEYS: answer, lease. ARGV: token, answer, milliseconds.
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
"""
_RENEW = """
-- KEYS: lease. ARGV: token, milliseconds; 0 releases it.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""


class CachedResponse(Struct, frozen=True):
    """A result computed by a server."""

    content: bytes
    ttl_seconds: float
    """Its remaining TTL."""


class ComputeLease:
    """Permission to compute a result; `cached` is one of another server, which makes that unnecessary."""

    def __init__(self, cached: CachedResponse | None = None) -> None:
        self.cached = cached

    async def store_result(self, content: bytes, seconds: float) -> None:
        """Share the computed result with a TTL in seconds."""


class RedisLease(ComputeLease):
    """A lease in Redis that other servers respect."""

    def __init__(
        self, shared: SharedRedis, keys: tuple[str, str], token: str, *, cached: CachedResponse | None = None
    ) -> None:
        super().__init__(cached)
        self._shared = shared
        self._keys = keys
        self._token = token
        self.is_stored = False

    async def store_result(self, content: bytes, seconds: float) -> None:
        """Share the computed result with a TTL in seconds, and release the lease."""
        if len(content) <= MAX_RESPONSE_BYTES:
            arguments = (self._token, content, max(1, int(seconds * 1000)))
            self.is_stored = await self._shared.run_script(_STORE, self._keys, arguments) is not None

    async def renew_lease(self, seconds: float) -> None:
        """Extend the lease to this many seconds from now; 0 releases it."""
        await self._shared.run_script(_RENEW, self._keys[1:], (self._token, int(seconds * 1000)))


class SharedResponses:
    """Results in Redis; while it is unavailable, each server computes its own."""

    def __init__(self, shared: SharedRedis, lease_seconds: float = LEASE_SECONDS) -> None:
        self._shared = shared
        self._lease_seconds = lease_seconds
        # results of other versions of Centgate may have another format
        self._prefix = f"answer:{__version__}:"

    async def find_response(self, key: str) -> CachedResponse | None:
        """Return the result of a server; does not wait for one that is being computed."""
        started = time.monotonic()
        match await self._shared.run_script(_FIND, (self._prefix + key,), ()):
            case [bytes(content), int(left)]:
                return CachedResponse(content, left / 1000 - (time.monotonic() - started))
            case _:
                return None

    @asynccontextmanager
    async def acquire_lease(self, key: str) -> AsyncGenerator[ComputeLease]:
        """Acquire the lease on a key, or return the result of the server that holds it, waiting for it.

        If the context ends without a stored result, the lease is released for the next server.
        """
        token = secrets.token_hex(8)
        answer = self._prefix + key
        lease, is_held = await self._acquire((answer, f"{answer}:lease"), token)
        if not is_held:
            yield lease
            return
        renewal = asyncio.create_task(self._renew_until_cancelled(lease))
        try:
            yield lease
        finally:
            renewal.cancel()
            if not lease.is_stored:
                await lease.renew_lease(0)

    async def _acquire(self, keys: tuple[str, str], token: str) -> tuple[RedisLease, bool]:
        """Return a lease, and True if it is held; it may have the result instead, or neither."""
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        interval = MIN_POLL_SECONDS
        while True:
            started = time.monotonic()
            reply = await self._shared.run_script(_ACQUIRE, keys, (token, int(self._lease_seconds * 1000)))
            match reply:
                case []:
                    return RedisLease(self._shared, keys, token), True
                case [bytes(content), int(left)]:
                    found = CachedResponse(content, left / 1000 - (time.monotonic() - started))
                    return RedisLease(self._shared, keys, token, cached=found), False
                case [_] if started < deadline:
                    await asyncio.sleep(interval)
                    interval = min(MAX_POLL_SECONDS, interval * 1.5)
                case _:
                    return RedisLease(self._shared, keys, token), False

    async def _renew_until_cancelled(self, lease: RedisLease) -> None:
        """Renew the lease until cancelled."""
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            await lease.renew_lease(self._lease_seconds)
