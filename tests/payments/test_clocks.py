"""Clocks: times are the database's, so a server with a wrong clock damages no payment."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import Buyer, encode_header, pay, sign_payload
from databases import Postgres
from facilitators import build_settings, open_stub_facilitator
from seeded_journals import PATIENCE, encode_terms, open_journal_store, read_row, record_payment
from served_api import ApiProcess
from sqlalchemy import literal_column, update
from webhook_outboxes import ORDER

from centgate.payments.authorization import read_payment
from centgate.payments.claim_values import StoredAnswer
from centgate.payments.database.sql import (
    AFFECTED_ROW,
    BoundStatement,
    ResultRow,
    UnitOfWork,
    compile_statement,
)
from centgate.payments.database.tables import payments, workers
from centgate.payments.journal import queries
from centgate.payments.journal.journal import DatabaseClock, Journal
from centgate.payments.payment_key import PaymentKey
from centgate.payments.terms import build_terms
from centgate.payments.worker_id import LEASE_SECONDS
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

DAY = 86_400
SKEWED = f"""
import time
right = time.time
time.time = lambda: right() + {2 * DAY}
from centgate.cli.main import main
main()
"""
PROGRAM = (sys.executable, "-c", SKEWED)
HASH = "0x" + "ab" * 32
ANSWER = StoredAnswer(200, b'{"as it":"was"}', "req_0123456789abcdef01234567", "e30=")
MINUTE = 60
_AHEAD = [
    compile_statement(
        update(column.table).values({column: column + literal_column(str(DAY))}).returning(AFFECTED_ROW)
    )
    for column in (workers.c.seen_at, payments.c.updated_at)
]


class ProcessAhead(ApiProcess):
    """A server process on a machine whose clock is two days ahead."""

    program = PROGRAM


@dataclass(frozen=True)
class SkewedServer:
    """A server whose machine's clock is two days ahead, its settings, and a client of it."""

    settings: Settings
    client: httpx.Client
    young: dict[str, Any]
    """A payment whose answer was stored just before the server started."""
    old: dict[str, Any]
    """A payment whose answer is past its retention."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
async def skewed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[SkewedServer]:
    """A server with the wrong clock, on each kind of database."""
    folder: Path = tmp_path_factory.mktemp("ahead")
    with open_stub_facilitator() as facilitator:
        settings = build_settings(folder, facilitator.url)
        if request.param == "postgresql":
            postgres: Postgres = request.getfixturevalue("postgres")
            settings = build_settings(folder, facilitator.url, database_url=postgres.new_database())
        young, old = await record_delivered(settings, 0), await record_delivered(settings, 2 * DAY)
        process = ProcessAhead(settings)
        try:
            with httpx.Client(base_url=process.url, timeout=30) as client:
                yield SkewedServer(settings, client, young, old)
        finally:
            process.stop()


async def record_delivered(settings: Settings, ago: int) -> dict[str, Any]:
    """Record a payment whose answer was delivered so many seconds ago."""
    then = int(time.time()) - ago
    payload = Buyer().payload(encode_terms(settings), now=then)
    await record_payment(settings, encode_header(payload), then, transaction=HASH, answer=ANSWER)
    return payload


async def find_answer(settings: Settings, payload: dict[str, Any]) -> ResultRow | None:
    """Return the stored answer of a payment."""
    payment = read_payment(encode_header(payload), build_terms(phishing_check, settings), time.time())
    async with open_journal_store(settings) as store:
        return await store.read(partial(queries.find_answer, payment.key))


@pytest.mark.extended
async def test_fast_clock_prunes_no_needed_answer(skewed: SkewedServer) -> None:
    deadline = time.monotonic() + PATIENCE
    while await find_answer(skewed.settings, skewed.old):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)

    response = pay(skewed.client, encode_header(skewed.young))

    assert (response.status_code, response.content) == (200, ANSWER.body)


@pytest.mark.extended
async def test_fast_clock_redeems_recent_settlement(skewed: SkewedServer, buyer: Buyer) -> None:
    now = int(time.time())
    payment = encode_header(buyer.payload(encode_terms(skewed.settings), now=now))
    await record_payment(skewed.settings, payment, now, transaction=HASH)

    response = pay(skewed.client, payment)

    assert response.status_code == 200


@pytest.mark.extended
async def test_fast_clock_stores_database_time(skewed: SkewedServer, buyer: Buyer) -> None:
    payload = sign_payload(skewed.client, buyer)

    response = pay(skewed.client, encode_header(payload))

    row, answer = await read_row(skewed.settings, payload), await find_answer(skewed.settings, payload)
    assert response.status_code == 200
    assert answer is not None
    entered = [row["created_at"], row["settled_at"], row["updated_at"], answer["stored_at"]]
    assert max(abs(at - time.time()) for at in entered) < MINUTE


@pytest.mark.extended
async def test_fast_clock_marks_no_young_payment_refundable(skewed: SkewedServer, buyer: Buyer) -> None:
    now = int(time.time())
    payload = buyer.payload(encode_terms(skewed.settings), now=now)
    await record_payment(skewed.settings, encode_header(payload), now, transaction=HASH)

    result = await asyncio.to_thread(
        subprocess.run,
        [*PROGRAM, "payments", "list", "--state", "redeemable", "--json"],
        env={**os.environ, "CENTGATE_DATABASE_URL": skewed.settings.database_url},
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )

    nonces = [each["nonce"] for each in json.loads(result.stdout)["payments"]]
    assert payload["payload"]["authorization"]["nonce"] in nonces


async def test_database_clock_set_back_repeats_answer(tmp_path: Path, buyer: Buyer) -> None:
    settings, now = (
        Settings(database_url=f"sqlite:///{tmp_path / 'journal.db'}", pay_to="0x" + "ce" * 20),
        2e9,
    )
    header = encode_header(buyer.payload(encode_terms(settings), now=int(now), validAfter=str(int(now) - 2)))
    terms = build_terms(phishing_check, settings)
    async with open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=DAY, clock=lambda: now)
        async with journal.claim(read_payment(header, terms, now), ORDER) as claim:
            await journal.begin_settled(claim, HASH)
            await journal.record_delivered(claim, ANSWER)
        now -= 30

        async with journal.claim(read_payment(header, terms, now), ORDER) as again:
            pass

    assert again.answer is not None
    assert again.answer.body == ANSWER.body


async def claim_within(settings: Settings, header: str, seconds: float) -> str:
    """Claim a payment as another process, and return its state; raises TimeoutError if it is not free."""
    async with open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=DAY)
        payment = read_payment(header, build_terms(phishing_check, settings), time.time())
        async with asyncio.timeout(seconds), journal.claim(payment, ORDER) as claim:
            return claim.state


async def test_database_clock_set_back_frees_claims_of_dead_process(tmp_path: Path, buyer: Buyer) -> None:
    file = tmp_path / "journal.db"
    settings = Settings(database_url=f"sqlite:///{file}", pay_to="0x" + "ce" * 20)
    header = encode_header(buyer.payload(encode_terms(settings), now=int(time.time())))
    async with open_journal_store(settings) as store:
        dead = Journal(store, keep_seconds=DAY)
        payment = read_payment(header, build_terms(phishing_check, settings), time.time())
        async with dead.claim(payment, ORDER):
            with closing(sqlite3.connect(file)) as connection, connection:
                connection.execute("UPDATE workers SET seen_at = seen_at + ?", (DAY,))

            assert await claim_within(settings, header, PATIENCE) == "settling"


async def test_database_clock_set_back_takes_no_claim_of_living_process(tmp_path: Path, buyer: Buyer) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'journal.db'}", pay_to="0x" + "ce" * 20)
    header = encode_header(buyer.payload(encode_terms(settings), now=int(time.time())))
    async with open_journal_store(settings) as store:
        living = Journal(store, keep_seconds=DAY)
        payment = read_payment(header, build_terms(phishing_check, settings), time.time())
        async with living.claim(payment, ORDER):
            await store.run(_set_rows_ahead)

            with pytest.raises(TimeoutError):  # before the next heartbeat of the living process
                await claim_within(settings, header, LEASE_SECONDS / 2)


async def wait_for_due_payments(settings: Settings) -> list[PaymentKey]:
    """Return the payments that are due in the journal as another process sees it, once there are any."""
    deadline = time.monotonic() + PATIENCE
    async with open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=DAY)
        await journal.heartbeat()
        while not (keys := await journal.list_open_payments(10, due_at=await journal.now())):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        return keys


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_database_clock_set_back_leaves_payment_of_dead_process_open(
    request: pytest.FixtureRequest, tmp_path: Path, buyer: Buyer, database: str
) -> None:
    """The payment is looked up again, and is not said to be in work."""
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    if database == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.new_database()
    settings = Settings(database_url=url, pay_to="0x" + "ce" * 20)
    header = encode_header(buyer.payload(encode_terms(settings), now=int(time.time())))
    async with open_journal_store(settings) as store:
        dead = Journal(store, keep_seconds=DAY)
        payment = read_payment(header, build_terms(phishing_check, settings), time.time())
        async with dead.claim(payment, ORDER):
            assert await dead.list_open_payments(10) == []
            await store.run(_set_rows_ahead)

            assert await wait_for_due_payments(settings) == [payment.key]


def _set_rows_ahead() -> UnitOfWork[None]:
    """Leave heartbeats and changes from a day ahead, as if the database's clock was set back."""
    for statement in _AHEAD:
        yield BoundStatement(statement, {})


