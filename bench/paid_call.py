"""A paid call, ours and the official x402 middleware's, side by side in one run; then start and memory.

    .venv/bin/python bench/paid_call.py

All servers run at once and sell the same thing at the same price through the same facilitator, a stub that
agrees to everything at no delay. Slices of about a second go round them in a shuffled order, so that each
sees the same machine; medians over slices. What else the machine does changes the numbers and hardly the
ratios. Linux only: it reads /proc.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from load import BadAnswer, Slice, Target, run_slice
from processes import DidNotStart, Running, cpu_seconds, python, resident_mb, running
from rich.console import Console
from rich.table import Table
from signing import offer_of, signed_payments

PATH = "/services/phishing-check"
BODY = b'{"url":"https://wallet-ethereum.net/unlock"}'
PAY_TO = "0x" + "22" * 20
NETWORK = "eip155:84532"
SEED = 20261121

SLICES = 9
SLICE_SECONDS = 1.0
WARM_UP = 300
AT_MOST = 4_000
"""Requests in a slice."""
CONNECTIONS = (32, 1)
STARTS = 5

OURS = "centgate serve"
UPFRONT = "x402 upfront"
AUTHORIZATION = "x402 authorization"


@dataclass
class Contender:
    """A server in the comparison, its slices by number of connections, and its memory in MB."""

    name: str
    server: Running
    slices: dict[int, list[Slice]] = field(default_factory=dict[int, list[Slice]])
    memory: list[float] = field(default_factory=list[float])

    def median(self, connections: int, value: Callable[[Slice], float]) -> float:
        return median(map(value, self.slices[connections]))


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
    with (
        # a journal belongs on a disk, and /tmp is memory on some systems
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        running(python("facilitator_stub.py"), Path(name)) as facilitator,
    ):
        folder = Path(name)
        contenders = compared(folder, facilitator)
        for connections in CONNECTIONS:
            console.print(throughput(contenders, connections))
        console.print(starts(folder, facilitator))
        console.print(memory(contenders))


def compared(folder: Path, facilitator: Running) -> list[Contender]:
    """All contenders with their slices."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        contenders = [
            Contender(OURS, stack.enter_context(ours(folder / "load", facilitator))),
            Contender(UPFRONT, stack.enter_context(reference(folder, facilitator, "upfront"))),
            Contender(AUTHORIZATION, stack.enter_context(reference(folder, facilitator, "authorization"))),
        ]
        load = stack.enter_context(ProcessPoolExecutor(1, mp_context=spawn))
        for contender in contenders:
            contender.memory.append(resident_mb(contender.server.pid))
        measure(contenders, load)
        for contender in contenders:
            contender.memory.append(resident_mb(contender.server.pid))
        return contenders


def measure(contenders: list[Contender], load: ProcessPoolExecutor) -> None:
    """Find out how many requests make a slice, then take the slices in a shuffled order."""
    targets = {contender.name: target(contender.server) for contender in contenders}
    counts: dict[tuple[str, int], int] = {}
    for contender in contenders:
        for connections in CONNECTIONS:
            warm = load.submit(run_slice, targets[contender.name], connections, WARM_UP).result()
            counts[contender.name, connections] = min(AT_MOST, max(WARM_UP, int(warm.rate * SLICE_SECONDS)))
    turns = [(contender, connections) for contender in contenders for connections in CONNECTIONS]
    shuffled = random.Random(SEED)
    for _ in range(SLICES):
        shuffled.shuffle(turns)
        for contender, connections in turns:
            count = counts[contender.name, connections]
            done = load.submit(run_slice, targets[contender.name], connections, count).result()
            contender.slices.setdefault(connections, []).append(done)


def target(server: Running) -> Target:
    """A server with the terms it asks for."""
    return Target(server.pid, server.port, PATH, BODY, offer_of(server.url + PATH, BODY))


@contextmanager
def ours(folder: Path, facilitator: Running) -> Generator[Running]:
    """`centgate serve` with its journal in a folder."""
    folder.mkdir(exist_ok=True)
    environment: Mapping[str, str] = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": f"sqlite:///{folder / 'journal.db'}",
    }
    with running([sys.executable, "-m", "centgate", "serve", "--port", "0"], folder, environment) as server:
        yield server


