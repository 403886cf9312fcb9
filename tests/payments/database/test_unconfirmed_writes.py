"""Unconfirmed writes: database changes whose confirmation was lost, and claims that compete for one row."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import structlog
from buyer import Buyer, encode_header, with_identifier
from facilitators import build_settings
from structlog.testing import capture_logs

from centgate.errors import PaymentNote
from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claim_values import RequestBinding, StoredAnswer
from centgate.payments.database.sql import UnitOfWork
from centgate.payments.database.store import JournalUnavailable, Store, UnitFactory
from centgate.payments.database.store_factory import open_store
from centgate.payments.heartbeat import keep_alive
from centgate.payments.journal import queries
from centgate.payments.journal.claims import ClaimLost
from centgate.payments.journal.journal import Journal
from centgate.payments.terms import build_terms
from centgate.payments.worker_id import Worker
from centgate.services.phishing_check import phishing_check

T = TypeVar("T")
ORDER = RequestBinding(phishing_check.slug, "binding")
HASH = "0x" + "ab" * 32


class FlakyStore:
    """A store whose connection fails on demand."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.deaf = False
        """True if each unit is repeated after it was completed."""
        self.failing: list[Exception] = []
        """Errors to raise after the next units are complete."""
        self.runs = 0
        self.ended = 0
        """Number of completed units."""
        self.reads_hang = False

    async def run(self, unit: UnitFactory[T]) -> T:
        self.runs += 1
        done = await self._store.run(unit)
        if self.deaf:
            done = await self._store.run(unit)
        self.ended += 1
        if self.failing:
            raise self.failing.pop(0)
        return done

    async def run_serializable(self, unit: UnitFactory[T]) -> T:
        return await self._store.run_serializable(unit)

    async def read(self, unit: UnitFactory[T]) -> T:
        if self.reads_hang:
            await asyncio.Event().wait()
        return await self._store.read(unit)

    async def check(self) -> None:
        await self._store.check()

    async def migrate(self) -> str | None:
        return await self._store.migrate()

    async def close(self) -> None:
        await self._store.close()


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[FlakyStore]:
    store = open_store(database_url)
    yield FlakyStore(store)
    await store.close()


def open_journal_on(store: Store) -> Journal:
    return Journal(store, keep_seconds=3600)


def build_payment(buyer: Buyer, key: str | None = None, payload: Any = None) -> tuple[Payment, Any]:
    """Return a payment and its payload, which may be given."""
    terms = build_terms(phishing_check, build_settings(Path(), "http://127.0.0.1:9"))
    payload = payload or buyer.payload(terms.header, now=int(time.time()))
    header = with_identifier(payload, key) if key else encode_header(payload)
    return read_payment(header, terms, time.time()), payload


async def test_each_write_may_be_repeated(store: FlakyStore, buyer: Buyer) -> None:
    store.deaf = True
    journal = open_journal_on(store)
    payment, _ = build_payment(buyer)

    async with journal.claim(payment, ORDER) as claim:
        fresh = not claim.outcome_unknown
        await journal.record_refused(claim, "insufficient_funds")
    async with journal.claim(payment, ORDER) as claim:
        fresh = fresh and not claim.outcome_unknown
        await journal.record_transaction(claim, HASH, None)
    async with journal.claim_open_payment(payment.key) as claim:
        assert claim is not None
        await journal.schedule_retry(claim, 1.0, cause="no_node")
        await journal.record_settled(claim, HASH)
    async with journal.claim(payment, ORDER) as claim:
        await journal.record_delivered(claim, StoredAnswer(200, b"{}", "req_1", "receipt"))

    assert fresh
    assert claim.state == "delivered"


@pytest.mark.parametrize("doubted", [False, True], ids=["claimed", "taken up"])
async def test_unconfirmed_claim_is_released_for_another_server(
    store: FlakyStore, buyer: Buyer, *, doubted: bool
) -> None:
    elsewhere = Worker("elsewhere", "elsewhere")
    one, other = Journal(store, keep_seconds=3600, worker=elsewhere), open_journal_on(store)
    payment, _ = build_payment(buyer)
    await one.heartbeat()
    if doubted:
        async with one.claim(payment, ORDER):
            pass
    store.failing.append(JournalUnavailable(OSError("gone")))
    with pytest.raises(JournalUnavailable):
        async with one.claim_open_payment(payment.key) if doubted else one.claim(payment, ORDER):
            pytest.fail("the claim was confirmed")

    await one.heartbeat()

    async with keep_alive(one), asyncio.timeout(20), other.claim(payment, ORDER) as claim:
        assert claim.outcome_unknown


