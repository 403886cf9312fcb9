"""Fair queue: keys with less recent use come first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.fair_queue import HALF_LIFE, HEAVY_SECONDS, MAX_KEYS, FairQueue

HEAVY, LIGHT = ("payer:heavy", "site:heavy"), ("payer:light", "site:light")


@dataclass
class Clock:
    """Clock that a test advances."""

    now: float = 0.0

    def read_seconds(self) -> float:
        return self.now


@dataclass
class ScriptedQueue:
    """Fair queue with tasks that a test ends."""

    slots: int
    clock: Clock = field(default_factory=Clock)
    started: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.queue = FairQueue(self.slots, clock=self.clock.read_seconds)
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, keys: Sequence[str]) -> None:
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._run(name, keys))
        await asyncio.sleep(0)

    async def end(self, name: str, seconds: float = 0.0) -> None:
        self.clock.now += seconds
        self.ends[name].set()
        await self.tasks[name]
        await asyncio.sleep(0)

    async def use(self, keys: Sequence[str], seconds: float) -> None:
        """Charge this many seconds to keys."""
        name = f"use {len(self.tasks)}"
        await self.begin(name, keys)
        await self.end(name, seconds)

    async def _run(self, name: str, keys: Sequence[str]) -> None:
        async with self.queue.wait_turn(keys):
            self.started.append(name)
            await self.ends[name].wait()


async def test_tasks_of_heavy_user_come_last():
    queue = ScriptedQueue(1)
    await queue.use(HEAVY, 1)
    await queue.begin("running", ("payer:third",))
    for number in range(3):
        await queue.begin(f"heavy {number}", HEAVY)
    await queue.begin("light", LIGHT)

    await queue.end("running")

    assert queue.started[-1] == "light"


async def test_unused_keys_take_turns():
    queue = ScriptedQueue(1)
    await queue.begin("running", ("payer:third",))
    for name in ("a 1", "a 2", "a 3", "b 1", "c 1"):
        await queue.begin(name, (f"payer:{name[0]}",))

    for name in ("running", "a 1", "b 1", "c 1", "a 2"):
        await queue.end(name, 0.1)

    assert queue.started[1:] == ["a 1", "b 1", "c 1", "a 2", "a 3"]


async def test_heavy_users_leave_a_slot_free():
    queue = ScriptedQueue(2)
    await queue.use(HEAVY, HEAVY_SECONDS)
    await queue.begin("heavy 1", HEAVY)
    await queue.begin("heavy 2", HEAVY)
    assert "heavy 2" not in queue.started

    await queue.begin("light", LIGHT)
    assert queue.started[-1] == "light"

    await queue.end("heavy 1")
    assert queue.started[-1] == "heavy 2"


async def test_light_task_passes_heavy_one_that_is_expected_to_use_less():
    queue = ScriptedQueue(3)
    await queue.use(("payer:earlier",), 20)  # tasks are now expected to take long
    await queue.use(("site:heavy",), HEAVY_SECONDS * 1.2)
    await queue.use(("site:other",), HEAVY_SECONDS)
    await queue.begin("heavy 1", ("payer:light", "site:heavy"))
    await queue.begin("heavy 2", ("payer:light", "site:heavy"))
    await queue.begin("heavy 3", ("site:other",))

    await queue.begin("light", ("payer:light", "site:light"))

    assert queue.started[-1] == "light"


async def test_other_payer_of_heavy_site_is_heavy():
    queue = ScriptedQueue(2)
    await queue.use(HEAVY, HEAVY_SECONDS)
    await queue.begin("heavy", HEAVY)

    await queue.begin("accomplice", ("payer:other", "site:heavy"))

    assert "accomplice" not in queue.started


async def test_use_is_forgotten_over_time():
    queue = ScriptedQueue(2)
    await queue.use(HEAVY, HEAVY_SECONDS)
    queue.clock.now += HALF_LIFE
    await queue.begin("first", HEAVY)

    await queue.begin("second", HEAVY)

    assert queue.started[-2:] == ["first", "second"]


@pytest.mark.parametrize("state", ["waiting", "just given"])
async def test_cancelled_task_releases_its_slot(state: str):
    queue = ScriptedQueue(1)
    await queue.begin("running", LIGHT)
    await queue.begin("cancelled", LIGHT)
    await queue.begin("next", LIGHT)

    if state == "just given":
        queue.ends["running"].set()
        await queue.tasks["running"]
    queue.tasks["cancelled"].cancel()
    await asyncio.gather(queue.tasks["cancelled"], return_exceptions=True)
    if state == "waiting":
        await queue.end("running")
    await asyncio.sleep(0)

    assert "next" in queue.started


async def test_estimated_wait_is_that_of_tasks_ahead():
    queue = ScriptedQueue(1)
    for _ in range(60):
        await queue.use(LIGHT, 2)
    assert queue.queue.estimate_wait(LIGHT) == 0
    await queue.begin("running", LIGHT)
    for number in range(3):
        await queue.begin(f"waiting {number}", LIGHT)

    light, new = queue.queue.estimate_wait(LIGHT), queue.queue.estimate_wait(("payer:new",))

    assert light == pytest.approx(8, rel=0.01)
    assert new == pytest.approx(2, rel=0.01)


async def test_admitted_job_counts_before_its_first_task():
    queue = ScriptedQueue(1)
    await queue.use(LIGHT, 1.5)

    with queue.queue.admit_job(LIGHT), queue.queue.admit_job(LIGHT):
        admitted = queue.queue.estimate_wait(LIGHT)

    assert admitted == pytest.approx(3)
    assert queue.queue.estimate_wait(LIGHT) == 0


async def test_heavy_jobs_of_others_say_nothing_about_new_payers():
    queue = ScriptedQueue(2)
    for number in range(5):
        await queue.use((f"payer:heavy {number}",), 4)
    await queue.begin("heavy", ("payer:heavy",))
    queue.clock.now += 4

    with ExitStack() as jobs:
        for number in range(4):
            jobs.enter_context(queue.queue.admit_job((f"payer:new {number}",)))
        estimate = queue.queue.estimate_wait(("payer:another",))

    assert estimate < 1


async def test_running_task_raises_estimate():
    queue = ScriptedQueue(1)
    await queue.begin("running", LIGHT)
    await queue.begin("waiting", LIGHT)
    at_start = queue.queue.estimate_wait(LIGHT)

    queue.clock.now += 2

    assert at_start < 0.5
    assert queue.queue.estimate_wait(LIGHT) == pytest.approx(2 + 4)


async def test_announced_duration_raises_estimate():
    queue = ScriptedQueue(1)

    with queue.queue.admit_job(LIGHT) as job, job.announce(3), queue.queue.admit_job(LIGHT):
        assert queue.queue.estimate_wait(LIGHT) == pytest.approx(6)


async def test_tasks_of_one_job_count_together():
    queue = ScriptedQueue(1)
    for _ in range(3):
        with queue.queue.admit_job(LIGHT) as job:
            for seconds in (0.1, 2.0, 0.4):
                async with queue.queue.wait_turn(LIGHT, job):
                    queue.clock.now += seconds

    with queue.queue.admit_job(LIGHT):
        assert queue.queue.estimate_wait(LIGHT) == pytest.approx(2.5)


async def test_light_user_beside_heavy_ones_waits_little():
    queue = ScriptedQueue(2)
    await queue.use(LIGHT, 0.05)
    heavy_users = [(f"payer:{number}", f"site:{number}") for number in range(3)]
    for user in heavy_users:
        await queue.use(user, HEAVY_SECONDS * 2)
    for number in range(9):
        await queue.begin(f"heavy {number}", heavy_users[number % 3])
    queue.clock.now += 3

    with queue.queue.admit_job(LIGHT), queue.queue.admit_job(LIGHT):
        assert queue.queue.estimate_wait(LIGHT) < 0.2
    assert queue.queue.estimate_wait(heavy_users[0]) > 12


@dataclass
class Burst:
    """Requests that arrive at a fresh queue faster than their pages are parsed."""

    fetch_seconds: float
    parse_seconds: float
    queue: ScriptedQueue = field(default_factory=lambda: ScriptedQueue(2))
    durations: list[float] = field(default_factory=list[float])
    """Time of each admitted request from its admission to its end."""

    async def send(self, requests: int, *, payers: int, interval: float, max_wait: float) -> None:
        tasks: list[asyncio.Task[None]] = []
        for number in range(requests):
            keys = (f"payer:{number % payers}",)
            if self.queue.queue.estimate_wait(keys) <= max_wait:
                tasks.append(asyncio.create_task(self._process(keys)))
            await self._advance(interval)
        while not all(task.done() for task in tasks):
            await self._advance(0.1)

    async def _process(self, keys: Sequence[str]) -> None:
        start = self.queue.clock.now
        with self.queue.queue.admit_job(keys) as job:
            await self._sleep(self.fetch_seconds)
            with job.announce(self.parse_seconds / 2):  # by the size of the page
                async with self.queue.queue.wait_turn((*keys, f"site:{start}"), job):
                    await self._sleep(self.parse_seconds)
        self.durations.append(self.queue.clock.now - start)

    async def _sleep(self, seconds: float) -> None:
        end = self.queue.clock.now + seconds
        while self.queue.clock.now < end:  # noqa: ASYNC110 - only the test advances the clock
            await asyncio.sleep(0)

    async def _advance(self, seconds: float) -> None:
        self.queue.clock.now += seconds
        for _ in range(5):
            await asyncio.sleep(0)


async def test_admitted_requests_of_burst_end_in_time():
    burst = Burst(fetch_seconds=0.5, parse_seconds=2)

    await burst.send(45, payers=3, interval=0.12, max_wait=4.5)

    assert 5 <= len(burst.durations) < 15
    assert sum(seconds > 15 for seconds in burst.durations) <= 2


async def test_concurrent_small_requests_are_all_admitted():
    burst = Burst(fetch_seconds=1, parse_seconds=0.05)

    await burst.send(40, payers=4, interval=0.01, max_wait=4.5)

    assert len(burst.durations) == 40


async def test_number_of_keys_is_limited():
    queue = ScriptedQueue(1)
    for number in range(MAX_KEYS + 10):
        async with queue.queue.wait_turn((f"payer:{number}",)):
            pass

    usages = queue.queue._usages  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert len(usages) == MAX_KEYS


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=20))
async def test_no_slot_is_lost(slots: int, work: list[tuple[int, bool]]):
    queue = ScriptedQueue(slots)
    for number, (owner, _) in enumerate(work):
        await queue.begin(str(number), (f"payer:{owner}",))
    for number, (_, is_cancelled) in enumerate(work):
        if is_cancelled:
            queue.tasks[str(number)].cancel()
        queue.ends[str(number)].set()
        queue.clock.now += 3

    await asyncio.wait_for(asyncio.gather(*queue.tasks.values(), return_exceptions=True), 5)
    for number in range(slots):
        await queue.begin(f"last {number}", (f"payer:new {number}",))

    assert queue.started[-slots:] == [f"last {number}" for number in range(slots)]


async def test_concurrent_cancellations_do_not_affect_others() -> None:
    """A deadline cancels the running task and the waiting ones in one turn of the loop."""
    queue = ScriptedQueue(1)
    for name in ("runs", "waits", "waits too"):
        await queue.begin(name, HEAVY)
    await queue.begin("other", LIGHT)

    for name in ("waits", "waits too", "runs"):
        queue.tasks[name].cancel()
    queue.ends["other"].set()
    results = await asyncio.gather(*queue.tasks.values(), return_exceptions=True)

    assert [type(each) for each in results] == [*[asyncio.CancelledError] * 3, type(None)]
    assert queue.started == ["runs", "other"]
