"""Turns on the event loop."""

from __future__ import annotations

import asyncio


class Fairness:
    """Lets the fetches of a process work one after another, with a turn for everything else in between.

    A piece of work takes well under a millisecond, but dozens of them in one round of the loop would not.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def turn(self) -> None:
        """Wait until a piece of work may be done; it ends at the next `await`."""
        async with self._lock:
            await asyncio.sleep(0)
