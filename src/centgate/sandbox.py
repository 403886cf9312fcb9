"""Processing of untrusted input in subprocesses, which are killed if they exceed a time or memory limit.

Parsers in C hold the interpreter's lock and cannot be interrupted, so they must not run in the event loop or
in a thread.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from concurrent.futures import BrokenExecutor, Future
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

from pebble import ProcessExpired, ProcessPool

from centgate.fair_queue import FairQueue, Job

P = ParamSpec("P")
T = TypeVar("T")


WORK_KEYS: ContextVar[tuple[str, ...]] = ContextVar("WORK_KEYS", default=())
"""For whom the current work is done, such as a payer and a site: each takes turns with the others."""
WORK_JOB: ContextVar[Job | None] = ContextVar("WORK_JOB", default=None)
"""Job of the queue that the current work belongs to; None if no request reserved its place."""
SECONDS_PER_MEGABYTE = 0.25
"""Seconds that input of this size takes to parse on a fast machine, until it is known to take longer."""
LOWER_PRIORITY = 5
"""Niceness of the processes: requests that need no parsing come first."""
MAX_SLOWDOWN = 10
"""Elapsed time in which a task must get its processor time, as a multiple of it.

A busy machine gives the processes little of each second, so elapsed time alone would refuse valid input.
"""
MAX_TASKS_PER_PROCESS = 500
"""Number of tasks after which a process is replaced, since parsers leak memory."""
STATUS_SECONDS = 1.0
"""Seconds between two looks at whether the pool that a task waits for still works."""
FORK_SERVER = multiprocessing.get_context("forkserver")
"""Forks each process from one that has imported the modules, and has seen no input.

A process that was killed is replaced in some milliseconds, where importing the modules again takes half a
second of the processor, and the processes share the modules' memory.
"""


class TaskFailed(Exception):
    """The task failed; the message is the reason as a clause."""


class TaskTimedOut(TaskFailed):
    """The task exceeded its time limit and was killed."""


class TaskDied(TaskFailed):
    """The task's process ended by itself, usually because it ran out of memory."""


class ProcessNotStarted(TaskFailed):
    """No process could be started for the task."""