@contextmanager
def reference(folder: Path, facilitator: Running, flow: str) -> Generator[Running]:
    """The official middleware around a handler that does nothing."""
    with running(python("middleware_server.py", flow, facilitator.url), folder) as server:
        yield server


def throughput(contenders: list[Contender], connections: int) -> Table:
    """What each contender does under so many connections, and how ours compares."""
    title = (
        f"paid call over {connections} connection{'s' if connections > 1 else ''}, median of {SLICES} slices"
    )
    busy = connections == max(CONNECTIONS)
    table = captioned(title, "target: our requests/s at least x 3.00" if busy else None)
    table.add_column("server", no_wrap=True)
    for column in ("requests/s", "p50 ms", "p99 ms", "CPU us/request", "CPU used", "CPU of the load"):
        table.add_column(column, justify="right")
    table.add_column("our requests/s", justify="right")
    table.add_column("our CPU", justify="right")
    own_rate, own_cpu = rate_and_cpu(contenders[0], connections)
    for one in contenders:
        rate, cpu = rate_and_cpu(one, connections)
        table.add_row(
            one.name,
            f"{rate:,.0f}",
            f"{one.median(connections, lambda slice_: slice_.percentile(50)):,.2f}",
            f"{one.median(connections, lambda slice_: slice_.percentile(99)):,.2f}",
            f"{cpu:,.0f}",
            f"{one.median(connections, lambda slice_: slice_.server_cpu / slice_.seconds):.0%}",
            f"{one.median(connections, lambda slice_: slice_.load_cpu / slice_.seconds):.0%}",
            f"x {own_rate / rate:.2f}",
            f"x {own_cpu / cpu:.2f}",
        )
    return table


def rate_and_cpu(one: Contender, connections: int) -> tuple[float, float]:
    """Requests a second, and microseconds of processor time a request."""
    return (
        one.median(connections, lambda slice_: slice_.rate),
        one.median(connections, lambda slice_: slice_.cpu_us),
    )


def starts(folder: Path, facilitator: Running) -> Table:
    """How long a start takes, with a journal to be made and with one that is there."""
    fresh = [started(folder / f"start-{number}", facilitator) for number in range(STARTS)]
    existing = [started(folder / "start-0", facilitator) for _ in range(STARTS)]
    table = captioned(f"start of {OURS}, median of {STARTS}", "target: first answer within 1.5 s")
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
    """One start, up to its first paid answer."""
    with ours(folder, facilitator) as server:
        with urllib.request.urlopen(f"{server.url}/livez", timeout=30):
            answer = time.perf_counter() - server.started
        [payment] = signed_payments(offer_of(server.url + PATH, BODY), 1)
        headers = {"Content-Type": "application/json", "PAYMENT-SIGNATURE": payment.decode()}
        with urllib.request.urlopen(
            urllib.request.Request(server.url + PATH, BODY, headers), timeout=30
        ) as response:
            response.read()
            paid = time.perf_counter() - server.started
        return Start(answer, paid, cpu_seconds(server.pid), resident_mb(server.pid))


def memory(contenders: list[Contender]) -> Table:
    """Resident memory before and after the load."""
    table = captioned("resident memory, MB", "target: ours at most 150")
    table.add_column("server")
    for column in ("after start", "after the load", "paid requests served"):
        table.add_column(column, justify="right")
    for one in contenders:
        served = len(CONNECTIONS) * WARM_UP
        served += sum(slice_.count for slices in one.slices.values() for slice_ in slices)
        before, after = one.memory
        table.add_row(one.name, f"{before:.0f}", f"{after:.0f}", f"{served:,}")
    return table


def captioned(title: str, caption: str | None) -> Table:
    """An empty table, title and caption at its left edge."""
    return Table(title=title, caption=caption, title_justify="left", caption_justify="left")


if __name__ == "__main__":
    try:
        main()
    except (BadAnswer, DidNotStart, OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
