"""A paid call: ours on both databases, the official x402 middleware, and the floor, side by side in one run.

    PYTHONPATH=tests .venv/bin/python bench/paid_call.py

All servers run at once and sell the same thing at the same price; those that have one use the same
facilitator, a stub that agrees to everything. Slices of about a second go round them in a shuffled order, so
that each sees the same machine; medians over slices. What else the machine does changes the numbers and
hardly the ratios. Then starts, and memory. Linux only: it reads /proc.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from contenders import BODY, PATH, Contender, express, express_in, file_in, floor, middleware, ours
from databases import Postgres, postgres_server
from load import BadAnswer, run_paced, run_slice
from payment_signer import offer_of, signed_payments
from processes import DidNotStart, Running, cpu_seconds, python, resident_mb, running
from rich.console import Console
from rich.table import Table

SEED = 20261121
SLICES = 9
SLICE_SECONDS = 1.0
WARM_UP = 300
AT_MOST = 4_000
"""Requests in a slice."""
CROWD, ALONE, SLOW = "32 connections", "1 connection", "64 connections, facilitator 300 ms"
CONNECTIONS = {CROWD: 32, ALONE: 1}
STEADY = {"a quarter": 0.25, "a half": 0.5}
"""Loads that come steadily, by their part of what 32 connections get done."""
STARTS = 5
DELAY_MS = 300

SQLITE, POSTGRES = "ours, SQLite", "ours, PostgreSQL"
PYTHON, EXPRESS = "x402 FastAPI, upfront", "x402 Express, upfront"
FLOOR = "floor, SQLite"


@dataclass(frozen=True)
class Start:
    """Seconds from a process's creation to its first answer and to its first paid answer; CPU seconds; MB."""

    answer: float
    paid: float
    cpu: float
    memory: float


