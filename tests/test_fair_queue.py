"""Queue in which those come first who used the least of late."""

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
    """Seconds that a test moves on."""

    now: float = 0.0

    def read(self) -> float:
        return self.now


@dataclass
class Hall:
    """A queue with tasks that end when the test says so."""

    slots: int
    clock: Clock = field(default_factory=Clock)
    started: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.queue = FairQueue(self.slots, clock=self.clock.read)
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
        """Charge so many seconds to keys."""
        name = f"use {len(self.tasks)}"
        await self.begin(name, keys)
        await self.end(name, seconds)

    async def _run(self, name: str, keys: Sequence[str]) -> None:
        async with self.queue.wait_turn(keys):
            self.started.append(name)
            await self.ends[name].wait()


async def test_tasks_of_one_that_used_much_come_after_those_of_others():
    hall = Hall(1)
    await hall.use(HEAVY, 1)
    await hall.begin("running", ("payer:third",))
    for number in range(3):
        await hall.begin(f"heavy {number}", HEAVY)
    await hall.begin("light", LIGHT)

    await hall.end("running")

    assert hall.started[-1] == "light"


async def test_those_who_used_nothing_take_turns():
    hall = Hall(1)
    await hall.begin("running", ("payer:third",))
    for name in ("a 1", "a 2", "a 3", "b 1", "c 1"):
        await hall.begin(name, (f"payer:{name[0]}",))

    for name in ("running", "a 1", "b 1", "c 1", "a 2"):
        await hall.end(name, 0.1)

    assert hall.started[1:] == ["a 1", "b 1", "c 1", "a 2", "a 3"]


async def test_heavy_ones_leave_a_slot_to_others():
    hall = Hall(2)
    await hall.use(HEAVY, HEAVY_SECONDS)
    await hall.begin("heavy 1", HEAVY)
    await hall.begin("heavy 2", HEAVY)
    assert "heavy 2" not in hall.started

    await hall.begin("light", LIGHT)
    assert hall.started[-1] == "light"

    await hall.end("heavy 1")
    assert hall.started[-1] == "heavy 2"


async def test_another_payer_of_the_same_site_is_heavy_too():
    hall = Hall(2)
    await hall.use(HEAVY, HEAVY_SECONDS)
    await hall.begin("heavy", HEAVY)

    await hall.begin("accomplice", ("payer:other", "site:heavy"))

    assert "accomplice" not in hall.started


async def test_usage_is_forgotten():
    hall = Hall(2)
    await hall.use(HEAVY, HEAVY_SECONDS)
    hall.clock.now += HALF_LIFE
    await hall.begin("first", HEAVY)

    await hall.begin("second", HEAVY)

    assert hall.started[-2:] == ["first", "second"]


@pytest.mark.parametrize("state", ["waiting", "just given"])
async def test_a_cancelled_task_keeps_no_slot(state: str):
    hall = Hall(1)
    await hall.begin("running", LIGHT)
    await hall.begin("cancelled", LIGHT)
    await hall.begin("next", LIGHT)

    if state == "just given":
        hall.ends["running"].set()
        await hall.tasks["running"]
    hall.tasks["cancelled"].cancel()
    await asyncio.gather(hall.tasks["cancelled"], return_exceptions=True)
    if state == "waiting":
        await hall.end("running")
    await asyncio.sleep(0)

    assert "next" in hall.started


async def test_the_wait_is_that_of_the_tasks_ahead():
    hall = Hall(1)
    for _ in range(60):
        await hall.use(LIGHT, 2)
    assert hall.queue.estimate_wait(LIGHT) == 0
    await hall.begin("running", LIGHT)
    for number in range(3):
        await hall.begin(f"waiting {number}", LIGHT)

    light, new = hall.queue.estimate_wait(LIGHT), hall.queue.estimate_wait(("payer:new",))

    assert light == pytest.approx(8, rel=0.01)
    assert new == pytest.approx(2, rel=0.01)


async def test_keys_are_limited():
    hall = Hall(1)
    for number in range(MAX_KEYS + 10):
        async with hall.queue.wait_turn((f"payer:{number}",)):
            pass

    usages = hall.queue._usages  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert len(usages) == MAX_KEYS


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=20))
async def test_no_slot_is_lost(slots: int, work: list[tuple[int, bool]]):
    hall = Hall(slots)
    for number, (owner, _) in enumerate(work):
        await hall.begin(str(number), (f"payer:{owner}",))
    for number, (_, is_cancelled) in enumerate(work):
        if is_cancelled:
            hall.tasks[str(number)].cancel()
        hall.ends[str(number)].set()
        hall.clock.now += 3

    await asyncio.wait_for(asyncio.gather(*hall.tasks.values(), return_exceptions=True), 5)
    for number in range(slots):
        await hall.begin(f"last {number}", (f"payer:new {number}",))

    assert hall.started[-slots:] == [f"last {number}" for number in range(slots)]


async def test_tasks_that_are_cancelled_together_disturb_no_other() -> None:
    """A deadline ends the task that runs and those that wait in one turn of the loop."""
    hall = Hall(1)
    for name in ("runs", "waits", "waits too"):
        await hall.begin(name, HEAVY)
    await hall.begin("other", LIGHT)

    for name in ("waits", "waits too", "runs"):
        hall.tasks[name].cancel()
    hall.ends["other"].set()
    results = await asyncio.gather(*hall.tasks.values(), return_exceptions=True)

    assert [type(each) for each in results] == [*[asyncio.CancelledError] * 3, type(None)]
    assert hall.started == ["runs", "other"]
