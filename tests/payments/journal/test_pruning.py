"""Pruning: old answers are removed in batches until none are left, while payments continue."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from buyer import ApiFactory, Buyer, pay, sign_payment
from facilitators import StubFacilitator, build_settings
from journal_rows import Row, insert_rows, payment_row, refund_row
from seeded_journals import PATIENCE, open_journal_store
from sqlalchemy import func, insert, select

from centgate.payments.database.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.database.store import Store
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import answers
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.pruning import PRUNE_BATCH
from centgate.payments.journal.read_model import PaymentFilter, iterate_payments
from centgate.settings import Settings

OLD = 450
DAY = 86400
ENTER = compile_statement(insert(answers))
COUNT = compile_statement(select(func.count().label("count")).select_from(answers))


@pytest.fixture
def deployment(tmp_path: Path, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment with a journal on each kind of database."""
    return build_settings(tmp_path, facilitator.url, database_url=database_url)


def insert_answers(first: int, last: int, stored_at: float) -> UnitOfWork[None]:
    for number in range(first, last):
        row: dict[str, Any] = {
            "payment": 1000 + number,
            "status": 200,
            "request_id": "req_",
            "receipt": "e30=",
            "body": b"x" * 3000,
            "stored_at": stored_at,
        }
        yield BoundStatement(ENTER, row)


def count_answers() -> UnitOfWork[int]:
    rows = yield BoundStatement(COUNT, {})
    return rows[0]["count"]


async def fill_journal(store: Store) -> None:
    """Insert expired answers, and ten that must be kept."""
    now = time.time()
    await store.run(partial(insert_answers, 0, OLD, now - 2 * DAY))
    await store.run(partial(insert_answers, OLD, OLD + 10, now - DAY / 2))


@pytest.mark.extended
async def test_all_old_answers_are_removed_during_payments(api: ApiFactory, deployment: Settings) -> None:
    async with open_journal_store(deployment) as store:
        await fill_journal(store)
        client = api(deployment)
        payments = [sign_payment(client, Buyer(number)) for number in range(3)]

        responses = [pay(client, payment) for payment in payments]

        deadline = time.monotonic() + PATIENCE
        while (left := await store.read(count_answers)) > 10 + len(payments):
            assert time.monotonic() < deadline, left
        assert left == 10 + len(payments)
        again = [pay(client, payment) for payment in payments]
    assert {response.status_code for response in responses} == {200}
    assert [each.content for each in again] == [each.content for each in responses]


async def test_answers_are_removed_in_batches(deployment: Settings) -> None:
    async with open_journal_store(deployment) as store:
        await fill_journal(store)
        journal = Journal(store, keep_seconds=DAY)

        removed = [await journal.prune() for _ in range(3)]

        assert removed == [PRUNE_BATCH] * 3
        assert await store.read(count_answers) == OLD + 10 - 3 * PRUNE_BATCH


NETWORK = "eip155:8453"
NOT_COMPLETED = {"completed_at": None, "findings": None}


async def prune_refused_payments(url: str, *audited_networks: str, positions: Sequence[Row] = ()) -> set[int]:
    """Prune once; return the ages in days of the refused payments that remain."""
    old = [payment_row(days, "refused", created_at=time.time() - days * DAY) for days in (1, 3, 10, 40)]
    await insert_rows(url, payments=old, audits=positions)
    store = open_store(url)
    await Journal(store, keep_seconds=DAY).prune(audited_networks)
    left = {record.key.nonce async for record in iterate_payments(store, PaymentFilter(), 0)}
    await store.close()
    return {int(nonce, 16) for nonce in left}


async def test_refused_payments_stay_until_audited(database_url: str) -> None:
    position = {"network": NETWORK, "asset": payment_row(1)["asset"], "pay_to": payment_row(1)["pay_to"]}
    read = {**position, "position": 7, "position_at": time.time() - 5 * DAY, **NOT_COMPLETED}

    left = await prune_refused_payments(database_url, NETWORK, positions=[read])

    assert left == {1, 3}


async def test_unaudited_refused_payments_go_after_two_days(database_url: str) -> None:
    left = await prune_refused_payments(database_url, "eip155:1")

    assert left == {1}


async def test_refused_payments_go_after_thirty_days_without_audit(database_url: str) -> None:
    left = await prune_refused_payments(database_url, "eip155:1", NETWORK)

    assert left == {1, 3, 10}


async def test_refunded_refused_payment_stays(database_url: str) -> None:
    paid = payment_row(1, "refused", created_at=time.time() - 10 * DAY)
    await insert_rows(database_url, payments=[paid], refunds=[refund_row(paid)])
    store = open_store(database_url)

    await Journal(store, keep_seconds=DAY).prune()
    left = [record async for record in iterate_payments(store, PaymentFilter(), 0)]
    await store.close()

    assert len(left) == 1
