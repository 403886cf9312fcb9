"""The journal in SQLite: WAL mode with `synchronous=FULL`, so a commit that returned survives a power cut.

What waits is committed together. As long as the disk answers quickly the event loop does it itself: handing
work to a thread and back costs more than such a commit. When the disk is slow, or another process has the
write lock, a thread does it, and the loop stays free. Moving the write-ahead log into the file takes a
hundred times as long as a commit, and is always left to a thread.
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
from centgate.meter import SILENT, Meter
from centgate.payments.migrations import SchemaMismatch, bring_up_to_date, require_known, version
from centgate.payments.statements import Ask, Asking, Row
from centgate.payments.store import BadAddress, JournalUnavailable, Unit

T = TypeVar("T")

GROUP = 256
"""At most this many units share one commit."""
QUICK = 0.001
"""Seconds of a commit for which the event loop is held up: of each four units in it, or fewer."""
BEARABLE = 0.01
"""Seconds of a commit for which the event loop is held up once, to see how long it takes."""
AGAIN = 200
"""Commits of a thread after which the event loop makes one, to see whether the disk is quick by now.

A thread cannot tell: its commits take as long as the loop keeps it from going on. But none of them takes less
than the disk does.
"""
BUSY_SECONDS = 10.0
"""How long another process's write is waited for."""
TIDY_EVERY = 500
"""Units after which a thread moves the write-ahead log into the file."""
CACHE_KIB = 64 * 1024
"""At most so much of the file is kept in memory: the way to each of ten million payments."""
LOG_PAGES = 8000
"""Pages of the log at which a commit waits for what the thread has left of it, so that the log ends."""


@dataclass(slots=True)
class _Job:
    unit: Unit[Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class SqliteStore:
    """One file, which other processes may write to as well."""

    def __init__(self, url: str, meter: Meter = SILENT) -> None:
        self._path = Path(url.removeprefix("sqlite:///"))
        if str(self._path) == ":memory:":
            raise BadAddress("a journal in memory would forget who has paid; name a file")
        self._meter = meter
        self._waiting = deque[_Job]()
        self._running: asyncio.Future[float | None] | None = None
        self._due = False
        # threads of our own: others may keep all of those that are shared waiting, as for a name server
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="journal")
        self._closed = False
        self._tidying: asyncio.Future[None] | None = None
        self._untidy = 0
        self._connection: sqlite3.Connection | None = None
        self._seen = False
        """Whether the schema was seen to be up to date by one who only reads."""
        self._commit_takes = 0.0
        """Seconds, as of late, in the event loop."""
        self._elsewhere = 0
        """Commits of the thread since the event loop made one."""
        self._best = inf
        """Seconds of the quickest of them."""

    async def run(self, unit: Unit[T]) -> T:
        """Run one unit; it is on the disk when this returns."""
        if self._closed:
            raise JournalUnavailable(RuntimeError("the server has ended"))
        loop = asyncio.get_running_loop()
        job = _Job(unit, loop.create_future())
        self._waiting.append(job)
        if not self._due and self._running is None:
            self._due = True
            loop.call_soon(self._go_on)  # what else this turn of the loop brings shares the commit
        return await job.done

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, on a connection of its own, which sees one state of the file."""
        return await asyncio.to_thread(self._read, unit)

    async def check(self) -> None:
        """Look at the schema and leave it as it is."""
        await asyncio.to_thread(self._at_rest, _look)

    async def migrate(self) -> str | None:
        """Bring the schema up to date."""
        return await asyncio.to_thread(self._at_rest, _migrated)

    async def close(self) -> None:
        """Finish what waits and let go of the file."""
        while self._waiting or self._running or self._due or self._tidying:
            await asyncio.sleep(0)
            if under_way := [work for work in (self._running, self._tidying) if work]:
                await asyncio.wait(under_way)
        self._closed = True
        self._abandon()
        self._threads.shutdown()

    def _go_on(self) -> None:
        """Commit what waits, here or in a thread."""
        self._due = False
        while self._waiting and self._running is None:
            jobs = self._some()
            if self._quick() and self._locked():
                self._took(self._commit(jobs), len(jobs))
                self._tell(jobs)
            else:
                self._commit_elsewhere(jobs)
                self._elsewhere += 1

    def _quick(self) -> bool:
        """Whether the event loop is to commit, as far as can be known."""
        again = self._elsewhere >= AGAIN and self._best < BEARABLE
        return self._connection is not None and (self._commit_takes <= QUICK or again)

    def _took(self, seconds: float | None, units: int) -> None:
        """The event loop has made a commit."""
        if seconds is not None:
            weight = 1 if self._elsewhere >= AGAIN else 1 / 8
            self._commit_takes += weight * (seconds / max(1, units / 4) - self._commit_takes)
        self._elsewhere, self._best = 0, inf

    def _some(self) -> list[_Job]:
        return [self._waiting.popleft() for _ in range(min(GROUP, len(self._waiting)))]

    def _commit_elsewhere(self, jobs: Sequence[_Job]) -> None:
        def committed(done: asyncio.Future[float | None]) -> None:
            self._running = None
            self._best = min(self._best, done.result() or inf)
            self._tell(jobs)
            self._go_on()

        self._running = asyncio.get_running_loop().run_in_executor(self._threads, self._commit, jobs)
        self._running.add_done_callback(committed)

    def _tell(self, jobs: Sequence[_Job]) -> None:
        """What came of their jobs, to those who wait."""
        for job in jobs:
            _tell(job)
        self._untidy += len(jobs)
        if self._untidy >= TIDY_EVERY and self._tidying is None:
            self._untidy = 0
            self._tidying = asyncio.get_running_loop().run_in_executor(self._threads, _tidy, self._path)
            self._tidying.add_done_callback(self._tidied)

    def _tidied(self, _: asyncio.Future[None]) -> None:
        self._tidying = None

    def _locked(self) -> bool:
        """Take the write lock if it can be had at once."""
        assert self._connection is not None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return False
        return True

    def _commit(self, jobs: Sequence[_Job]) -> float | None:
        """All jobs in one transaction; the seconds of its commit, if it came to that.

        What fails is written down with each.
        """
        try:
            connection = self._connection = self._connection or _opened(self._path)
            started = self._commit_together(connection, jobs)
            seconds = time.perf_counter() - started
            self._meter.committed(seconds, len(jobs))
            if any(isinstance(job.error, sqlite3.OperationalError) for job in jobs):
                self._abandon()
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
            self._abandon()
            for job in jobs:
                job.error = JournalUnavailable(error)
            return None
        return seconds

    def _commit_together(self, connection: sqlite3.Connection, jobs: Sequence[_Job]) -> float:
        """When the commit began. When a job fails, all are done once more with a way back before each."""
        _lock(connection)
        try:
            for job in jobs:
                _do(job, connection)
        except _Failed:
            connection.execute("ROLLBACK")
            _lock(connection)
            for job in jobs:
                _do_alone(job, connection)
        started = time.perf_counter()
        connection.execute("COMMIT")
        return started

    def _abandon(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _read(self, unit: Unit[T]) -> T:
        def read(path: Path) -> T:
            known = self._connection or self._seen
            with closing(_connected(path) if known else _opened(path)) as connection:
                self._seen = True
                connection.execute("BEGIN")
                return _answered(unit(), connection)

        try:
            return self._at_rest(read)
        except SchemaMismatch as error:
            raise JournalUnavailable(error) from error
        except JournalUnavailable:
            self._seen = False  # it may be another file by now
            raise

    def _at_rest(self, work: Callable[[Path], T]) -> T:
        """Do something with the file beside the commits."""
        try:
            return work(self._path)
        except (sqlite3.Error, SQLAlchemyError) as error:
            raise JournalUnavailable(error) from error


class _Failed(Exception):
    """A job failed, which is its own affair and not the database's; it knows with what."""


