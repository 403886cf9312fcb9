"""Journal store in SQLite: WAL mode with `synchronous=FULL`, so a completed commit survives a power cut.

Waiting units are committed together. While the disk is fast the event loop commits itself: passing work to a
thread and back costs more than such a commit. When the disk is slow a thread commits, and the loop stays
free. The statements before the commit still run in the loop, since a thread would wait for the interpreter at
each statement. If they are slow, or another process has the write lock, they run in the thread too. A
checkpoint of the write-ahead log takes a hundred times as long as a commit, and always runs in a thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import Struct
from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from centgate.errors import CentgateError
from centgate.instrumentation import NULL_METER, Meter
from centgate.payments.database.migrations import (
    HEAD_REVISION,
    SELECT_REVISION,
    SchemaMismatch,
    read_revision,
    require_known_revision,
    upgrade_schema,
)
from centgate.payments.database.sql import BoundStatement, ResultRow, UnitOfWork
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable, UnitFactory, sqlite_path

T = TypeVar("T")

_AFFECTED_ROW: Mapping[str, Any] = {}
"""Stands for each row that a change without returned rows has affected."""
MAX_UNITS_PER_COMMIT = 256
"""Maximum number of units in one commit."""
FAST_COMMIT_SECONDS = 0.001
"""Maximum seconds of a commit in the event loop, per four units (or fewer)."""
FAST_STATEMENTS_SECONDS = 0.001
"""Maximum seconds of the statements before it in the event loop, per four units (or fewer)."""
MAX_PROBE_SECONDS = 0.01
"""Maximum seconds of work that may be tried once in the event loop, to measure it."""
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


class _Job(Struct):
    unit: UnitFactory[Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class _LoopWork:
    """Decides if one kind of work is short enough for the event loop, judging by its recent durations."""

    def __init__(self) -> None:
        self._average = 0.0
        """Moving average of the durations in the event loop, in seconds per four units (or fewer)."""
        self._times_in_thread = 0
        """How often it ran in a thread since it last ran in the event loop."""
        self._fastest_in_thread = inf
        """Seconds of the fastest of them."""

    def is_short(self, limit: float) -> bool:
        """Return True if it should run in the event loop: it is short, or is to be measured again."""
        is_probe_due = (
            self._times_in_thread >= PROBE_AFTER_COMMITS and self._fastest_in_thread < MAX_PROBE_SECONDS
        )
        return self._average <= limit or is_probe_due

    def record_in_loop(self, seconds: float | None, units: int) -> None:
        """Record its duration in the event loop, None if it failed."""
        if seconds is not None:
            weight = 1 if self._times_in_thread >= PROBE_AFTER_COMMITS else 1 / 8
            self._average += weight * (seconds / max(1, units / 4) - self._average)
        self._times_in_thread, self._fastest_in_thread = 0, inf

    def record_in_thread(self, seconds: float | None) -> None:
        """Record its duration in a thread, None if it failed."""
        self._times_in_thread += 1
        self._fastest_in_thread = min(self._fastest_in_thread, seconds or inf)


class SqliteStore:
    """Store in one file, which other processes may write to as well."""

    def __init__(self, url: str, meter: Meter = NULL_METER) -> None:
        self._path = sqlite_path(url)
        if str(self._path) == ":memory:":
            raise InvalidDatabaseUrl("an in-memory journal would lose all payments at exit; use a file")
        self._meter = meter
        self._waiting = deque[_Job]()
        self._running: asyncio.Future[None] | None = None
        self._is_scheduled = False
        # own threads: the shared ones may all be blocked by other work, such as name resolution
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="journal")
        self._closed = False
        self._checkpoint: asyncio.Future[None] | None = None
        self._units_since_checkpoint = 0
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        """Inode of the file that was opened first, None before; no other file is used after it."""
        self._is_schema_checked = False
        """True once a read has found the schema up to date."""
        self._statements, self._commits = _LoopWork(), _LoopWork()

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

    async def run_serializable(self, unit: UnitFactory[T]) -> T:
        """Run one unit: every unit runs as a whole, under the file's write lock."""
        return await self.run(unit)

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
        """Run and commit waiting units: in the event loop as far as that is short, else in a thread."""
        self._is_scheduled = False
        while self._waiting and self._running is None:
            jobs = self._take_jobs()
            if not (self._statements.is_short(FAST_STATEMENTS_SECONDS) and self._try_lock()):
                self._start_thread(self._run_and_commit_in_thread, jobs)
                continue
            seconds = self._run_jobs(jobs)
            self._statements.record_in_loop(seconds, len(jobs))
            if seconds is None:
                self._finish_jobs(jobs)
                continue
            if not self._commits.is_short(FAST_COMMIT_SECONDS):
                self._start_thread(self._commit_in_thread, jobs)
                continue
            self._commits.record_in_loop(self._commit(jobs), len(jobs))
            self._finish_jobs(jobs)

    def _take_jobs(self) -> list[_Job]:
        return [self._waiting.popleft() for _ in range(min(MAX_UNITS_PER_COMMIT, len(self._waiting)))]

    def _start_thread(self, work: Callable[[Sequence[_Job]], None], jobs: Sequence[_Job]) -> None:
        """Do the work on some jobs in a thread, then deliver their results and continue with waiting ones."""

        def on_done(_: asyncio.Future[None]) -> None:
            self._running = None
            self._finish_jobs(jobs)
            self._commit_waiting()

        self._running = asyncio.get_running_loop().run_in_executor(self._threads, work, jobs)
        self._running.add_done_callback(on_done)

    def _run_and_commit_in_thread(self, jobs: Sequence[_Job]) -> None:
        seconds = self._run_jobs(jobs)
        self._statements.record_in_thread(seconds)
        if seconds is not None:
            self._commit_in_thread(jobs)

    def _commit_in_thread(self, jobs: Sequence[_Job]) -> None:
        self._commits.record_in_thread(self._commit(jobs))

    def _finish_jobs(self, jobs: Sequence[_Job]) -> None:
        """Deliver the results of jobs to their callers, and start a checkpoint if one is due."""
        for job in jobs:
            _deliver_result(job)
        self._units_since_checkpoint += len(jobs)
        is_due = self._units_since_checkpoint >= CHECKPOINT_EVERY
        if is_due and self._checkpoint is None and self._read_inode() == self._inode:
            self._units_since_checkpoint = 0
            self._checkpoint = asyncio.get_running_loop().run_in_executor(
                self._threads, _run_checkpoint, self._path
            )
            self._checkpoint.add_done_callback(self._on_checkpoint_done)

    def _on_checkpoint_done(self, _: asyncio.Future[None]) -> None:
        self._checkpoint = None

    def _try_lock(self) -> bool:
        """Acquire the write lock if the file is open and the lock is free; return True on success."""
        if self._connection is None or self._read_inode() != self._inode:
            return False
        try:
            return bool(self._connection.execute("BEGIN IMMEDIATE"))
        except sqlite3.Error:
            return False

    def _run_jobs(self, jobs: Sequence[_Job]) -> float | None:
        """Run all jobs in one transaction, which is left open; return the seconds, None if it failed.

        Errors are stored in the jobs.
        """
        started = time.perf_counter()
        with self._store_failure(jobs):
            self._require_same_file()
            self._connection = self._connection or self._open_for_writing()
            _run_together(jobs, self._connection)
            return time.perf_counter() - started
        return None

    def _commit(self, jobs: Sequence[_Job]) -> float | None:
        """Commit the transaction of jobs that were run; return the seconds, None if it failed.

        Errors are stored in the jobs.
        """
        if self._connection is None:
            return None
        with self._store_failure(jobs):
            started = time.perf_counter()
            self._connection.execute("COMMIT")
            seconds = time.perf_counter() - started
            self._meter.record_commit(seconds, len(jobs))
            if any(isinstance(job.error, sqlite3.OperationalError) for job in jobs):
                self._close_connection()
            return seconds
        return None

    @contextmanager
    def _store_failure(self, jobs: Sequence[_Job]) -> Generator[None]:
        """Store an exception as the error of all jobs, and close the connection.

        The connection of a removed file stays open: without it the system deletes the file, from which its
        payments can be copied until then, and gives its inode to another one.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - every waiting caller must get an error
            if isinstance(error, FileNotFoundError) and self._connection is not None:
                with suppress(sqlite3.Error):
                    self._connection.rollback()
            else:
                self._close_connection()
            for job in jobs:
                job.error = JournalUnavailable(error)

    def _open_for_writing(self) -> sqlite3.Connection:
        connection = _open_migrated(self._path)
        self._inode = self._inode or self._read_inode()
        return connection

    def _require_same_file(self) -> None:
        """Raise FileNotFoundError if the path no longer names the file that was opened first.

        Payments that are written to a removed file are lost with this process. SQLite has the same check
        (SQLITE_READONLY_DBMOVED), but not in WAL mode. Another file is not used either: the write-ahead log
        beside it may belong to the first one, and would be applied to it.
        """
        if self._inode is not None and self._read_inode() != self._inode:
            raise FileNotFoundError(f"{self._path} was removed or replaced: put it back, or restart")

    def _read_inode(self) -> int | None:
        """Return the inode of the file at the path, None if there is none."""
        try:
            return self._path.stat().st_ino
        except OSError:
            return None

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
            self._require_same_file()
            return self._with_file(read)
        except (SchemaMismatch, FileNotFoundError) as error:
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


def _run_together(jobs: Sequence[_Job], connection: sqlite3.Connection) -> None:
    """Run jobs in one transaction. If one of them fails, all are run once more, each in a savepoint."""
    _acquire_lock(connection)
    try:
        for job in jobs:
            _run_job(job, connection)
    except _JobFailed:
        connection.execute("ROLLBACK")
        _acquire_lock(connection)
        for job in jobs:
            _run_job_in_savepoint(job, connection)


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
    for text, names in bound.statement.sqlite:
        cursor = connection.execute(text, [bound.parameters[name] for name in names])
        rows = [_AFFECTED_ROW] * cursor.rowcount if cursor.description is None else cursor.fetchall()
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
        found = connection.execute(SELECT_REVISION).fetchall()
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
