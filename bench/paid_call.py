"""Paid calls of Centgate on both databases, of the official x402 middleware, and of the floor, in one run.

    PYTHONPATH=tests .venv/bin/python bench/paid_call.py

All servers run at the same time and sell the same service at the same price. All but the floor use the same
facilitator, a stub that accepts every payment. Slices of about a second alternate between the servers in a
shuffled order, so that other load on the machine affects all of them; figures are medians over slices.
Compare the ratios. Start time and memory are measured too. Linux only: it reads /proc.
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

from benchmark_servers import (
    BODY,
    PATH,
    BenchmarkServer,
    create_journal_url,
    install_express,
    run_centgate,
    run_express_middleware,
    run_fastapi_middleware,
    run_floor,
)
from databases import Postgres, postgres_server
from load_generator import BadResponse, run_paced_slice, run_slice
from payment_signer import fetch_challenge, sign_payments
from rich.console import Console
from rich.table import Table
from server_process import (
    ServerProcess,
    StartFailed,
    build_script_command,
    read_cpu_seconds,
    read_resident_mb,
    run_server,
)

SEED = 20261121
SLICES = 9
SLICE_SECONDS = 1.0
MIN_SLICE_REQUESTS, MAX_SLICE_REQUESTS = 300, 4_000
MANY_CONNECTIONS, ONE_CONNECTION = "32 connections", "1 connection"
CONNECTIONS = {MANY_CONNECTIONS: 32, ONE_CONNECTION: 1}
SLOW_FACILITATOR = "64 connections, facilitator 300 ms"
SLOW_CONNECTIONS = 64
FACILITATOR_DELAY_MS = 300
RATE_SHARES = {"a quarter": 0.25, "a half": 0.5}
"""Constant rates, as shares of the rate with 32 connections."""
STARTS = 5

SQLITE, POSTGRES = "Centgate, SQLite", "Centgate, PostgreSQL"
FASTAPI, EXPRESS = "x402 FastAPI, upfront", "x402 Express, upfront"
FLOOR = "floor, SQLite"

RATE_COLUMNS = ("calls/s", "p50 ms", "p99 ms", "CPU us/call", "CPU used")


@dataclass(frozen=True)
class ServerStart:
    """Durations of one server start from the creation of the process, its processor time and memory."""

    first_response_seconds: float
    first_paid_response_seconds: float
    cpu_seconds: float
    memory_mb: float


def main() -> None:
    """Run all measurements and print their tables; stop all started processes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an exception stops the servers first
    console = Console(width=None if sys.stdout.isatty() else 120)
    spawn = multiprocessing.get_context("spawn")
    with (
        # the journal must be on a disk, and /tmp is in memory on some systems
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        postgres_server() as postgres,
        run_server(build_script_command("facilitator_stub.py"), Path(name)) as facilitator,
        run_server(
            build_script_command("facilitator_stub.py", str(FACILITATOR_DELAY_MS)), Path(name)
        ) as slow_facilitator,
        ProcessPoolExecutor(1, mp_context=spawn) as load_pool,
    ):
        folder = Path(name)
        with ExitStack() as stack:
            servers = start_servers(stack, folder, facilitator, postgres)
            record_memory(servers)
            measure_connections(servers, load_pool)
            measure_constant_rates(
                [server for server in servers if server.name in (SQLITE, POSTGRES, FLOOR)], load_pool
            )
            record_memory(servers)
            for load in CONNECTIONS:
                console.print(render_throughput(servers, load))
            console.print(render_constant_rates(servers))
        with ExitStack() as stack:
            slow_servers = start_slow_servers(stack, folder, slow_facilitator, postgres)
            measure_slow_facilitator(slow_servers, load_pool)
            console.print(render_throughput(slow_servers, SLOW_FACILITATOR))
        console.print(measure_starts(folder, facilitator))
        console.print(render_memory(servers))


def start_servers(
    stack: ExitStack, folder: Path, facilitator: ServerProcess, postgres: Postgres
) -> list[BenchmarkServer]:
    """Start all servers until the stack closes; Centgate on SQLite is the first."""

    def start_server(name: str, process: AbstractContextManager[ServerProcess]) -> BenchmarkServer:
        return BenchmarkServer(name, stack.enter_context(process))

    def start_centgate(name: str, database_url: str, *, workers: int = 1) -> BenchmarkServer:
        return start_server(name, run_centgate(folder, facilitator, database_url, workers=workers))

    modules = install_express(folder)
    servers = [
        start_centgate(SQLITE, create_journal_url(folder / "one")),
        start_centgate(SQLITE + ", 2 workers", create_journal_url(folder / "two"), workers=2),
        start_centgate(POSTGRES, postgres.new_database()),
        start_centgate(POSTGRES + ", 2 workers", postgres.new_database(), workers=2),
        start_server(FLOOR, run_floor(folder, create_journal_url(folder / "floor"))),
        start_server(FASTAPI, run_fastapi_middleware(folder, facilitator, "upfront")),
        start_server(
            "x402 FastAPI, authorization", run_fastapi_middleware(folder, facilitator, "authorization")
        ),
    ]
    if modules:
        for name, flow in ((EXPRESS, "upfront"), ("x402 Express, authorization", "authorization")):
            servers.append(start_server(name, run_express_middleware(modules, folder, facilitator, flow)))
    return servers


