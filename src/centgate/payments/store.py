"""Where the journal is kept: SQLite, written by one thread that groups what waits into one commit."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from centgate.errors import CentgateError, InternalError
from centgate.payments.migrations import bring_up_to_date

T = TypeVar("T")
Unit = Callable[[Connection], T]
"""A piece of work inside a transaction: all of it is committed, or none."""

GROUP = 256
"""At most this many units share one commit."""


class JournalUnavailable(InternalError):
    """The journal cannot be read or written; what was asked of it did not happen."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("the payment journal cannot be read or written")
        self.__cause__ = cause


class Store(Protocol):
    """A database that runs units of work, each durable when `run` returns."""

    async def run(self, unit: Unit[T]) -> T:
        """Run one unit in a transaction; JournalUnavailable when the database fails."""
        ...

    async def close(self) -> None:
        """Finish what waits and let go."""
        ...


@dataclass(slots=True)
class _Job:
    unit: Unit[Any]
    done: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None


class SqliteStore:
    """SQLite in WAL mode with `synchronous=FULL`: a commit that returned survives a power cut.

    All work goes through one writer thread. While a commit waits for the disk others queue up and share the
    next one, so concurrent payments cost a fraction of a sync each. Other processes may write to the same
    file.
    """

    def __init__(self, url: str) -> None:
        self._engine = sqlite_engine(url)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    async def run(self, unit: Unit[T]) -> T:
        """Run one unit; it is on the disk when this returns."""
        loop = asyncio.get_running_loop()
        job = _Job(unit, loop.create_future(), loop)
        self._jobs.put(job)
        return await job.done

    async def close(self) -> None:
        """Finish what waits and let go of the file."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        self._engine.dispose()

    def _work(self) -> None:
        connection: Connection | None = None
        while (jobs := self._waiting()) is not None:
            try:
                connection = connection or self._opened()
                _commit_together(connection, jobs)
                if any(isinstance(job.error, DatabaseError) for job in jobs):
                    connection = _abandon(connection)
            except Exception as error:  # noqa: BLE001 - whatever the database does, the waiting are told
                connection = _abandon(connection)
                for job in jobs:
                    job.error = error
            _tell(jobs)
        _abandon(connection)

    def _opened(self) -> Connection:
        connection = self._engine.connect()
        bring_up_to_date(connection)
        return connection

    def _waiting(self) -> list[_Job] | None:
        """The jobs in the queue, at least one; None when there will be no more."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == GROUP:
                return jobs
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        if jobs:
            self._jobs.put(None)
        return jobs or None


def _commit_together(connection: Connection, jobs: list[_Job]) -> None:
    """All jobs in one transaction; when one of them fails, once more with a way back before each."""
    try:
        with connection.begin():
            for job in jobs:
                _do(job, connection)
    except _Failed:
        with connection.begin():
            for job in jobs:
                with suppress(_Failed), connection.begin_nested():
                    _do(job, connection)


class _Failed(Exception):
    """A job failed, which is its own affair and not the database's; it knows with what."""


def _do(job: _Job, connection: Connection) -> None:
    """Run one unit; a refusal is its result, since units refuse before they write."""
    job.error = None
    try:
        job.result = job.unit(connection)
    except CentgateError as refusal:
        job.error = refusal
    except Exception as error:
        job.error = error
        raise _Failed from error


def _abandon(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(DatabaseError):
            connection.close()


def _tell(jobs: list[_Job]) -> None:
    for loop in {job.loop for job in jobs}:
        with suppress(RuntimeError):  # the loop has ended, so nobody waits
            loop.call_soon_threadsafe(_resolve, [job for job in jobs if job.loop is loop])


def _resolve(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.done.done():
            continue
        if job.error is None:
            job.done.set_result(job.result)
        elif isinstance(job.error, DatabaseError | sqlite3.Error):
            job.done.set_exception(JournalUnavailable(job.error))
        else:
            job.done.set_exception(job.error)


def sqlite_engine(url: str) -> Engine:
    """An engine for one file, every connection set up to be durable and to wait for other writers."""
    path = Path(url.removeprefix("sqlite:///"))
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # transactions are begun below, not by the driver
        connection.execute("PRAGMA busy_timeout=10000")
        _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        # moving the log into the file is what the slowest commits wait for: seldom, in one go
        connection.execute("PRAGMA wal_autocheckpoint=8000")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        # IMMEDIATE takes the write lock at once: a read that later writes could otherwise be refused
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _switch_to_wal(connection: Any) -> None:
    """Of two processes that open a new file at once SQLite turns one away, and does not wait as elsewhere."""
    give_up = time.monotonic() + 1
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def open_store(url: str) -> Store:
    """The store a database URL names; it is opened, and its schema brought up to date, when first used."""
    return SqliteStore(url)
