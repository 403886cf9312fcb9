"""Queue for a few slots, in which those come first who used the least of late.

Work is charged to the keys that it is done for, such as the buyer and the site of a page. One that sends
heavy work keeps nobody else waiting: its next task comes after theirs, and it never takes the last slot.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

HALF_LIFE = 60.0
"""Seconds after which half of a usage is forgotten."""
HEAVY_SECONDS = 2.0
"""Usage from which a key counts as heavy."""
MAX_KEYS = 10_000
"""Keys of which the usage is kept, the last used ones."""
FIRST_ESTIMATE = 0.2
"""Seconds that a task is thought to take before any was measured."""
_SMOOTHING = 0.2
"""Share of the latest task in the mean duration."""


@dataclass(slots=True)
class _Usage:
    seconds: float
    time: float


@dataclass(slots=True, eq=False)
class _Waiter:
    keys: Sequence[str]
    ready: asyncio.Future[None]


class FairQueue:
    """Slots for tasks that run at the same time."""

    def __init__(self, slots: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = self._free = slots
        self._clock = clock
        self._waiting: list[_Waiter] = []
        self._usages: OrderedDict[str, _Usage] = OrderedDict()
        self._started: list[Sequence[str]] = []
        self._mean_seconds = FIRST_ESTIMATE

    @asynccontextmanager
    async def wait_turn(self, keys: Sequence[str]) -> AsyncGenerator[None]:
        """Hold a slot, and charge the time to the keys."""
        await self._acquire(keys)
        start = self._clock()
        try:
            yield
        finally:
            self._charge(keys, self._clock() - start)
            self._release(keys)

    def estimate_wait(self, keys: Sequence[str]) -> float:
        """Return the seconds that a task for these keys would wait, by the mean of recent tasks."""
        if not self._waiting and self._has_slot(keys):
            return 0.0
        position = _count_most_frequent(keys, [waiter.keys for waiter in self._waiting])
        own_usage = self._expect_usage(keys, position)
        ahead = sum(usage <= own_usage for usage, _ in self._rank_waiting())
        slots = max(1, self._slots - 1) if self._is_heavy(keys) else self._slots
        return (ahead + 1) * self._mean_seconds / slots

    async def _acquire(self, keys: Sequence[str]) -> None:
        if not self._waiting and self._has_slot(keys):
            self._take(keys)
            return
        waiter = _Waiter(keys, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._start_waiting()  # those before may all be heavy, and this one not
        try:
            await waiter.ready
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:  # its slot was given just before
                self._release(keys)
            raise

    def _take(self, keys: Sequence[str]) -> None:
        self._free -= 1
        self._started.append(keys)

    def _release(self, keys: Sequence[str]) -> None:
        self._free += 1
        self._started.remove(keys)
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Give free slots to those that used the least."""
        while self._free:
            ranked = [each for each in self._rank_waiting() if self._has_slot(each[1].keys)]
            if not ranked:
                return  # only heavy ones wait, and the last slot is not for them
            _, first = min(ranked, key=lambda each: each[0])
            self._waiting.remove(first)
            self._take(first.keys)
            first.ready.set_result(None)

    def _rank_waiting(self) -> list[tuple[float, _Waiter]]:
        """Return each waiting task with what its keys will have used when the tasks before it are done."""
        before: Counter[str] = Counter()
        ranked: list[tuple[float, _Waiter]] = []
        for waiter in self._waiting:
            if waiter.ready.done():  # cancelled, and about to leave the queue
                continue
            position = max((before[key] for key in waiter.keys), default=0)
            ranked.append((self._expect_usage(waiter.keys, position), waiter))
            before.update(waiter.keys)
        return ranked

    def _expect_usage(self, keys: Sequence[str], position: int) -> float:
        running = _count_most_frequent(keys, self._started)
        return self._usage_of(keys) + (running + position) * self._mean_seconds

    def _has_slot(self, keys: Sequence[str]) -> bool:
        """True if a slot is free for these keys: heavy ones together leave one to others."""
        if not self._free or self._slots == 1 or not self._is_heavy(keys):
            return self._free > 0
        return sum(map(self._is_heavy, self._started)) < self._slots - 1

    def _is_heavy(self, keys: Sequence[str]) -> bool:
        return self._usage_of(keys) >= HEAVY_SECONDS

    def _usage_of(self, keys: Sequence[str]) -> float:
        """Return the seconds that the heaviest of the keys used of late."""
        return max((self._decay(usage) for key in keys if (usage := self._usages.get(key))), default=0.0)

    def _decay(self, usage: _Usage) -> float:
        return usage.seconds * 0.5 ** ((self._clock() - usage.time) / HALF_LIFE)

    def _charge(self, keys: Sequence[str], seconds: float) -> None:
        self._mean_seconds += _SMOOTHING * (seconds - self._mean_seconds)
        for key in dict.fromkeys(keys):
            usage = self._usages.pop(key, None)
            self._usages[key] = _Usage((self._decay(usage) if usage else 0.0) + seconds, self._clock())
        while len(self._usages) > MAX_KEYS:
            self._usages.popitem(last=False)


def _count_most_frequent(keys: Sequence[str], tasks: Sequence[Sequence[str]]) -> int:
    """Return how many tasks are for the key that most of them are for."""
    return max((sum(key in task for task in tasks) for key in keys), default=0)
