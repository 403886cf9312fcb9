"""Fair queue: keys with less recent use come first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
