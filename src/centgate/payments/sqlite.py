"""Journal store in SQLite: WAL mode with `synchronous=FULL`, so a completed commit survives a power cut.

Waiting units are committed together. While the disk is fast the event loop commits itself: passing work to a
thread and back costs more than such a commit. When the disk is slow, or another process has the write lock, a
thread commits, and the loop stays free. A checkpoint of the write-ahead log takes a hundred times as long as
a commit, and always runs in a thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from centgate.errors import CentgateError
from centgate.instrumentation import NULL_METER, Meter
from centgate.payments.migrations import (
    HEAD_REVISION,
    SchemaMismatch,
    read_revision,
    require_known_revision,
    upgrade_schema,
)
from centgate.payments.sql import BoundStatement, ResultRow, UnitOfWork
from centgate.payments.store import InvalidDatabaseUrl, JournalUnavailable, UnitFactory

T = TypeVar("T")

MAX_UNITS_PER_COMMIT = 256
"""Maximum number of units in one commit."""
FAST_COMMIT_SECONDS = 0.001
"""Maximum seconds of a commit in the event loop, per four units (or fewer)."""
MAX_PROBE_SECONDS = 0.01
"""Maximum seconds of a commit that may be tried once in the event loop, to measure it."""
PROBE_AFTER_COMMITS = 200
"""Commits in a thread after which the event loop makes one, to measure whether the disk is fast again.

Measurements in the thread include the time that it waits for the loop, so they are only an upper bound.
"""
BUSY_SECONDS = 10.0
"""Maximum seconds to wait for another process's write."""
CHECKPOINT_EVERY = 500
"""Units between two checkpoints of the write-ahead log."""
CACHE_KIB = 6 * 1024
"""Page cache in KiB. A larger one saves nothing that can be measured: the system caches the file too."""
MAX_LOG_PAGES = 8000
"""Size of the log in pages at which a commit does a checkpoint itself, so that the log stays bounded."""


