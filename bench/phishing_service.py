"""Latency of paid calls of phishing-check: with more and larger lists, and beside hostile pages.

    .venv/bin/python bench/phishing_service.py [--before CHECKOUT]

All servers are `centgate serve` with the same facilitator stub. Their slices alternate in one run: compare
the ratios, not the milliseconds. `--before` adds the server of another checkout. The hostile load is a
constant number of concurrent requests for pages that take long to parse.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2 as httpx
from benchmark_servers import BODY, NETWORK, PATH, PAY_TO, create_journal_url
from load_generator import Slice, Target, run_paced_slice
from payment_signer import fetch_challenge, sign_payments
from rich.console import Console
from rich.table import Table
from server_process import ServerProcess, build_script_command, read_resident_mb, run_server

from centgate.phishing.rules import PhishingRules
from centgate.phishing.snapshot import load_shipped, make_snapshot, pack_snapshot

ROUNDS: Final = 5
CALLS: Final = 400
RATE: Final = 80.0
"""Calls per second: well below the capacity of a server, because latency is measured and not throughput."""
HOSTILE_BUYERS: Final = 15
FIRST_LIST_NAMES: Final = 200_000
SECOND_LIST_NAMES: Final = 55_000
"""Numbers of generated names in the two large lists."""
SCRAPE: Final = "/services/crawler/scrape"
PAGES: Final = (
    b"<div " + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">x</div><p>text</p>",
    b"".join(b"<li><a href=/p/%d>text %d</a></li>" % (number, number) for number in range(50_000)),
    b"<table>" + b"".join(b"<tr><td>%d<td>text<td>c" % number for number in range(50_000)) + b"</table>",
    b"<div>" * 100_000 + b"deep text" + b"</div>" * 100_000 + b"<p>after</p>",
    b"<p>text" + b"&amp;" * 500_000,
)


@dataclass
class MeasuredServer:
    """Server in the comparison and its slices."""

    name: str
    process: ServerProcess
    slices: list[Slice] = field(default_factory=list[Slice])

    def measure_slice(self) -> None:
        """Pay for calls at a constant rate, and add their slice."""
        challenge = fetch_challenge(self.process.url + PATH, BODY)
        target = Target(self.process.pid, self.process.port, PATH, BODY, challenge)
        self.slices.append(run_paced_slice(target, 4, CALLS, RATE))

    def calculate_percentile(self, percent: float) -> float:
        """Return the median over the slices of a latency percentile in milliseconds."""
        return median(each.percentile(percent) for each in self.slices)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        facilitator = stack.enter_context(run_server(build_script_command("facilitator_stub.py"), folder))
        page_port = stack.enter_context(serve_pages())
        this_checkout = Path(__file__).parents[1]
        checkouts = {
            "one list": (this_checkout, 0),
            "two lists, 255,000 names": (this_checkout, FIRST_LIST_NAMES),
        }
        if arguments.before:
            checkouts = {"before": (arguments.before, 0), **checkouts}
        servers = [
            MeasuredServer(
                title,
                start_server(
                    stack,
                    folder / str(number),
                    facilitator,
                    checkout,
                    name_count=name_count,
                    page_port=page_port,
                ),
            )
            for number, (title, (checkout, name_count)) in enumerate(checkouts.items())
        ]
        compare_servers(servers)
        compare_hostile_load(servers[-1], page_port)


def start_server(
    stack: ExitStack,
    folder: Path,
    facilitator: ServerProcess,
    checkout: Path,
    *,
    name_count: int,
    page_port: int,
) -> ServerProcess:
    """Start the server of a checkout until the stack closes, with large lists if `name_count` is not zero."""
    folder.mkdir()
    if name_count:
        write_lists(folder / "centgate-phishing", name_count)
    environment = {
        "PYTHONPATH": str(checkout.absolute() / "src"),
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": create_journal_url(folder),
        "CENTGATE_FETCH_ALLOWED": f"127.0.0.1:{page_port}",
        "CENTGATE_FETCH_PORTS": f"80,443,{page_port}",
        "CENTGATE_FETCH_ROBOTS": "false",
        "CENTGATE_FREE_PER_MINUTE": "0",
    }
    if (checkout / "src/centgate/phishing/store.py").exists():  # older checkouts do not know the setting
        environment["CENTGATE_PHISHING_LIST_URL"] = "off"
    command = [sys.executable, "-m", "centgate", "serve", "--port", "0"]
    return stack.enter_context(run_server(command, folder, environment))


def write_lists(folder: Path, name_count: int) -> None:
    """Write a list of the shipped names and `name_count` generated ones, and a second list."""
    folder.mkdir()
    shipped = load_shipped().rules
    blocklist = (*shipped.blocklist, *(f"name-{number}.example" for number in range(name_count)))
    first = PhishingRules(shipped.allowlist, blocklist, shipped.fuzzylist, tolerance=shipped.tolerance)
    second = PhishingRules(blocklist=[f"other-{number}.example" for number in range(SECOND_LIST_NAMES)])
    for name, rules in (("metamask", first), ("polkadot", second)):
        (folder / f"{name}.xz").write_bytes(
            pack_snapshot(make_snapshot(rules, source="generated", date="2026-11-23"))
        )


class PageHandler(BaseHTTPRequestHandler):
    """Request handler with a hostile page at each `/<number>`."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass

    def do_GET(self) -> None:
        page = PAGES[int(self.path.rpartition("/")[2]) % len(PAGES)]
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


