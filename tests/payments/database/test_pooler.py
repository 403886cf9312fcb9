"""The journal behind a transaction pooler, which gives each transaction another connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from buyer import PHISHING, SHARED, Buyer, pay, sign_payment
from databases import Postgres
from facilitators import StubFacilitator
from sqlalchemy import text
from transaction_pooler import open_transaction_pooler

from centgate.cli.doctor.check import run_checks
from centgate.cli.doctor.context import open_context
from centgate.cli.doctor.registry import select_checks
from centgate.findings import Finding
from centgate.payments.database.postgresql import PostgresStore
from centgate.payments.database.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable
from centgate.server import run_in_thread
from centgate.settings import Settings

pytestmark = pytest.mark.extended

QUERY = "SELECT 1 AS value"


@pytest.fixture
def database(postgres_url: str) -> str:
    """URL of a database with the journal's tables."""
    asyncio.run(PostgresStore(postgres_url, 1).migrate())
    return postgres_url


@pytest.fixture
def pooled_url(database: str) -> Generator[str]:
    """URL of that database, through the pooler."""
    with open_transaction_pooler(database) as url:
        yield url


def read_rows(query: str) -> UnitOfWork[list[str]]:
    """Return the column `value` of a query."""
    rows = yield BoundStatement(compile_statement(text(query)), {})
    return [str(row["value"]) for row in rows]


@pytest.fixture
async def store(pooled_url: str) -> AsyncGenerator[PostgresStore]:
    store = PostgresStore(pooled_url, 10)
    yield store
    await store.close()


def test_payments_of_two_replicas_are_served_once(
    settings: Settings, pooled_url: str, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    pooled = settings.model_copy(update={"database_url": pooled_url})
    with (
        run_in_thread(pooled) as one,
        run_in_thread(pooled) as another,
        httpx.Client(timeout=30, limits=SHARED) as client,
        ThreadPoolExecutor(10) as pool,
    ):

        def pay_both(payment: str) -> list[httpx.Response]:
            return [pay(client, payment, url + PHISHING) for url in (one, another)]

        payments = [sign_payment(client, buyer, one + PHISHING) for _ in range(20)]
        pairs = list(pool.map(pay_both, payments))

    assert {(first.status_code, first.content == again.content) for first, again in pairs} == {(200, True)}
    assert (facilitator.settle_calls, set(facilitator.moved.values())) == (20, {1})


async def test_non_durable_commits_are_refused(postgres: Postgres, database: str) -> None:
    postgres.run(f"ALTER DATABASE {database.rpartition('/')[2]} SET synchronous_commit = off")
    with open_transaction_pooler(database) as url:
        store = PostgresStore(url, 1)

        with pytest.raises(InvalidDatabaseUrl, match="SET synchronous_commit = on"):
            await store.check()
        with pytest.raises(JournalUnavailable):
            await store.run(lambda: read_rows(QUERY))
        await store.close()


async def test_cancelled_statement_keeps_connection(store: PostgresStore) -> None:
    await store.run(lambda: read_rows(QUERY))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.run(lambda: read_rows("SELECT pg_sleep(30) AS value")), 0.5)

    for _ in range(4):  # each connection of the pooler
        assert await store.run(lambda: read_rows(QUERY)) == ["1"]


PREPARED = f"SELECT count(*) AS value FROM pg_prepared_statements WHERE statement = '{QUERY}'"


async def count_prepared(url: str, *, setting: bool | None = None) -> list[str]:
    """Return how often a query was prepared on a session after its execution."""
    store = PostgresStore(url, 1, prepared_statements=setting)
    try:
        await store.run(lambda: read_rows(QUERY))
        return await store.run(lambda: read_rows(PREPARED))
    finally:
        await store.close()


async def test_statements_are_prepared_without_pooler(database: str) -> None:
    with open_transaction_pooler(database, size=1) as pooled:  # one connection keeps everything
        assert await count_prepared(database) == ["1"]
        assert await count_prepared(database, setting=False) == ["0"]
        assert await count_prepared(pooled) == ["0"]
        assert await count_prepared(pooled, setting=True) == ["1"]


async def check_database(settings: Settings) -> Finding:
    """Run the doctor's check."""
    async with open_context(settings) as deployment:
        (result,) = await run_checks(deployment, select_checks(["database"]))
    return result.finding


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({}, "ok", "behind a pooler: statements are not prepared"),
        ({"database_prepared_statements": True}, "failed", "loses prepared statements"),
    ],
    ids=["by default", "prepared"],
)
async def test_doctor_detects_pooler(
    settings: Settings, pooled_url: str, changes: dict[str, bool], status: str, message: str
) -> None:
    finding = await check_database(settings.model_copy(update={"database_url": pooled_url, **changes}))

    assert (finding.status, message in finding.what) == (status, True)


async def test_doctor_detects_kept_prepared_statements(settings: Settings, database: str) -> None:
    with open_transaction_pooler(database, size=1) as url:
        changes = {"database_url": url, "database_prepared_statements": True}
        finding = await check_database(settings.model_copy(update=changes))

    assert (finding.status, "a pooler that keeps prepared statements" in finding.what) == ("ok", True)
