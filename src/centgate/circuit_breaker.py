"""Circuit breaker of an upstream."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal


class CircuitBreaker:
    """Circuit breaker: opens after `FAILURE_LIMIT` consecutive failures, then tries every `PAUSE_SECONDS`."""

    FAILURE_LIMIT = 10
    PAUSE_SECONDS = 5.0

    def __init__(self, on_change: Callable[[Literal[1, -1]], None] = lambda _change: None) -> None:
        """`on_change` is called when it opens (1) and closes (-1)."""
        self._on_change = on_change
        self._failures = 0
        self._next_try = 0.0
        self._reserved_until = 0.0
        self._reserved_try: float | None = None

    @property
    def is_open(self) -> bool:
        """True from the failure that opened it until a call succeeds, also if the next trial is due."""
        return self._failures >= self.FAILURE_LIMIT

    @property
    def seconds_until_trial(self) -> float:
        """Seconds until a new request may start the next trial; 0 if it is due or none is needed."""
        if not self.is_open:
            return 0.0
        return max(0.0, max(self._next_try, self._reserved_until) - time.monotonic())

    @property
    def is_paused(self) -> bool:
        """True if `allow_call` would refuse a call now; changes nothing."""
        return self.is_open and time.monotonic() < self._next_try

    def reserve_trial(self) -> None:
        """Reserve the trial that is due for one request: `seconds_until_trial` holds others back for a pause.

        Each trial is reserved once. A request that never calls the upstream, because its payment fails, can
        thus delay the trial by one pause only. `allow_call` ignores reservations.
        """
        if self.is_open and self._reserved_try != self._next_try:
            self._reserved_try = self._next_try
            self._reserved_until = time.monotonic() + self.PAUSE_SECONDS

    def allow_call(self) -> bool:
        """Return True if a call may be made now; while open, one allowed call blocks others for a pause."""
        if self.is_paused:
            return False
        if self.is_open:
            self._next_try = time.monotonic() + self.PAUSE_SECONDS
        return True

    def record_outcome(self, *, failure: bool) -> None:
        """Record the outcome of a call."""
        was_open = self.is_open
        self._failures = self._failures + 1 if failure else 0
        if self._failures == self.FAILURE_LIMIT:
            self._next_try = time.monotonic() + self.PAUSE_SECONDS
            self._on_change(1)
        elif was_open and not failure:
            self._on_change(-1)
