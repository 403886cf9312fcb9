"""Outboxes of webhooks in tests: payments that write events, their senders, and the stored events."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import aiohttp
from buyer import QUESTION, Buyer, encode_header
from seeded_journals import encode_terms, open_journal_store

from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claim_values import RequestBinding, StoredAnswer
from centgate.payments.database.store import Store
from centgate.payments.journal import webhook_outbox
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.webhook_events import create_event_builder
from centgate.payments.journal.webhook_outbox import OutboxEntry
from centgate.payments.notifications.webhook_sender import WebhookSender
from centgate.payments.payment_key import PaymentKey
from centgate.payments.terms import build_terms
from centgate.pipeline import request_digest
from centgate.services.phishing_check import PhishingCheckRequest, phishing_check
from centgate.settings import Settings

HOUR = 3600.0
TRANSACTION = "0x" + "ab" * 32
ORDER = RequestBinding(phishing_check.slug, request_digest(phishing_check, PhishingCheckRequest(**QUESTION)))
ANSWER = StoredAnswer(200, b'{"success":true}', "req_5e1f", "receipt")


@dataclass
class Clock:
    """A clock that tests move."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now


@dataclass
class Outbox:
    """A journal with its outbox, and the senders of as many servers."""

    settings: Settings
    store: Store
    journal: Journal
    clock: Clock
    senders: tuple[WebhookSender, ...]

    async def present(self, buyer: Buyer) -> PaymentKey:
        """Record a payment whose outcome is unknown."""
        return await self._record(buyer, None)

    async def settle(self, buyer: Buyer) -> PaymentKey:
        """Record a payment that was settled, and not delivered."""
        return await self._record(buyer, None, TRANSACTION)

    async def deliver(self, buyer: Buyer) -> PaymentKey:
        """Record a payment that was settled and delivered."""
        return await self._record(buyer, ANSWER, TRANSACTION)

    def sign(self, buyer: Buyer, *, seconds: int = 120) -> Payment:
        """Sign a payment that is valid for some seconds from now."""
        at = int(self.clock())
        header = encode_header(buyer.payload(encode_terms(self.settings), now=at, seconds=seconds))
        return read_payment(header, build_terms(phishing_check, self.settings), at)

    async def send(self) -> None:
        """Send the due events with the first sender."""
        while await self.senders[0].send_due():
            pass

    async def read(self) -> list[OutboxEntry]:
        """Return the stored events, oldest first."""
        return (await self.store.read(partial(webhook_outbox.list_events, 1000)))[::-1]

    async def _record(
        self, buyer: Buyer, answer: StoredAnswer | None, transaction: str | None = None
    ) -> PaymentKey:
        payment = self.sign(buyer)
        async with self.journal.claim(payment, ORDER) as claim:
            if transaction:
                await self.journal.begin_settled(claim, transaction)
            if answer:
                await self.journal.record_delivered(claim, answer)
        return payment.key


@asynccontextmanager
async def open_outbox(settings: Settings, *, servers: int = 1) -> AsyncGenerator[Outbox]:
    """Open a deployment's journal as its servers do."""
    clock = Clock()
    async with aiohttp.ClientSession() as session, open_journal_store(settings) as store:
        journal = Journal(store, keep_seconds=HOUR, clock=clock, events=create_event_builder(settings))
        senders = tuple(WebhookSender(settings, journal, store, session) for _ in range(servers))
        yield Outbox(settings, store, journal, clock, senders)
