"""Deadlines of many short works with one timer of the event loop.

A timer for each deadline would nearly always be cancelled, and to create and cancel it takes longer than much
of the work that it limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from math import inf

import structlog


class SharedTimer:
    """Calls functions at their times, unless they are cancelled before; used in one event loop."""

    def __init__(self) -> None:
        self._pending: dict[Hashable, tuple[float, Callable[[], object]]] = {}
        self._handle: asyncio.TimerHandle | None = None
        self._next_at = inf

    def call_at(self, when: float, key: Hashable, function: Callable[[], object]) -> None:
        """Call a function at a time of the loop's clock; `key` cancels it."""
        self._pending[key] = (when, function)
        if when < self._next_at:
            self._start(when)

    def cancel(self, key: Hashable) -> None:
        """Cancel a call, if it was not made before."""
        self._pending.pop(key, None)

    def _start(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._next_at = when
        self._handle = asyncio.get_running_loop().call_at(when, self._call_due)

    def _call_due(self) -> None:
        self._handle, self._next_at = None, inf
        now = asyncio.get_running_loop().time()
        due = sorted(
            (each for each in self._pending.items() if each[1][0] <= now), key=lambda each: each[1][0]
        )
        if later := [when for when, _ in self._pending.values() if when > now]:
            self._start(min(later))
        for key, call in due:
            if self._pending.get(key) is call:  # neither cancelled nor set anew by a function before it
                del self._pending[key]
                try:
                    call[1]()
                except Exception:  # noqa: BLE001 - the deadlines of the others must be kept
                    structlog.get_logger().exception("a scheduled call failed")
