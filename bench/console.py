"""Time of recording payments without an open console page, with open tabs, and with pages loaded in a row.

    PYTHONPATH=tests .venv/bin/python bench/console.py [PAYMENTS]

The journal is a SQLite file with payments of the last month. The console runs in a process of its own, as
under `centgate serve`, and its browser in another. A payment is three writes, as in the pipeline: claimed,
settled, delivered. Slices of each kind alternate in a shuffled order; figures are medians, and ratios to the
slices without open pages.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import uvicorn
import uvloop
from benchmark_servers import PAY_TO, create_journal_url
from large_journal import (
    SLICE_PAYMENTS,
    BenchmarkJournal,
    fill_journal_file,
    measure_payments,
    open_benchmark_journal,
)
from rich.console import Console
from rich.table import Table

from centgate.cli.console import run_all_checks
from centgate.console.app import create_console_app
from centgate.console.console import Console as OperatorConsole
from centgate.console.server import create_console, open_console_listener
from centgate.settings import Settings

PAYMENTS = 500_000
MONTH = 31 * 86_400
SLICES, SLICE_PAUSE = 15, 0.2
SEED = 20261123
PAGES = ("/", "/payments", "/providers", "/payments?state=refundable")
NO_PAGES, OPEN_TABS, CONTINUOUS_PAGES = "no page is open", "4 tabs, each every 2 s", "pages without a pause"
PAGE_PAUSES = {NO_PAGES: None, OPEN_TABS: 0.5, CONTINUOUS_PAGES: 0.0}
"""Seconds between two pages, by kind of slice; None for no pages."""


def main() -> None:
    """Fill the journal, measure it and print the results."""
    payment_count = int(sys.argv[1]) if sys.argv[1:] else PAYMENTS
    console = Console(width=None if sys.stdout.isatty() else 120)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name:
        uvloop.run(measure_console(console, Path(name), payment_count))


async def measure_console(console: Console, folder: Path, payment_count: int) -> None:
    """Fill a journal, measure it with and without open console pages, and print the results."""
    url = create_journal_url(folder)
    async with AsyncExitStack() as stack:
        journal = await open_benchmark_journal(stack, "SQLite", url)
        fill_journal_file(folder / "journal.db", payment_count)
        move_to_last_month(folder / "journal.db")
        settings = Settings(database_url=url, console_port=0, pay_to=PAY_TO)
        with start_console(settings) as link, start_browser(link) as (pause, counts):
            seconds, pages = await measure_slices(journal, pause, counts)
    console.print(render_table(seconds, payment_count))
    for kind, (count, page_seconds) in pages.items():
        if count:
            console.print(f"{kind}: {count} pages, {page_seconds / count * 1000:.0f} ms each")


def move_to_last_month(file: Path) -> None:
    """Set the times of all payments to the last month: the period of the console's overview."""
    with sqlite3.connect(file) as connection:
        now = time.time()
        connection.execute(f"UPDATE payments SET created_at = {now} - (id * 7919) % {MONTH}")
    connection.close()


@contextmanager
def start_console(settings: Settings) -> Generator[str]:
    """Serve the console in a process of its own; yields the line with its one-time link."""
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe()
    with open_console_listener(settings) as listener:
        process = spawn.Process(target=_serve_console, args=(settings, listener, sender), daemon=True)
        process.start()
        yield receiver.recv()
        process.terminate()
        process.join()


def _serve_console(settings: Settings, listener: Any, sender: Any) -> None:
    operator_console: OperatorConsole = create_console(settings, listener, partial(run_all_checks, settings))
    operator_console.print_line = sender.send
    server = uvicorn.Server(uvicorn.Config(create_console_app(operator_console), log_config=None))
    operator_console.print_link()
    server.run(sockets=[listener])


@contextmanager
def start_browser(line: str) -> Generator[tuple[Any, Any]]:
    """Load console pages in a process of its own; yields two shared values.

    The first is the pause between two pages in seconds, negative for no pages. The second is an array of the
    number of loaded pages and of the seconds that they took.
    """
    spawn = multiprocessing.get_context("spawn")
    pause, ready = spawn.Value("d", -1.0), spawn.Event()
    counts = spawn.Array("d", 2)
    process = spawn.Process(
        target=_load_pages, args=(line.removeprefix("console "), pause, counts, ready), daemon=True
    )
    process.start()
    assert ready.wait(60), "the login at the console timed out"
    yield pause, counts
    process.terminate()
    process.join()


def _load_pages(link: str, pause: Any, counts: Any, ready: Event) -> None:
    url, _, token = link.partition("/login?token=")
    with httpx2.Client(base_url=url, timeout=60, trust_env=False) as client:
        html = ""
        while not html:
            try:
                html = client.get(f"/login?token={token}").text
            except httpx2.TransportError:
                time.sleep(0.05)
        form = re.findall(r'name="token" value="([^"]+)"', html)[0]
        assert client.post("/login", data={"token": form, "link": token}).status_code == 303
        ready.set()
        number = 0
        while True:
            if pause.value < 0:
                time.sleep(0.02)
                continue
            start = time.perf_counter()
            client.get(PAGES[number % len(PAGES)]).raise_for_status()
            counts[0], counts[1] = counts[0] + 1, counts[1] + time.perf_counter() - start
            number += 1
            time.sleep(max(0.0, pause.value))


async def measure_slices(
    journal: BenchmarkJournal, pause: Any, counts: Any
) -> tuple[dict[tuple[str, int], list[float]], dict[str, tuple[int, float]]]:
    """Return the seconds per payment of each slice, and the number of loaded pages with their seconds.

    The first are by kind and concurrency, the second by kind.
    """
    cases = [(kind, concurrency) for kind in PAGE_PAUSES for concurrency in SLICE_PAYMENTS]
    seconds: dict[tuple[str, int], list[float]] = {}
    pages: dict[str, tuple[int, float]] = dict.fromkeys(PAGE_PAUSES, (0, 0.0))
    for concurrency in SLICE_PAYMENTS:
        await measure_payments(journal.journal, concurrency)
    rng = random.Random(SEED)
    for _ in range(SLICES):
        rng.shuffle(cases)
        for kind, concurrency in cases:
            page_pause = PAGE_PAUSES[kind]
            pause.value = -1.0 if page_pause is None else page_pause
            counts[0] = counts[1] = 0
            await asyncio.sleep(SLICE_PAUSE)
            slice_seconds = await measure_payments(journal.journal, concurrency)
            seconds.setdefault((kind, concurrency), []).append(slice_seconds)
            pages[kind] = (pages[kind][0] + int(counts[0]), pages[kind][1] + counts[1])
    return seconds, pages


def render_table(seconds: Mapping[tuple[str, int], Sequence[float]], payment_count: int) -> Table:
    """Return a table of the median microseconds per payment, and their ratios to slices without pages."""
    columns = (f"{concurrency} concurrent" for concurrency in SLICE_PAYMENTS)
    table = Table("", *columns, title=f"{payment_count:,} payments a month")
    for kind in PAGE_PAUSES:
        cells = [
            f"{median(seconds[kind, each]) * 1e6:.0f} µs"
            f" ({median(seconds[kind, each]) / median(seconds[NO_PAGES, each]):.2f})"
            for each in SLICE_PAYMENTS
        ]
        table.add_row(kind, *cells)
    return table


if __name__ == "__main__":
    main()
