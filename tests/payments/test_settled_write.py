"""Writing of settlements: while the service runs, before any response, or together with a quick answer."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, cast

import httpx
import pytest
from buyer import (
    PHISHING,
    QUESTION,
    ApiFactory,
    Buyer,
    encode_header,
    pay,
    payment_note,
    sign_payload,
    sign_payment,
)
from facilitators import StubFacilitator, build_settings
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from fake_upstreams import FakeUpstreams
from mpp_buyer import MPP_SETTINGS, buy_challenge, pay_by_mpp
from served_api import disable_reconciler, run_api_process
from small_site import SmallSite, serve_small_site
from starlette.responses import Response

from centgate.catalog import all_services
from centgate.errors import NoData, ProviderError
from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claim_values import RequestBinding, StoredAnswer
from centgate.payments.database.store import JournalUnavailable, Store, UnitFactory
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.queries import find_payment
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

T = TypeVar("T")
ORDER = RequestBinding(phishing_check.slug, "binding")
ANSWER = StoredAnswer(200, b"{}", "req_1", "receipt")
HASH = "0x" + "ab" * 32
SCRAPE = "/services/crawler/scrape"
POOL, TOKEN = "/services/pool-snapshot", {"chain": "base", "tokenAddress": "0x" + "a1" * 20}
POOL_PATH = f"/token-pairs/v1/base/{TOKEN['tokenAddress']}"


class WatchedStore:
    """A store that counts its writes, and can fail or hold them back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.writes = 0
        self.fails = False
        self.gate: asyncio.Event | None = None

    async def run(self, unit: UnitFactory[T]) -> T:
        self.writes += 1
        if self.gate:
            await self.gate.wait()
        if self.fails:
            raise JournalUnavailable(OSError("the disk is full"))
        return await self._store.run(unit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[WatchedStore]:
    inner = open_store(database_url)
    yield WatchedStore(inner)
    await inner.close()


@pytest.fixture
async def journal(store: WatchedStore) -> Journal:
    journal = Journal(cast(Store, store), keep_seconds=3600)
    await journal.heartbeat()
    store.writes = 0
    return journal


@pytest.fixture
def payment(buyer: Buyer) -> Payment:
    """A payment for the usual question."""
    terms = build_terms(phishing_check, build_settings(Path(), "http://127.0.0.1:9"))
    payload = buyer.payload(terms.header, now=int(time.time()))
    return read_payment(encode_header(payload), terms, time.time())


async def read_state(store: WatchedStore, payment: Payment) -> tuple[str, str | None, float | None]:
    """Return the stored state of a payment: state, transaction and time of settlement."""
    row = await store.read(lambda: find_payment(payment.key))
    assert row is not None
    return row["state"], row["transaction"], row["settled_at"]


async def wait_until_settled(store: WatchedStore, payment: Payment) -> None:
    """Wait until a settlement is stored."""
    async with asyncio.timeout(20):
        while (await read_state(store, payment))[0] != "settled":  # noqa: ASYNC110 - a file tells no one
            await asyncio.sleep(0.005)


async def wait_until_held_back(store: WatchedStore) -> None:
    """Wait until the write of a settlement, the second write, waits at the store's gate."""
    async with asyncio.timeout(20):
        while store.gate is None or store.writes < 2:  # noqa: ASYNC110 - a count tells no one
            await asyncio.sleep(0.005)


async def test_quick_answer_is_written_with_settlement(
    journal: Journal, store: WatchedStore, payment: Payment
) -> None:
    async with journal.claim(payment, ORDER) as claim:
        await journal.begin_settled(claim, HASH)
        settled_at = claim.settled_at
        await journal.record_delivered(claim, ANSWER)

    assert store.writes == 2  # the claim, and both in one
    assert await read_state(store, payment) == ("delivered", HASH, settled_at)


async def test_settlement_is_written_before_slow_answer(
    journal: Journal, store: WatchedStore, payment: Payment
) -> None:
    async with journal.claim(payment, ORDER) as claim:
        await journal.begin_settled(claim, HASH)
        await wait_until_settled(store, payment)
        settled_at = claim.settled_at
        await journal.record_delivered(claim, ANSWER)

    assert store.writes == 3
    assert await read_state(store, payment) == ("delivered", HASH, settled_at)


@pytest.mark.parametrize("error", [ProviderError("oracle", "down"), asyncio.CancelledError()])
async def test_error_waits_until_settlement_is_written(
    journal: Journal, store: WatchedStore, payment: Payment, error: BaseException
) -> None:
    left = asyncio.Event()

    async def work() -> None:
        try:
            async with journal.claim(payment, ORDER) as claim:
                store.gate = asyncio.Event()
                await journal.begin_settled(claim, HASH)
                raise error
        finally:
            left.set()

    task = asyncio.create_task(work())
    await wait_until_held_back(store)
    await asyncio.sleep(0.05)
    assert not left.is_set()
    assert store.gate
    store.gate.set()
    with pytest.raises(type(error)):
        await task
    assert await read_state(store, payment) == ("settled", HASH, pytest.approx(time.time(), abs=60))


async def test_claim_is_kept_while_settlement_is_written(
    journal: Journal, store: WatchedStore, payment: Payment
) -> None:
    """A server that stops does not wait for a slow database; a release before the write would void it."""

    async def work() -> None:
        async with journal.claim(payment, ORDER) as claim:
            store.gate = asyncio.Event()
            await journal.begin_settled(claim, HASH)

    task = asyncio.create_task(work())
    await wait_until_held_back(store)
    task.cancel()
    await asyncio.wait([task], timeout=5)

    assert (task.cancelled(), store.writes) == (True, 2)  # the claim and the settlement
    assert store.gate
    store.gate.set()
    await wait_until_settled(store, payment)
    await journal.retry_releases()
    async with journal.claim(payment, ORDER) as claim:
        assert claim.state == "settled"


@pytest.mark.parametrize("pause", [0, 0.02], ids=["with the answer", "while the service runs"])
async def test_unwritten_settlement_is_open(
    journal: Journal, store: WatchedStore, payment: Payment, pause: float
) -> None:
    async def deliver() -> None:
        async with journal.claim(payment, ORDER) as claim:
            store.fails = True
            await journal.begin_settled(claim, HASH)
            await asyncio.sleep(pause)
            await journal.record_delivered(claim, ANSWER)

    with pytest.raises(JournalUnavailable) as failure:
        await deliver()
    store.fails = False
    await journal.retry_releases()

    assert failure.value.payment
    assert (failure.value.payment.state, failure.value.payment.retry) == ("in_flight", "same_payment")
    assert (await read_state(store, payment))[0] == "settling"
    async with journal.claim_open_payment(payment.key) as claim:
        assert claim


async def test_journal_error_replaces_service_error(
    journal: Journal, store: WatchedStore, payment: Payment
) -> None:
    """No response may report a settlement that the journal does not have."""

    async def fail() -> None:
        async with journal.claim(payment, ORDER) as claim:
            store.fails = True
            await journal.begin_settled(claim, HASH)
            raise ProviderError("oracle", "down")

    with pytest.raises(JournalUnavailable):
        await fail()


@pytest.fixture
def failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service."""
    with install_failing_service() as installed:
        yield installed


def test_reported_settlement_is_stored(
    api: ApiFactory, settings: Settings, buyer: Buyer, failures: ServiceFailures, tmp_path: Path
) -> None:
    client = api(settings)
    failures.raise_next(lambda: ProviderError("oracle", "down"), lambda: NoData("nothing"))
    for state in ("settled", "delivered"):
        payment = sign_payment(client, buyer, FAILING_SERVICE, FAILING_QUERY)
        response = pay(client, payment, FAILING_SERVICE, FAILING_QUERY)

        with closing(sqlite3.connect(settings.database_url.removeprefix("sqlite:///"))) as journal:
            (row,) = journal.execute("select state from payments order by id desc limit 1")
        assert (payment_note(response)["state"], row[0]) == (state, state)


@pytest.fixture
def silent_site() -> Generator[SmallSite]:
    """A site that accepts connections and never answers."""
    with serve_small_site() as site:
        site.silent_paths.add("/page")
        yield site


@pytest.mark.extended
def test_payment_survives_crash_while_service_runs(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer, silent_site: SmallSite, tmp_path: Path
) -> None:
    body = {"url": f"{silent_site.url}/page"}
    port = silent_site.address.rpartition(":")[2]
    allowed: Any = {"FETCH_ALLOWED": silent_site.address, "FETCH_PORTS": port, "FETCH_ROBOTS": "false"}
    with run_api_process(settings, **allowed) as doomed, httpx.Client(base_url=doomed.url) as client:
        payment = sign_payment(client, buyer, SCRAPE, body)
        thread = Thread(target=_ignore_lost_connection, args=(lambda: pay(client, payment, SCRAPE, body),))
        thread.start()
        assert silent_site.silent_path_requested.wait(20)
        _wait_until_settled(settings)
        doomed.popen.send_signal(signal.SIGKILL)
        thread.join(20)
    calls = facilitator.settle_calls
    silent_site.silent_paths.clear()
    silent_site.respond("/page", "<main><h1>Here</h1><p>The page has come after all.</p></main>")

    with (
        run_api_process(settings, **allowed) as again,
        httpx.Client(base_url=again.url, timeout=30) as client,
    ):
        response = _pay_patiently(lambda: pay(client, payment, SCRAPE, body))

    assert (response.status_code, facilitator.settle_calls) == (200, calls)
    assert list(facilitator.moved.values()) == [1]


def _ignore_lost_connection(send: Callable[[], object]) -> None:
    with pytest.raises(httpx.TransportError):
        send()


def _wait_until_settled(settings: Settings) -> None:
    deadline = time.monotonic() + 20
    with closing(sqlite3.connect(settings.database_url.removeprefix("sqlite:///"))) as journal:
        while journal.execute("select state from payments").fetchall() != [("settled",)]:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _pay_patiently(send: Callable[[], httpx.Response]) -> httpx.Response:
    deadline = time.monotonic() + 30
    while (response := send()).status_code != 200 and time.monotonic() < deadline:
        time.sleep(0.2)  # the claim of the dead server has to lapse
    return response


@dataclass(frozen=True)
class LockedJournal:
    """Locks a journal when the facilitator has settled a payment, so that nothing can be written."""

    connection: sqlite3.Connection
    facilitator: StubFacilitator

    async def settle_and_lock(self, body: dict[str, Any]) -> Response:
        """Lock the journal, and settle a payment."""
        self.connection.execute("BEGIN IMMEDIATE")
        return await self.facilitator.settle(body)

    def unlock(self) -> str:
        """Release the lock; return the state of the only payment."""
        self.connection.rollback()
        return self.connection.execute("SELECT state FROM payments").fetchone()[0]


@pytest.fixture
def locked(
    settings: Settings, facilitator: StubFacilitator, monkeypatch: pytest.MonkeyPatch
) -> Generator[LockedJournal]:
    """The lockable journal of the deployment."""
    monkeypatch.setattr("centgate.payments.database.sqlite.BUSY_SECONDS", 0.3)
    file = settings.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=9)) as one:
        yield LockedJournal(one, facilitator)


def _pay_by_x402(client: httpx.Client, path: str, body: Any) -> Callable[[], httpx.Response]:
    return partial(pay, client, sign_payment(client, Buyer(), path, body), path, body)


def _pay_by_mpp(client: httpx.Client, path: str, body: Any) -> Callable[[], httpx.Response]:
    return partial(pay_by_mpp, client, buy_challenge(client, Buyer(), path), path, body)


def _pay_by_mcp(client: httpx.Client, path: str, body: Any) -> Callable[[], httpx.Response]:
    payload = sign_payload(client, Buyer(), path)
    name = next(each.slug for each in all_services() if each.path == path)
    params = {"name": name, "arguments": body, "_meta": {"x402/payment": payload}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = {"Accept": "application/json, text/event-stream"}
    return partial(client.post, "/mcp", json=call, headers=accept)


WAYS = {"x402": _pay_by_x402, "MPP": _pay_by_mpp, "MCP": _pay_by_mcp}
OUTCOMES: dict[str, tuple[str, Any, tuple[int, Any]]] = {
    "an answer at once": (PHISHING, QUESTION, (200, None)),
    "a late answer": (POOL, TOKEN, (200, [])),
    "an error": (POOL, TOKEN, (500, {})),
}


@pytest.mark.extended
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("path", "body", "upstream"), OUTCOMES.values(), ids=OUTCOMES)
def test_no_response_while_settlement_cannot_be_written(
    api: ApiFactory,
    settings: Settings,
    locked: LockedJournal,
    upstreams: FakeUpstreams,
    way: Callable[[httpx.Client, str, Any], Callable[[], httpx.Response]],
    path: str,
    body: Any,
    upstream: tuple[int, Any],
) -> None:
    """Neither an answer nor an error that reports the payment as settled, on any transport."""
    changes: dict[str, Any] = {
        **MPP_SETTINGS,
        "providers": upstreams.provider_settings("dexscreener"),
        "pinned": ("pool-snapshot=dexscreener",),
    }
    client = api(Settings(**{**settings.model_dump(), **changes}))
    disable_reconciler(Path(settings.database_url.removeprefix("sqlite:///")).parent)
    upstreams.set_response_function("dexscreener", POOL_PATH, lambda _: time.sleep(0.05) or upstream)
    send = way(client, path, body)
    locked.facilitator.next = [locked.settle_and_lock]

    response = send()
    state = locked.unlock()
    error = _read_error(response)

    assert (state, error["code"]) == ("settling", "internal_error")
    note = error["details"]["payment"]
    assert (note["state"], note["charged"], note["retry"]) == ("in_flight", False, "same_payment")
    assert "PAYMENT-RESPONSE" not in response.headers
    assert "Payment-Receipt" not in response.headers
    assert "x402/payment-response" not in response.text


def _read_error(response: httpx.Response) -> dict[str, Any]:
    """Return the error of a response, over HTTP or MCP."""
    content = response.json()
    if "result" in content:
        content = json.loads(content["result"]["content"][0]["text"])
    return content["error"]
