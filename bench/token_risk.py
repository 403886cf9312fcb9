"""Benchmark of token-risk with 200 ms upstreams: overhead, cached responses, concurrent equal requests.

    .venv/bin/python bench/token_risk.py

One server with a facilitator that accepts every payment without delay. Each figure has a baseline from the
same run: the upstreams queried directly, or phishing-check, which has no upstream. Linux only.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import secrets
import sys
import tempfile
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from load_generator import BadResponse, Slice, Target, run_requests, run_slice
from payment_signer import fetch_challenge
from rich.console import Console
from rich.table import Table
from server_process import ServerProcess, StartFailed, build_script_command, run_server

DELAY_MS = 200
UPSTREAMS = ("goplus", "honeypotis", "dexscreener")
PAY_TO = "0x" + "22" * 20
NETWORK = "eip155:84532"
RISK, PHISHING = "/services/token-risk", "/services/phishing-check"
PHISHING_BODY = b'{"url":"https://wallet-ethereum.net/unlock"}'
SEQUENTIAL_REQUESTS = 40
EQUAL_REQUESTS = 1000
CONNECTIONS = 32
CONCURRENT_REQUESTS = 1600
CACHED_REQUESTS = 1500
ROUNDS = 5


def main() -> None:
    """Run all measurements and print their tables; stop all started processes."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        run_server(build_script_command("facilitator_stub.py"), Path(name)) as facilitator,
        run_server(build_script_command("upstreams_stub.py", str(DELAY_MS)), Path(name)) as upstreams,
        start_server(Path(name), facilitator, upstreams) as server,
        ProcessPoolExecutor(1, mp_context=spawn) as load_pool,
    ):
        risk = create_target(server, RISK, create_request_body())
        phishing = create_target(server, PHISHING, PHISHING_BODY)
        warm_up_bodies = [create_request_body() for _ in range(200)]
        load_pool.submit(run_requests, risk, CONNECTIONS, warm_up_bodies).result()
        load_pool.submit(run_slice, phishing, 1, 300).result()
        console.print(measure_uncached_requests(load_pool, risk, upstreams))
        console.print(measure_cached_requests(load_pool, risk, phishing))
        console.print(measure_equal_requests(load_pool, risk, upstreams))


@contextmanager
def start_server(
    folder: Path, facilitator: ServerProcess, upstreams: ServerProcess
) -> Generator[ServerProcess]:
    """Run `centgate serve` with both stubs, and without the upstreams' published rate limits."""
    environment = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": f"sqlite:///{folder / 'journal.db'}",
        **{f"CENTGATE_{name.upper()}_URL": f"{upstreams.url}/{name}" for name in UPSTREAMS},
        **{f"CENTGATE_{name.upper()}_PER_MINUTE": "1000000" for name in UPSTREAMS},
        "CENTGATE_GECKOTERMINAL_ENABLED": "false",
    }
    command = [sys.executable, "-m", "centgate", "serve", "--port", "0"]
    with run_server(command, folder, environment) as server:
        yield server


def create_target(server: ServerProcess, path: str, body: bytes) -> Target:
    """Return a route of the server as a load target, with the challenge for its body."""
    return Target(server.pid, server.port, path, body, fetch_challenge(server.url + path, body))


def create_request_body() -> bytes:
    """Create the JSON body of a token-risk request for a random token."""
    return json.dumps({"chain": "ethereum", "tokenAddress": "0x" + secrets.token_hex(20)}).encode()