def start_slow_servers(
    stack: ExitStack, folder: Path, facilitator: ServerProcess, postgres: Postgres
) -> list[BenchmarkServer]:
    """Start three servers with a slow facilitator until the stack closes."""
    processes = {
        SQLITE: run_centgate(folder, facilitator, create_journal_url(folder / "slow")),
        POSTGRES: run_centgate(folder, facilitator, postgres.new_database()),
        FASTAPI: run_fastapi_middleware(folder, facilitator, "upfront"),
    }
    return [BenchmarkServer(name, stack.enter_context(process)) for name, process in processes.items()]


def record_memory(servers: list[BenchmarkServer]) -> None:
    """Add the present memory in MB of each server to its readings."""
    for server in servers:
        server.memory_mb.append(read_resident_mb(server.process.pid))


def measure_connections(servers: list[BenchmarkServer], load_pool: ProcessPoolExecutor) -> None:
    """Measure all servers at each number of connections in a shuffled order.

    A warm-up determines the number of requests in a slice of `SLICE_SECONDS`.
    """
    targets = {server.name: server.fetch_target() for server in servers}
    counts: dict[tuple[str, str], int] = {}
    for server in servers:
        for load, connections in CONNECTIONS.items():
            warm_up = load_pool.submit(
                run_slice, targets[server.name], connections, MIN_SLICE_REQUESTS
            ).result()
            count = max(MIN_SLICE_REQUESTS, int(warm_up.rate * SLICE_SECONDS))
            counts[server.name, load] = min(MAX_SLICE_REQUESTS, count)
    cases = [(server, load) for server in servers for load in CONNECTIONS]
    rng = random.Random(SEED)
    for _ in range(SLICES):
        rng.shuffle(cases)
        for server, load in cases:
            count = counts[server.name, load]
            result = load_pool.submit(run_slice, targets[server.name], CONNECTIONS[load], count).result()
            server.slices.setdefault(load, []).append(result)


def measure_constant_rates(servers: list[BenchmarkServer], load_pool: ProcessPoolExecutor) -> None:
    """Measure all servers at constant rates, which are shares of each server's rate with 32 connections."""
    targets = {server.name: server.fetch_target() for server in servers}
    connections = CONNECTIONS[MANY_CONNECTIONS]
    for _ in range(SLICES):
        for server in servers:
            for load, share in RATE_SHARES.items():
                rate = server.calculate_median(MANY_CONNECTIONS, lambda each: each.rate) * share
                count = int(rate * 2 * SLICE_SECONDS)
                result = load_pool.submit(
                    run_paced_slice, targets[server.name], connections, count, rate
                ).result()
                server.slices.setdefault(load, []).append(result)


def measure_slow_facilitator(servers: list[BenchmarkServer], load_pool: ProcessPoolExecutor) -> None:
    """Measure all servers with a slow facilitator, in slices of two seconds at the highest possible rate."""
    targets = {server.name: server.fetch_target() for server in servers}
    for target in targets.values():
        load_pool.submit(run_slice, target, SLOW_CONNECTIONS, SLOW_CONNECTIONS).result()
    count = SLOW_CONNECTIONS * 2000 // FACILITATOR_DELAY_MS
    for _ in range(SLICES):
        for server in servers:
            result = load_pool.submit(run_slice, targets[server.name], SLOW_CONNECTIONS, count).result()
            server.slices.setdefault(SLOW_FACILITATOR, []).append(result)


def render_throughput(servers: list[BenchmarkServer], load: str) -> Table:
    """Return a table of each server's rate, latency and processor time under one load.

    The last two columns are ratios of the first server, Centgate on SQLite, to each server.
    """
    table = create_table(f"paid call, {load}, median of {SLICES} slices")
    table.add_column("server", no_wrap=True)
    for column in (*RATE_COLUMNS, "Centgate, calls/s", "Centgate, CPU"):
        table.add_column(column, justify="right")
    centgate_rate, centgate_cpu = calculate_rate_and_cpu(servers[0], load)
    for server in servers:
        rate, cpu = calculate_rate_and_cpu(server, load)
        table.add_row(
            server.name,
            *format_figures(server, load),
            f"x {centgate_rate / rate:.2f}",
            f"x {centgate_cpu / cpu:.2f}",
        )
    return table


