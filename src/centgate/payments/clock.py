"""The database's time, kept by this process: the clocks of the machines that share a journal may differ."""

from __future__ import annotations

import time
from collections.abc import Callable


class DatabaseClock:
    """Seconds since 1970 by the database's clock.

    The database tells its time at each beat of the process; in between the clock advances with
    `time.monotonic`, so that setting the machine's clock changes nothing.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._offset: float | None = None
        """Seconds from the monotonic clock to the database's."""

    @property
    def is_set(self) -> bool:
        """True once the database has told its time."""
        return self._offset is not None

    def __call__(self) -> float:
        """Return the time; the clock must have been set."""
        if self._offset is None:
            raise RuntimeError("the database has not told its time yet")
        return self.monotonic() + self._offset

    def correct(self, told: float, *, asked_at: float) -> None:
        """Take over the time that the database told between `asked_at` and now, by the monotonic clock.

        The answer took a while, so it allows a range of offsets; one within it is kept, which spares the
        journal a clock that jumps back and forth with the network's delays.
        """
        lowest, highest = told - self.monotonic(), told - asked_at
        self._offset = lowest if self._offset is None else min(max(self._offset, lowest), highest)