def measure_uncached_requests(
    load_pool: ProcessPoolExecutor, risk: Target, upstreams: ServerProcess
) -> Table:
    """Return a table of uncached requests: a direct upstream call, sequential and concurrent requests."""
    direct_seconds = measure_upstream(upstreams, SEQUENTIAL_REQUESTS)
    bodies = [create_request_body() for _ in range(SEQUENTIAL_REQUESTS)]
    sequential = load_pool.submit(run_requests, risk, 1, bodies).result()
    bodies = [create_request_body() for _ in range(CONCURRENT_REQUESTS)]
    concurrent = load_pool.submit(run_requests, risk, CONNECTIONS, bodies).result()
    table = create_table(
        f"uncached token-risk, three upstreams of {DELAY_MS} ms each",
        "targets: p50 at most 215 ms sequentially; CPU time of Centgate at most 5 ms per request",
    )
    for column in ("", "requests", "p50 ms", "p99 ms", "CPU ms/request", "p50 against one upstream"):
        table.add_column(column, justify="right" if column else "left")
    direct_ms = median(direct_seconds) * 1e3
    table.add_row("one upstream, directly", str(len(direct_seconds)), f"{direct_ms:.1f}", "", "", "x 1.00")
    for label, result in (("sequential", sequential), (f"{CONNECTIONS} concurrent", concurrent)):
        table.add_row(
            label,
            f"{result.count:,}",
            f"{result.percentile(50):.1f}",
            f"{result.percentile(99):.1f}",
            f"{result.cpu_us / 1e3:.2f}",
            f"x {result.percentile(50) / direct_ms:.2f}",
        )
    return table


def measure_upstream(upstreams: ServerProcess, count: int) -> list[float]:
    """Return the seconds per call of one upstream over one keep-alive connection."""
    connection = http.client.HTTPConnection("127.0.0.1", upstreams.port)
    seconds: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        connection.request(
            "GET", f"/goplus/api/v1/token_security/1?contract_addresses=0x{secrets.token_hex(20)}"
        )
        connection.getresponse().read()
        seconds.append(time.perf_counter() - start)
    return seconds


def measure_cached_requests(load_pool: ProcessPoolExecutor, risk: Target, phishing: Target) -> Table:
    """Return a table of cached responses, in alternation with a service that has no upstream."""
    slices: dict[str, list[Slice]] = {RISK: [], PHISHING: []}
    load_pool.submit(run_slice, risk, 1, 1).result()
    for _ in range(ROUNDS):
        for target in (risk, phishing):
            result = load_pool.submit(run_slice, target, 1, CACHED_REQUESTS // ROUNDS).result()
            slices[target.path].append(result)
    table = create_table("a paid call over one connection", "target: at most 2 ms for a cache hit")
    for column in ("", "p50 ms", "p99 ms", "CPU ms/request"):
        table.add_column(column, justify="right" if column else "left")
    for label, path in (("token-risk from the cache", RISK), ("phishing-check", PHISHING)):
        results = slices[path]
        table.add_row(
            label,
            f"{median(each.percentile(50) for each in results):.2f}",
            f"{median(each.percentile(99) for each in results):.2f}",
            f"{median(each.cpu_us for each in results) / 1e3:.2f}",
        )
    return table


def measure_equal_requests(load_pool: ProcessPoolExecutor, risk: Target, upstreams: ServerProcess) -> Table:
    """Return a table of concurrent equal requests, with the calls of each upstream."""
    reset_call_counts(upstreams)
    bodies = [create_request_body()] * EQUAL_REQUESTS
    result = load_pool.submit(run_requests, risk, EQUAL_REQUESTS, bodies).result()
    call_counts = reset_call_counts(upstreams)
    table = create_table(
        f"{EQUAL_REQUESTS:,} equal concurrent requests, each with its own payment",
        "target: one call of each upstream",
    )
    for column in ("answered", "seconds", *(f"calls of {name}" for name in UPSTREAMS)):
        table.add_column(column, justify="right")
    counts = (str(call_counts.get(name, 0)) for name in UPSTREAMS)
    table.add_row(f"{result.count:,}", f"{result.seconds:.2f}", *counts)
    return table


def reset_call_counts(upstreams: ServerProcess) -> dict[str, int]:
    """Reset the stub's counters; return the number of calls by upstream since the last reset."""
    connection = http.client.HTTPConnection("127.0.0.1", upstreams.port)
    connection.request("GET", "/counts")
    return json.loads(connection.getresponse().read())


def create_table(title: str, caption: str) -> Table:
    """Return an empty table with title and caption aligned left."""
    return Table(title=title, caption=caption, title_justify="left", caption_justify="left")


if __name__ == "__main__":
    try:
        main()
    except (BadResponse, StartFailed, OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
