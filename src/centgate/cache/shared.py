"""The Redis that several servers share, and what becomes of it while it cannot be used: nothing is shared.

Imported only where one is set up: the client takes long to load. Redis and Valkey are the same here.
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

PREFIX = "centgate:1:"
"""What every key begins with: the number is that of the format, another one is another world."""
PATIENCE = 0.5
"""Seconds that a command may take, finding a connection included: more, and it is done without."""
PROBE_PATIENCE = 1.0
PAUSE = 3.0
"""Seconds between two tries while it cannot be used."""
CONNECTIONS = 32

_PROBE = "return redis.call('SET', KEYS[1], '1', 'PX', 1000)"
_FAILED = (RedisError, OSError, UnicodeError)


class Shared:
    """Runs scripts in Redis, and stops when one fails until a probe has found it usable again.

    Whoever runs one is told by None that nothing is shared now, at once or when patience ends.
    """

    up: bool | None = None
    """Whether it is used, as it was last said in the log; None before it has been tried."""
    failures: int = 0
    """Commands that failed or took too long."""

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        """ValueError for an address that is none."""
        self._patience = patience
        self._client = _client(url)
        self._secrets = _secrets(url)
        self._probe = self._client.register_script(_PROBE)
        self._scripts: dict[str, Any] = {}
        self._usable = False
        self._doubted = float("-inf")
        self._recovery: asyncio.Task[None] | None = None

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[str | bytes | float]) -> Any:
        """What a script gives (never nil), or None where nothing is shared now."""
        if not self._usable:
            return None
        registered = self._scripts.get(script) or self._registered(script)
        try:
            async with asyncio.timeout(self._patience):
                return await registered([PREFIX + key for key in keys], arguments)
        except _FAILED as error:
            self._doubt(error)
            return None

    def _registered(self, script: str) -> Any:
        return self._scripts.setdefault(script, self._client.register_script(script))

    async def open(self) -> None:
        """Try it for the first time; a server starts whatever comes of it."""
        failure = await self._failure()
        self._recovery = asyncio.create_task(self._recover(failure))

    async def close(self) -> None:
        """Close the connections."""
        self._usable = False
        if self._recovery:
            self._recovery.cancel()
            with suppress(asyncio.CancelledError):
                await self._recovery
        with suppress(*_FAILED):
            await asyncio.wait_for(self._client.aclose(), PROBE_PATIENCE)

    def _doubt(self, error: Exception) -> None:
        """Use it no more until it has been probed: at once, and after a pause if it failed just before."""
        self.failures += 1
        if not self._usable:
            return
        self._usable = False
        now = asyncio.get_running_loop().time()
        again, self._doubted = now - self._doubted < PAUSE, now
        self._recovery = asyncio.create_task(self._recover(error if again else None))

    async def _recover(self, failure: Exception | None) -> None:
        """Wait until it can be used: one probe at a time."""
        failure = failure or await self._failure()
        while failure:
            self._say(up=False, failure=failure)
            await asyncio.sleep(PAUSE)
            failure = await self._failure()
        self._usable = True
        self._say(up=True)

    async def _failure(self) -> Exception | None:
        """Why nothing can be written, tried by writing."""
        try:
            async with asyncio.timeout(PROBE_PATIENCE):
                await self._probe([PREFIX + "probe"])
        except _FAILED as error:
            return error
        return None

    def _say(self, *, up: bool, failure: Exception | None = None) -> None:
        if up is self.up:
            return
        self.up = up
        log = structlog.get_logger()
        if up:
            log.info("the cache is shared")
        else:
            log.warning(
                "the shared cache cannot be used; this server has its own", error=self._described(failure)
            )

    def _described(self, failure: Exception | None) -> str:
        """What went wrong, without what is secret in the address."""
        said = str(failure)[:200] or "no answer in time"
        for secret in self._secrets:
            said = said.replace(secret, "\u2026")
        return f"{type(failure).__name__}: {said}"


def check_address(url: str) -> None:
    """ValueError for an address that is none; nobody is asked."""
    _client(url)


@asynccontextmanager
async def open_shared(url: str, patience: float = PATIENCE) -> AsyncGenerator[Shared]:
    """Connections to a Redis, where nobody may answer; ValueError for an address that is none."""
    shared = Shared(url, patience)
    await shared.open()
    try:
        yield shared
    finally:
        await shared.close()


def _client(url: str) -> Redis:
    try:
        pool = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            max_connections=CONNECTIONS,
            timeout=None,  # it is in the patience of the command
            socket_timeout=None,
            socket_connect_timeout=None,
            # a connection that went while it was idle is noticed by the first command
            retry=Retry(NoBackoff(), 1, (Lost,)),
            # no HELLO and no CLIENT: what is behind the address may be an old server, or a proxy
            protocol=2,
            driver_info=None,
        )
        pool.make_connection()  # only here it is seen whether options in the address exist
    except (ValueError, TypeError, AttributeError, RedisError):
        # what it says repeats parts of the address, which may be secret
        raise ValueError(
            "CENTGATE_CACHE_URL: is no address of a Redis, such as redis://user:password@host:6379/0"
        ) from None
    return Redis.from_pool(pool)


def _secrets(url: str) -> set[str]:
    parts = urlsplit(url)
    found = {parts.password or "", parts.username or "", parts.query}
    return {each for secret in found for each in (secret, unquote(secret)) if each}
