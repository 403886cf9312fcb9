"""Connection to the Redis that several servers share, with health checks; not used while it is unavailable.

Imported only if one is configured, since the client is slow to import. Works with Redis and Valkey.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import RedisError

KEY_PREFIX = "centgate:1:"
"""Prefix of every key; the number is the format version, which separates incompatible versions."""
COMMAND_TIMEOUT = 0.5
"""Timeout of a command in seconds, with the wait for a connection; the caller then continues without it."""
PROBE_TIMEOUT = 1.0
PROBE_INTERVAL = 3.0
"""Seconds between two probes while it is unavailable."""
MAX_CONNECTIONS = 32

_PROBE = "return redis.call('SET', KEYS[1], '1', 'PX', 1000)"
_ERRORS = (RedisError, OSError, UnicodeError)


class SharedRedis:
    """Runs Lua scripts in Redis; after a failure no script runs until a probe succeeds.

    `run_script` returns None while Redis is unavailable, at once or after the timeout.
    """

    is_up: bool | None = None
    """True if it is in use, as last logged; None before the first probe."""
    failures: int = 0
    """Number of commands that failed or timed out."""

    def __init__(self, url: str, timeout: float = COMMAND_TIMEOUT) -> None:
        """Create a client without connecting. Raises ValueError for an invalid URL."""
        self._timeout = timeout
        self._client = _client(url)
        self._secrets = _secrets(url)
        self._probe = self._client.register_script(_PROBE)
        self._scripts: dict[str, Any] = {}
        self._usable = False
        self._failed_at = float("-inf")
        self._recovery: asyncio.Task[None] | None = None

    async def run_script(
        self, script: str, keys: Sequence[str], arguments: Sequence[str | bytes | float]
    ) -> Any:
        """Run a script and return its result (never nil); None if Redis is unavailable."""
        if not self._usable:
            return None
        registered = self._scripts.get(script) or self._register_script(script)
        try:
            async with asyncio.timeout(self._timeout):
                return await registered([KEY_PREFIX + key for key in keys], arguments)
        except _ERRORS as error:
            self._handle_failure(error)
            return None

    def _register_script(self, script: str) -> Any:
        return self._scripts.setdefault(script, self._client.register_script(script))

    async def open(self) -> None:
        """Probe for the first time; a failure does not prevent the server's start."""
        failure = await self._run_probe()
        self._recovery = asyncio.create_task(self._recover(failure))

    async def close(self) -> None:
        """Close the connections."""
        self._usable = False
        if self._recovery:
            self._recovery.cancel()
            with suppress(asyncio.CancelledError):
                await self._recovery
        with suppress(*_ERRORS):
            await asyncio.wait_for(self._client.aclose(), PROBE_TIMEOUT)

    def _handle_failure(self, error: Exception) -> None:
        """Stop using it until a probe succeeds: probed at once, or after a pause if it failed recently."""
        self.failures += 1
        if not self._usable:
            return
        self._usable = False
        now = asyncio.get_running_loop().time()
        failed_recently, self._failed_at = now - self._failed_at < PROBE_INTERVAL, now
        self._recovery = asyncio.create_task(self._recover(error if failed_recently else None))

    async def _recover(self, failure: Exception | None) -> None:
        """Probe until one succeeds, then use it again."""
        failure = failure or await self._run_probe()
        while failure:
            self._log_state(up=False, failure=failure)
            await asyncio.sleep(PROBE_INTERVAL)
            failure = await self._run_probe()
        self._usable = True
        self._log_state(up=True)

    async def _run_probe(self) -> Exception | None:
        """Probe by writing a key; return the error, or None on success."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await self._probe([KEY_PREFIX + "probe"])
        except _ERRORS as error:
            return error
        return None

    def _log_state(self, *, up: bool, failure: Exception | None = None) -> None:
        if up is self.is_up:
            return
        self.is_up = up
        log = structlog.get_logger()
        if up:
            log.info("the cache is shared")
        else:
            log.warning(
                "the shared cache cannot be used; this server has its own",
                error=self._describe_failure(failure),
            )

    def _describe_failure(self, failure: Exception | None) -> str:
        """Describe a failure, with the secrets of the URL redacted."""
        message = str(failure)[:200] or "no response in time"
        for secret in self._secrets:
            message = message.replace(secret, "\u2026")
        return f"{type(failure).__name__}: {message}"


def check_url(url: str) -> None:
    """Raise ValueError for an invalid URL; does not connect."""
    _client(url)


@asynccontextmanager
async def open_redis(url: str, timeout: float = COMMAND_TIMEOUT) -> AsyncGenerator[SharedRedis]:
    """Open connections to a Redis, which may be unavailable. Raises ValueError for an invalid URL."""
    shared = SharedRedis(url, timeout)
    await shared.open()
    try:
        yield shared
    finally:
        await shared.close()


def _client(url: str) -> Redis:
    try:
        pool = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=None,  # the command's timeout covers it
            socket_timeout=None,
            socket_connect_timeout=None,
            # a connection closed while idle is only noticed by the next command
            retry=Retry(NoBackoff(), 1, (Lost,)),
            # no HELLO and no CLIENT commands: the server may be old or a proxy
            protocol=2,
            driver_info=None,
        )
        pool.make_connection()  # validates the options in the URL
    except (ValueError, TypeError, AttributeError, RedisError):
        # the original message repeats parts of the URL, which may be secret
        raise ValueError(
            "CENTGATE_CACHE_URL: not a valid Redis URL, such as redis://user:password@host:6379/0"
        ) from None
    return Redis.from_pool(pool)


def _secrets(url: str) -> set[str]:
    parts = urlsplit(url)
    values = {parts.password or "", parts.username or "", parts.query}
    return {each for secret in values for each in (secret, unquote(secret)) if each}
