"""Event loop in a thread of its own, on which a sync client runs its operations."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, TypeVarTuple

import anyio

from centgate.client.transport import Transport

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
_Task = Callable[[], Coroutine[Any, Any, None]]
_Started = Future[tuple[asyncio.AbstractEventLoop, asyncio.Queue[_Task], anyio.CancelScope]]

GRACE_SECONDS = 10.0
"""Seconds to wait for an interrupted or closed call to finish."""
_POLL_INTERVAL = 1.0
"""Polling interval in seconds: Windows delivers Ctrl-C only between waits."""


@dataclass(frozen=True, slots=True)
class _RunningLoop:
    """Event loop of a process in its own thread."""

    loop: asyncio.AbstractEventLoop
    tasks: asyncio.Queue[_Task]
    """Tasks to start."""
    stop: anyio.CancelScope
    thread: threading.Thread


class EventLoopThread:
    """Runs operations for any number of threads at a time. The thread starts with the first call.

    A forked process gets its own thread and connections with its first call. Do not fork during a call:
    locks that the call holds, such as the ledger's, stay held in the child.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        # by process: the loop of a parent is kept in a fork, since its end would close what they share
        self._running: dict[int, _RunningLoop] = {}
        self._stop: Callable[[], object] | None = None
        self._closed = False

    def run(self, operation: Callable[[*Arguments], Awaitable[T]], *arguments: *Arguments) -> T:
        """Run an operation and return its result. KeyboardInterrupt cancels it and its request first.

        Raises RuntimeError if the client is closed before or during the call, or if it is called from
        within an operation.
        """
        running = self._ensure_started()
        if threading.current_thread() is running.thread:
            raise RuntimeError("a client's wallet or `watch` cannot call the client itself")
        task = _LoopTask(partial(operation, *arguments))
        try:
            # not anyio's blocking portal: it waits without limit for a loop that is busy or has just ended
            running.loop.call_soon_threadsafe(running.tasks.put_nowait, task.run)
            while not task.outcome.done() and running.thread.is_alive():
                wait([task.outcome], _POLL_INTERVAL)
        except BaseException:
            task.stop(running.loop)
            raise
        try:
            return task.outcome.result(0)
        except (CancelledError, asyncio.CancelledError, TimeoutError):
            raise RuntimeError(
                "the client was closed during a call; a payment it signed stays open"
            ) from None
        finally:
            del task  # breaks the reference cycle through the error's traceback

    def close(self) -> None:
        """Stop the thread and close the connections."""
        with self._lock:
            self._closed = True
            stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    def _ensure_started(self) -> _RunningLoop:
        process = os.getpid()
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            if process not in self._running:
                self._running[process] = _start_thread(self._transport)
                # also runs when the client is garbage collected, and at process exit
                self._stop = weakref.finalize(self, _stop_thread, self._running[process], process)
            return self._running[process]


class _LoopTask(Generic[T]):
    """Operation on the loop, controlled from another thread."""

    def __init__(self, operation: Callable[[], Awaitable[T]]) -> None:
        self.outcome: Future[T] = Future()
        self._operation = operation
        self._scope: anyio.CancelScope | None = None

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the operation and wait for its end. Called from another thread."""
        if self.outcome.cancel():
            return  # it has not started, and will not
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._cancel)
        wait([self.outcome], GRACE_SECONDS)

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    async def run(self) -> None:
        """Run the operation, unless it was stopped. Must run on the loop."""
        if not self.outcome.set_running_or_notify_cancel():
            return
        with anyio.CancelScope() as self._scope:
            try:
                self.outcome.set_result(await self._operation())
            except BaseException as error:  # noqa: BLE001 - re-raised in the calling thread
                self.outcome.set_exception(error)


def _start_thread(transport: Transport) -> _RunningLoop:
    """Start a thread with a loop. Raises the error if the loop cannot start."""
    started: _Started = Future()
    thread = threading.Thread(
        target=_run_loop, args=(transport, started), name="centgate-client", daemon=True
    )
    thread.start()
    return _RunningLoop(*started.result(), thread)


def _run_loop(transport: Transport, started: _Started) -> None:
    try:
        loop = asyncio.new_event_loop()
    except BaseException as error:  # noqa: BLE001 - re-raised in the calling thread
        started.set_exception(error)
        return
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(_serve_until_stopped(transport, started))


async def _serve_until_stopped(transport: Transport, started: _Started) -> None:
    queue: asyncio.Queue[_Task] = asyncio.Queue()
    async with anyio.create_task_group() as tasks:
        started.set_result((asyncio.get_running_loop(), queue, tasks.cancel_scope))
        while True:  # not started in callbacks of the loop: with sniffio, anyio needs a current task
            tasks.start_soon(await queue.get())
    await transport.aclose()


def _stop_thread(running: _RunningLoop, process: int) -> None:
    """Stop a thread. Does nothing for a thread of the parent process."""
    if process != os.getpid():
        return
    with suppress(RuntimeError):  # the loop has ended
        running.loop.call_soon_threadsafe(running.stop.cancel)
    if threading.current_thread() is not running.thread:
        running.thread.join(GRACE_SECONDS)