@dataclass(slots=True)
class _Job:
    unit: UnitFactory[Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class SqliteStore:
    """Store in one file, which other processes may write to as well."""

    def __init__(self, url: str, meter: Meter = NULL_METER) -> None:
        self._path = Path(url.removeprefix("sqlite:///"))
        if str(self._path) == ":memory:":
            raise InvalidDatabaseUrl("an in-memory journal would lose all payments at exit; use a file")
        self._meter = meter
        self._waiting = deque[_Job]()
        self._running: asyncio.Future[float | None] | None = None
        self._is_scheduled = False
        # own threads: the shared ones may all be blocked by other work, such as name resolution
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="journal")
        self._closed = False
        self._checkpoint: asyncio.Future[None] | None = None
        self._units_since_checkpoint = 0
        self._connection: sqlite3.Connection | None = None
        self._is_schema_checked = False
        """True once a read has found the schema up to date."""
        self._average_commit_seconds = 0.0
        """Moving average of commit times in the event loop, in seconds."""
        self._thread_commits = 0
        """Commits in the thread since the last one in the event loop."""
        self._fastest_thread_commit = inf
        """Seconds of the fastest of them."""

    async def run(self, unit: UnitFactory[T]) -> T:
        """Run one unit; it is durable when this returns."""
        if self._closed:
            raise JournalUnavailable(RuntimeError("the server has stopped"))
        loop = asyncio.get_running_loop()
        job = _Job(unit, loop.create_future())
        self._waiting.append(job)
        if not self._is_scheduled and self._running is None:
            self._is_scheduled = True
            loop.call_soon(self._commit_waiting)  # other units of this turn of the loop share the commit
        return await job.done

    async def read(self, unit: UnitFactory[T]) -> T:
        """Run a read-only unit on a separate connection, in one snapshot of the file."""
        return await asyncio.to_thread(self._read, unit)

    async def check(self) -> None:
        """Check the schema without changing it."""
        await asyncio.to_thread(self._with_file, _require_known_schema)

    async def migrate(self) -> str | None:
        """Bring the schema up to date."""
        return await asyncio.to_thread(self._with_file, _migrate)

    async def close(self) -> None:
        """Finish waiting units and close the file."""
        while self._waiting or self._running or self._is_scheduled or self._checkpoint:
            await asyncio.sleep(0)
            if under_way := [work for work in (self._running, self._checkpoint) if work]:
                await asyncio.wait(under_way)
        self._closed = True
        self._close_connection()
        self._threads.shutdown()

    def _commit_waiting(self) -> None:
        """Commit waiting units, in the event loop or in a thread."""
        self._is_scheduled = False
        while self._waiting and self._running is None:
            jobs = self._take_jobs()
            if self._is_loop_commit_preferred() and self._try_lock():
                self._record_loop_commit(self._commit(jobs), len(jobs))
                self._finish_jobs(jobs)
            else:
                self._commit_in_thread(jobs)
                self._thread_commits += 1

    def _is_loop_commit_preferred(self) -> bool:
        """Return True if the event loop should commit, judging by recent commit times."""
        again = (
            self._thread_commits >= PROBE_AFTER_COMMITS and self._fastest_thread_commit < MAX_PROBE_SECONDS
        )
        return self._connection is not None and (self._average_commit_seconds <= FAST_COMMIT_SECONDS or again)

    def _record_loop_commit(self, seconds: float | None, units: int) -> None:
        """Update the statistics after a commit in the event loop."""
        if seconds is not None:
            weight = 1 if self._thread_commits >= PROBE_AFTER_COMMITS else 1 / 8
            self._average_commit_seconds += weight * (
                seconds / max(1, units / 4) - self._average_commit_seconds
            )
        self._thread_commits, self._fastest_thread_commit = 0, inf

    def _take_jobs(self) -> list[_Job]:
        return [self._waiting.popleft() for _ in range(min(MAX_UNITS_PER_COMMIT, len(self._waiting)))]

    def _commit_in_thread(self, jobs: Sequence[_Job]) -> None:
        def on_done(future: asyncio.Future[float | None]) -> None:
            self._running = None
            self._fastest_thread_commit = min(self._fastest_thread_commit, future.result() or inf)
            self._finish_jobs(jobs)
            self._commit_waiting()

        self._running = asyncio.get_running_loop().run_in_executor(self._threads, self._commit, jobs)
        self._running.add_done_callback(on_done)

    def _finish_jobs(self, jobs: Sequence[_Job]) -> None:
        """Deliver the results of jobs to their callers, and start a checkpoint if one is due."""
        for job in jobs:
            _deliver_result(job)
        self._units_since_checkpoint += len(jobs)
        if self._units_since_checkpoint >= CHECKPOINT_EVERY and self._checkpoint is None:
            self._units_since_checkpoint = 0
            self._checkpoint = asyncio.get_running_loop().run_in_executor(
                self._threads, _run_checkpoint, self._path
            )
            self._checkpoint.add_done_callback(self._on_checkpoint_done)

    def _on_checkpoint_done(self, _: asyncio.Future[None]) -> None:
        self._checkpoint = None

    def _try_lock(self) -> bool:
        """Acquire the write lock if it is free; return True on success."""
        assert self._connection is not None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return False
        return True

    def _commit(self, jobs: Sequence[_Job]) -> float | None:
        """Run all jobs in one transaction; return the seconds of its commit, None if it failed.

        Errors are stored in the jobs.
        """
        try:
            connection = self._connection = self._connection or _open_migrated(self._path)
            started = self._commit_together(connection, jobs)
            seconds = time.perf_counter() - started
            self._meter.record_commit(seconds, len(jobs))
            if any(isinstance(job.error, sqlite3.OperationalError) for job in jobs):
                self._close_connection()
        except Exception as error:  # noqa: BLE001 - every waiting caller must get an error
            self._close_connection()
            for job in jobs:
                job.error = JournalUnavailable(error)
            return None
        return seconds

    def _commit_together(self, connection: sqlite3.Connection, jobs: Sequence[_Job]) -> float:
        """Run jobs and commit; return the start time of the commit.

        If a job fails, all are run once more, each in a savepoint.
        """
        _acquire_lock(connection)
        try:
            for job in jobs:
                _run_job(job, connection)
        except _JobFailed:
            connection.execute("ROLLBACK")
            _acquire_lock(connection)
            for job in jobs:
                _run_job_in_savepoint(job, connection)
        started = time.perf_counter()
        connection.execute("COMMIT")
        return started

    def _close_connection(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _read(self, unit: UnitFactory[T]) -> T:
        def read(path: Path) -> T:
            is_migrated = self._connection or self._is_schema_checked
            with closing(_connect(path) if is_migrated else _open_migrated(path)) as connection:
                self._is_schema_checked = True
                connection.execute("PRAGMA query_only=ON")
                connection.execute("BEGIN")
                return _run_unit(unit(), connection)

        try:
            return self._with_file(read)
        except SchemaMismatch as error:
            raise JournalUnavailable(error) from error
        except JournalUnavailable:
            self._is_schema_checked = False  # the file may have been replaced
            raise

    def _with_file(self, work: Callable[[Path], T]) -> T:
        """Run work on the file outside of the commits. Raises JournalUnavailable."""
        try:
            return work(self._path)
        except (sqlite3.Error, SQLAlchemyError) as error:
            raise JournalUnavailable(error) from error


class _JobFailed(Exception):
    """A job failed by itself, not because of the database; the job has the error."""


def _run_job(job: _Job, connection: sqlite3.Connection) -> None:
    """Run one unit; a CentgateError is a regular result, since units raise it before they write."""
    job.error = None
    try:
        job.result = _run_unit(job.unit(), connection)
    except CentgateError as refusal:
        job.error = refusal
    except Exception as error:
        job.error = error
        raise _JobFailed from error


def _run_job_in_savepoint(job: _Job, connection: sqlite3.Connection) -> None:
    connection.execute("SAVEPOINT unit")
    with suppress(_JobFailed):
        _run_job(job, connection)
    if job.error is not None:
        connection.execute("ROLLBACK TO unit")
    connection.execute("RELEASE unit")


def _run_unit(unit: UnitOfWork[T], connection: sqlite3.Connection) -> T:
    """Run a unit of work to completion and return its result."""
    try:
        statement = next(unit)
        while True:
            statement = unit.send(_fetch_rows(statement, connection))
    except StopIteration as end:
        return cast(T, end.value)


def _fetch_rows(bound: BoundStatement, connection: sqlite3.Connection) -> list[ResultRow]:
    rows: list[ResultRow] = []
    for text in bound.statement.sqlite:
        rows = connection.execute(text, bound.parameters).fetchall()
        if not rows:
            break
    return rows


def _deliver_result(job: _Job) -> None:
    if job.done.done():  # the caller has stopped waiting
        return
    if job.error is None:
        job.done.set_result(job.result)
    elif isinstance(job.error, sqlite3.Error):
        job.done.set_exception(JournalUnavailable(job.error))
    else:
        job.done.set_exception(job.error)


def _acquire_lock(connection: sqlite3.Connection) -> None:
    """Acquire the write lock, unless held: a read that writes later could otherwise be refused."""
    if not connection.in_transaction:
        _execute_with_retry(connection, "BEGIN IMMEDIATE")


def _execute_with_retry(connection: sqlite3.Connection, statement: str) -> None:
    """Execute a statement, retrying while another process holds the lock."""
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.001)


