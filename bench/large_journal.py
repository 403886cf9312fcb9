"""Time of a payment, of totals and of pruning in a journal of ten million payments, beside an empty one.

    PYTHONPATH=tests .venv/bin/python bench/large_journal.py [PAYMENTS]

SQLite and PostgreSQL, each with an empty and a full journal. A payment is three writes, as in the pipeline:
claimed, settled, delivered. Slices of the journals alternate in a shuffled order; figures are medians. Needs
about 25 GB under /var/tmp and /tmp.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from benchmark_servers import NETWORK, PAY_TO, create_journal_url
from databases import Postgres, postgres_server
from rich.console import Console
from rich.table import Table

from centgate.payments.authorization import Payment
from centgate.payments.claim_values import RequestBinding, StoredAnswer
from centgate.payments.database.store import Store
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal import pruning
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.read_model import PaymentFilter
from centgate.payments.payment_key import PaymentKey
from centgate.payments.reports.grouped_totals import read_grouped_totals
from centgate.payments.reports.totals_group import TotalsGroup
from centgate.payments.settle_request import ResubmissionData
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings
from centgate.signing.assets import is_test_network

PAYMENTS = 10_000_000
PAYERS = 10_000
OLD_ANSWERS = 200_000
RETENTION_SECONDS = 86_400.0
FILL_TIMEOUT = 1800
"""Seconds for one statement that fills PostgreSQL."""
ANSWER = b'{"service":"phishing-check","data":{"status":"unknown"}}' + b" " * 900
SLICE_PAYMENTS = {1: 300, 32: 1500}
"""Payments per slice, by concurrency."""
SLICES = 9
SEED = 20261121
NEWEST_TIME = 1760000000 + 31536000
"""Time of the newest payment of a full journal, in seconds since 1970."""

COLUMNS = (
    "network, asset, payer, nonce, state, binding, service, proof, signer_known, amount, pay_to, "
    'valid_before, "transaction", created_at, updated_at, attempts, settled_at, request_id, status'
)
INDEXES = ("payments_identifier", "payments_created")


@dataclass
class BenchmarkJournal:
    """Journal in the comparison, and its seconds per payment of each slice, by concurrency."""

    name: str
    store: Store
    journal: Journal
    seconds: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


def main() -> None:
    """Fill the journals, measure them and print tables."""
    payment_count = int(sys.argv[1]) if sys.argv[1:] else PAYMENTS
    console = Console(width=None if sys.stdout.isatty() else 120)
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        postgres_server() as postgres,
    ):
        uvloop.run(compare_journals(console, Path(name), postgres, payment_count))


async def compare_journals(console: Console, folder: Path, postgres: Postgres, payment_count: int) -> None:
    """Fill half of the journals, measure all, and print a table for payments, totals and pruning."""
    urls = {
        "SQLite, empty": create_journal_url(folder / "empty"),
        f"SQLite, {payment_count:,}": create_journal_url(folder / "full"),
        "PostgreSQL, empty": postgres.new_database(),
        f"PostgreSQL, {payment_count:,}": postgres.new_database(),
    }
    async with AsyncExitStack() as stack:
        journals = [await open_benchmark_journal(stack, name, url) for name, url in urls.items()]
        start = time.perf_counter()
        fill_journal_file(folder / "full" / "journal.db", payment_count)
        fill_postgres_journal(postgres, urls[f"PostgreSQL, {payment_count:,}"], payment_count)
        console.print(f"filled in {time.perf_counter() - start:.0f} s")
        await measure_journals(journals)
        console.print(render_payment_table(journals))
        full_journals = [each for each in journals if "empty" not in each.name]
        console.print(await measure_totals(full_journals))
        console.print(await measure_pruning(full_journals))


async def open_benchmark_journal(stack: AsyncExitStack, name: str, url: str) -> BenchmarkJournal:
    """Open a journal until the stack closes, and create its tables."""
    store = open_store(url)
    stack.push_async_callback(store.close)
    journal = Journal(store, keep_seconds=86400)
    await journal.heartbeat()  # the first statement creates the tables
    return BenchmarkJournal(name, store, journal)


def fill_journal_file(file: Path, payment_count: int) -> None:
    """Insert delivered payments of a year into a SQLite journal.

    They are inserted in the order of their keys without indexes, which is the fastest way for SQLite.
    """
    connection = sqlite3.connect(file, isolation_level=None)
    payments_per_payer = max(1, payment_count // PAYERS)
    index_statements = _read_index_statements(
        lambda name: connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,))
    )
    for pragma in ("synchronous=OFF", "cache_size=-2000000", "temp_store=MEMORY", "wal_autocheckpoint=20000"):
        connection.execute(f"PRAGMA {pragma}")
    for name in INDEXES:
        connection.execute(f"DROP INDEX {name}")
    connection.execute("BEGIN")
    connection.execute(
        f"""WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {payment_count - 1})
        INSERT INTO payments ({COLUMNS}) SELECT '{NETWORK}', '{PAY_TO}',
        printf('0x%040x', i / {payments_per_payer}), printf('0x%016x', i) || lower(hex(randomblob(24))),
        'delivered', lower(hex(randomblob(32))), 'phishing-check', lower(hex(randomblob(32))), 1, '10000',
        '{PAY_TO}', 1800000000, '0x' || lower(hex(randomblob(32))), 1760000000 + (i * 7919) % 31536000,
        1760000001 + (i * 7919) % 31536000, 0, 1760000001 + (i * 7919) % 31536000,
        'req_' || lower(hex(randomblob(12))), 200 FROM n"""
    )
    connection.execute("COMMIT")
    connection.execute(_build_answers_insert("zeroblob(900)"))
    for statement in index_statements:
        connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _read_index_statements(select: Callable[[str], Any]) -> list[str]:
    return [select(name).fetchone()[0] for name in INDEXES]


def _build_answers_insert(body: str) -> str:
    """Return the statement that inserts answers past their retention; `body` is an SQL expression."""
    return (
        "INSERT INTO answers (payment, status, request_id, receipt, body, stored_at) "
        f"SELECT id, 200, 'req_0', 'receipt', {body}, 1760000000 "
        f"FROM (SELECT id FROM payments LIMIT {OLD_ANSWERS}) AS old"
    )


def fill_postgres_journal(postgres: Postgres, url: str, payment_count: int) -> None:
    """Insert delivered payments of a year into a PostgreSQL journal."""
    index_statements = [
        postgres.run(f"SELECT indexdef FROM pg_indexes WHERE indexname = '{name}'", url) for name in INDEXES
    ]
    for name in INDEXES:
        postgres.run(f"DROP INDEX {name}", url)
    payments_per_payer = max(1, payment_count // PAYERS)
    md5, at = "md5(random()::text)", "1760000000 + (i::bigint * 7919) % 31536000"
    postgres.run(
        f"""INSERT INTO payments ({COLUMNS}) SELECT '{NETWORK}', '{PAY_TO}',
        '0x' || lpad(to_hex(i / {payments_per_payer}), 40, '0'),
        '0x' || lpad(to_hex(i), 16, '0') || {md5} || left({md5}, 16),
        'delivered', {md5} || {md5}, 'phishing-check', {md5} || {md5}, 1, '10000', '{PAY_TO}', 1800000000,
        '0x' || {md5} || {md5}, {at}, {at} + 1, 0, {at} + 1, 'req_' || left({md5}, 24), 200
        FROM generate_series(0, {payment_count - 1}) AS i""",
        url,
        seconds=FILL_TIMEOUT,
    )
    postgres.run(_build_answers_insert("decode(repeat('00', 900), 'hex')"), url)
    for statement in [*index_statements, "VACUUM ANALYZE", "CHECKPOINT"]:
        postgres.run(statement, url, seconds=FILL_TIMEOUT)


async def measure_journals(journals: list[BenchmarkJournal]) -> None:
    """Measure all journals at each concurrency, and add the results to their `seconds`."""
    rng = random.Random(SEED)
    cases = [(each, concurrency) for each in journals for concurrency in SLICE_PAYMENTS]
    for each, concurrency in cases:
        await measure_payments(each.journal, concurrency)
    for _ in range(SLICES):
        rng.shuffle(cases)
        for each, concurrency in cases:
            seconds = await measure_payments(each.journal, concurrency)
            each.seconds.setdefault(concurrency, []).append(seconds)


async def measure_payments(journal: Journal, concurrency: int) -> float:
    """Record the payments of one slice; return the seconds per payment."""
    count = SLICE_PAYMENTS[concurrency]
    payments = iter([create_payment() for _ in range(count)])

    async def record_payments() -> None:
        for payment in payments:
            await record_payment(journal, payment)

    start = time.perf_counter()
    await asyncio.gather(*(record_payments() for _ in range(concurrency)))
    return (time.perf_counter() - start) / count


async def record_payment(journal: Journal, payment: Payment) -> None:
    """Record a payment as the pipeline does: claimed, settled, delivered."""
    async with journal.claim(payment, RequestBinding("phishing-check", "0" * 64)) as claim:
        await journal.record_settled(claim, payment.key.nonce)
        await journal.record_delivered(claim, StoredAnswer(200, ANSWER, "req_0", "receipt"))


RESUBMISSION: ResubmissionData = {
    "signature": "0x",
    "validAfter": "0",
    "validBefore": "0",
    "window": 120,
    "name": "",
    "version": "",
    "url": "",
}
TERMS = build_terms(phishing_check, Settings(pay_to=PAY_TO, network=NETWORK)).first


def create_payment() -> Payment:
    """Create a payment with a random nonce and one of `PAYERS` payers."""
    key = PaymentKey(NETWORK, PAY_TO, f"0x{random.randrange(PAYERS):040x}", "0x" + secrets.token_hex(32))
    return Payment(
        key,
        TERMS,
        resubmission=RESUBMISSION,
        resubmission_json="{}" + " " * 400,
        valid_before=1900000000,
        rejection=None,
        is_signer_verified=True,
        signature_form="key",
        signature_digest=secrets.token_hex(32),
        identifier=None,
        is_on_test_network=is_test_network(NETWORK),
    )


def render_payment_table(journals: list[BenchmarkJournal]) -> Table:
    """Return a table of the time per payment, and its ratio to the empty journal of the same database.

    Each empty journal precedes its full one in `journals`.
    """
    table = Table(
        title=f"three writes of a payment, microseconds, median of {SLICES} slices", title_justify="left"
    )
    table.add_column("journal")
    for concurrency in SLICE_PAYMENTS:
        table.add_column(f"{concurrency} concurrent", justify="right")
        table.add_column("to empty", justify="right")
    for number, journal in enumerate(journals):
        empty_journal = journals[number // 2 * 2]
        cells: list[str] = []
        for concurrency in SLICE_PAYMENTS:
            seconds = median(journal.seconds[concurrency])
            baseline = median(empty_journal.seconds[concurrency])
            cells += [f"{seconds * 1e6:,.0f}", f"x {seconds / baseline:.2f}"]
        table.add_row(journal.name, *cells)
    return table


async def measure_totals(journals: list[BenchmarkJournal]) -> Table:
    """Return a table of the seconds that reading totals takes, by period and group.

    `centgate payments totals` and the console's page read the same totals.
    """
    periods = {"30 days": NEWEST_TIME - 30 * 86_400, "everything": 0.0}
    groups: tuple[TotalsGroup, ...] = ("payer", "service")
    table = Table(title="totals, seconds", title_justify="left")
    table.add_column("journal")
    for period in periods:
        for group in groups:
            table.add_column(f"by {group}, {period}", justify="right")
    for journal in journals:
        cells: list[str] = []
        for since in periods.values():
            for group in groups:
                start = time.perf_counter()
                await journal.store.read(partial(read_grouped_totals, group, PaymentFilter(since=since), 0.0))
                cells.append(f"{time.perf_counter() - start:,.1f}")
        table.add_row(journal.name, *cells)
    return table


async def measure_pruning(journals: list[BenchmarkJournal]) -> Table:
    """Return a table of payment latencies while old answers are pruned."""
    table = Table(title=f"while {OLD_ANSWERS:,} old answers are pruned", title_justify="left")
    for column in ("journal", "p50 ms", "p99 ms", "slowest ms", "without pruning p99", "pruned in s"):
        table.add_column(column, justify="right" if column != "journal" else "left")
    for each in journals:
        baseline = await measure_latencies(each.journal, asyncio.sleep(5))
        start = time.perf_counter()
        latencies = await measure_latencies(each.journal, prune_old_answers(each.store))
        figures = (median(latencies), latencies[int(len(latencies) * 0.99)], latencies[-1])
        table.add_row(
            each.name,
            *(f"{figure * 1e3:,.2f}" for figure in figures),
            f"{baseline[int(len(baseline) * 0.99)] * 1e3:,.2f}",
            f"{time.perf_counter() - start:,.1f}",
        )
    return table


async def prune_old_answers(store: Store) -> None:
    """Prune all old answers in batches. Raises RuntimeError if there were not OLD_ANSWERS of them."""
    pruned = 0
    while count := await store.run(partial(pruning.prune_answers, RETENTION_SECONDS)):
        pruned += count
        await asyncio.sleep(0)  # payments run between the batches
    if pruned != OLD_ANSWERS:
        raise RuntimeError(f"{pruned} answers were pruned instead of {OLD_ANSWERS}")


async def measure_latencies(journal: Journal, other_work: Awaitable[None]) -> list[float]:
    """Record one payment after another until other work is done.

    Returns the seconds of each payment in ascending order.
    """
    task, latencies = asyncio.ensure_future(other_work), list[float]()
    while not task.done():
        start = time.perf_counter()
        await record_payment(journal, create_payment())
        latencies.append(time.perf_counter() - start)
    return sorted(latencies)


if __name__ == "__main__":
    main()