def main() -> None:
    """Measure, print, and end what was started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # unwinds, so that the servers end first
    console = Console(width=None if sys.stdout.isatty() else 120)
    spawn = multiprocessing.get_context("spawn")
    with (
        # a journal belongs on a disk, and /tmp is memory on some systems
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        postgres_server() as postgres,
        running(python("facilitator_stub.py"), Path(name)) as facilitator,
        running(python("facilitator_stub.py", str(DELAY_MS)), Path(name)) as slow,
        ProcessPoolExecutor(1, mp_context=spawn) as load,
    ):
        folder = Path(name)
        with ExitStack() as stack:
            contenders = at_once(stack, folder, facilitator, postgres)
            for contender in contenders:
                contender.memory.append(resident_mb(contender.server.pid))
            measure(contenders, load)
            steadily([one for one in contenders if one.name in (SQLITE, POSTGRES, FLOOR)], load)
            for contender in contenders:
                contender.memory.append(resident_mb(contender.server.pid))
            for kind in CONNECTIONS:
                console.print(throughput(contenders, kind))
            console.print(latencies(contenders))
        with ExitStack() as stack:
            patient = waiting(stack, folder, slow, postgres)
            measure_waiting(patient, load)
            console.print(throughput(patient, SLOW))
        console.print(starts(folder, facilitator))
        console.print(memory(contenders))


def at_once(stack: ExitStack, folder: Path, facilitator: Running, postgres: Postgres) -> list[Contender]:
    """Everybody, paid through a facilitator that answers at once."""

    def enter(name: str, server: AbstractContextManager[Running]) -> Contender:
        return Contender(name, stack.enter_context(server))

    modules = express_in(folder)
    there = [
        enter(SQLITE, ours(folder, facilitator, file_in(folder / "one"))),
        enter(SQLITE + ", 2 workers", ours(folder, facilitator, file_in(folder / "two"), workers=2)),
        enter(POSTGRES, ours(folder, facilitator, postgres.new_database())),
        enter(POSTGRES + ", 2 workers", ours(folder, facilitator, postgres.new_database(), workers=2)),
        enter(FLOOR, floor(folder, file_in(folder / "floor"))),
        enter(PYTHON, middleware(folder, facilitator, "upfront")),
        enter("x402 FastAPI, authorization", middleware(folder, facilitator, "authorization")),
    ]
    if modules:
        there.append(enter(EXPRESS, express(modules, folder, facilitator, "upfront")))
        there.append(
            enter("x402 Express, authorization", express(modules, folder, facilitator, "authorization"))
        )
    return there


def waiting(stack: ExitStack, folder: Path, slow: Running, postgres: Postgres) -> list[Contender]:
    """Return the contenders with a slow facilitator."""
    return [
        Contender(SQLITE, stack.enter_context(ours(folder, slow, file_in(folder / "slow")))),
        Contender(POSTGRES, stack.enter_context(ours(folder, slow, postgres.new_database()))),
        Contender(PYTHON, stack.enter_context(middleware(folder, slow, "upfront"))),
    ]


def measure(contenders: list[Contender], load: ProcessPoolExecutor) -> None:
    """Find out how many requests make a slice, then take the slices in a shuffled order."""
    targets = {contender.name: contender.target() for contender in contenders}
    counts: dict[tuple[str, str], int] = {}
    for contender in contenders:
        for kind, connections in CONNECTIONS.items():
            warm = load.submit(run_slice, targets[contender.name], connections, WARM_UP).result()
            counts[contender.name, kind] = min(AT_MOST, max(WARM_UP, int(warm.rate * SLICE_SECONDS)))
    turns = [(contender, kind) for contender in contenders for kind in CONNECTIONS]
    shuffled = random.Random(SEED)
    for _ in range(SLICES):
        shuffled.shuffle(turns)
        for contender, kind in turns:
            count = counts[contender.name, kind]
            done = load.submit(run_slice, targets[contender.name], CONNECTIONS[kind], count).result()
            contender.slices.setdefault(kind, []).append(done)


def steadily(contenders: list[Contender], load: ProcessPoolExecutor) -> None:
    """Requests that come at a steady rate, a part of that at which each answers 32 connections."""
    targets = {contender.name: contender.target() for contender in contenders}
    for _ in range(SLICES):
        for one in contenders:
            for kind, part in STEADY.items():
                rate = one.median(CROWD, lambda slice_: slice_.rate) * part
                count = int(rate * 2 * SLICE_SECONDS)
                done = load.submit(run_paced, targets[one.name], CONNECTIONS[CROWD], count, rate).result()
                one.slices.setdefault(kind, []).append(done)


def measure_waiting(contenders: list[Contender], load: ProcessPoolExecutor) -> None:
    """Slices of as many requests as their connections carry in two seconds."""
    targets = {contender.name: contender.target() for contender in contenders}
    for target in targets.values():
        load.submit(run_slice, target, 64, 64).result()
    for _ in range(SLICES):
        for one in contenders:
            done = load.submit(run_slice, targets[one.name], 64, 64 * 2000 // DELAY_MS).result()
            one.slices.setdefault(SLOW, []).append(done)


def throughput(contenders: list[Contender], kind: str) -> Table:
    """Measure the rate of each contender under one load, and its ratio to ours."""
    table = captioned(f"paid call, {kind}, median of {SLICES} slices")
    table.add_column("server", no_wrap=True)
    for column in ("calls/s", "p50 ms", "p99 ms", "CPU us/call", "CPU used", "ours, calls/s", "ours, CPU"):
        table.add_column(column, justify="right")
    own_rate, own_cpu = rate_and_cpu(contenders[0], kind)
    for one in contenders:
        rate, cpu = rate_and_cpu(one, kind)
        table.add_row(
            one.name,
            f"{rate:,.0f}",
            f"{one.median(kind, lambda slice_: slice_.percentile(50)):,.2f}",
            f"{one.median(kind, lambda slice_: slice_.percentile(99)):,.2f}",
            f"{cpu:,.0f}",
            f"{one.median(kind, lambda slice_: slice_.server_cpu / slice_.seconds):.0%}",
            f"x {own_rate / rate:.2f}",
            f"x {own_cpu / cpu:.2f}",
        )
    return table


def latencies(contenders: list[Contender]) -> Table:
    """Measure the latency of calls at a steady rate."""
    table = captioned("paid calls that come steadily, median of slices; the facilitator answers at once")
    table.add_column("server", no_wrap=True)
    table.add_column("of its rate above")
    for column in ("calls/s", "p50 ms", "p99 ms", "CPU us/call", "CPU used"):
        table.add_column(column, justify="right")
    for one in contenders:
        for kind in (kind for kind in STEADY if kind in one.slices):
            rate, cpu = rate_and_cpu(one, kind)
            table.add_row(
                one.name,
                kind,
                f"{rate:,.0f}",
                f"{one.median(kind, lambda slice_: slice_.percentile(50)):,.2f}",
                f"{one.median(kind, lambda slice_: slice_.percentile(99)):,.2f}",
                f"{cpu:,.0f}",
                f"{one.median(kind, lambda slice_: slice_.server_cpu / slice_.seconds):.0%}",
            )
    return table


def rate_and_cpu(one: Contender, kind: str) -> tuple[float, float]:
    """Requests a second, and microseconds of processor time a request."""
    return (
        one.median(kind, lambda slice_: slice_.rate),
        one.median(kind, lambda slice_: slice_.cpu_us),
    )


def starts(folder: Path, facilitator: Running) -> Table:
    """Measure the time of a start, with a new journal and with an existing one."""
    fresh = [started(folder / f"start-{number}", facilitator) for number in range(STARTS)]
    existing = [started(folder / "start-0", facilitator) for _ in range(STARTS)]
    table = captioned(f"start of `centgate serve`, median of {STARTS}")
    table.add_column("journal")
    for column in ("first answer s", "slowest", "first paid answer s", "slowest", "CPU s", "MB"):
        table.add_column(column, justify="right")
    for name, runs in (("fresh", fresh), ("existing", existing)):
        table.add_row(
            name,
            f"{median(run.answer for run in runs):.2f}",
            f"{max(run.answer for run in runs):.2f}",
            f"{median(run.paid for run in runs):.2f}",
            f"{max(run.paid for run in runs):.2f}",
            f"{median(run.cpu for run in runs):.2f}",
            f"{median(run.memory for run in runs):.0f}",
        )
    return table


def started(folder: Path, facilitator: Running) -> Start:
    """Start a server once, up to its first paid answer."""
    with ours(folder, facilitator, file_in(folder)) as server:
        with urllib.request.urlopen(f"{server.url}/livez", timeout=30):
            answer = time.perf_counter() - server.started
        [payment] = signed_payments(offer_of(server.url + PATH, BODY), 1)
        headers = {"Content-Type": "application/json", "PAYMENT-SIGNATURE": payment.decode()}
        request = urllib.request.Request(server.url + PATH, BODY, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            response.read()
            paid = time.perf_counter() - server.started
        return Start(answer, paid, cpu_seconds(server.pid), resident_mb(server.pid))


def memory(contenders: list[Contender]) -> Table:
    """Resident memory before and after the load."""
    table = captioned("resident memory, MB")
    table.add_column("server")
    for column in ("after start", "after the load", "paid calls served"):
        table.add_column(column, justify="right")
    for one in contenders:
        served = len(CONNECTIONS) * WARM_UP
        served += sum(slice_.count for slices in one.slices.values() for slice_ in slices)
        before, after = one.memory
        table.add_row(one.name, f"{before:.0f}", f"{after:.0f}", f"{served:,}")
    return table


def captioned(title: str) -> Table:
    """An empty table, its title at its left edge."""
    return Table(title=title, title_justify="left")


if __name__ == "__main__":
    try:
        main()
    except (BadAnswer, DidNotStart, OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
