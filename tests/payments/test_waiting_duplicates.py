"""Duplicates at another server wait for the first request, and get its outcome."""

from __future__ import annotations

import asyncio
import time

import pytest
from buyer import QUESTION, Buyer, encode_header
from seeded_journals import encode_terms, open_journal_store

from centgate.errors import PaymentRequired
from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claim_values import RequestBinding
from centgate.payments.journal.journal import Journal
from centgate.payments.terms import build_terms
from centgate.pipeline import request_digest
from centgate.services.phishing_check import PhishingCheckRequest, phishing_check
from centgate.settings import Settings

ORDER = RequestBinding(phishing_check.slug, request_digest(phishing_check, PhishingCheckRequest(**QUESTION)))


@pytest.fixture
def deployment(database_url: str, settings: Settings) -> Settings:
    """A deployment on each kind of database."""
    return settings.model_copy(update={"database_url": database_url})


def build_payment(settings: Settings, buyer: Buyer) -> Payment:
    payload = buyer.payload(encode_terms(settings), now=int(time.time()))
    return read_payment(encode_header(payload), build_terms(phishing_check, settings), time.time())


@pytest.mark.extended
async def test_duplicate_at_another_server_is_refused_as_first(deployment: Settings, buyer: Buyer) -> None:
    payment = build_payment(deployment, buyer)
    async with open_journal_store(deployment) as store:
        await store.migrate()
        one, other = (Journal(store, keep_seconds=3600) for _ in range(2))

        async with one.claim(payment, ORDER) as claim:
            duplicate = asyncio.create_task(_claim(other, payment))
            await asyncio.sleep(0.3)  # until it waits
            await one.record_refused(claim, "insufficient_funds")

        with pytest.raises(PaymentRequired) as error:
            await duplicate

    assert error.value.reason == "insufficient_funds"
    assert error.value.payment is not None
    assert error.value.payment.state == "refused"
    assert error.value.settlement is not None
    assert error.value.settlement["errorReason"] == "insufficient_funds"


async def test_later_refused_payment_is_claimed(deployment: Settings, buyer: Buyer) -> None:
    payment = build_payment(deployment, buyer)
    async with open_journal_store(deployment) as store:
        await store.migrate()
        one, other = (Journal(store, keep_seconds=3600) for _ in range(2))
        async with one.claim(payment, ORDER) as claim:
            await one.record_refused(claim, "insufficient_funds")

        state = await _claim(other, payment)

    assert state == "settling"


async def _claim(journal: Journal, payment: Payment) -> str:
    async with journal.claim(payment, ORDER) as claim:
        return claim.state
