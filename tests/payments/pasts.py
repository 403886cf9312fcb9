"""Journals with payments from before the test, and readers of their rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

from buyer import QUESTION, Buyer, encoded
from sqlalchemy import literal_column, update

from centgate.payments import queries
from centgate.payments.authorization import read_payment
from centgate.payments.claiming import Order, StoredAnswer
from centgate.payments.journal import Journal
from centgate.payments.statements import HIT, Ask, Asking, Statement, statement
from centgate.payments.store import Store, open_store
from centgate.payments.tables import payments
from centgate.payments.terms import Terms, terms_of
from centgate.pipeline import request_digest
from centgate.services.phishing_check import PhishingCheckRequest, phishing_check
from centgate.settings import Settings

PATIENCE = 25.0


@asynccontextmanager
async def journal_of(settings: Settings) -> AsyncGenerator[Store]:
    """Open the store of a deployment's journal."""
    store = open_store(settings.database_url)
    try:
        yield store
    finally:
        await store.close()


async def presented(
    settings: Settings,
    header: str,
    at: int,
    *,
    transaction: str | None = None,
    answer: StoredAnswer | None = None,
    terms: Terms | None = None,
) -> None:
    """Record a payment as submitted at a time for the usual question.

    It is settled in `transaction`, or left open without one, and delivered if there is an `answer`.
    """
    async with journal_of(settings) as store:
        journal = Journal(store, keep_seconds=3600, clock=lambda: at)
        payment = read_payment(header, terms or terms_of(phishing_check, settings), at)
        order = Order(phishing_check.slug, request_digest(phishing_check, PhishingCheckRequest(**QUESTION)))
        await journal.beat()  # else a server on the same journal may claim it in between
        async with journal.claim(payment, order) as claim:
            if transaction:
                await journal.settled(claim, transaction)
            if answer:
                await journal.delivered(claim, answer)


async def left_open(
    settings: Settings, buyer: Buyer, *, ago: int = 60, seconds: int = 120, **changes: Any
) -> dict[str, Any]:
    """Record a payment that was submitted some time ago and left open; it was valid for `seconds`."""
    submitted_at = int(time.time()) - ago
    payload = buyer.payload(terms_in(settings), now=submitted_at, seconds=seconds, **changes)
    await presented(settings, encoded(payload), submitted_at)
    return payload


def terms_in(settings: Settings) -> str:
    """Return the terms of the usual question on a deployment, as in a 402 response."""
    return terms_of(phishing_check, settings).header


async def row_of(settings: Settings, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a payment's row, and its `events`."""
    payment = read_payment(encoded(payload), terms_of(phishing_check, settings), 0)
    async with journal_of(settings) as store:
        row = await store.read(partial(queries.find, payment.key))
        events = await store.read(partial(queries.find_events, payment.key))
    assert row is not None
    return {column.name: row[column.name] for column in payments.columns} | {"events": events}


async def row_when(
    settings: Settings, payload: dict[str, Any], wanted: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Wait until a payment's row meets a condition, and return it."""
    deadline = time.monotonic() + PATIENCE
    while not wanted(row := await row_of(settings, payload)):
        assert time.monotonic() < deadline, row
        await asyncio.sleep(0.1)
    return row


async def pruned(settings: Settings) -> None:
    """Prune every delivered answer from the journal."""
    async with journal_of(settings) as store:
        assert await Journal(store, keep_seconds=0).prune() > 0


async def pruned_rows(settings: Settings, state: Literal["refused", "unused"], *, ended: bool = False) -> int:
    """Prune payments of a state and return their number; with `ended` their authorizations end first."""
    async with journal_of(settings) as store:
        if ended:
            past = statement(update(payments).values(valid_before=literal_column("1")).returning(HIT))
            await store.run(partial(_execute, past))
        if state == "unused":
            return await store.run(queries.prune_unused)
        return await store.run(partial(queries.prune_refused, 0.0, 0.0, ()))


def _execute(asked: Statement) -> Asking[None]:
    yield Ask(asked, {})
