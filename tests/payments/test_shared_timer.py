"""`SharedTimer`: one timer of the event loop for many deadlines."""

from __future__ import annotations

import asyncio

from centgate.payments.shared_timer import SharedTimer


async def wait_for_calls(called: list[str], number: int) -> None:
    async with asyncio.timeout(20):
        while len(called) < number:  # noqa: ASYNC110 - a list tells no one
            await asyncio.sleep(0.01)


async def test_functions_are_called_in_time_unless_cancelled() -> None:
    """Also an earlier deadline that is added later, and one that was cancelled."""
    timer, called, now = SharedTimer(), list[str](), asyncio.get_running_loop().time()
    for name, delay in (("late", 1.2), ("cancelled", 0.5), ("early", 1.0), ("past", -1.0)):
        timer.call_at(now + delay, name, lambda name=name: called.append(name))
    timer.cancel("cancelled")
    await asyncio.sleep(0)
    assert called in ([], ["past"])
    await wait_for_calls(called, 3)
    assert called == ["past", "early", "late"]


async def test_function_may_use_timer() -> None:
    """A called function can set the next deadline, and cancel another."""
    timer, called, loop = SharedTimer(), list[str](), asyncio.get_running_loop()

    def set_next() -> None:
        called.append("first")
        timer.cancel("other")
        timer.call_at(loop.time() + 0.01, "second", lambda: called.append("second"))

    timer.call_at(loop.time() + 0.01, "first", set_next)
    timer.call_at(loop.time() + 0.05, "other", lambda: called.append("other"))
    await wait_for_calls(called, 2)
    await asyncio.sleep(0.1)
    assert called == ["first", "second"]


async def test_failing_function_keeps_other_deadlines() -> None:
    timer, called, now = SharedTimer(), list[str](), asyncio.get_running_loop().time()

    timer.call_at(now - 2, "failing", lambda: 1 / 0)
    timer.call_at(now - 1, "other", lambda: called.append("other"))

    await wait_for_calls(called, 1)


async def test_late_functions_are_called_in_order_unless_cancelled() -> None:
    """As after a pause of the machine: both deadlines have passed when the timer runs."""
    timer, called, now = SharedTimer(), list[str](), asyncio.get_running_loop().time()

    def cancel_other() -> None:
        called.append("first")
        timer.cancel("other")

    timer.call_at(now - 1, "last", lambda: called.append("last"))
    timer.call_at(now - 2, "other", lambda: called.append("other"))
    timer.call_at(now - 3, "first", cancel_other)
    await wait_for_calls(called, 2)
    assert called == ["first", "last"]
