"""Clock synchronised with the database: the clocks of machines that share a journal may differ."""

from __future__ import annotations

import time
from collections.abc import Callable


class DatabaseClock:
    """Seconds since 1970 by the database's clock.

    The database's time is read at each heartbeat of the process; in between the clock advances with
        `time.monotonic`, so that setting the machine's clock changes nothing.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._offset: float | None = None
        """Offset from the monotonic clock to the database's, in seconds."""

    @property
    def is_set(self) -> bool:
        """True once the database's time has been read."""
        return self._offset is not None

    def __call__(self) -> float:
        """Return the time; the clock must have been set."""
        if self._offset is None:
            raise RuntimeError("the database's time has not been read yet")
        return self.monotonic() + self._offset

    def synchronize(self, database_time: float, *, asked_at: float) -> None:
        """Synchronise with the database's time, read between `asked_at` and now on the monotonic clock.

        The round trip allows a range of offsets. An offset within it is kept, so that the clock does not jump
        back and forth with the network's latency.
        """
        lowest, highest = database_time - self.monotonic(), database_time - asked_at
        self._offset = lowest if self._offset is None else min(max(self._offset, lowest), highest)
