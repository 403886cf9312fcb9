"""The journal's store on SQLite: confirmed units are durable, and a failing unit affects no other."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import insert, text

from centgate.errors import NotFound
from centgate.instrumentation import NullMeter
from centgate.payments.database import sqlite
from centgate.payments.database.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.database.sqlite import (
    CHECKPOINT_EVERY,
    MAX_UNITS_PER_COMMIT,
    PROBE_AFTER_COMMITS,
    SqliteStore,
)
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable, Store, UnitFactory
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import workers
from centgate.payments.journal import process_queries, queries

NOW = 1_800_000_000.0
ENTER = compile_statement(insert(workers))


@asynccontextmanager
async def open_test_store(file: Path) -> AsyncGenerator[Store]:
    store = open_store(f"sqlite:///{file}")
    try:
        yield store
    finally:
        await store.close()


def insert_worker(worker: str) -> UnitOfWork[str]:
    yield BoundStatement(ENTER, {"id": worker, "seen_at": NOW})
    return worker


def insert_then_fail(worker: str, fail: Callable[[], Any]) -> UnitOfWork[None]:
    yield from insert_worker(worker)
    fail()


def raise_error() -> None:
    raise ZeroDivisionError


def raise_not_found() -> UnitOfWork[None]:
    yield from queries.find_by_identifier("nobody", "nothing")
    raise NotFound("no such thing")


def read_workers(file: Path) -> set[str]:
    """Return the rows as another process reads them."""
    connection = sqlite3.connect(file)
    try:
        return {row[0] for row in connection.execute("SELECT id FROM workers")}
    finally:
        connection.close()


async def test_two_hundred_concurrent_units_are_stored(tmp_path: Path) -> None:
    names = {f"worker {number}" for number in range(200)}
    async with open_test_store(tmp_path / "journal.db") as store:
        done = await asyncio.gather(*(store.run(partial(insert_worker, name)) for name in names))

        assert set(done) == names
        assert read_workers(tmp_path / "journal.db") == names


async def test_confirmed_unit_is_stored(tmp_path: Path) -> None:
    async with open_test_store(tmp_path / "journal.db") as store:
        for number in range(5):
            name = await store.run(partial(insert_worker, f"worker {number}"))

            assert name in read_workers(tmp_path / "journal.db")


async def test_database_is_durable_and_shared(tmp_path: Path) -> None:
    def pragmas() -> UnitOfWork[list[Any]]:
        names = ("journal_mode", "synchronous")
        statements = [compile_statement(text(f"PRAGMA {name}")) for name in names]
        answers: list[Any] = []
        for name, pragma in zip(names, statements, strict=True):
            answers.append((yield BoundStatement(pragma, {}))[0][name])
        return answers

    async with open_test_store(tmp_path / "journal.db") as store:
        assert await store.run(pragmas) == ["wal", 2]


@pytest.mark.parametrize("place", [0, 5, 9])
async def test_failing_unit_affects_no_other(tmp_path: Path, place: int) -> None:
    units: list[UnitFactory[Any]] = [partial(insert_worker, f"worker {number}") for number in range(9)]
    units.insert(place, partial(insert_then_fail, "the one that fails", raise_error))
    async with open_test_store(tmp_path / "journal.db") as store:
        results = await asyncio.gather(*map(store.run, units), return_exceptions=True)

    assert isinstance(results.pop(place), ZeroDivisionError)
    assert results == [f"worker {number}" for number in range(9)]
    assert read_workers(tmp_path / "journal.db") == set(results)


async def test_unit_refused_by_database_affects_no_other(tmp_path: Path) -> None:
    units = [partial(insert_worker, name) for name in ("one", "two", "two", "three")]
    async with open_test_store(tmp_path / "journal.db") as store:
        results = await asyncio.gather(*map(store.run, units), return_exceptions=True)

    assert isinstance(results.pop(2), JournalUnavailable)
    assert results == ["one", "two", "three"]
    assert read_workers(tmp_path / "journal.db") == {"one", "two", "three"}


async def test_refusal_is_result_of_its_unit_only(tmp_path: Path) -> None:
    units: list[UnitFactory[Any]] = [
        partial(insert_worker, "one"),
        raise_not_found,
        partial(insert_worker, "two"),
    ]
    async with open_test_store(tmp_path / "journal.db") as store:
        results = await asyncio.gather(*map(store.run, units), return_exceptions=True)

    assert isinstance(results[1], NotFound)
    assert read_workers(tmp_path / "journal.db") == {"one", "two"}


async def test_failing_single_unit_stores_nothing(tmp_path: Path) -> None:
    async with open_test_store(tmp_path / "journal.db") as store:
        with pytest.raises(ZeroDivisionError):
            await store.run(partial(insert_then_fail, "one", raise_error))
        await store.run(partial(insert_worker, "two"))

    assert read_workers(tmp_path / "journal.db") == {"two"}


async def test_cancelled_waiter_does_not_stop_unit(tmp_path: Path) -> None:
    async with open_test_store(tmp_path / "journal.db") as store:
        waiting = asyncio.ensure_future(store.run(partial(insert_worker, "one")))
        await asyncio.sleep(0)
        waiting.cancel()
        await store.run(partial(insert_worker, "two"))

        assert read_workers(tmp_path / "journal.db") == {"one", "two"}


async def test_queued_units_finish_before_close(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path / 'journal.db'}")
    tasks = [
        asyncio.ensure_future(store.run(partial(insert_worker, f"worker {number}"))) for number in range(50)
    ]
    await asyncio.sleep(0)

    await store.close()

    assert len(await asyncio.gather(*tasks)) == 50


@pytest.mark.extended
@pytest.mark.parametrize("attempt", range(10))
async def test_two_stores_share_new_file(tmp_path: Path, attempt: int) -> None:
    async with (
        open_test_store(tmp_path / "journal.db") as one,
        open_test_store(tmp_path / "journal.db") as other,
    ):
        stores = (one, other) * 9
        await asyncio.gather(*(store.run(partial(insert_worker, str(n))) for n, store in enumerate(stores)))

    assert len(read_workers(tmp_path / "journal.db")) == 18


@pytest.mark.parametrize("kind", ["a directory", "not a database", "in no directory"])
async def test_unopenable_file_is_unavailable_journal(tmp_path: Path, kind: str) -> None:
    file = tmp_path / ("none/journal.db" if kind == "in no directory" else "journal.db")
    if kind == "a directory":
        file.mkdir()
    elif kind == "not a database":
        file.write_bytes(b"something else " * 1000)
    async with open_test_store(file) as store:
        with pytest.raises(JournalUnavailable):
            await store.run(partial(insert_worker, "one"))


async def test_reopenable_file_is_used_again(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    file.mkdir()
    async with open_test_store(file) as store:
        with pytest.raises(JournalUnavailable):
            await store.run(partial(insert_worker, "one"))
        file.rmdir()

        assert await store.run(partial(insert_worker, "two")) == "two"


async def test_removed_file_is_not_created_again(tmp_path: Path) -> None:
    file, moved = tmp_path / "journal.db", tmp_path / "moved.db"
    async with open_test_store(file) as store:
        await store.run(partial(insert_worker, "one"))
        file.rename(moved)

        with pytest.raises(JournalUnavailable):
            await store.run(partial(insert_worker, "two"))
        with pytest.raises(JournalUnavailable):
            await store.read(partial(queries.count_settleable, 1))
        with pytest.raises(JournalUnavailable):
            await store.run(partial(insert_worker, "three"))
        assert not file.exists()

        moved.rename(file)
        await store.run(partial(insert_worker, "four"))

    assert read_workers(file) == {"one", "four"}


async def test_replaced_file_is_not_used(tmp_path: Path) -> None:
    file, backup = tmp_path / "journal.db", tmp_path / "backup.db"
    async with open_test_store(backup) as store:
        await store.run(partial(insert_worker, "one"))
    async with open_test_store(file) as store:
        await store.run(partial(insert_worker, "two"))
        backup.rename(file)

        with pytest.raises(JournalUnavailable) as failed:
            await store.run(partial(insert_worker, "three"))

    assert "was removed or replaced" in failed.value.detail
    assert "three" not in read_workers(file)


async def test_transaction_that_the_database_rolled_back_is_no_success(tmp_path: Path) -> None:
    """SQLite rolls a transaction back itself after some errors, as when the disk is full."""

    def insert_and_lose_transaction() -> UnitOfWork[None]:
        yield from insert_worker("lost")
        cast(Any, store)._connection.rollback()  # noqa: SLF001

    async with open_test_store(tmp_path / "journal.db") as store:
        with pytest.raises(JournalUnavailable):
            await store.run(insert_and_lose_transaction)
        await store.run(partial(insert_worker, "kept"))

    assert read_workers(tmp_path / "journal.db") == {"kept"}


async def test_copy_in_place_of_removed_file_is_not_used(tmp_path: Path) -> None:
    """Many file systems give the inode of a deleted file to the next one."""
    file, backup = tmp_path / "journal.db", tmp_path / "backup.db"
    async with open_test_store(backup) as store:
        await store.run(partial(insert_worker, "one"))
    async with open_test_store(file) as store:
        await store.run(partial(insert_worker, "two"))
        file.unlink()
        with pytest.raises(JournalUnavailable):
            await store.run(partial(insert_worker, "three"))
        shutil.copy(backup, file)

        with pytest.raises(JournalUnavailable, match="the payment journal cannot be read or written"):
            await store.run(partial(insert_worker, "four"))


async def test_more_units_than_one_commit_holds_are_stored(tmp_path: Path) -> None:
    names = {f"worker {number}" for number in range(2 * MAX_UNITS_PER_COMMIT + 100)}
    async with open_test_store(tmp_path / "journal.db") as store:
        await store.run(partial(insert_worker, "the first"))
        await asyncio.gather(*(store.run(partial(insert_worker, name)) for name in names))

    assert read_workers(tmp_path / "journal.db") == names | {"the first"}


async def test_work_in_threads_does_not_block_store(tmp_path: Path) -> None:
    release = threading.Event()
    loop = asyncio.get_running_loop()
    others = [loop.run_in_executor(None, release.wait, 60) for _ in range(64)]
    async with open_test_store(tmp_path / "journal.db") as store:
        try:
            async with asyncio.timeout(20):
                assert await store.run(partial(insert_worker, "one")) == "one"
        finally:
            release.set()
    await asyncio.gather(*others)


class CommitRecorder(NullMeter):
    """Records the threads that commit."""

    def __init__(self) -> None:
        self.seen: list[threading.Thread] = []

    def record_commit(self, seconds: float, units: int) -> None:
        self.seen.append(threading.current_thread())


async def test_slow_disk_is_retried_on_loop_sometimes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FAST_COMMIT_SECONDS", -1.0)  # no disk is that fast
    # on a busy machine no disk is too slow to be tried, and no statement too slow for the loop
    monkeypatch.setattr(sqlite, "MAX_PROBE_SECONDS", 60.0)
    monkeypatch.setattr(sqlite, "FAST_STATEMENTS_SECONDS", 60.0)
    meter = CommitRecorder()
    store = SqliteStore(f"sqlite:///{tmp_path / 'journal.db'}", meter)
    for number in range(PROBE_AFTER_COMMITS + 2):
        await store.run(partial(insert_worker, f"worker {number}"))
    tried = meter.seen.count(threading.main_thread())
    monkeypatch.setattr(sqlite, "FAST_COMMIT_SECONDS", 60.0)  # now every commit is slow
    await store.run(partial(insert_worker, "the last"))
    await store.close()

    assert tried == 1
    assert meter.seen[-1] is threading.main_thread()
    assert len(read_workers(tmp_path / "journal.db")) == PROBE_AFTER_COMMITS + 3


@pytest.mark.parametrize(("limit", "runs_in_loop"), [(60.0, True), (-1.0, False)])
async def test_fast_statements_run_in_loop_on_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float, *, runs_in_loop: bool
) -> None:
    monkeypatch.setattr(sqlite, "FAST_STATEMENTS_SECONDS", limit)
    monkeypatch.setattr(sqlite, "FAST_COMMIT_SECONDS", -1.0)  # no disk is that fast
    ran_in: list[threading.Thread] = []

    def note_thread() -> UnitOfWork[None]:
        ran_in.append(threading.current_thread())
        yield from insert_worker("another")

    meter = CommitRecorder()
    store = SqliteStore(f"sqlite:///{tmp_path / 'journal.db'}", meter)
    await store.run(partial(insert_worker, "the first, which opens the file"))
    await store.run(note_thread)
    await store.close()

    assert (ran_in == [threading.main_thread()]) is runs_in_loop
    assert threading.main_thread() not in meter.seen
    assert "another" in read_workers(tmp_path / "journal.db")


async def test_wal_is_checkpointed_beside_commits(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with open_test_store(file) as store:
        await store.run(partial(insert_worker, "the first"))
        small = file.stat().st_size
        await asyncio.gather(
            *(store.run(partial(insert_worker, f"worker {number}")) for number in range(CHECKPOINT_EVERY))
        )
        async with asyncio.timeout(20):
            while file.stat().st_size == small:
                await store.run(refresh_worker)


def refresh_worker() -> UnitOfWork[None]:
    yield from process_queries.record_heartbeat("the first")


async def test_unused_file_can_be_read(tmp_path: Path) -> None:
    async with open_test_store(tmp_path / "journal.db") as store:
        assert await store.read(partial(queries.find_by_identifier, "nobody", "nothing")) is None


async def test_file_name_may_contain_url_characters(tmp_path: Path) -> None:
    file = tmp_path / "the 100%25?mode=ro#journal.db"
    async with open_test_store(file) as store:
        await store.run(partial(insert_worker, "one"))

    assert read_workers(file) == {"one"}


def test_in_memory_journal_is_refused() -> None:
    with pytest.raises(InvalidDatabaseUrl, match="use a file"):
        open_store("sqlite:///:memory:")


async def test_closed_store_is_reported(tmp_path: Path) -> None:
    async with open_test_store(tmp_path / "journal.db") as store:
        await store.run(partial(insert_worker, "one"))

    with pytest.raises(JournalUnavailable):
        await store.run(partial(insert_worker, "two"))


async def test_lock_held_by_another_process_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.payments.database.sqlite.BUSY_SECONDS", 0.3)
    async with open_test_store(tmp_path / "journal.db") as store:
        await store.run(partial(insert_worker, "one"))
        with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalUnavailable):
                await store.run(partial(insert_worker, "two"))
            other.execute("ROLLBACK")

        assert await store.run(partial(insert_worker, "three")) == "three"
    assert read_workers(tmp_path / "journal.db") == {"one", "three"}
