"""Answers that several servers share: what one has made all have, and only one makes it.

Who is to make an answer holds a lease on it, which ends a moment after its holder dies.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from centgate.cache.shared import Shared

LEASE = 5.0
"""Seconds that a lease holds unless it is renewed: as long is waited for a server that died."""
WAIT = 10.0
"""Seconds to wait for another server's work: then there is as much time again before buyers give up."""
FIRST_LOOK, LAST_LOOK = 0.02, 0.1
"""Seconds between two looks whether another server is done, at first and at last."""
MOST_BYTES = 1 << 20
"""The longest answer that is shared."""

_FIND = """
-- KEYS: answer. Gives the answer with the milliseconds it has left, or nothing.
local answer = redis.call('GET', KEYS[1])
if answer then return {answer, redis.call('PTTL', KEYS[1])} end
return {}
"""
_TAKE = """
-- KEYS: answer, lease. ARGV: token, milliseconds.
-- Gives the answer with the milliseconds it has left; nothing to whom is to make it; else a word to wait.
local answer = redis.call('GET', KEYS[1])
if answer then return {answer, redis.call('PTTL', KEYS[1])} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {} end
-- a command that is sent again, since its connection went, finds its own lease
if redis.call('GET', KEYS[2]) == ARGV[1] then return {} end
return {'wait'}
"""
_KEEP = """
-- KEYS: answer, lease. ARGV: token, answer, milliseconds.
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
"""
_RENEW = """
-- KEYS: lease. ARGV: token, milliseconds; 0 ends it.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer that a server has made."""

    content: bytes
    seconds: float
    """How long it is good."""


class Turn:
    """The word to make an answer; `found` is one that needs not be made."""

    def __init__(self, found: Found | None = None) -> None:
        self.found = found

    async def keep(self, content: bytes, seconds: float) -> None:
        """Let others have what was made, for so long."""


class SharedTurn(Turn):
    """A turn of which other servers know."""

    def __init__(
        self, shared: Shared, keys: tuple[str, str], token: str, *, found: Found | None = None
    ) -> None:
        super().__init__(found)
        self._shared = shared
        self._keys = keys
        self._token = token
        self.kept = False

    async def keep(self, content: bytes, seconds: float) -> None:
        """As every turn's; ends the lease too."""
        if len(content) <= MOST_BYTES:
            arguments = (self._token, content, max(1, int(seconds * 1000)))
            self.kept = await self._shared.run(_KEEP, self._keys, arguments) is not None

    async def renew(self, seconds: float) -> None:
        """Hold the lease for so long from now."""
        await self._shared.run(_RENEW, self._keys[1:], (self._token, int(seconds * 1000)))


class SharedAnswers:
    """Answers under keys in Redis; while that cannot be used each server makes its own."""

    def __init__(self, shared: Shared, lease: float = LEASE) -> None:
        self._shared = shared
        self._lease = lease
        # answers of another version of Centgate may have another shape
        self._prefix = f"answer:{version('centgate')}:"

    async def find(self, key: str) -> Found | None:
        """Return the answer that a server has made, without waiting for one that is being made."""
        asked = time.monotonic()
        match await self._shared.run(_FIND, (self._prefix + key,), ()):
            case [bytes(content), int(left)]:
                return Found(content, left / 1000 - (time.monotonic() - asked))
            case _:
                return None

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncGenerator[Turn]:
        """The answer another server has made, waiting for one that is at work, or the word to make it here.

        Who leaves without having kept anything lets the next one try.
        """
        token = secrets.token_hex(8)
        answer = self._prefix + key
        turn, leased = await self._taken((answer, f"{answer}:lease"), token)
        if not leased:
            yield turn
            return
        renewal = asyncio.create_task(self._hold(turn))
        try:
            yield turn
        finally:
            renewal.cancel()
            if not turn.kept:
                await turn.renew(0)

    async def _taken(self, keys: tuple[str, str], token: str) -> tuple[SharedTurn, bool]:
        """A turn, and whether there is a lease on it."""
        give_up = time.monotonic() + WAIT
        look = FIRST_LOOK
        while True:
            asked = time.monotonic()
            reply = await self._shared.run(_TAKE, keys, (token, int(self._lease * 1000)))
            match reply:
                case []:
                    return SharedTurn(self._shared, keys, token), True
                case [bytes(content), int(left)]:
                    found = Found(content, left / 1000 - (time.monotonic() - asked))
                    return SharedTurn(self._shared, keys, token, found=found), False
                case [_] if asked < give_up:
                    await asyncio.sleep(look)
                    look = min(LAST_LOOK, look * 1.5)
                case _:
                    return SharedTurn(self._shared, keys, token), False

    async def _hold(self, turn: SharedTurn) -> None:
        """Renew the lease while the work lasts."""
        while True:
            await asyncio.sleep(self._lease / 3)
            await turn.renew(self._lease)
