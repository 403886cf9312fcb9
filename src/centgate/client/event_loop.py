"""Event loop of a sync client, in its own thread, so that both clients share one driver."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2

from centgate.client.transport import Way, go

T = TypeVar("T")

GRACE_SECONDS = 10.0
"""Seconds to wait for an interrupted or closed call to finish."""
_POLL_INTERVAL = 1.0
"""Polling interval in seconds: Windows delivers Ctrl-C only between waits."""


@dataclass(frozen=True, slots=True)
class _LoopThread:
    """Running thread with its loop; `ended` is set on the loop."""

    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event
    http: httpx2.AsyncClient
    thread: threading.Thread
    process: int


class EventLoopThread:
    """Runs operations for any number of threads at a time. The thread starts with the first call.

    A forked process gets its own thread and connections with its first call. Do not fork during a call:
    locks that the call holds, such as the ledger's, stay held in the child.
    """

    def __init__(self, connect: Callable[[], httpx2.AsyncClient]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._running: _LoopThread | None = None
        self._inherited: _LoopThread | None = None
        self._end: Callable[[], object] | None = None
        self._closed = False

    def go(self, way: Way[T]) -> T:
        """Run an operation and return its result. KeyboardInterrupt cancels it and its request first.

        Raises RuntimeError if the client is closed before or during the call, or if it is called from
        within an operation.
        """
        running = self._ensure_started()
        if threading.current_thread() is running.thread:
            raise RuntimeError("a client's wallet or `watch` cannot call the client itself")
        outcome: Future[T] = Future()
        task = _LoopTask(running.loop, go(running.http, way), outcome)
        try:
            running.loop.call_soon_threadsafe(task.start)
            while not outcome.done():
                wait([outcome], _POLL_INTERVAL)
                if not running.thread.is_alive():
                    break
        except BaseException:
            task.stop()
            raise
        try:
            return outcome.result(0)
        except (CancelledError, asyncio.CancelledError, TimeoutError):
            raise RuntimeError(
                "the client was closed during a call; a payment it signed stays open"
            ) from None
        finally:
            del outcome, task  # breaks the reference cycle through the error's traceback

    def close(self) -> None:
        """Stop the thread and close the connections."""
        with self._lock:
            self._closed = True
            end, self._end = self._end, None
        if end is not None:
            end()

    def _ensure_started(self) -> _LoopThread:
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            if self._running is None or self._running.process != os.getpid():
                # keep a reference: the parent's loop must not be closed in this process
                self._inherited, self._running = self._running, _start_thread(self._connect())
                # also runs when the client is garbage collected, and at process exit
                self._end = weakref.finalize(self, _stop_thread, self._running)
            return self._running


class _LoopTask:
    """One operation on the loop, controlled from another thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], outcome: Future[Any]
    ) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._outcome = outcome
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task. Must run on the loop."""
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._close)

    def stop(self) -> None:
        """Cancel the task and wait for its end. Called from another thread."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop has ended
            self._close(None)
        wait([self._outcome], GRACE_SECONDS)

    def _cancel(self) -> None:
        if self._task is None:
            self._close(None)
        else:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            self._outcome.set_result(await self._coroutine)
        except BaseException as error:  # noqa: BLE001 - re-raised in the calling thread
            self._outcome.set_exception(error)

    def _close(self, task: asyncio.Task[None] | None) -> None:
        """Close the coroutine, which may have been cancelled before it started."""
        self._coroutine.close()
        if not self._outcome.done():
            self._outcome.set_exception(CancelledError())


def _start_thread(http: httpx2.AsyncClient) -> _LoopThread:
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve_until_ended(http, started)), name="centgate-client", daemon=True
    )
    thread.start()
    loop, ended = started.result()
    return _LoopThread(loop, ended, http, thread, os.getpid())


async def _serve_until_ended(
    http: httpx2.AsyncClient, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    ended = asyncio.Event()
    async with http:
        started.set_result((asyncio.get_running_loop(), ended))
        await ended.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _stop_thread(running: _LoopThread) -> None:
    """Stop a thread. Does nothing for a thread of the parent process."""
    if running.process != os.getpid():
        return
    with suppress(RuntimeError):
        running.loop.call_soon_threadsafe(running.ended.set)
    if threading.current_thread() is not running.thread:
        running.thread.join(GRACE_SECONDS)