def _open_migrated(path: Path) -> sqlite3.Connection:
    """Open a connection for writing, after bringing the schema up to date."""
    connection = _connect(path)
    try:
        if not _is_current(connection):
            _migrate(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_current(connection: sqlite3.Connection) -> bool:
    """Return True if the file has the schema of this version: SQLAlchemy takes ten times as long to tell."""
    try:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.OperationalError:
        return False  # an empty file, or one that cannot be read: the migration tells which
    return [row[0] for row in found] == [HEAD_REVISION]


def _connect(path: Path) -> sqlite3.Connection:
    # this module begins transactions, not the driver, and waits for locks itself
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    connection.row_factory = sqlite3.Row
    _execute_with_retry(connection, "PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={MAX_LOG_PAGES}")
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    return connection


def _run_checkpoint(path: Path) -> None:
    """Checkpoint the write-ahead log, without blocking readers or writers."""
    with suppress(sqlite3.Error), closing(_connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _require_known_schema(path: Path) -> None:
    """Raise SchemaMismatch for a file of a newer version; a missing file is accepted."""
    if not path.exists():
        return
    engine = create_sqlite_engine(path)
    try:
        with engine.connect() as connection, connection.begin():
            require_known_revision(read_revision(connection))
    finally:
        engine.dispose()


def _migrate(path: Path) -> str | None:
    """Bring a file's schema up to date; returns the version it had, None for an empty file."""
    _connect(path).close()  # turns the write-ahead log on, for good
    engine = create_sqlite_engine(path)
    try:
        with engine.connect() as connection:
            return upgrade_schema(connection)
    finally:
        engine.dispose()


def create_sqlite_engine(path: Path) -> Engine:
    """Create a SQLAlchemy engine for a file, for migrations."""
    engine = create_engine(
        URL.create(
            "sqlite", database=str(path)
        ),  # a file name may contain characters that are special in a URL
        poolclass=NullPool,
        connect_args={"isolation_level": None, "timeout": BUSY_SECONDS},
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