def render_constant_rates(servers: list[BenchmarkServer]) -> Table:
    """Return a table of each server's latency and processor time at constant rates."""
    table = create_table("paid calls at a constant rate, median of slices; facilitator without delay")
    table.add_column("server", no_wrap=True)
    table.add_column("of its rate above")
    for column in RATE_COLUMNS:
        table.add_column(column, justify="right")
    for server in servers:
        for load in (load for load in RATE_SHARES if load in server.slices):
            table.add_row(server.name, load, *format_figures(server, load))
    return table


def format_figures(server: BenchmarkServer, load: str) -> list[str]:
    """Return the cells of `RATE_COLUMNS` for one server under one load."""
    rate, cpu = calculate_rate_and_cpu(server, load)
    return [
        f"{rate:,.0f}",
        f"{server.calculate_median(load, lambda each: each.percentile(50)):,.2f}",
        f"{server.calculate_median(load, lambda each: each.percentile(99)):,.2f}",
        f"{cpu:,.0f}",
        f"{server.calculate_median(load, lambda each: each.server_cpu / each.seconds):.0%}",
    ]


def calculate_rate_and_cpu(server: BenchmarkServer, load: str) -> tuple[float, float]:
    """Return the requests per second, and the processor time in microseconds per request."""
    rate = server.calculate_median(load, lambda each: each.rate)
    return rate, server.calculate_median(load, lambda each: each.cpu_us)


def measure_starts(folder: Path, facilitator: ServerProcess) -> Table:
    """Return a table of the start time in seconds, with a new journal and with an existing one."""
    new_starts = [measure_start(folder / f"start-{number}", facilitator) for number in range(STARTS)]
    later_starts = [measure_start(folder / "start-0", facilitator) for _ in range(STARTS)]
    table = create_table(f"start of `centgate serve`, median of {STARTS}")
    table.add_column("journal")
    for column in ("first response s", "slowest", "first paid response s", "slowest", "CPU s", "MB"):
        table.add_column(column, justify="right")
    for name, starts in (("new", new_starts), ("existing", later_starts)):
        table.add_row(
            name,
            f"{median(start.first_response_seconds for start in starts):.2f}",
            f"{max(start.first_response_seconds for start in starts):.2f}",
            f"{median(start.first_paid_response_seconds for start in starts):.2f}",
            f"{max(start.first_paid_response_seconds for start in starts):.2f}",
            f"{median(start.cpu_seconds for start in starts):.2f}",
            f"{median(start.memory_mb for start in starts):.0f}",
        )
    return table


def measure_start(folder: Path, facilitator: ServerProcess) -> ServerStart:
    """Start a server and stop it after its first paid response."""
    with run_centgate(folder, facilitator, create_journal_url(folder)) as server:
        with urllib.request.urlopen(f"{server.url}/livez", timeout=30):
            first_response_seconds = time.perf_counter() - server.start_time
        [payment] = sign_payments(fetch_challenge(server.url + PATH, BODY), 1)
        headers = {"Content-Type": "application/json", "PAYMENT-SIGNATURE": payment.decode()}
        request = urllib.request.Request(server.url + PATH, BODY, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            response.read()
            first_paid_response_seconds = time.perf_counter() - server.start_time
        return ServerStart(
            first_response_seconds,
            first_paid_response_seconds,
            read_cpu_seconds(server.pid),
            read_resident_mb(server.pid),
        )


def render_memory(servers: list[BenchmarkServer]) -> Table:
    """Return a table of the resident memory in MB before and after the load."""
    table = create_table("resident memory, MB")
    table.add_column("server")
    for column in ("after start", "after the load", "paid calls"):
        table.add_column(column, justify="right")
    for server in servers:
        count = len(CONNECTIONS) * MIN_SLICE_REQUESTS  # the warm-up
        count += sum(each.count for slices in server.slices.values() for each in slices)
        before, after = server.memory_mb
        table.add_row(server.name, f"{before:.0f}", f"{after:.0f}", f"{count:,}")
    return table


def create_table(title: str) -> Table:
    """Return an empty table with its title aligned left."""
    return Table(title=title, title_justify="left")


if __name__ == "__main__":
    try:
        main()
    except (BadResponse, StartFailed, OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
