"""Cooperative yielding to the event loop."""

from __future__ import annotations

import asyncio


class CooperativeScheduler:
    """Scheduler that runs the fetches of a process one step at a time, with other tasks in between.

    One step takes well under a millisecond, but dozens of them in one iteration of the loop would not.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait_turn(self) -> None:
        """Wait until one step may run; the step lasts until the next `await`."""
        async with self._lock:
            await asyncio.sleep(0)
