"""Groups of statements on PostgreSQL: what fails, waits or is lost in a group affects no other payment."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import httpx
import pytest
import structlog
from databases import CuttableProxy, Postgres
from journal_rows import payment_row
from structlog.testing import capture_logs

from centgate.instrumentation import NullMeter
from centgate.payments.database import postgresql, statement_groups
from centgate.payments.database.postgresql import PostgresStore
from centgate.payments.database.sql import ResultRow, UnitOfWork
from centgate.payments.database.statement_groups import GROUP_TIMEOUT, StatementGroups
from centgate.payments.database.store import JournalUnavailable
from centgate.payments.journal import process_queries, queries
from centgate.payments.payment_key import PaymentKey

pytestmark = pytest.mark.extended
NOW = 1_800_000_000.0
PAYER = "0x" + "aa" * 20
NONCE = b"00000000000000000000007"
"""Part of the nonce of payment 7."""


class CommitRecorder(NullMeter):
    """Records the number of statements in each commit."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def record_commit(self, seconds: float, units: int) -> None:
        self.sizes.append(units)


@pytest.fixture
def commits() -> CommitRecorder:
    return CommitRecorder()


@pytest.fixture
async def store(postgres_url: str, commits: CommitRecorder) -> AsyncGenerator[PostgresStore]:
    store = await open_store(postgres_url, commits)
    yield store
    await store.close()


async def open_store(url: str, meter: CommitRecorder | None = None) -> PostgresStore:
    """Return a store whose pool is open, so that statements are grouped."""
    store = PostgresStore(url, 10, meter=meter or NullMeter())
    await store.run(process_queries.read_time)
    return store


def key_of(number: int) -> PaymentKey:
    row = payment_row(number)
    return PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])


def claim(number: int, owner: str = "owner", **changes: Any) -> UnitOfWork[bool]:
    row = payment_row(number, "settling", owner=owner, **changes)
    key = PaymentKey(*(row.pop(name) for name in ("network", "asset", "payer", "nonce")))
    del row["id"]
    return queries.insert_payment(key, row)


def deliver(number: int, owner: str = "owner") -> UnitOfWork[bool]:
    answer = {
        "status": 200,
        "request_id": f"req_{number}",
        "receipt": "r",
        "body": b"b" * 800,
        "stored_at": NOW,
    }
    settlement = {"transaction": "0x", "settled_at": NOW}
    return queries.record_answer(key_of(number), owner, answer, settlement)


async def run_all(store: PostgresStore, units: Any) -> list[Any]:
    return await asyncio.gather(*map(store.run, units), return_exceptions=True)


async def test_waiting_statements_share_commits(
    store: PostgresStore, commits: CommitRecorder, postgres: Postgres, postgres_url: str
) -> None:
    commits.sizes.clear()

    claimed = await run_all(store, (partial(claim, number) for number in range(150)))
    delivered = await run_all(store, (partial(deliver, number) for number in range(150)))

    stored = postgres.run(
        "SELECT count(DISTINCT request_id), min(octet_length(body)) FROM answers", postgres_url
    )
    assert ({*claimed}, {*delivered}, stored) == ({True}, {True}, "150|800")
    assert (sum(commits.sizes), max(commits.sizes)) == (300, 64)


async def test_statement_in_last_turn_of_group_is_executed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement can arrive after the last group has ended, before the callbacks of its task are called."""
    monkeypatch.setattr(statement_groups, "MAX_GROUPS", 1)
    released = asyncio.Event()

    @asynccontextmanager
    async def lend_connection(*, max_wait: float) -> AsyncGenerator[Any]:
        async with asyncio.timeout(max_wait):
            connection = await postgresql.connect(postgres_url)
        yield connection
        await connection.close()
        released.set()

    groups = StatementGroups(lend_connection, NullMeter())

    async def fetch_time() -> list[ResultRow]:
        return await groups.fetch_rows(next(process_queries.read_time()))

    async def fetch_after_release() -> list[ResultRow]:
        await released.wait()
        return await fetch_time()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        last = group.create_task(fetch_after_release())
        group.create_task(fetch_time())

    assert last.result()[0]["now"] > 0


async def test_one_of_equal_claims_in_group_gets_payment(store: PostgresStore) -> None:
    claimed = await run_all(store, (partial(claim, number % 10, f"owner {number}") for number in range(40)))

    assert [claimed[number::10].count(True) for number in range(10)] == [1] * 10
    owners = [await store.run(partial(queries.find_payment, key_of(number))) for number in range(10)]
    assert [row and claimed[int(row["owner"].split()[1])] for row in owners] == [True] * 10


async def test_lost_owner_in_group_delivers_nothing(store: PostgresStore) -> None:
    await run_all(store, (partial(claim, number) for number in range(20)))

    delivered = await run_all(
        store, (partial(deliver, number, "owner" if number % 2 else "another") for number in range(20))
    )

    assert delivered == [False, True] * 10
    answers = [await store.run(partial(queries.find_answer, key_of(number))) for number in range(20)]
    assert [answer is not None for answer in answers] == delivered


async def test_failing_statement_affects_no_other(store: PostgresStore) -> None:
    bad = {"service": "not allowed: \0"}

    configured = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))
    with capture_logs() as lines:
        claimed = await run_all(
            store, (partial(claim, number, **(bad if number == 7 else {})) for number in range(20))
        )
    structlog.configure(**configured)

    assert isinstance(claimed.pop(7), JournalUnavailable)
    assert claimed == [True] * 19
    assert [line["event"] for line in lines] == ["a group of statements failed"]


async def test_lost_connection_repeats_units_of_group(postgres: Postgres, postgres_url: str) -> None:
    wire = CuttableProxy(postgres.port)
    store = await open_store(str(httpx.URL(postgres_url).copy_with(port=wire.port)))
    wire.cut_after(NONCE)

    claimed = await run_all(store, (partial(claim, number) for number in range(20)))
    count = postgres.run("SELECT count(*) FROM payments", postgres_url)
    await store.close()
    wire.close()

    assert wire.cuts == 1
    assert set(claimed) <= {True, False}  # False: the unit finds its own row, which it then recognises
    assert count == "20"


async def test_locked_row_delays_only_its_payment(store: PostgresStore, postgres_url: str) -> None:
    await run_all(store, (partial(claim, number) for number in range(20)))
    session = await postgresql.connect(postgres_url)
    await session.execute("BEGIN")
    await session.execute("UPDATE payments SET reason = 'locked' WHERE nonce = $1", key_of(7).nonce)
    started = time.monotonic()
    deliveries = [asyncio.create_task(store.run(partial(deliver, number))) for number in range(20)]

    done, waiting = await asyncio.wait(deliveries, timeout=GROUP_TIMEOUT + 2)
    later = await store.run(partial(claim, 100))
    await session.execute("ROLLBACK")
    await asyncio.wait(waiting, timeout=20)
    seconds = time.monotonic() - started
    await session.close()

    assert (len(done), len(waiting), later) == (19, 1, True)
    assert {delivery.result() for delivery in deliveries} == {True}
    assert seconds < 20


SLOW_INSERTS = """
    CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_sleep(0.005); RETURN NULL; END $$;
    CREATE TRIGGER pause AFTER INSERT ON payments FOR EACH ROW EXECUTE FUNCTION pause()
