"""Queue for a few slots, in which those come first who used the least of late.

Work is charged to the keys that it is done for, such as the buyer and the site of a page. One that sends
heavy work keeps nobody else waiting: its next task comes after theirs, and it never takes the last slot.

The wait is estimated from jobs: a job is a request in progress, with all tasks that it has run, runs, or is
expected to run. What one payer or site is known to need says nothing about others.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext

from msgspec import Struct, field
from msgspec.structs import replace

HALF_LIFE = 60.0
"""Seconds after which half of a usage is forgotten."""
HEAVY_SECONDS = 2.0
"""Usage from which a key counts as heavy."""
MAX_KEYS = 10_000
"""Keys of which the usage is kept, the last used ones."""
FIRST_ESTIMATE = 0.1
"""Seconds that a task is thought to take before any was measured, and a job of keys without any yet."""
_SMOOTHING = 0.2
"""Share of the latest task or job in the mean duration."""
_RUNNING_FACTOR = 2
"""Expected duration of a running task, as a multiple of the time that it has run for."""


class _Mean(Struct):
    """Mean of recent durations."""

    seconds: float = FIRST_ESTIMATE
    count: int = 0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += max(_SMOOTHING, 1 / self.count) * (seconds - self.seconds)


class _Usage(Struct):
    seconds: float
    time: float
    job_mean: _Mean = field(default_factory=_Mean)


class Job(Struct, eq=False):
    """Tasks of one request, from its admission to its end."""

    keys: Sequence[str]
    charged_seconds: float = 0.0
    """Duration of its tasks that have ended."""
    starts: list[float] = field(default_factory=list[float])
    """Times at which its running tasks started."""
    announced: list[float] = field(default_factory=list[float])
    """Durations that its tasks which wait or run are expected to have by their input."""

    @contextmanager
    def announce(self, seconds: float) -> Generator[None]:
        """Expect a task to take this long, from before its turn until the end of the block."""
        self.announced.append(seconds)
        try:
            yield
        finally:
            self.announced.remove(seconds)

    def estimate_tasks(self, now: float) -> float:
        """Return the expected duration of its tasks that wait or run, by their input and the time so far."""
        return max(sum(self.announced), _RUNNING_FACTOR * self.measure_running(now))

    def measure_running(self, now: float) -> float:
        """Return the time that its running tasks have run for."""
        return sum(now - start for start in self.starts)


class _Demand(Struct):
    """Time in slots that a job is expected to use."""

    keys: Sequence[str]
    is_running: bool
    remaining: float
    """Seconds from now on."""
    uncharged: float
    """Seconds that are not in the usage of its keys, with those that its running tasks have run for."""


class _Waiter(Struct, eq=False):
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
        self._jobs: dict[Job, None] = {}

    @contextmanager
    def admit_job(self, keys: Sequence[str]) -> Generator[Job]:
        """Count a job in the estimates until the end of the block, also before its first task."""
        job = Job(keys)
        self._jobs[job] = None
        try:
            yield job
        finally:
            del self._jobs[job]
            if job.charged_seconds:
                self._record_job(job)

    @asynccontextmanager
    async def wait_turn(self, keys: Sequence[str], job: Job | None = None) -> AsyncGenerator[None]:
        """Hold a slot, and charge the time to the keys; without a job, the task is one of its own."""
        with nullcontext(job) if job and job in self._jobs else self.admit_job(keys) as own_job:
            own_job.keys = tuple(dict.fromkeys((*own_job.keys, *keys)))
            await self._acquire(keys)
            start = self._clock()
            own_job.starts.append(start)
            try:
                yield
            finally:
                seconds = self._clock() - start
                own_job.starts.remove(start)
                own_job.charged_seconds += seconds
                self._charge(keys, seconds)
                self._release(keys)

    def estimate_wait(self, keys: Sequence[str]) -> float:
        """Return the seconds that a new job for these keys would wait for its first slot.

        Jobs come before it by the usage that their keys will have then, as tasks do. A job is expected to
        take as long as recent ones for its keys, if there are any, or as its input and its tasks so far tell.
        """
        if not self._jobs:
            return 0.0
        demands = self._list_demands()
        usage = self._usage_of(keys) + max(
            (sum(each.uncharged for each in demands if key in each.keys) for key in keys), default=0.0
        )
        slots = max(1, self._slots - 1) if usage >= HEAVY_SECONDS else self._slots
        running = sorted((each.remaining for each in demands if each.is_running), reverse=True)[:slots]
        ends = running + [0.0] * (slots - len(running))
        heapq.heapify(ends)
        for demand in self._select_before(usage, demands):
            heapq.heapreplace(ends, ends[0] + demand.remaining)
        return ends[0]

    def _list_demands(self) -> list[_Demand]:
        """Return what each job is expected to use, in the order of their admission."""
        now = self._clock()
        means = self._adjust_means(now)
        demands: list[_Demand] = []
        for job in self._jobs:
            known = [means[key].seconds for key in job.keys if key in means]
            by_mean = max(known, default=FIRST_ESTIMATE) - job.charged_seconds
            uncharged = max(by_mean, job.estimate_tasks(now))
            remaining = max(0.0, uncharged - job.measure_running(now))
            demands.append(_Demand(job.keys, bool(job.starts), remaining, max(0.0, uncharged)))
        return demands

    def _select_before(self, usage: float, demands: Sequence[_Demand]) -> list[_Demand]:
        """Return the jobs without a slot that get one before a new job whose keys have this usage by then."""
        before: defaultdict[str, float] = defaultdict(float)
        selected: list[_Demand] = []
        for demand in sorted(demands, key=lambda each: not each.is_running):
            used = self._usage_of(demand.keys) + max((before[key] for key in demand.keys), default=0.0)
            if not demand.is_running and used <= usage:
                selected.append(demand)
            for key in demand.keys:
                before[key] += demand.uncharged
        return selected

    def _adjust_means(self, now: float) -> dict[str, _Mean]:
        """Return the mean of each key's jobs, with the present ones that will take longer.

        Else the estimates would know of heavy jobs only when the first of them have ended.
        """
        means: dict[str, _Mean] = {}
        for key in {key for job in self._jobs for key in job.keys}:
            if (usage := self._usages.get(key)) and usage.job_mean.count:
                means[key] = replace(usage.job_mean)
        for job in self._jobs:
            if not (seconds := job.estimate_tasks(now)):
                continue
            expected = job.charged_seconds + seconds
            for mean in (means.setdefault(key, _Mean()) for key in job.keys):
                if expected > mean.seconds:
                    mean.add(expected)
        return means

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

    def _record_job(self, job: Job) -> None:
        for key in job.keys:
            if usage := self._usages.get(key):
                usage.job_mean.add(job.charged_seconds)

    def _charge(self, keys: Sequence[str], seconds: float) -> None:
        self._mean_seconds += _SMOOTHING * (seconds - self._mean_seconds)
        for key in dict.fromkeys(keys):
            usage = self._usages.pop(key, None) or _Usage(0.0, self._clock())
            self._usages[key] = _Usage(self._decay(usage) + seconds, self._clock(), usage.job_mean)
        while len(self._usages) > MAX_KEYS:
            self._usages.popitem(last=False)


def _count_most_frequent(keys: Sequence[str], tasks: Sequence[Sequence[str]]) -> int:
    """Return how many tasks are for the key that most of them are for."""
    return max((sum(key in task for task in tasks) for key in keys), default=0)
