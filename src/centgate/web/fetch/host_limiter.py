"""Limits of concurrent fetches, and the wait for a host that is asked for more at once."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar

from msgspec import Struct, field

from centgate.sandbox import WORK_KEYS

MAX_PER_HOST = 2
"""Maximum concurrent connections to one host."""
MAX_TOTAL = 64
"""Maximum concurrent connections to all hosts."""
MAX_HEAVY = 56
"""Connections of these that heavy payers hold together at most."""
HEAVY_SECONDS = 4.0
"""Seconds of fetches from which a payer is heavy; each second that passes, one is forgotten."""
MAX_PAYERS = 10_000
"""Payers of which the seconds are kept, the last ones."""
FIRST_ESTIMATE = 1.0
"""Seconds that a fetch of a host is thought to take before any was measured."""
MAX_UNPAID = 2
"""Fetches of a host that others wait for at most, in requests of one client address that are not paid yet."""
MAX_HOSTS = 10_000
"""Hosts of which the mean duration is kept, the last used ones."""
_SMOOTHING = 0.3
"""Share of the latest fetch in the mean duration."""
_RUNNING_FACTOR = 2
"""Expected duration of a running fetch, as a multiple of the time that it has run for."""


class _HostState(Struct):
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PER_HOST))
    users: int = 0
    """Running and waiting fetches; a host without any is removed."""
    starts: list[float] = field(default_factory=list[float])
    """Times at which the running fetches started."""


class _Announcement(Struct):
    """Fetches that a request will make, of those hosts that it has not asked yet."""

    pending: Counter[str]
    sender: str | None
    """Client address that sent the request; None once its payment is settled."""
    holders: int = 0


SENDER: ContextVar[str] = ContextVar("sender", default="")
"""Client address that sent the request that the current work belongs to."""
_ANNOUNCEMENT: ContextVar[_Announcement | None] = ContextVar("announcement", default=None)
"""Announcement of the request that the current work belongs to."""


class HostLimiter:
    """Limiter of concurrent connections.

    Payers whose fetches take long, as of sites that never answer, leave some connections to others.

    A fetch waits for its host as long as its own time lasts: whoever should not wait so long has to ask for
    the wait before, as a request does before its payment is settled.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._hosts: dict[str, _HostState] = {}
        self._total_slots = asyncio.Semaphore(MAX_TOTAL)
        self._heavy_slots = asyncio.Semaphore(MAX_HEAVY)
        self._forgotten_at: OrderedDict[tuple[str, ...], float] = OrderedDict()
        """Times at which the fetches of each payer, by `WORK_KEYS`, will be forgotten."""
        self._mean_seconds: OrderedDict[str, float] = OrderedDict()
        self._announcements: dict[Hashable, _Announcement] = {}
        self._pending: dict[str, Counter[str | None]] = {}
        """Announced fetches of each host that have not begun, by the sender of their announcement."""

    @property
    def active_hosts(self) -> int:
        """Number of hosts with running or waiting fetches."""
        return len(self._hosts)

    @asynccontextmanager
    async def acquire_slot(self, host: str) -> AsyncGenerator[None]:
        """Hold a connection slot of a host."""
        if (announcement := _ANNOUNCEMENT.get()) and announcement.pending[host] > 0:
            announcement.pending[host] -= 1
            self._add_pending(host, announcement.sender, -1)
        state = self._hosts.setdefault(host, _HostState())
        state.users += 1
        try:
            async with state.slots, self._share_of(WORK_KEYS.get()), self._total_slots:
                started = self._clock()
                state.starts.append(started)
                try:
                    yield
                finally:
                    state.starts.remove(started)
                    self._record_duration(host, self._clock() - started)
                    self._charge(WORK_KEYS.get(), self._clock() - started)
        finally:
            state.users -= 1
            if not state.users:
                del self._hosts[host]

    @contextmanager
    def announce(self, hosts: Collection[str], key: Hashable) -> Generator[None]:
        """Count a fetch of each host until it begins, or until the end of the block.

        Requests with an equal `key` count once, as they share their answer. Their payment may have no money:
        for others, those of one sender are at most `MAX_UNPAID` fetches of a host.
        """
        with self._hold(hosts, key, SENDER.get()):
            yield

    @contextmanager
    def reserve(self, hosts: Collection[str], key: Hashable) -> Generator[None]:
        """Count the fetches of a request whose payment is settled, all of them and for everybody."""
        with self._hold(hosts, key, None) as announcement:
            for host, number in announcement.pending.items():
                self._add_pending(host, announcement.sender, -number)
                self._add_pending(host, None, number)
            announcement.sender = None
            yield

    @contextmanager
    def _hold(self, hosts: Collection[str], key: Hashable, sender: str | None) -> Generator[_Announcement]:
        """Join the announcement of a key, or make it; it ends with the last block that holds it."""
        announcement = self._announcements.get(key)
        if announcement is None:
            announcement = self._announcements[key] = _Announcement(Counter(hosts), sender)
            for host, number in announcement.pending.items():
                self._add_pending(host, sender, number)
        announcement.holders += 1
        token = _ANNOUNCEMENT.set(announcement)
        try:
            yield announcement
        finally:
            _ANNOUNCEMENT.reset(token)
            announcement.holders -= 1
            if not announcement.holders:
                del self._announcements[key]
                for host, number in announcement.pending.items():
                    self._add_pending(host, announcement.sender, -number)
                announcement.pending.clear()  # work that goes on must not subtract them again

    def estimate_wait(self, hosts: Collection[str], key: Hashable) -> float:
        """Return the seconds that a new request would wait for the busiest of its hosts.

        Not for one whose key is announced: it shares that answer.
        """
        if key in self._announcements:
            return 0.0
        return max((self._estimate_host(host) for host in set(hosts)), default=0.0)

    def _estimate_host(self, host: str) -> float:
        state = self._hosts.get(host)
        count = self._count_pending(host) + (state.users if state else 0)
        if count < MAX_PER_HOST:
            return 0.0
        mean, now = self._mean_seconds.get(host, FIRST_ESTIMATE), self._clock()
        running = [now - started for started in state.starts] if state else []
        if len(running) == MAX_PER_HOST:  # the host is slower than it was
            mean = max(mean, min(running))
        ends = [max(mean, _RUNNING_FACTOR * elapsed) - elapsed for elapsed in running]
        ends += [0.0] * (MAX_PER_HOST - len(ends))
        heapq.heapify(ends)
        for _ in range(count - len(running)):
            heapq.heapreplace(ends, ends[0] + mean)
        return ends[0]

    def _count_pending(self, host: str) -> int:
        """Return the announced fetches of a host that the current sender's request would wait for."""
        counts, own = self._pending.get(host, Counter[str | None]()), (None, SENDER.get())
        return sum(number if each in own else min(number, MAX_UNPAID) for each, number in counts.items())

    def _add_pending(self, host: str, sender: str | None, number: int) -> None:
        counts = self._pending.setdefault(host, Counter())
        counts[sender] += number
        if not counts[sender]:
            del counts[sender]
        if not counts:
            del self._pending[host]

    def _share_of(self, payer: tuple[str, ...]) -> AbstractAsyncContextManager[None]:
        """Return the slots that a payer shares with other heavy ones, or no limit if it is not heavy."""
        is_heavy = self._forgotten_at.get(payer, 0.0) - self._clock() >= HEAVY_SECONDS
        return self._heavy_slots if is_heavy else nullcontext()

    def _charge(self, payer: tuple[str, ...], seconds: float) -> None:
        """Count the duration of a fetch for its payer; work of the server itself has none."""
        if payer:
            now = self._clock()
            self._forgotten_at[payer] = max(self._forgotten_at.pop(payer, now), now) + seconds
        if len(self._forgotten_at) > MAX_PAYERS:
            self._forgotten_at.popitem(last=False)

    def _record_duration(self, host: str, seconds: float) -> None:
        mean = self._mean_seconds.pop(host, FIRST_ESTIMATE)
        self._mean_seconds[host] = mean + _SMOOTHING * (seconds - mean)
        if len(self._mean_seconds) > MAX_HOSTS:
            self._mean_seconds.popitem(last=False)