async def test_database_clock_set_back_frees_leadership_of_dead_process(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with open_journal_store(Settings(database_url=f"sqlite:///{file}")) as store:
        dead, next_leader = Journal(store, keep_seconds=DAY), Journal(store, keep_seconds=DAY)
        await dead.acquire_leadership("background", MINUTE)
        assert not await next_leader.acquire_leadership("background", MINUTE)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE duties SET until = until + ?", (DAY,))

        assert await next_leader.acquire_leadership("background", MINUTE)


def test_clock_follows_monotonic_clock() -> None:
    reading = 100.0
    clock = DatabaseClock(monotonic=lambda: reading)
    clock.synchronize(5000.0, asked_at=99.0)

    reading = 103.0

    assert clock() == 5003.0


@pytest.mark.extended
def test_clock_ignores_response_time_of_database() -> None:
    clock = DatabaseClock(monotonic=lambda: 100.0)
    clock.synchronize(5000.0, asked_at=100.0)

    clock.synchronize(4999.5, asked_at=99.0)

    assert clock() == 5000.0


@pytest.mark.extended
@pytest.mark.parametrize("told", [1000.0, 9000.0], ids=["back", "forward"])
def test_clock_follows_changed_database_clock(told: float) -> None:
    clock = DatabaseClock(monotonic=lambda: 100.0)
    clock.synchronize(5000.0, asked_at=100.0)

    clock.synchronize(told, asked_at=100.0)

    assert clock() == told
