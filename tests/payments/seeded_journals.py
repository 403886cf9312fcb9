"""Journals with payments from before the test, and readers of their rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

from buyer import QUESTION, Buyer, encode_header
from sqlalchemy import literal_column, update

from centgate.payments.authorization import read_payment
from centgate.payments.claim_values import RequestBinding, StoredAnswer
from centgate.payments.database.sql import (
    AFFECTED_ROW,
    BoundStatement,
    CompiledStatement,
    UnitOfWork,
    compile_statement,
)
from centgate.payments.database.store import Store
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import payments
from centgate.payments.heartbeat import keep_alive
from centgate.payments.journal import pruning, queries
from centgate.payments.journal.journal import Journal
from centgate.payments.terms import RouteTerms, build_terms
from centgate.pipeline import request_digest
from centgate.services.phishing_check import PhishingCheckRequest, phishing_check
from centgate.settings import Settings

PATIENCE = 25.0


@asynccontextmanager
async def open_journal_store(settings: Settings) -> AsyncGenerator[Store]:
    """Open the store of a deployment's journal."""
    store = open_store(settings.database_url)
    try:
        yield store
    finally:
        await store.close()


async def record_payment(
    settings: Settings,
    header: str,
    at: int,
    *,
    transaction: str | None = None,
    answer: StoredAnswer | None = None,
    terms: RouteTerms | None = None,
) -> None:
    """Record a payment as submitted at a time for the usual question.

    It is settled in `transaction`, or left open without one, and delivered if there is an `answer`.
    """
    async with open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=3600, clock=lambda: at)
        payment = read_payment(header, terms or build_terms(phishing_check, settings), at)
        order = RequestBinding(
            phishing_check.slug, request_digest(phishing_check, PhishingCheckRequest(**QUESTION))
        )
        # a server on the same journal must not claim it in between, even on a slow machine
        await journal.heartbeat()
        async with keep_alive(journal), journal.claim(payment, order) as claim:
            if transaction:
                await journal.record_settled(claim, transaction)
            if answer:
                await journal.record_delivered(claim, answer)
        await journal.deregister()


async def record_open_payment(
    settings: Settings, buyer: Buyer, *, ago: int = 60, seconds: int = 120, **changes: Any
) -> dict[str, Any]:
    """Record a payment that was submitted some time ago and left open; it was valid for `seconds`."""
    submitted_at = int(time.time()) - ago
    payload = buyer.payload(encode_terms(settings), now=submitted_at, seconds=seconds, **changes)
    await record_payment(settings, encode_header(payload), submitted_at)
    return payload


def encode_terms(settings: Settings) -> str:
    """Return the terms of the usual question on a deployment, as in a 402 response."""
    return build_terms(phishing_check, settings).header


async def read_row(settings: Settings, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a payment's row, and its `events`."""
    payment = read_payment(encode_header(payload), build_terms(phishing_check, settings), 0)
    async with open_journal_store(settings) as store:
        row = await store.read(partial(queries.find_payment, payment.key))
        events = await store.read(partial(queries.find_events, payment.key))
    assert row is not None
    return {column.name: row[column.name] for column in payments.columns} | {"events": events}


async def wait_for_row(
    settings: Settings, payload: dict[str, Any], is_expected: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Wait until a payment's row meets a condition, and return it."""
    deadline = time.monotonic() + PATIENCE
    while not is_expected(row := await read_row(settings, payload)):
        assert time.monotonic() < deadline, row
        await asyncio.sleep(0.1)
    return row


async def prune_answers(settings: Settings) -> None:
    """Prune every delivered answer from the journal."""
    async with open_journal_store(settings) as store:
        assert await Journal(store, keep_seconds=0).prune() > 0


async def prune_rows(settings: Settings, state: Literal["refused", "unused"], *, ended: bool = False) -> int:
    """Prune payments of a state and return their number; with `ended` their authorizations end first."""
    async with open_journal_store(settings) as store:
        if ended:
            past = compile_statement(
                update(payments).values(valid_before=literal_column("1")).returning(AFFECTED_ROW)
            )
            await store.run(partial(_execute, past))
        if state == "unused":
            return await store.run(pruning.prune_unused)
        return await store.run(partial(pruning.prune_refused, 0.0, 0.0, ()))


def _execute(statement: CompiledStatement, **parameters: Any) -> UnitOfWork[None]:
    yield BoundStatement(statement, parameters)
