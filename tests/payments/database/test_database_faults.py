"""PostgreSQL faults: unavailable, killed, hanging, full, changed. No buyer loses money or an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import PHISHING, SHARED, ApiFactory, Buyer, pay, payment_note, sign_payment
from databases import CuttableProxy, Postgres, postgres_server
from facilitators import StubFacilitator
from fake_upstreams import FakeUpstreams, RecordedRequest
from served_api import run_api_process, run_api_processes
from sqlalchemy import text

from centgate.payments.database.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable
from centgate.payments.database.store_factory import open_store
from centgate.settings import ProviderSettings, Settings

PATIENCE = 40.0
LATEST = 30.0
"""Maximum seconds until a response, whatever the database does."""
UNKNOWN = {"state": "in_flight", "charged": False, "retry": "same_payment"}


@pytest.fixture
def own_postgres() -> Generator[Postgres]:
    """A PostgreSQL server of this test's own, which it may kill."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def wire(postgres: Postgres) -> Generator[CuttableProxy]:
    """A connection to the server that can be cut."""
    wire = CuttableProxy(postgres.port)
    yield wire
    wire.close()


def wait_until(done: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_ready(client: httpx.Client, url: str = "") -> bool:
    return client.get(url + "/readyz").status_code == 200


def is_retryable_error(response: httpx.Response) -> bool:
    """True for a 500 that names the payment's state and advises to resend the same payment."""
    return (
        response.status_code == 500
        and response.json()["error"]["code"] == "internal_error"
        and payment_note(response)["retry"] == "same_payment"
        and (payment_note(response)["state"] == "settled" or payment_note(response)["charged"] is False)
        and int(response.headers["Retry-After"]) > 0
        and "PAYMENT-REQUIRED" not in response.headers
    )


@pytest.mark.extended
def test_postgresql_killed_under_load_loses_nothing(
    own_postgres: Postgres, settings: Settings, facilitator: StubFacilitator
) -> None:
    facilitator.usually = facilitator.reply_slowly(0.1)
    url = own_postgres.new_database()
    dead = threading.Event()
    with (
        run_api_processes(settings, DATABASE_URL=url) as processes,
        httpx.Client(timeout=LATEST, limits=SHARED) as client,
    ):
        addresses = [process.url + PHISHING for process in processes] * 30
        payments = [sign_payment(client, Buyer(n % 10), addresses[0]) for n in range(60)]

        def send(payment: str, address: str) -> httpx.Response:
            if payment in payments[40:]:  # some arrive while it is down
                dead.wait(PATIENCE)
            return pay(client, payment, address)

        with ThreadPoolExecutor(30) as pool:
            sent = pool.map(send, payments, addresses)
            wait_until(lambda: facilitator.settle_calls >= 10)
            own_postgres.kill()
            dead.set()
            first = list(sent)
        own_postgres.start()
        wait_until(lambda: all(is_ready(client, process.url) for process in processes))
        with ThreadPoolExecutor(10) as pool:
            second = list(pool.map(partial(pay, client), payments, reversed(addresses)))
            third = list(pool.map(partial(pay, client), payments, addresses))

    failed = [response for response in first if response.status_code != 200]
    states = own_postgres.run("SELECT state, count(*) FROM payments GROUP BY state", url)
    assert len(failed) >= 20
    assert all(map(is_retryable_error, failed)), [
        response.text for response in failed if not is_retryable_error(response)
    ]
    assert {response.status_code for response in second} == {200}
    assert [response.content for response in third] == [response.content for response in second]
    assert all(a.status_code != 200 or a.content == b.content for a, b in zip(first, second, strict=True))
    assert sorted(facilitator.moved.values()) == [1] * 60
    assert states == "delivered|60"


@pytest.mark.extended
def test_quick_restart_causes_no_error(
    own_postgres: Postgres, api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": own_postgres.new_database()}))
    arrived, release = threading.Event(), threading.Event()
    facilitator.next.append(facilitator.reply_when_released(arrived, release))

    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(pay, client, sign_payment(client, buyer))
        arrived.wait(10)
        own_postgres.kill()
        own_postgres.start()
        release.set()

    assert response.result().status_code == 200
    assert facilitator.settle_calls == 1


@pytest.mark.extended
def test_server_starts_before_its_database(
    own_postgres: Postgres, settings: Settings, buyer: Buyer, tmp_path: Path
) -> None:
    url = own_postgres.new_database()
    own_postgres.kill()
    log = tmp_path / "log"
    with (
        run_api_process(settings, log=log, DATABASE_URL=url) as process,
        httpx.Client(base_url=process.url, timeout=LATEST) as client,
    ):
        payment = sign_payment(client, buyer)
        before = client.get("/readyz").status_code
        refused, listed = pay(client, payment), client.get("/payments")
        own_postgres.start()
        wait_until(lambda: is_ready(client))
        served = pay(client, payment)

    assert (before, served.status_code) == (503, 200)
    assert (is_retryable_error(refused), payment_note(refused)) == (True, UNKNOWN)
    assert (listed.status_code, "details" in listed.json()["error"]) == (500, False)
    assert "the database of CENTGATE_DATABASE_URL is not available yet" in log.read_text()


@pytest.mark.extended
def test_charged_payment_is_not_called_unused_without_database(
    own_postgres: Postgres, api: ApiFactory, settings: Settings, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": own_postgres.new_database()}))
    payment = sign_payment(client, buyer)
    delivered = pay(client, payment)
    own_postgres.kill()

    response = pay(client, payment)

    assert (delivered.status_code, response.status_code) == (200, 500)
    assert payment_note(response) == UNKNOWN


@pytest.mark.extended
def test_read_only_sessions_do_not_outlive_failover(
    postgres: Postgres, postgres_url: str, api: ApiFactory, settings: Settings, buyer: Buyer
) -> None:
    name = postgres_url.rpartition("/")[2]
    client = api(settings.model_copy(update={"database_url": postgres_url}))
    payment = sign_payment(client, buyer)
    wait_until(lambda: is_ready(client))
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    refused = pay(client, payment)
    postgres.run(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    served = [pay(client, each) for each in (payment, *(sign_payment(client, buyer) for _ in range(8)))]

    assert (is_retryable_error(refused), payment_note(refused)) == (True, UNKNOWN)
    assert {response.status_code for response in served} == {200}
    wait_until(lambda: is_ready(client))


@contextmanager
def lock_payments(postgres: Postgres, url: str) -> Generator[None]:
    """Hold a lock on the payments in another session that blocks reads and writes."""
    psql = [str(postgres.programs / "psql"), "-XAtq", url]
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdin
        assert session.stdout
        session.stdin.write("BEGIN; LOCK TABLE payments; SELECT 'locked';\n")
        session.stdin.flush()
        assert session.stdout.readline() == "locked\n"
        yield


@pytest.mark.extended
def test_exhausted_connections_are_waited_for_then_reported(
    postgres: Postgres,
    postgres_url: str,
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    client = api(settings.model_copy(update={"database_url": postgres_url, "database_connections": 1}))
    payments = [sign_payment(client, buyer) for _ in range(8)]
    wait_until(lambda: is_ready(client))

    with lock_payments(postgres, postgres_url), ThreadPoolExecutor(8) as pool:
        refused = list(pool.map(partial(pay, client), payments))
    calls = facilitator.settle_calls
    served = [pay(client, payment) for payment in payments]

    assert all(map(is_retryable_error, refused)), [response.text for response in refused]
    assert calls == 0
    assert {response.status_code for response in served} == {200}
    assert sorted(facilitator.moved.values()) == [1] * 8


ENTRIES = {
    "claimed": b"\0\0\0\x08settling",
    "settled": b"\0\0\0\x07settled",
    "delivered": b'"category":"Liquid Staking"',
}
"""Bytes that only one kind of write contains: a value after its length, or a part of an answer."""


def answer_slowly(_request: RecordedRequest) -> tuple[int, Any]:
    """Answer after the settlement was written on its own."""
    time.sleep(0.2)
    lido = {"slug": "lido", "name": "Lido", "category": "Liquid Staking", "chains": ["Ethereum"], "tvl": 9}
    return 200, [lido]


@pytest.mark.extended
@pytest.mark.parametrize("entry", ENTRIES)
def test_unconfirmed_write_is_not_repeated(
    api: ApiFactory,
    settings: Settings,
    postgres_url: str,
    wire: CuttableProxy,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    entry: str,
) -> None:
    far = httpx.URL(postgres_url).copy_with(port=wire.port)
    providers = {"defillama": ProviderSettings(url=upstreams.url_of("defillama"))}
    client = api(settings.model_copy(update={"database_url": str(far), "providers": providers}))
    upstreams.set_response_function("defillama", "/protocols", answer_slowly)
    path, question = "/services/protocol-context", {"protocol": "lido"}
    payment = sign_payment(client, buyer, path, question)
    wait_until(lambda: is_ready(client))
    wire.cut_after(ENTRIES[entry])

    first, again = pay(client, payment, path, question), pay(client, payment, path, question)

    assert wire.cuts == 1
    assert (first.status_code, again.content) == (200, first.content)
    assert facilitator.settle_calls == 1


def test_changed_column_types_do_not_stop_service(
    postgres: Postgres, postgres_url: str, api: ApiFactory, settings: Settings, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": postgres_url, "database_connections": 1}))
    payment = sign_payment(client, buyer)
    first = pay(client, payment)
    pay(client, payment)  # so that every statement is prepared
    postgres.run("ALTER TABLE payments ALTER valid_before TYPE numeric, ADD COLUMN new text", postgres_url)

    again, other = pay(client, payment), pay(client, sign_payment(client, buyer))

    assert (again.content, other.status_code) == (first.content, 200)


async def test_every_commit_is_synchronous(postgres: Postgres, postgres_url: str) -> None:
    postgres.run(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET synchronous_commit = off")
    store = open_store(postgres_url)

    def read_synchronous_commit() -> UnitOfWork[str]:
        rows = yield BoundStatement(compile_statement(text("SHOW synchronous_commit")), {})
        return rows[0]["synchronous_commit"]

    try:
        assert await store.run(read_synchronous_commit) == "on"
    finally:
        await store.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://centgate:sec?ret@127.0.0.1/x",
        "postgresql://centgate:sec/ret@127.0.0.1/x",
        "postgresql://centgate:secret@127.0.0.1/x?sslmode=always",
        "postgresql://centgate:secret@127.0.0.1:99999/x",
    ],
)
async def test_invalid_address_is_reported_without_secrets(address: str) -> None:
    store = open_store(address)

    with pytest.raises(InvalidDatabaseUrl) as caught:
        await store.check()

    assert "sec" not in str(caught.value)


async def test_required_tls_refuses_plain_server(postgres_url: str) -> None:
    store = open_store(postgres_url + "?sslmode=require")

    with pytest.raises(JournalUnavailable, match="payment journal") as caught:
        await store.check()

    assert "SSL" in caught.value.detail


async def test_unknown_driver_option_is_named(postgres_url: str) -> None:
    store = open_store(postgres_url + "?channel_binding=require")

    with pytest.raises(InvalidDatabaseUrl, match="channel_binding"):
        await store.check()


@pytest.mark.extended
async def test_no_queue_for_unresponsive_server() -> None:
    def do_nothing() -> UnitOfWork[None]:
        yield BoundStatement(compile_statement(text("SELECT 1")), {})

    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = open_store(f"postgresql://centgate@127.0.0.1:{silent.getsockname()[1]}/x")
        async with asyncio.timeout(20):
            results = await asyncio.gather(
                *(store.run(do_nothing) for _ in range(20)), return_exceptions=True
            )

    assert {type(error) for error in results} == {JournalUnavailable}


@pytest.mark.extended
async def test_waiting_for_hanging_server_can_be_cancelled(postgres_url: str) -> None:
    def read_backend_pid() -> UnitOfWork[int]:
        rows = yield BoundStatement(compile_statement(text("SELECT pg_backend_pid() AS number")), {})
        return rows[0]["number"]

    store = open_store(postgres_url, connections=1)
    number = await store.run(read_backend_pid)
    os.kill(number, signal.SIGSTOP)
    try:
        waiting = asyncio.create_task(store.run(read_backend_pid))
        _, cut_off = await asyncio.wait([waiting], timeout=0.5)
        for task in cut_off:
            task.cancel()
        await asyncio.wait([waiting], timeout=20)
    finally:
        os.kill(number, signal.SIGCONT)
    await store.close()

    assert waiting.cancelled()