class Sandbox:
    """Pool of processes that run one task each at a time; they are started on first use."""

    def __init__(self, processes: int, *, megabytes: int, modules: tuple[str, ...] = ()) -> None:
        """`megabytes` of address space per process; `modules` are imported before a task's time starts."""
        self._processes, self._process_limits = processes, (megabytes, modules)
        if modules:
            FORK_SERVER.set_forkserver_preload([*modules])
        self._pool = self._create_pool()
        self._started_pool: ProcessPool | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._queue = FairQueue(processes)

    async def run_task(
        self, timeout: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function in another process and return its result; arguments and result must be picklable.

        `timeout` is in seconds of processor time; the task may take `MAX_SLOWDOWN` times as long. Raises
        TaskTimedOut, TaskDied, ProcessNotStarted, and the function's own exceptions. A cancelled task is
        killed. Tasks wait for a process in the order of `FairQueue`, by the keys of `WORK_KEYS`.
        """
        async with self._wait_turn(args):
            pool = await self._open_pool()
            try:
                future = pool.schedule(
                    _run_limited, args=(timeout, function, args, kwargs), timeout=timeout * MAX_SLOWDOWN
                )
            except (RuntimeError, OSError) as error:
                await self._replace_pool(pool)
                raise ProcessNotStarted("no process could be started for it") from error
            try:
                return await _await_result(pool, future)
            except FutureTimeout:
                raise TaskTimedOut(f"it took more than {timeout * MAX_SLOWDOWN:g} s") from None
            except BrokenExecutor as error:
                await self._replace_pool(pool)
                raise ProcessNotStarted("no process could be started for it") from error
            except (ProcessExpired, FutureCancelled, MemoryError) as error:
                if isinstance(error, ProcessExpired) and error.exitcode == -signal.SIGPROF:
                    raise TaskTimedOut(f"it took more than {timeout:g} s") from None
                if isinstance(error, FutureCancelled):
                    raise TaskFailed("the parser process was stopped") from None
                raise TaskDied("it needed more memory than it may have") from None

    @contextmanager
    def reserve_place(self) -> Generator[None]:
        """Count the work of the block in `estimate_wait` from now on, also before its first task."""
        with self._queue.admit_job(WORK_KEYS.get()) as job:
            token = WORK_JOB.set(job)
            try:
                yield
            finally:
                WORK_JOB.reset(token)

    def estimate_wait(self) -> float:
        """Return the seconds that a task with the keys of `WORK_KEYS` would wait for a process."""
        return self._queue.estimate_wait(WORK_KEYS.get())

    async def close(self) -> None:
        """Stop the processes, also busy ones."""
        self._closed = True
        await _stop_pool(self._pool)

    @asynccontextmanager
    async def _wait_turn(self, args: Sequence[object]) -> AsyncGenerator[None]:
        """Wait for a process; the size of the arguments tells the estimates how long the task may take."""
        size = sum(len(value) for value in args if isinstance(value, bytes))
        job = WORK_JOB.get()
        with job.announce(size / 1e6 * SECONDS_PER_MEGABYTE) if job else nullcontext():
            await self._open_pool()  # not in its turn, whose duration is evidence of how long tasks take
            async with self._queue.wait_turn(WORK_KEYS.get(), job):
                yield

    async def _open_pool(self) -> ProcessPool:
        """Return the pool with its processes started; replace it and raise ProcessNotStarted if it fails."""
        pool = self._pool
        try:
            return await self._start_pool()
        except (RuntimeError, OSError) as error:
            await self._replace_pool(pool)
            raise ProcessNotStarted("no process could be started for it") from error

    async def _start_pool(self) -> ProcessPool:
        """Return the pool with its processes started.

        The first start takes as long as the fork server's imports, so a thread waits for it.
        """
        if self._started_pool is not self._pool:
            async with self._starting:
                pool = self._pool
                await asyncio.to_thread(lambda: pool.active)  # starts a pool that is new
                self._started_pool = pool
        return self._pool

    async def _replace_pool(self, broken_pool: ProcessPool) -> None:
        """Replace a pool that broke, unless another task did; it would not recover by itself."""
        if not self._closed and self._pool is broken_pool:
            self._pool = self._create_pool()
            await _stop_pool(broken_pool)

    def _create_pool(self) -> ProcessPool:
        return ProcessPool(
            max_workers=self._processes,
            max_tasks=MAX_TASKS_PER_PROCESS,
            initializer=_limit_process,
            initargs=self._process_limits,
            context=cast(Any, FORK_SERVER),
        )


async def _await_result(pool: ProcessPool, future: Future[T]) -> T:
    """Return a task's result; the task is killed if the caller is cancelled. Raises what the task raises.

    Raises BrokenExecutor if the pool broke: pebble fails the tasks that it has registered at that moment,
    and forgets one that it takes from its queue a moment later.
    """
    result = asyncio.wrap_future(future)
    try:
        while not result.done():
            await asyncio.wait({result}, timeout=STATUS_SECONDS)
            if not result.done() and not pool.active:
                raise BrokenExecutor
    except BaseException:
        result.cancel()
        raise
    return result.result()


async def _stop_pool(pool: ProcessPool) -> None:
    """Stop a pool, in a thread: one that is just being started is stopped after its start."""
    await asyncio.to_thread(pool.stop)
    await asyncio.to_thread(pool.join)


def _run_limited(
    timeout: float, function: Callable[P, T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> T:
    """Run a function; the kernel ends the process, whatever it does, after that much processor time."""
    signal.setitimer(signal.ITIMER_PROF, timeout)
    try:
        return function(*args, **kwargs)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_process(megabytes: int, modules: tuple[str, ...]) -> None:
    limit = megabytes << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(LOWER_PRIORITY)
    for module in modules:
        import_module(module)
