"""Rate limits of upstreams: a sliding window in each process, coordinated by a store that servers share."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Protocol

from msgspec import Struct


class RateLimit(Struct, frozen=True):
    """Rate limit: at most `calls` calls in any window of `seconds` seconds.

    The calls of a short window may all be made at once. Of a long window, half may; the other half is spread
    evenly, so that waiting times stay short: under constant load, only `calls - burst` calls are made in each
    such window.
    """

    SHORT_WINDOW: ClassVar[float] = 10.0
    calls: int
    seconds: float = 60

    @property
    def burst(self) -> int:
        """Number of calls that may be made at once."""
        return self.calls if self.seconds <= self.SHORT_WINDOW else (self.calls + 1) // 2

    @property
    def interval(self) -> float:
        """Seconds between the remaining calls of the window."""
        rest = self.calls - self.burst
        return self.seconds / rest if rest else 0.0

    def at_pace(self, calls_per_minute: int) -> RateLimit:
        """Return a limit of so many calls a minute, in windows about as long as this one.

        A source that publishes a rate a second refuses the burst that a window of a minute would allow. The
        window is shortened to one of whole calls, or lengthened to one of a single call.
        """
        calls = max(1, int(calls_per_minute * self.seconds / 60))
        return RateLimit(calls, calls * 60 / calls_per_minute)

    def split_among(self, processes: int) -> RateLimit:
        """Return the share of one of several processes."""
        return RateLimit(max(1, self.calls // processes), self.seconds * max(1.0, processes / self.calls))


class SlidingWindow:
    """Sliding-window rate limiter of one process."""

    def __init__(self, rate: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = rate.seconds
        self._turns = deque[float](maxlen=rate.calls)
        self._at_once, self._gap = rate.burst, rate.interval

    def acquire(self, max_wait: float) -> float:
        """Reserve the next slot; return the seconds until then. Not reserved if that exceeds `max_wait`."""
        wait = self.next_wait()
        if wait <= max_wait:
            self.record_call(wait)
        return wait

    def next_wait(self) -> float:
        """Return the seconds until the next free slot."""
        now = due = self._clock()
        turns = self._turns
        if len(turns) >= self._at_once and turns[-self._at_once] > now - self._seconds:
            due = max(due, turns[-1] + self._gap)
        if len(turns) == turns.maxlen:
            due = max(due, turns[0] + self._seconds)
        return due - now

    def record_call(self, wait: float) -> None:
        """Record a call in `wait` seconds, also one that was reserved elsewhere."""
        due = self._clock() + wait
        self._turns.append(max(due, self._turns[-1]) if self._turns else due)


class SharedRateLimiter(Protocol):
    """Rate limiter that several servers share."""

    async def acquire(self, max_wait: float, min_wait: float) -> float | None:
        """As `SlidingWindow.acquire`, but not before `min_wait`; None while the store is unavailable."""
        ...


class RateLimiter:
    """Rate limiter of an upstream, shared by all servers while the shared store is available.

    Otherwise each process uses its share of the rate. A single process never exceeds the whole rate, even if
    the shared store loses its data.
    """

    def __init__(self, rate: RateLimit, processes: int = 1, shared: SharedRateLimiter | None = None) -> None:
        """`processes` is this server's number of processes; without `shared` they are not coordinated."""
        self._shared = shared
        self._part = SlidingWindow(rate.split_among(processes))
        self._whole = SlidingWindow(rate)

    async def acquire(self, max_wait: float) -> float:
        """As `SlidingWindow.acquire`."""
        wait = await self._shared.acquire(max_wait, self._whole.next_wait()) if self._shared else None
        if wait is None:
            wait = self._part.acquire(max_wait)
        elif wait <= max_wait:
            self._part.record_call(wait)
        if wait <= max_wait:
            self._whole.record_call(wait)
        return wait

    def estimate_wait(self) -> float:
        """Return the seconds until the next call, of a shared limit as far as this process knows."""
        return (self._whole if self._shared else self._part).next_wait()
