"""Old answers are removed until none are left, a few at a time, while payments go on."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from buyer import Api, Buyer, pay, payment_for
from facilitators import StubFacilitator, settings_in
from pasts import PATIENCE, journal_of
from sqlalchemy import func, insert, select

from centgate.payments.journal import Journal
from centgate.payments.queries import FORGET_AT_ONCE
from centgate.payments.statements import Ask, Asking, statement
from centgate.payments.store import Store
from centgate.payments.tables import answers
from centgate.settings import Settings

OLD = 450
DAY = 86400
ENTER = statement(insert(answers))
COUNT = statement(select(func.count().label("count")).select_from(answers))


@pytest.fixture
def deployment(tmp_path: Path, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment with a journal on each kind of database."""
    return settings_in(tmp_path, facilitator.url, database_url=database_url)


def entered(first: int, last: int, stored_at: float) -> Asking[None]:
    for number in range(first, last):
        row: dict[str, Any] = {
            "payment": 1000 + number,
            "status": 200,
            "request_id": "req_",
            "receipt": "e30=",
            "body": b"x" * 3000,
            "stored_at": stored_at,
        }
        yield Ask(ENTER, row)


def counted() -> Asking[int]:
    rows = yield Ask(COUNT, {})
    return rows[0]["count"]


async def fill(store: Store) -> None:
    """Answers that need not be kept any longer, and ten that must be."""
    now = time.time()
    await store.run(partial(entered, 0, OLD, now - 2 * DAY))
    await store.run(partial(entered, OLD, OLD + 10, now - DAY / 2))


async def test_all_old_answers_are_removed_and_payments_go_on_meanwhile(
    api: Api, deployment: Settings
) -> None:
    async with journal_of(deployment) as store:
        await fill(store)
        client = api(deployment)
        payments = [payment_for(client, Buyer(number)) for number in range(3)]

        responses = [pay(client, payment) for payment in payments]

        deadline = time.monotonic() + PATIENCE
        while (left := await store.read(counted)) > 10 + len(payments):
            assert time.monotonic() < deadline, left
        assert left == 10 + len(payments)
        again = [pay(client, payment) for payment in payments]
    assert {response.status_code for response in responses} == {200}
    assert [each.content for each in again] == [each.content for each in responses]


async def test_few_are_removed_at_a_time(deployment: Settings) -> None:
    async with journal_of(deployment) as store:
        await fill(store)
        journal = Journal(store, keep_seconds=DAY)

        removed = [await journal.prune() for _ in range(3)]

        assert removed == [FORGET_AT_ONCE] * 3
        assert await store.read(counted) == OLD + 10 - 3 * FORGET_AT_ONCE
