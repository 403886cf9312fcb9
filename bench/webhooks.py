"""Time of recording a payment with and without the webhook event of its delivery.

    PYTHONPATH=tests:tests/payments .venv/bin/python bench/webhooks.py [PAYMENTS]

A payment is two writes: claimed, then settled and delivered together. Slices with and without a webhook
receiver alternate, on a SQLite file and on PostgreSQL; figures are medians.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import msgspec
import uvloop
from buyer import Buyer, encode_header
from databases import postgres_server
from facilitators import build_settings
from rich.console import Console
from rich.table import Table
from seeded_journals import encode_terms, open_journal_store
from webhook_outboxes import ANSWER, TRANSACTION

from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claim_values import RequestBinding
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.webhook_events import EventBuilder
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

PAYMENTS = 4000
SLICE_PAYMENTS = 200
CONCURRENCIES = (1, 32)
BINDING = RequestBinding(phishing_check.slug, "digest")


def main() -> None:
    """Measure both databases, and print a table."""
    payment_count = int(sys.argv[1]) if sys.argv[1:] else PAYMENTS
    table = Table("journal", "concurrent payments", "without", "with webhooks", "ratio")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as folder:
        settings = build_settings(Path(folder), "http://127.0.0.1:9")
        with postgres_server() as postgres:
            postgres_settings = settings.model_copy(update={"database_url": postgres.new_database()})
            for name, each in (("SQLite", settings), ("PostgreSQL", postgres_settings)):
                for concurrency in CONCURRENCIES:
                    off, on = uvloop.run(measure_webhooks(each, payment_count, concurrency))
                    cells = (f"{off * 1e6:.0f} µs", f"{on * 1e6:.0f} µs", f"{on / off:.2f}")
                    table.add_row(name, str(concurrency), *cells)
    Console().print(table)


async def measure_webhooks(settings: Settings, payment_count: int, concurrency: int) -> tuple[float, float]:
    """Return the median seconds per payment without and with a webhook receiver."""
    now = int(time.time())
    header = encode_header(Buyer(0).payload(encode_terms(settings), now=now))
    template = read_payment(header, build_terms(phishing_check, settings), now)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_journal_store(settings))
        journals = [
            Journal(store, keep_seconds=3600, events=events)
            for events in (None, EventBuilder("https://api.example.com"))
        ]
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(2 * (payment_count // SLICE_PAYMENTS) + 2):
            payments = [_copy_payment(template) for _ in range(SLICE_PAYMENTS)]
            slice_seconds = await _measure_payments(journals[number % 2], payments, concurrency)
            if number > 1:  # the first slice of each journal is a warm-up
                seconds[number % 2].append(slice_seconds)
    return median(seconds[0]), median(seconds[1])


async def _measure_payments(journal: Journal, payments: Sequence[Payment], concurrency: int) -> float:
    """Record payments; return the seconds per payment."""
    queue = iter(payments)

    async def record_payments() -> None:
        for payment in queue:
            async with journal.claim(payment, BINDING) as claim:
                await journal.begin_settled(claim, TRANSACTION)
                await journal.record_delivered(claim, ANSWER)

    start = time.perf_counter()
    await asyncio.gather(*(record_payments() for _ in range(concurrency)))
    return (time.perf_counter() - start) / len(payments)


def _copy_payment(payment: Payment) -> Payment:
    """Return a copy of a payment with a new random nonce."""
    key = msgspec.structs.replace(payment.key, nonce="0x" + secrets.token_hex(32))
    return msgspec.structs.replace(payment, key=key)


if __name__ == "__main__":
    main()
