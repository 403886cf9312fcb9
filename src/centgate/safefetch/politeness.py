"""How many fetches go on at once: few to one host, not too many in all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from centgate.safefetch.failure import FetchFailed

PER_HOST = 2
"""Connections to one host at once."""
WAITING = 8
"""Fetches that wait for one of these."""
IN_ALL = 64
"""Connections to all hosts at once."""


@dataclass(slots=True)
class _Host:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PER_HOST))
    users: int = 0
    """Fetches at work or waiting; a host without any is forgotten."""


class Politeness:
    """Hands out turns."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._in_all = asyncio.Semaphore(IN_ALL)

    @property
    def hosts(self) -> int:
        """Hosts that are fetched from, or waited for, now."""
        return len(self._hosts)

    @asynccontextmanager
    async def turn(self, host: str, *, shown: str) -> AsyncGenerator[None]:
        """Wait for a turn with a host and keep it; FetchFailed where too many wait already."""
        here = self._hosts.get(host) or _Host()
        if here.users >= PER_HOST + WAITING:
            raise FetchFailed("failed", f"too many requests for {shown} are under way")
        self._hosts[host] = here
        here.users += 1
        try:
            async with here.turns, self._in_all:
                yield
        finally:
            here.users -= 1
            if not here.users:
                del self._hosts[host]
