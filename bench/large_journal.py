"""A journal of ten million payments beside an empty one: what a payment, its totals and pruning take.

    PYTHONPATH=tests .venv/bin/python bench/large_journal.py [PAYMENTS]

SQLite and PostgreSQL, each with an empty and a full journal. A payment is what the pipeline enters of it:
claimed, settled, delivered. Slices go round the journals in a shuffled order; medians. Needs about 25 GB
under /var/tmp and /tmp.
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
from contenders import NETWORK, PAY_TO, file_in
from databases import Postgres, postgres_server
from rich.console import Console
from rich.table import Table

from centgate.payments import queries
from centgate.payments.authorization import Payment, PaymentKey, ResubmissionData
from centgate.payments.claims import RequestBinding, StoredAnswer
from centgate.payments.grouped_totals import read_grouped_totals
from centgate.payments.journal import Journal
from centgate.payments.read_model import PaymentFilter
from centgate.payments.store import Store
from centgate.payments.store_factory import open_store
from centgate.payments.terms import build_terms
from centgate.payments.totals_group import TotalsGroup
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings
from centgate.signing.assets import is_test_network

MANY = 10_000_000
PAYERS = 10_000
OLD_ANSWERS = 200_000
FILL_WITHIN = 1800
ANSWER = b'{"service":"phishing-check","data":{"status":"unknown"}}' + b" " * 900
IN_A_SLICE = {1: 300, 32: 1500}
"""Payments, by how many are entered at once."""
SLICES = 9
SEED = 20261121
NEWEST = 1760000000 + 31536000
"""Time of the newest payment of a full journal."""
HEX = "0123456789abcdef"

COLUMNS = (
    "network, asset, payer, nonce, state, binding, service, proof, signer_known, amount, pay_to, "
    'valid_before, "transaction", created_at, updated_at, attempts, settled_at, request_id, status'
)
INDEXES = ("payments_identifier", "payments_created")


@dataclass
class Kept:
    """A journal in the comparison, and seconds a payment takes in it by how many are entered at once."""

    name: str
    store: Store
    journal: Journal
    seconds: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


def main() -> None:
    """Fill, measure, print."""
    many = int(sys.argv[1]) if sys.argv[1:] else MANY
    console = Console(width=None if sys.stdout.isatty() else 120)
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        postgres_server() as postgres,
    ):
        uvloop.run(compared(console, Path(name), postgres, many))


async def compared(console: Console, folder: Path, postgres: Postgres, many: int) -> None:
    addresses = {
        "SQLite, empty": file_in(folder / "empty"),
        f"SQLite, {many:,}": file_in(folder / "full"),
        "PostgreSQL, empty": postgres.new_database(),
        f"PostgreSQL, {many:,}": postgres.new_database(),
    }
    async with AsyncExitStack() as stack:
        kept = [await opened(stack, name, address) for name, address in addresses.items()]
        started = time.perf_counter()
        fill_file(folder / "full" / "journal.db", many)
        fill_server(postgres, addresses[f"PostgreSQL, {many:,}"], many)
        console.print(f"filled in {time.perf_counter() - started:.0f} s")
        await measure(kept)
        console.print(payments(kept))
        full = [one for one in kept if "empty" not in one.name]
        console.print(await totals(full))
        console.print(await pruning(full))


async def opened(stack: AsyncExitStack, name: str, address: str) -> Kept:
    store = open_store(address)
    stack.push_async_callback(store.close)
    journal = Journal(store, keep_seconds=86400)
    await journal.heartbeat()  # which makes the tables
    return Kept(name, store, journal)


def fill_file(file: Path, many: int) -> None:
    """Delivered payments of a year, in the order of their keys, which is how SQLite takes them quickest."""
    connection = sqlite3.connect(file, isolation_level=None)
    indexes = _indexes(
        lambda name: connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,))
    )
    for pragma in ("synchronous=OFF", "cache_size=-2000000", "temp_store=MEMORY", "wal_autocheckpoint=20000"):
        connection.execute(f"PRAGMA {pragma}")
    for name in INDEXES:
        connection.execute(f"DROP INDEX {name}")
    connection.execute("BEGIN")
    connection.execute(
        f"""WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {many - 1})
        INSERT INTO payments ({COLUMNS}) SELECT '{NETWORK}', '{PAY_TO}',
        printf('0x%040x', i / {max(1, many // PAYERS)}), printf('0x%016x', i) || lower(hex(randomblob(24))),
        'delivered', lower(hex(randomblob(32))), 'phishing-check', lower(hex(randomblob(32))), 1, '10000',
        '{PAY_TO}', 1800000000, '0x' || lower(hex(randomblob(32))), 1760000000 + (i * 7919) % 31536000,
        1760000001 + (i * 7919) % 31536000, 0, 1760000001 + (i * 7919) % 31536000,
        'req_' || lower(hex(randomblob(12))), 200 FROM n"""
    )
    connection.execute("COMMIT")
    connection.execute(_old_answers("zeroblob(900)"))
    for text in indexes:
        connection.execute(text)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _indexes(ask: Callable[[str], Any]) -> list[str]:
    return [ask(name).fetchone()[0] for name in INDEXES]


def _old_answers(body: str) -> str:
    return (
        "INSERT INTO answers (payment, status, request_id, receipt, body, stored_at) "
        f"SELECT id, 200, 'req_0', 'receipt', {body}, 1760000000 "
        f"FROM (SELECT id FROM payments LIMIT {OLD_ANSWERS}) AS old"
    )


def fill_server(postgres: Postgres, address: str, many: int) -> None:
    """The same for PostgreSQL."""
    indexes = [
        postgres.run(f"SELECT indexdef FROM pg_indexes WHERE indexname = '{name}'", address)
        for name in INDEXES
    ]
    for name in INDEXES:
        postgres.run(f"DROP INDEX {name}", address)
    md5, at = "md5(random()::text)", "1760000000 + (i::bigint * 7919) % 31536000"
    postgres.run(
        f"""INSERT INTO payments ({COLUMNS}) SELECT '{NETWORK}', '{PAY_TO}',
        '0x' || lpad(to_hex(i / {max(1, many // PAYERS)}), 40, '0'),
        '0x' || lpad(to_hex(i), 16, '0') || {md5} || left({md5}, 16),
        'delivered', {md5} || {md5}, 'phishing-check', {md5} || {md5}, 1, '10000', '{PAY_TO}', 1800000000,
        '0x' || {md5} || {md5}, {at}, {at} + 1, 0, {at} + 1, 'req_' || left({md5}, 24), 200
        FROM generate_series(0, {many - 1}) AS i""",
        address,
        seconds=FILL_WITHIN,
    )
    postgres.run(
        _old_answers("decode(repeat('00', 900), 'hex')"),
        address,
    )
    for text in [*indexes, "VACUUM ANALYZE", "CHECKPOINT"]:
        postgres.run(text, address, seconds=FILL_WITHIN)


async def measure(kept: list[Kept]) -> None:
    shuffled = random.Random(SEED)
    turns = [(one, at_once) for one in kept for at_once in IN_A_SLICE]
    for one, at_once in turns:
        await sliced(one.journal, at_once)
    for _ in range(SLICES):
        shuffled.shuffle(turns)
        for one, at_once in turns:
            one.seconds.setdefault(at_once, []).append(await sliced(one.journal, at_once))


async def sliced(journal: Journal, at_once: int) -> float:
    """Seconds a payment."""
    count = IN_A_SLICE[at_once]
    made = iter([payment() for _ in range(count)])

    async def enter() -> None:
        for one in made:
            await entered(journal, one)

    started = time.perf_counter()
    await asyncio.gather(*(enter() for _ in range(at_once)))
    return (time.perf_counter() - started) / count


async def entered(journal: Journal, payment: Payment) -> None:
    """Record a payment as the pipeline does."""
    async with journal.claim(payment, RequestBinding("phishing-check", "0" * 64)) as claim:
        await journal.record_settled(claim, payment.key.nonce)
        await journal.record_delivered(claim, StoredAnswer(200, ANSWER, "req_0", "receipt"))


KEPT: ResubmissionData = {
    "signature": "0x",
    "validAfter": "0",
    "validBefore": "0",
    "window": 120,
    "name": "",
    "version": "",
    "url": "",
}
TERMS = build_terms(phishing_check, Settings(pay_to=PAY_TO, network=NETWORK))


def payment() -> Payment:
    """Return a new payment."""
    key = PaymentKey(NETWORK, PAY_TO, f"0x{random.randrange(PAYERS):040x}", "0x" + secrets.token_hex(32))
    return Payment(
        key,
        TERMS,
        resubmission=KEPT,
        resubmission_json="{}" + " " * 400,
        valid_before=1900000000,
        rejection=None,
        is_signer_verified=True,
        signature_form="key",
        signature_digest=secrets.token_hex(32),
        identifier=None,
        is_on_test_network=is_test_network(NETWORK),
    )


def payments(kept: list[Kept]) -> Table:
    """Measure the time of a payment in the full journal, and its ratio to the empty one of its kind."""
    table = Table(
        title=f"three entries of a payment, microseconds, median of {SLICES} slices", title_justify="left"
    )
    table.add_column("journal")
    for at_once in IN_A_SLICE:
        table.add_column(f"{at_once} at once", justify="right")
        table.add_column("to empty", justify="right")
    for number, one in enumerate(kept):
        empty = kept[number // 2 * 2]
        cells: list[str] = []
        for at_once in IN_A_SLICE:
            own, least = (median(which.seconds[at_once]) for which in (one, empty))
            cells += [f"{own * 1e6:,.0f}", f"x {own / least:.2f}"]
        table.add_row(one.name, *cells)
    return table


async def totals(kept: list[Kept]) -> Table:
    """Seconds that `centgate payments totals` and the console's page read, in the order of the columns."""
    periods = {"30 days": NEWEST - 30 * 86_400, "everything": 0.0}
    groups: tuple[TotalsGroup, ...] = ("payer", "service")
    table = Table(title="totals, seconds", title_justify="left")
    table.add_column("journal")
    for period in periods:
        for by in groups:
            table.add_column(f"by {by}, {period}", justify="right")
    for one in kept:
        cells: list[str] = []
        for since in periods.values():
            for by in groups:
                started = time.perf_counter()
                await one.store.read(partial(read_grouped_totals, by, PaymentFilter(since=since), 0.0))
                cells.append(f"{time.perf_counter() - started:,.1f}")
        table.add_row(one.name, *cells)
    return table


async def pruning(kept: list[Kept]) -> Table:
    """Measure the time of payments while old answers are pruned."""
    table = Table(title=f"while {OLD_ANSWERS:,} old answers are pruned", title_justify="left")
    for column in ("journal", "p50 ms", "p99 ms", "slowest ms", "without pruning p99", "pruned in s"):
        table.add_column(column, justify="right" if column != "journal" else "left")
    for one in kept:
        quiet = await latencies(one.journal, asyncio.sleep(5))
        started = time.perf_counter()
        busy = await latencies(one.journal, pruned(one.store))
        table.add_row(
            one.name,
            *(f"{value * 1e3:,.2f}" for value in (median(busy), busy[int(len(busy) * 0.99)], busy[-1])),
            f"{quiet[int(len(quiet) * 0.99)] * 1e3:,.2f}",
            f"{time.perf_counter() - started:,.1f}",
        )
    return table


async def pruned(store: Store) -> None:
    """Prune all old rows, batch after batch."""
    while await store.run(partial(queries.prune_answers, 1770000000.0)):  # noqa: ASYNC110 - lets others in
        await asyncio.sleep(0)


async def latencies(journal: Journal, meanwhile: Awaitable[None]) -> list[float]:
    """Seconds that payments take, one after the other, until something is done; in ascending order."""
    task, found = asyncio.ensure_future(meanwhile), list[float]()
    while not task.done():
        started = time.perf_counter()
        await entered(journal, payment())
        found.append(time.perf_counter() - started)
    return sorted(found)


if __name__ == "__main__":
    main()