async def test_paid_call_needs_no_database_time(store: FlakyStore, buyer: Buyer) -> None:
    journal = open_journal_on(store)
    payment, _ = build_payment(buyer)
    await journal.heartbeat()
    before = store.runs

    async with journal.claim(payment, ORDER) as claim:
        await journal.record_settled(claim, HASH)
        await journal.record_delivered(claim, StoredAnswer(200, b"{}", "req_1", "receipt"))

    assert store.runs - before == 3


async def test_two_requests_never_work_on_one_row(store: FlakyStore, buyer: Buyer) -> None:
    journal = open_journal_on(store)
    first, payload = build_payment(buyer, "one-key-of-a-buyer")
    async with journal.claim(first, ORDER):
        pass
    again, _ = build_payment(buyer, payload=payload)
    under_its_key, _ = build_payment(buyer, "one-key-of-a-buyer")

    async def read_answer() -> StoredAnswer | None:
        async with journal.claim(under_its_key, ORDER) as claim:
            return claim.answer

    async with journal.claim(again, ORDER) as claim:
        second = asyncio.create_task(read_answer())
        for _ in range(3):
            await journal.find_note(again)
        early = second.done()
        await journal.record_settled(claim, HASH)
        await journal.record_delivered(claim, StoredAnswer(200, b"{}", "req_1", "receipt"))
    answer = await second

    assert not early
    assert answer is not None
    assert answer.request_id == "req_1"


@pytest.mark.extended
async def test_heartbeat_continues_after_unexpected_error(store: FlakyStore) -> None:
    journal = open_journal_on(store)
    store.failing.append(ZeroDivisionError())

    async with keep_alive(journal), asyncio.timeout(20):
        while store.runs < 3:  # noqa: ASYNC110 - it is said once a second
            await asyncio.sleep(0.1)

    assert not store.failing


@pytest.mark.extended
async def test_hanging_count_delays_no_heartbeat(store: FlakyStore) -> None:
    journal = open_journal_on(store)
    store.reads_hang = True

    async with keep_alive(journal), asyncio.timeout(20):
        while store.runs < 3:  # noqa: ASYNC110 - there is one each second
            await asyncio.sleep(0.1)


@pytest.fixture
def warnings_logged() -> Generator[list[Any]]:
    """Log lines of level warning or higher; the other tests log errors only."""
    configured = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))
    with capture_logs() as logs:
        yield cast(list[Any], logs)
    structlog.configure(**configured)


async def test_failed_count_is_logged_though_heartbeats_succeed(
    store: FlakyStore, warnings_logged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_unit: UnitFactory[T]) -> T:
        raise JournalUnavailable(OSError("too many connections"))

    monkeypatch.setattr(store, "read", refuse)

    async with keep_alive(open_journal_on(store)), asyncio.timeout(20):
        # not before a heartbeat has ended: asyncpg complains of a connection that is cancelled while it opens
        while not (store.ended and warnings_logged):  # noqa: ASYNC110 - it is counted at once
            await asyncio.sleep(0.1)

    assert warnings_logged == [
        {
            "event": "unresolved payments cannot be counted",
            "error": "too many connections",
            "log_level": "warning",
        }
    ]


async def test_answer_of_lost_claim_is_charged_and_redeemable(store: FlakyStore, buyer: Buyer) -> None:
    late, other = open_journal_on(store), open_journal_on(store)
    payment, _ = build_payment(buyer)
    async with late.claim(payment, ORDER) as claim:
        await late.record_settled(claim, HASH)
        await late.deregister()  # as if its heartbeats had stopped
        async with other.claim(payment, ORDER) as taken_over:
            state = taken_over.state
            with pytest.raises(ClaimLost) as lost:
                await late.record_delivered(claim, StoredAnswer(200, b"{}", "req_1", "receipt"))
            await other.record_delivered(taken_over, StoredAnswer(200, b"{}", "req_2", "receipt"))

    assert state == "settled"
    assert lost.value.payment == PaymentNote("settled", charged=True, retry="same_payment", transaction=HASH)


async def test_collision_with_another_server_is_retried(postgres_url: str, buyer: Buyer) -> None:
    (one, _), (other, _) = build_payment(buyer), build_payment(buyer)
    tries: list[int] = []
    store = open_store(postgres_url)

    def collide_once() -> UnitOfWork[int]:
        tries.append(1)
        values = {"identifier": "one-key-of-a-buyer" if len(tries) == 1 else "another-key-of-a-buyer"}
        row = yield from queries.find_payment(other.key)
        assert row is not None
        yield from queries.update_if_unchanged(row, values)
        return len(tries)

    journal = open_journal_on(store)
    for payment in (one, other):
        async with journal.claim(payment, ORDER):
            pass
    row = await store.run(partial(queries.find_payment, one.key))
    assert row is not None
    await store.run(partial(queries.update_if_unchanged, row, {"identifier": "one-key-of-a-buyer"}))

    assert await store.run(collide_once) == 2
    await store.close()