@contextmanager
def serve_pages() -> Generator[int]:
    """Serve hostile pages in a process of its own, apart from the measured load; yields the port."""
    spawn = multiprocessing.get_context("spawn")
    port_queue = spawn.Queue()
    process = spawn.Process(target=_serve_pages, args=(port_queue,), daemon=True)
    process.start()
    try:
        yield port_queue.get(timeout=30)
    finally:
        process.terminate()
        process.join()


def _serve_pages(port_queue: Queue[int]) -> None:
    os.nice(15)  # real sites do not use the server's processors
    server = ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
    port_queue.put(server.server_address[1])
    server.serve_forever()


def compare_servers(servers: list[MeasuredServer]) -> None:
    """Measure all servers in alternation, and print a table with ratios to the first one."""
    for server in servers:
        server.measure_slice()  # a warm-up
        server.slices.clear()
    for _ in range(ROUNDS):
        for server in servers:
            server.measure_slice()
    table = Table("server", "p50 ms", "ratio", "p99 ms", "ratio", "CPU us", "MB")
    first = servers[0]
    for server in servers:
        p50, p99 = server.calculate_percentile(50), server.calculate_percentile(99)
        table.add_row(
            server.name,
            f"{p50:.2f}",
            f"{p50 / first.calculate_percentile(50):.2f}",
            f"{p99:.2f}",
            f"{p99 / first.calculate_percentile(99):.2f}",
            f"{median(each.cpu_us for each in server.slices):.0f}",
            f"{read_resident_mb(server.process.pid):.0f}",
        )
    Console().print(table)


def compare_hostile_load(server: MeasuredServer, page_port: int) -> None:
    """Measure one server without and with hostile load in alternation, and print a table with ratios."""
    quiet = MeasuredServer("no other load", server.process)
    loaded = MeasuredServer("hostile pages", server.process)
    spawn = multiprocessing.get_context("spawn")
    page_count = spawn.Value("i", 0)
    for _ in range(ROUNDS):
        quiet.measure_slice()
        stop_event = spawn.Event()
        buyers = spawn.Process(target=buy_pages, args=(server.process.url, page_port, stop_event, page_count))
        buyers.start()
        time.sleep(4)
        loaded.measure_slice()
        stop_event.set()
        buyers.join()
        time.sleep(3)
    table = Table("phishing-check", "p50 ms", "p99 ms")
    for each in (quiet, loaded):
        p50, p99 = each.calculate_percentile(50), each.calculate_percentile(99)
        table.add_row(each.name, f"{p50:.2f}", f"{p99:.2f}")
    ratios = (
        loaded.calculate_percentile(percent) / quiet.calculate_percentile(percent) for percent in (50, 99)
    )
    table.add_row("ratio", *(f"{ratio:.2f}" for ratio in ratios))
    Console().print(table, f"{page_count.value} responses for hostile pages meanwhile")


def buy_pages(url: str, page_port: int, stop_event: Event, page_count: Any) -> None:
    """Buy hostile pages until the event is set; add the number of responses to the shared `page_count`."""
    os.nice(15)  # real buyers do not use the server's processors
    asyncio.run(_buy_pages(url, page_port, stop_event, page_count))


async def _buy_pages(url: str, page_port: int, stop_event: Event, page_count: Any) -> None:
    numbers = cycle(range(10_000))

    async def buy_until_stopped(client: httpx.AsyncClient) -> None:
        while not stop_event.is_set():
            body = b'{"url":"http://127.0.0.1:%d/%d"}' % (page_port, next(numbers))
            challenge = await asyncio.to_thread(fetch_challenge, url + SCRAPE, body)
            headers = {
                "PAYMENT-SIGNATURE": sign_payments(challenge, 1)[0].decode(),
                "Content-Type": "application/json",
            }
            response = await client.post(url + SCRAPE, content=body, headers=headers)
            with page_count.get_lock():
                page_count.value += response.status_code in (200, 502, 504)

    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        await asyncio.gather(*(buy_until_stopped(client) for _ in range(HOSTILE_BUYERS)))


if __name__ == "__main__":
    main()
