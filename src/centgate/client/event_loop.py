"""The event loop of a sync client, in a thread of its own: so that one driver serves both clients."""

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

from centgate.client.exchange import Way, go

T = TypeVar("T")

GRACE = 10.0
"""Seconds in which what was interrupted or closed comes to its end; it is not waited for longer."""
_WAKE = 1.0
"""Seconds between two looks: Windows notices Ctrl-C only between waits."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A thread with its loop; `ended` is set on the loop."""

    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event
    http: httpx2.AsyncClient
    thread: threading.Thread
    process: int


class EventLoopThread:
    """Walks ways for threads, any number at a time. The thread starts with the first of them.

    A process that is forked gets a thread and connections of its own with its first call. Nobody should fork
    while a call is under way: what the call holds just then, the ledger say, stays held in the child.
    """

    def __init__(self, connect: Callable[[], httpx2.AsyncClient]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._inherited: _Running | None = None
        self._end: Callable[[], object] | None = None
        self._closed = False

    def go(self, way: Way[T]) -> T:
        """What a way returns or raises. KeyboardInterrupt ends the way first, and the request under way.

        RuntimeError when the client is closed, before or meanwhile, or when it is called from within a way.
        """
        running = self._started()
        if threading.current_thread() is running.thread:
            raise RuntimeError("a client's wallet or `watch` cannot call the client itself")
        outcome: Future[T] = Future()
        walk = _Walk(running.loop, go(running.http, way), outcome)
        try:
            running.loop.call_soon_threadsafe(walk.start)
            while not outcome.done():
                wait([outcome], _WAKE)
                if not running.thread.is_alive():
                    break
        except BaseException:
            walk.stop()
            raise
        try:
            return outcome.result(0)
        except (CancelledError, asyncio.CancelledError, TimeoutError):
            raise RuntimeError(
                "the client was closed during a call; a payment it signed stays open"
            ) from None
        finally:
            del outcome, walk  # an error's traceback would hold what holds the error

    def close(self) -> None:
        """End the thread and close the connections."""
        with self._lock:
            self._closed = True
            end, self._end = self._end, None
        if end is not None:
            end()

    def _started(self) -> _Running:
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            if self._running is None or self._running.process != os.getpid():
                # kept: the parent's loop must not be closed from here
                self._inherited, self._running = self._running, _start(self._connect())
                # also when the client is forgotten, and at the end of the process
                self._end = weakref.finalize(self, _stop, self._running)
            return self._running


class _Walk:
    """One way on the loop, from another thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], outcome: Future[Any]
    ) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._outcome = outcome
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """On the loop."""
        self._task = self._loop.create_task(self._walked())
        self._task.add_done_callback(self._give_up)

    def stop(self) -> None:
        """From another thread: cancel it, and wait for its end."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop has ended
            self._give_up(None)
        wait([self._outcome], GRACE)

    def _cancel(self) -> None:
        if self._task is None:
            self._give_up(None)
        else:
            self._task.cancel()

    async def _walked(self) -> None:
        try:
            self._outcome.set_result(await self._coroutine)
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that asked
            self._outcome.set_exception(error)

    def _give_up(self, task: asyncio.Task[None] | None) -> None:
        """It may have been cancelled before it began."""
        self._coroutine.close()
        if not self._outcome.done():
            self._outcome.set_exception(CancelledError())


def _start(http: httpx2.AsyncClient) -> _Running:
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(
        target=lambda: asyncio.run(_until_ended(http, begun)), name="centgate-client", daemon=True
    )
    thread.start()
    loop, ended = begun.result()
    return _Running(loop, ended, http, thread, os.getpid())


async def _until_ended(
    http: httpx2.AsyncClient, begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    ended = asyncio.Event()
    async with http:
        begun.set_result((asyncio.get_running_loop(), ended))
        await ended.wait()
        walks = asyncio.all_tasks() - {asyncio.current_task()}
        for each in walks:
            each.cancel()
        await asyncio.gather(*walks, return_exceptions=True)


def _stop(running: _Running) -> None:
    """End a thread; one that this process has only inherited is left alone."""
    if running.process != os.getpid():
        return
    with suppress(RuntimeError):
        running.loop.call_soon_threadsafe(running.ended.set)
    if threading.current_thread() is not running.thread:
        running.thread.join(GRACE)
