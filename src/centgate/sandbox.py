"""Work on what strangers sent, in processes that are killed when it takes too long or too much memory.

Parsers in C hold the interpreter's lock and cannot be stopped, so neither the event loop nor a thread is a
place for them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import TimeoutError as FutureTimeout
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

from pebble import ProcessExpired, ProcessPool

P = ParamSpec("P")
T = TypeVar("T")


TASKS = 500
"""Pieces of work after which a process is replaced, since parsers leak."""


class WorkFailed(Exception):
    """The work was not done; the message says why, as a clause."""


class Overran(WorkFailed):
    """It took too long and was killed."""


class Died(WorkFailed):
    """Its process ended on its own, mostly for want of memory."""


class Unstarted(WorkFailed):
    """No process could be started for it."""


class Sandbox:
    """A few processes that do one piece of work each at a time; they start when they are first needed."""

    def __init__(self, processes: int, *, megabytes: int, modules: tuple[str, ...] = ()) -> None:
        """`megabytes` of address space for each process; `modules` are imported before work is timed."""
        self._processes, self._confinement = processes, (megabytes, modules)
        self._pool = self._fresh_pool()
        self._closed = False
        self._turns = asyncio.Semaphore(processes)

    async def run(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function makes of arguments in another process; all of them must be picklable.

        Raises Overran, Died and Unstarted beside whatever the function raises. Work that is no longer waited
        for is killed as well.
        """
        async with self._turns:
            try:
                future = self._pool.schedule(function, args=args, kwargs=kwargs, timeout=seconds)
            except (RuntimeError, OSError) as error:
                await self._renew()
                raise Unstarted("no process could be started for it") from error
            try:
                return await asyncio.wrap_future(future)
            except FutureTimeout:
                raise Overran(f"it took more than {seconds:g} s") from None
            except BrokenExecutor as error:
                raise Unstarted("no process could be started for it") from error
            except (ProcessExpired, FutureCancelled, MemoryError):
                raise Died("it needed more memory than it may have") from None

    async def close(self) -> None:
        """End the processes, also those at work."""
        self._closed = True
        await _ended(self._pool)

    async def _renew(self) -> None:
        """Replace a pool that has failed, which it would do for good."""
        failed = self._pool
        if not self._closed:
            self._pool = self._fresh_pool()
            await _ended(failed)

    def _fresh_pool(self) -> ProcessPool:
        return ProcessPool(
            max_workers=self._processes,
            max_tasks=TASKS,
            initializer=_confine,
            initargs=self._confinement,
            context=cast(Any, multiprocessing.get_context("spawn")),
        )


async def _ended(pool: ProcessPool) -> None:
    pool.stop()
    await asyncio.to_thread(pool.join)


def _confine(megabytes: int, modules: tuple[str, ...]) -> None:
    limit = megabytes << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for module in modules:
        import_module(module)
