"""Time of recording a payment with and without the event of its delivery.

    PYTHONPATH=tests:tests/payments .venv/bin/python bench/webhooks.py [PAYMENTS]

A payment is what the pipeline enters of it: claimed, then settled and delivered in one write. Slices with and
without a receiver take turns; medians, on a SQLite file and on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median

import uvloop
from buyer import Buyer, encode_header
from databases import postgres_server
from facilitators import build_settings
from rich.console import Console
from rich.table import Table
from seeded_journals import encode_terms, open_journal_store
from webhook_outboxes import ANSWER, TRANSACTION

from centgate.payments.authorization import Payment, read_payment
from centgate.payments.claims import RequestBinding
from centgate.payments.journal import Journal
from centgate.payments.terms import build_terms
from centgate.payments.webhook_events import EventBuilder
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

MANY = 4000
SLICE = 200
CONNECTIONS = (1, 32)
ORDER = RequestBinding(phishing_check.slug, "digest")


def main() -> None:
    """Measure both databases, and print a table."""
    many = int(sys.argv[1]) if sys.argv[1:] else MANY
    table = Table("journal", "payments at once", "without", "with webhooks", "ratio")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as folder:
        settings = build_settings(Path(folder), "http://127.0.0.1:9")
        with postgres_server() as postgres:
            on_postgresql = settings.model_copy(update={"database_url": postgres.new_database()})
            for name, each in (("SQLite", settings), ("PostgreSQL", on_postgresql)):
                for at_once in CONNECTIONS:
                    off, on = uvloop.run(compare(each, many, at_once))
                    table.add_row(
                        name, str(at_once), f"{off * 1e6:.0f} µs", f"{on * 1e6:.0f} µs", f"{on / off:.2f}"
                    )
    Console().print(table)


async def compare(settings: Settings, many: int, at_once: int) -> tuple[float, float]:
    """Return the median seconds of a payment without and with a receiver."""
    at = int(time.time())
    header = encode_header(Buyer(0).payload(encode_terms(settings), now=at))
    first = read_payment(header, build_terms(phishing_check, settings), at)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_journal_store(settings))
        journals = [
            Journal(store, keep_seconds=3600, events=events)
            for events in (None, EventBuilder("https://api.example.com"))
        ]
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(2 * (many // SLICE) + 2):
            payments = [_renew(first) for _ in range(SLICE)]
            spent = await _measure(journals[number % 2], payments, at_once)
            if number > 1:
                seconds[number % 2].append(spent)
    return median(seconds[0]), median(seconds[1])


async def _measure(journal: Journal, payments: Sequence[Payment], at_once: int) -> float:
    """Enter payments, and return the seconds of one."""
    queue = iter(payments)

    async def enter_all() -> None:
        for payment in queue:
            async with journal.claim(payment, ORDER) as claim:
                await journal.begin_settled(claim, TRANSACTION)
                await journal.record_delivered(claim, ANSWER)

    started = time.perf_counter()
    await asyncio.gather(*(enter_all() for _ in range(at_once)))
    return (time.perf_counter() - started) / len(payments)


def _renew(payment: Payment) -> Payment:
    """Return the payment with another nonce."""
    return replace(payment, key=replace(payment.key, nonce="0x" + secrets.token_hex(32)))


if __name__ == "__main__":
    main()
