"""Time of recording payments without a console page, beside open tabs, and beside pages loaded in a row.

    PYTHONPATH=tests .venv/bin/python bench/console.py [PAYMENTS]

A SQLite file with payments of the last month, the console in a process of its own, as `centgate serve` runs
it, and browsers in another. A payment is what the pipeline enters of it: claimed, settled, delivered. Slices
of each kind take turns in a shuffled order; medians, and ratios to the slices without a console's work.
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
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import uvicorn
import uvloop
from contenders import PAY_TO, file_in
from large_journal import IN_A_SLICE, Kept, fill_file, opened, sliced
from rich.console import Console
from rich.table import Table

from centgate.cli.console import run_all_checks
from centgate.console.app import create_console_app
from centgate.console.console import Console as OperatorConsole
from centgate.console.server import create_console, open_console_listener
from centgate.settings import Settings

MANY = 500_000
MONTH = 31 * 86_400
SLICES, SLICE_PAUSE = 15, 0.2
SEED = 20261123
PAGES = ("/", "/payments", "/providers", "/payments?state=refundable")
QUIET, TABS, HURRY = "no page is open", "4 tabs, each every 2 s", "pages without a pause"
PAUSES = {QUIET: None, TABS: 0.5, HURRY: 0.0}
"""Seconds between two pages, by kind; None for no pages."""


def main() -> None:
    """Fill, measure, print."""
    many = int(sys.argv[1]) if sys.argv[1:] else MANY
    console = Console(width=None if sys.stdout.isatty() else 120)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name:
        uvloop.run(compared(console, Path(name), many))


async def compared(console: Console, folder: Path, many: int) -> None:
    """Measure a journal of this many payments in turns, with and without open pages."""
    url = file_in(folder)
    async with AsyncExitStack() as stack:
        kept = await opened(stack, "SQLite", url)
        fill_file(folder / "journal.db", many)
        move_to_last_month(folder / "journal.db")
        settings = Settings(database_url=url, console_port=0, pay_to=PAY_TO)
        with console_in_process(settings) as address, browsers(address) as wanted:
            seconds, pages = await measure(kept, wanted)
    console.print(result_table(seconds, many))
    for kind, (count, page_seconds) in pages.items():
        if count:
            console.print(f"{kind}: {count} pages, {page_seconds / count * 1000:.0f} ms each")


def move_to_last_month(file: Path) -> None:
    """Give all payments times of the last month, which the overview sums up."""
    with sqlite3.connect(file) as connection:
        now = time.time()
        connection.execute(f"UPDATE payments SET created_at = {now} - (id * 7919) % {MONTH}")
    connection.close()


@contextmanager
def console_in_process(settings: Settings) -> Generator[str]:
    """Serve the console in a process of its own; yields its one-time link."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    with open_console_listener(settings) as listener:
        process = spawn.Process(target=_serve, args=(settings, listener, theirs), daemon=True)
        process.start()
        yield ours.recv()
        process.terminate()
        process.join()


def _serve(settings: Settings, listener: Any, link: Any) -> None:
    state: OperatorConsole = create_console(settings, listener, partial(run_all_checks, settings))
    state.print_line = link.send
    server = uvicorn.Server(uvicorn.Config(create_console_app(state), log_config=None))
    state.print_link()
    server.run(sockets=[listener])


@contextmanager
def browsers(line: str) -> Generator[Any]:
    """Run browsers in a process of their own; yields the value that says how often they open a page."""
    spawn = multiprocessing.get_context("spawn")
    pause, ready = spawn.Value("d", -1.0), spawn.Event()
    counts = spawn.Array("d", 2)
    process = spawn.Process(
        target=_browse, args=(line.removeprefix("console "), pause, counts, ready), daemon=True
    )
    process.start()
    assert ready.wait(60), "the console did not let the browsers in"
    yield pause, counts
    process.terminate()
    process.join()


def _browse(link: str, pause: Any, counts: Any, ready: Event) -> None:
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
            started = time.perf_counter()
            client.get(PAGES[number % len(PAGES)]).raise_for_status()
            counts[0], counts[1] = counts[0] + 1, counts[1] + time.perf_counter() - started
            number += 1
            time.sleep(max(0.0, pause.value))


async def measure(
    kept: Kept, wanted: tuple[Any, Any]
) -> tuple[dict[tuple[str, int], list[float]], dict[str, tuple[int, float]]]:
    """Return seconds a payment by kind and number at once, and pages and their seconds by kind."""
    pause, counts = wanted
    turns = [(kind, at_once) for kind in PAUSES for at_once in IN_A_SLICE]
    seconds: dict[tuple[str, int], list[float]] = {}
    pages: dict[str, tuple[int, float]] = dict.fromkeys(PAUSES, (0, 0.0))
    for _, at_once in turns[: len(IN_A_SLICE)]:
        await sliced(kept.journal, at_once)
    shuffled = random.Random(SEED)
    for _ in range(SLICES):
        shuffled.shuffle(turns)
        for kind, at_once in turns:
            pause.value = -1.0 if (each := PAUSES[kind]) is None else each
            counts[0] = counts[1] = 0
            await asyncio.sleep(SLICE_PAUSE)
            seconds.setdefault((kind, at_once), []).append(await sliced(kept.journal, at_once))
            pages[kind] = (pages[kind][0] + int(counts[0]), pages[kind][1] + counts[1])
    return seconds, pages


def result_table(seconds: dict[tuple[str, int], Sequence[float]] | Any, many: int) -> Table:
    """Return medians and ratios as a table."""
    table = Table("", *(f"{at_once} at once" for at_once in IN_A_SLICE), title=f"{many:,} payments a month")
    for kind in PAUSES:
        cells = [
            f"{median(seconds[kind, each]) * 1e6:.0f} µs"
            f" ({median(seconds[kind, each]) / median(seconds[QUIET, each]):.2f})"
            for each in IN_A_SLICE
        ]
        table.add_row(kind, *cells)
    return table


if __name__ == "__main__":
    main()
