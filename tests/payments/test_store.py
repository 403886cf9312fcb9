"""The journal's store: what is said to be on the disk is there, and one unit's failure is its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, text

from centgate.errors import NotFound
from centgate.instrumentation import NullMeter
from centgate.payments import queries, sqlite
from centgate.payments.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.sqlite import CHECKPOINT_EVERY, MAX_UNITS_PER_COMMIT, PROBE_AFTER_COMMITS, SqliteStore
from centgate.payments.store import InvalidDatabaseUrl, JournalUnavailable, Store, UnitFactory
from centgate.payments.store_factory import open_store
from centgate.payments.tables import workers

NOW = 1_800_000_000.0
ENTER = compile_statement(insert(workers))


@asynccontextmanager
async def opened(file: Path) -> AsyncGenerator[Store]:
    store = open_store(f"sqlite:///{file}")
    try:
        yield store
    finally:
        await store.close()


def enter(worker: str) -> UnitOfWork[str]:
    yield BoundStatement(ENTER, {"id": worker, "seen_at": NOW})
    return worker


def entered_then(worker: str, fail: Callable[[], Any]) -> UnitOfWork[None]:
    yield from enter(worker)
    fail()


def stumble() -> None:
    raise ZeroDivisionError


def refuse() -> UnitOfWork[None]:
    yield from queries.find_by_identifier("nobody", "nothing")
    raise NotFound("no such thing")


def workers_in(file: Path) -> set[str]:
    """Read the rows as another process would."""
    connection = sqlite3.connect(file)
    try:
        return {row[0] for row in connection.execute("SELECT id FROM workers")}
    finally:
        connection.close()


async def test_two_hundred_at_once_are_all_on_the_disk(tmp_path: Path) -> None:
    names = {f"worker {number}" for number in range(200)}
    async with opened(tmp_path / "journal.db") as store:
        done = await asyncio.gather(*(store.run(partial(enter, name)) for name in names))

        assert set(done) == names
        assert workers_in(tmp_path / "journal.db") == names


async def test_each_is_on_the_disk_when_it_is_said_to_be(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as store:
        for number in range(5):
            name = await store.run(partial(enter, f"worker {number}"))

            assert name in workers_in(tmp_path / "journal.db")


async def test_the_database_is_durable_and_shared(tmp_path: Path) -> None:
    def pragmas() -> UnitOfWork[list[Any]]:
        names = ("journal_mode", "synchronous")
        asked = [compile_statement(text(f"PRAGMA {name}")) for name in names]
        answers: list[Any] = []
        for name, pragma in zip(names, asked, strict=True):
            answers.append((yield BoundStatement(pragma, {}))[0][name])
        return answers

    async with opened(tmp_path / "journal.db") as store:
        assert await store.run(pragmas) == ["wal", 2]


@pytest.mark.parametrize("place", [0, 5, 9])
async def test_a_unit_that_fails_takes_no_other_with_it(tmp_path: Path, place: int) -> None:
    units: list[UnitFactory[Any]] = [partial(enter, f"worker {number}") for number in range(9)]
    units.insert(place, partial(entered_then, "the one that fails", stumble))
    async with opened(tmp_path / "journal.db") as store:
        results = await asyncio.gather(*map(store.run, units), return_exceptions=True)

    assert isinstance(results.pop(place), ZeroDivisionError)
    assert results == [f"worker {number}" for number in range(9)]
    assert workers_in(tmp_path / "journal.db") == set(results)


async def test_a_unit_the_database_refuses_takes_no_other_with_it(tmp_path: Path) -> None:
    units = [partial(enter, name) for name in ("one", "two", "two", "three")]
    async with opened(tmp_path / "journal.db") as store:
        results = await asyncio.gather(*map(store.run, units), return_exceptions=True)

    assert isinstance(results.pop(2), JournalUnavailable)
    assert results == ["one", "two", "three"]
    assert workers_in(tmp_path / "journal.db") == {"one", "two", "three"}


async def test_a_refusal_is_the_result_of_its_unit_alone(tmp_path: Path) -> None:
    units: list[UnitFactory[Any]] = [partial(enter, "one"), refuse, partial(enter, "two")]
    async with opened(tmp_path / "journal.db") as store:
        results = await asyncio.gather(*map(store.run, units), return_exceptions=True)

    assert isinstance(results[1], NotFound)
    assert workers_in(tmp_path / "journal.db") == {"one", "two"}


async def test_a_unit_alone_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as store:
        with pytest.raises(ZeroDivisionError):
            await store.run(partial(entered_then, "one", stumble))
        await store.run(partial(enter, "two"))

    assert workers_in(tmp_path / "journal.db") == {"two"}


async def test_who_stops_waiting_does_not_stop_the_work(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as store:
        waiting = asyncio.ensure_future(store.run(partial(enter, "one")))
        await asyncio.sleep(0)
        waiting.cancel()
        await store.run(partial(enter, "two"))

        assert workers_in(tmp_path / "journal.db") == {"one", "two"}


async def test_what_waits_is_finished_before_the_end(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path / 'journal.db'}")
    tasks = [asyncio.ensure_future(store.run(partial(enter, f"worker {number}"))) for number in range(50)]
    await asyncio.sleep(0)

    await store.close()

    assert len(await asyncio.gather(*tasks)) == 50


@pytest.mark.extended
@pytest.mark.parametrize("attempt", range(10))
async def test_two_stores_share_one_new_file(tmp_path: Path, attempt: int) -> None:
    async with opened(tmp_path / "journal.db") as one, opened(tmp_path / "journal.db") as other:
        stores = (one, other) * 9
        await asyncio.gather(*(store.run(partial(enter, str(n))) for n, store in enumerate(stores)))

    assert len(workers_in(tmp_path / "journal.db")) == 18


@pytest.mark.parametrize("kind", ["a directory", "not a database", "in no directory"])
async def test_a_file_that_cannot_be_opened_is_an_unavailable_journal(tmp_path: Path, kind: str) -> None:
    file = tmp_path / ("none/journal.db" if kind == "in no directory" else "journal.db")
    if kind == "a directory":
        file.mkdir()
    elif kind == "not a database":
        file.write_bytes(b"something else " * 1000)
    async with opened(file) as store:
        with pytest.raises(JournalUnavailable):
            await store.run(partial(enter, "one"))


async def test_a_file_that_can_be_opened_again_is_used_again(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    file.mkdir()
    async with opened(file) as store:
        with pytest.raises(JournalUnavailable):
            await store.run(partial(enter, "one"))
        file.rmdir()

        assert await store.run(partial(enter, "two")) == "two"


async def test_more_than_one_commit_holds_are_all_on_the_disk(tmp_path: Path) -> None:
    names = {f"worker {number}" for number in range(2 * MAX_UNITS_PER_COMMIT + 100)}
    async with opened(tmp_path / "journal.db") as store:
        await store.run(partial(enter, "the first"))
        await asyncio.gather(*(store.run(partial(enter, name)) for name in names))

    assert workers_in(tmp_path / "journal.db") == names | {"the first"}


async def test_it_is_not_held_up_by_other_work_in_threads(tmp_path: Path) -> None:
    release = threading.Event()
    loop = asyncio.get_running_loop()
    others = [loop.run_in_executor(None, release.wait, 60) for _ in range(64)]
    async with opened(tmp_path / "journal.db") as store:
        try:
            async with asyncio.timeout(20):
                assert await store.run(partial(enter, "one")) == "one"
        finally:
            release.set()
    await asyncio.gather(*others)


class Committers(NullMeter):
    """Remembers the threads that commit."""

    def __init__(self) -> None:
        self.seen: list[threading.Thread] = []

    def record_commit(self, seconds: float, units: int) -> None:
        self.seen.append(threading.current_thread())


async def test_on_a_slow_disk_the_loop_tries_now_and_then_whether_it_still_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FAST_COMMIT_SECONDS", -1.0)  # no disk is that quick
    monkeypatch.setattr(
        sqlite, "MAX_PROBE_SECONDS", 60.0
    )  # nor is any too slow to be tried, on a busy machine
    meter = Committers()
    store = SqliteStore(f"sqlite:///{tmp_path / 'journal.db'}", meter)
    for number in range(PROBE_AFTER_COMMITS + 2):
        await store.run(partial(enter, f"worker {number}"))
    tried = meter.seen.count(threading.main_thread())
    monkeypatch.setattr(sqlite, "FAST_COMMIT_SECONDS", 60.0)  # and now every one is
    await store.run(partial(enter, "the last"))
    await store.close()

    assert tried == 1
    assert meter.seen[-1] is threading.main_thread()
    assert len(workers_in(tmp_path / "journal.db")) == PROBE_AFTER_COMMITS + 3


@pytest.mark.parametrize(
    ("limit", "runs_in_loop"), [("FAST_COMMIT_SECONDS", True), ("FAST_STATEMENTS_SECONDS", False)]
)
async def test_on_a_slow_disk_statements_run_in_the_loop_while_they_are_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, *, runs_in_loop: bool
) -> None:
    monkeypatch.setattr(sqlite, limit, -1.0)  # nothing is that quick
    ran_in: list[threading.Thread] = []

    def note_thread() -> UnitOfWork[None]:
        ran_in.append(threading.current_thread())
        yield from enter("another")

    meter = Committers()
    store = SqliteStore(f"sqlite:///{tmp_path / 'journal.db'}", meter)
    await store.run(partial(enter, "the first, which opens the file"))
    await store.run(note_thread)
    await store.close()

    assert (ran_in == [threading.main_thread()]) is runs_in_loop
    assert threading.main_thread() not in meter.seen
    assert "another" in workers_in(tmp_path / "journal.db")


async def test_the_log_is_moved_into_the_file_beside_the_commits(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with opened(file) as store:
        await store.run(partial(enter, "the first"))
        small = file.stat().st_size
        await asyncio.gather(
            *(store.run(partial(enter, f"worker {number}")) for number in range(CHECKPOINT_EVERY))
        )
        async with asyncio.timeout(20):
            while file.stat().st_size == small:
                await store.run(enter_again)


def enter_again() -> UnitOfWork[None]:
    yield from queries.record_heartbeat("the first")


async def test_a_file_that_nobody_has_used_can_be_read(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as store:
        assert await store.read(partial(queries.find_by_identifier, "nobody", "nothing")) is None


async def test_a_name_may_hold_what_means_something_in_an_address(tmp_path: Path) -> None:
    file = tmp_path / "the 100%25?mode=ro#journal.db"
    async with opened(file) as store:
        await store.run(partial(enter, "one"))

    assert workers_in(file) == {"one"}


def test_a_journal_in_memory_is_refused() -> None:
    with pytest.raises(InvalidDatabaseUrl, match="use a file"):
        open_store("sqlite:///:memory:")


async def test_a_store_that_is_closed_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as store:
        await store.run(partial(enter, "one"))

    with pytest.raises(JournalUnavailable):
        await store.run(partial(enter, "two"))


async def test_another_process_that_keeps_the_lock_is_told_of_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.payments.sqlite.BUSY_SECONDS", 0.3)
    async with opened(tmp_path / "journal.db") as store:
        await store.run(partial(enter, "one"))
        with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalUnavailable):
                await store.run(partial(enter, "two"))
            other.execute("ROLLBACK")

        assert await store.run(partial(enter, "three")) == "three"
    assert workers_in(tmp_path / "journal.db") == {"one", "three"}
