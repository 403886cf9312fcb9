"""Benchmark of token-risk with 200 ms upstreams: own overhead, cached responses, concurrent equal requests.

    .venv/bin/python bench/token_risk.py

One server, paid through a facilitator that accepts at once. Each figure has its baseline from the same run:
the upstreams queried directly, and phishing-check, which has no upstream. Linux only.
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

from load import BadAnswer, Slice, Target, run_requests, run_slice
from payment_signer import offer_of
from processes import DidNotStart, Running, python, running
from rich.console import Console
from rich.table import Table

DELAY_MS = 200
UPSTREAMS = ("goplus", "honeypotis", "dexscreener")
PAY_TO = "0x" + "22" * 20
NETWORK = "eip155:84532"
RISK, PHISHING = "/services/token-risk", "/services/phishing-check"
LINK = b'{"url":"https://wallet-ethereum.net/unlock"}'
SEQUENTIAL_REQUESTS = 40
EQUAL_REQUESTS = 1000
CONNECTIONS = 32
CONCURRENT_REQUESTS = 1600
HITS = 1500
ROUNDS = 5


def main() -> None:
    """Measure and print; stop the started processes."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        running(python("facilitator_stub.py"), Path(name)) as facilitator,
        running(python("upstreams_stub.py", str(DELAY_MS)), Path(name)) as upstreams,
        start_server(Path(name), facilitator, upstreams) as server,
        ProcessPoolExecutor(1, mp_context=spawn) as load,
    ):
        risk = Target(
            server.pid, server.port, RISK, random_request(), offer_of(server.url + RISK, random_request())
        )
        phishing = Target(server.pid, server.port, PHISHING, LINK, offer_of(server.url + PHISHING, LINK))
        load.submit(run_requests, risk, CONNECTIONS, [random_request() for _ in range(200)]).result()
        load.submit(run_slice, phishing, 1, 300).result()
        console.print(measure_uncached(load, risk, upstreams))
        console.print(measure_cached(load, risk, phishing))
        console.print(measure_concurrent(load, risk, upstreams))


@contextmanager
def start_server(folder: Path, facilitator: Running, upstreams: Running) -> Generator[Running]:
    """Run `centgate serve` between the two, without the upstreams' published rate limits."""
    environment = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": f"sqlite:///{folder / 'journal.db'}",
        **{f"CENTGATE_{name.upper()}_URL": f"{upstreams.url}/{name}" for name in UPSTREAMS},
        **{f"CENTGATE_{name.upper()}_PER_MINUTE": "1000000" for name in UPSTREAMS},
        "CENTGATE_GECKOTERMINAL_ENABLED": "false",
    }
    with running([sys.executable, "-m", "centgate", "serve", "--port", "0"], folder, environment) as server:
        yield server


def random_request() -> bytes:
    """Return the body of a request for a new random token."""
    return json.dumps({"chain": "ethereum", "tokenAddress": "0x" + secrets.token_hex(20)}).encode()


def measure_uncached(load: ProcessPoolExecutor, risk: Target, upstreams: Running) -> Table:
    """Measure uncached requests: sequential beside a direct upstream call, then concurrent for CPU time."""
    direct = measure_upstream(upstreams, SEQUENTIAL_REQUESTS)
    one = load.submit(run_requests, risk, 1, [random_request() for _ in range(SEQUENTIAL_REQUESTS)]).result()
    many = load.submit(
        run_requests, risk, CONNECTIONS, [random_request() for _ in range(CONCURRENT_REQUESTS)]
    ).result()
    table = create_table(
        f"uncached token-risk, three upstreams of {DELAY_MS} ms each",
        "targets: p50 at most 215 ms sequentially; our CPU time at most 5 ms per request",
    )
    for column in ("", "requests", "p50 ms", "p99 ms", "CPU ms/request", "p50 against one upstream"):
        table.add_column(column, justify="right" if column else "left")
    floor = median(direct) * 1e3
    table.add_row("one upstream, directly", str(len(direct)), f"{floor:.1f}", "", "", "x 1.00")
    for label, done in (("sequential", one), (f"{CONNECTIONS} concurrent", many)):
        table.add_row(
            label,
            f"{done.count:,}",
            f"{done.percentile(50):.1f}",
            f"{done.percentile(99):.1f}",
            f"{done.cpu_us / 1e3:.2f}",
            f"x {done.percentile(50) / floor:.2f}",
        )
    return table


def measure_upstream(upstreams: Running, count: int) -> list[float]:
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


def measure_cached(load: ProcessPoolExecutor, risk: Target, phishing: Target) -> Table:
    """Measure cached responses, in alternation with a service that needs no upstream."""
    slices: dict[str, list[Slice]] = {RISK: [], PHISHING: []}
    load.submit(run_slice, risk, 1, 1).result()
    for _ in range(ROUNDS):
        for target in (risk, phishing):
            slices[target.path].append(load.submit(run_slice, target, 1, HITS // ROUNDS).result())
    table = create_table("a paid call over one connection", "target: at most 2 ms of ours for a cache hit")
    for column in ("", "p50 ms", "p99 ms", "CPU ms/request"):
        table.add_column(column, justify="right" if column else "left")
    for label, path in (("token-risk from the cache", RISK), ("phishing-check", PHISHING)):
        done = slices[path]
        table.add_row(
            label,
            f"{median(one.percentile(50) for one in done):.2f}",
            f"{median(one.percentile(99) for one in done):.2f}",
            f"{median(one.cpu_us for one in done) / 1e3:.2f}",
        )
    return table


def measure_concurrent(load: ProcessPoolExecutor, risk: Target, upstreams: Running) -> Table:
    """Measure many equal requests at the same time."""
    upstream_calls(upstreams)
    done = load.submit(run_requests, risk, EQUAL_REQUESTS, [random_request()] * EQUAL_REQUESTS).result()
    asked = upstream_calls(upstreams)
    table = create_table(
        f"{EQUAL_REQUESTS:,} equal concurrent requests, each with its own payment",
        "target: one call of each upstream",
    )
    for column in ("answered", "seconds", *(f"calls of {name}" for name in UPSTREAMS)):
        table.add_column(column, justify="right")
    table.add_row(f"{done.count:,}", f"{done.seconds:.2f}", *(str(asked.get(name, 0)) for name in UPSTREAMS))
    return table


def upstream_calls(upstreams: Running) -> dict[str, int]:
    """Return the calls per upstream since the previous query of this counter."""
    connection = http.client.HTTPConnection("127.0.0.1", upstreams.port)
    connection.request("GET", "/counts")
    return json.loads(connection.getresponse().read())


def create_table(title: str, caption: str) -> Table:
    """Return an empty table with title and caption aligned left."""
    return Table(title=title, caption=caption, title_justify="left", caption_justify="left")


if __name__ == "__main__":
    try:
        main()
    except (BadAnswer, DidNotStart, OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
