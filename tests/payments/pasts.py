"""A journal that remembers a payment made before the test began."""

from __future__ import annotations

from buyer import QUESTION

from centgate.payments.authorization import read_payment
from centgate.payments.journal import Journal, Order
from centgate.payments.store import open_store
from centgate.payments.terms import terms_of
from centgate.pipeline import binding
from centgate.services.phishing_check import PhishingCheckRequest, phishing_check
from centgate.settings import Settings


async def presented(settings: Settings, header: str, at: int, *, transaction: str | None = None) -> None:
    """Enter that a payment was presented `at` a time for the usual question.

    It was settled in `transaction`, or left open without one; nothing was delivered.
    """
    store = open_store(settings.database_url)
    journal = Journal(store, keep_seconds=3600, clock=lambda: at)
    payment = read_payment(header, terms_of(phishing_check, settings), at)
    order = Order(phishing_check.slug, binding(phishing_check, PhishingCheckRequest(**QUESTION)))
    async with journal.claim(payment, order) as claim:
        if transaction:
            await journal.settled(claim, transaction)
    await store.close()
