"""Limit concurrent fetches per host and in total."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from centgate.web.fetch.failure import FetchFailed

MAX_PER_HOST = 2
"""Maximum concurrent connections to one host."""
MAX_WAITING = 8
"""Maximum fetches waiting for one host."""
MAX_TOTAL = 64
"""Maximum concurrent connections to all hosts."""


@dataclass(slots=True)
class _HostState:
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PER_HOST))
    users: int = 0
    """Running and waiting fetches; a host without any is removed."""


class HostLimiter:
    """Limiter of concurrent connections."""

    def __init__(self) -> None:
        self._hosts: dict[str, _HostState] = {}
        self._total_slots = asyncio.Semaphore(MAX_TOTAL)

    @property
    def active_hosts(self) -> int:
        """Number of hosts with running or waiting fetches."""
        return len(self._hosts)

    @asynccontextmanager
    async def acquire_slot(self, host: str, *, label: str) -> AsyncGenerator[None]:
        """Hold a connection slot of a host. Raises FetchFailed if too many fetches wait already."""
        state = self._hosts.get(host) or _HostState()
        if state.users >= MAX_PER_HOST + MAX_WAITING:
            raise FetchFailed("failed", f"too many concurrent requests for {label}")
        self._hosts[host] = state
        state.users += 1
        try:
            async with state.slots, self._total_slots:
                yield
        finally:
            state.users -= 1
            if not state.users:
                del self._hosts[host]