"""
"""So that the groups of two servers overlap."""


@pytest.mark.parametrize("has_key", [False, True], ids=["no key", "idempotency key"])
async def test_groups_of_two_servers_never_deadlock(
    postgres: Postgres, postgres_url: str, *, has_key: bool
) -> None:
    name = postgres_url.rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {name} SET deadlock_timeout = '50ms'")
    store, other = await open_store(postgres_url), await open_store(postgres_url)
    postgres.run(SLOW_INSERTS, postgres_url)

    def claim_all(owner: str, numbers: range, keys: range) -> list[Any]:
        """Claim payments, of which those of two servers have the same numbers or the same keys."""
        identifiers = (f"an idempotency key {key}" if has_key else None for key in keys)
        changes = [{"identifier": identifier, "payer": PAYER} for identifier in identifiers]
        return [partial(claim, n, owner, **each) for n, each in zip(numbers, changes, strict=True)]

    for first in range(0, 100, 20):
        there = first + 1000 if has_key else first
        one = claim_all("one", range(first, first + 20), range(first, first + 20))
        two = claim_all("two", range(there, there + 20), range(first + 19, first - 1, -1))
        both = await asyncio.gather(run_all(store, one), run_all(other, two if has_key else two[::-1]))
        assert sum(map(bool, both[0] + both[1])) == 20
    await store.close()
    await other.close()

    assert postgres.run(f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{name}'") == "0"


async def test_group_of_single_connection(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, 1)
    await store.run(process_queries.read_time)

    claimed = await run_all(store, (partial(claim, number) for number in range(200)))
    await store.close()

    assert claimed == [True] * 200


async def test_exhausted_connections_are_waited_for(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, 1)
    await store.run(process_queries.read_time)
    connection = await store._pool.acquire()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    units = asyncio.create_task(run_all(store, (partial(claim, number) for number in range(20))))
    await asyncio.sleep(GROUP_TIMEOUT + 0.5)
    await store._pool.release(connection)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    claimed = await units
    await store.close()

    assert claimed == [True] * 20


async def test_cancelled_caller_does_not_stop_group(store: PostgresStore) -> None:
    tasks = [asyncio.create_task(store.run(partial(claim, number))) for number in range(20)]
    await asyncio.sleep(0)
    tasks[7].cancel()

    claimed = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(claimed.pop(7), asyncio.CancelledError)
    assert claimed == [True] * 19


class StallingProxy:
    """TCP proxy that passes the start of a long message and nothing after it, as a host that froze."""

    def __init__(self, port: int) -> None:
        self._far = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self.is_armed = self.is_stalled = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()  # no socket is added to the list after this
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._far))
                self._sockets += near, far
                threading.Thread(target=self._pass, args=(near, far), daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while (data := source.recv(1 << 20)) and not self.is_stalled:
                if self.is_armed and len(data) > 8_000:
                    self.is_stalled = True
                    data = data[: len(data) // 2]
                target.sendall(data)
            if not self.is_stalled:
                target.shutdown(socket.SHUT_RDWR)


@contextmanager
def stalling_proxy(postgres: Postgres) -> Generator[StallingProxy]:
    proxy = StallingProxy(postgres.port)
    try:
        yield proxy
    finally:
        proxy.close()


async def test_half_sent_group_of_frozen_host_is_rolled_back(
    store: PostgresStore, postgres: Postgres, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "TRANSACTION_SECONDS", 2)
    with stalling_proxy(postgres) as proxy:
        frozen = await open_store(str(httpx.URL(postgres_url).copy_with(port=proxy.port)))
        await frozen.run(partial(claim, 1000))
        proxy.is_armed = True
        lost = asyncio.create_task(run_all(frozen, (partial(claim, number) for number in range(40))))
        await asyncio.sleep(0.5)

        claimed = await run_all(store, (partial(claim, number, "another") for number in range(40)))

        lost.cancel()
        await asyncio.wait([lost])
    assert proxy.is_stalled
    assert claimed == [True] * 40