def _do(job: _Job, connection: sqlite3.Connection) -> None:
    """Run one unit; a refusal is its result, since units refuse before they write."""
    job.error = None
    try:
        job.result = _answered(job.unit(), connection)
    except CentgateError as refusal:
        job.error = refusal
    except Exception as error:
        job.error = error
        raise _Failed from error


def _do_alone(job: _Job, connection: sqlite3.Connection) -> None:
    connection.execute("SAVEPOINT unit")
    with suppress(_Failed):
        _do(job, connection)
    if job.error is not None:
        connection.execute("ROLLBACK TO unit")
    connection.execute("RELEASE unit")


def _answered(asking: Asking[T], connection: sqlite3.Connection) -> T:
    """What comes of a conversation."""
    try:
        ask = next(asking)
        while True:
            ask = asking.send(_rows(ask, connection))
    except StopIteration as end:
        return cast(T, end.value)


def _rows(ask: Ask, connection: sqlite3.Connection) -> list[Row]:
    rows: list[Row] = []
    for text in ask.statement.sqlite:
        rows = connection.execute(text, ask.parameters).fetchall()
        if not rows:
            break
    return rows


def _tell(job: _Job) -> None:
    if job.done.done():  # who asked has stopped waiting
        return
    if job.error is None:
        job.done.set_result(job.result)
    elif isinstance(job.error, sqlite3.Error):
        job.done.set_exception(JournalUnavailable(job.error))
    else:
        job.done.set_exception(job.error)


def _lock(connection: sqlite3.Connection) -> None:
    """Take the write lock, unless it is ours: a read that later writes could otherwise be refused."""
    if not connection.in_transaction:
        _patiently(connection, "BEGIN IMMEDIATE")


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """What another process is in the way of."""
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.001)


def _opened(path: Path) -> sqlite3.Connection:
    """A connection to write with, its schema up to date."""
    _migrated(path)
    return _connected(path)


def _connected(path: Path) -> sqlite3.Connection:
    # transactions are begun by us, not by the driver, and nobody is waited for unless we say so
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    connection.row_factory = sqlite3.Row
    _patiently(connection, "PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    return connection


def _tidy(path: Path) -> None:
    """Move the write-ahead log into the file, as far as nobody has to wait for it."""
    with suppress(sqlite3.Error), closing(_connected(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _look(path: Path) -> None:
    """SchemaMismatch for a file that a newer program made; one that is not there yet is fine."""
    if not path.exists():
        return
    engine = sqlite_engine(path)
    try:
        with engine.connect() as connection, connection.begin():
            require_known(version(connection))
    finally:
        engine.dispose()


def _migrated(path: Path) -> str | None:
    """Bring a file's schema up to date; the version it had."""
    _connected(path).close()
    engine = sqlite_engine(path)
    try:
        with engine.connect() as connection:
            return bring_up_to_date(connection)
    finally:
        engine.dispose()


def sqlite_engine(path: Path) -> Engine:
    """SQLAlchemy's way to a file, for migrations."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),  # a name may hold what means something in an address
        poolclass=NullPool,
        connect_args={"isolation_level": None, "timeout": BUSY_SECONDS},
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
