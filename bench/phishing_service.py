"""Measure paid calls of phishing-check: with more and larger lists, and beside hostile pages.

    .venv/bin/python bench/phishing_service.py [--before CHECKOUT]

All servers are `centgate serve` with the same stub facilitator, and take turns in one run, so that ratios
count and not milliseconds. `--before` adds the server of another checkout. The hostile load is three buyers
with five heavy pages each at once, who buy the next page as soon as one is answered.
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
from contenders import BODY, NETWORK, PATH, PAY_TO, file_in
from load import Slice, Target, run_paced
from payment_signer import offer_of, signed_payments
from processes import Running, python, resident_mb, running
from rich.console import Console
from rich.table import Table

from centgate.phishing.rules import PhishingRules
from centgate.phishing.snapshot import load_shipped, make_snapshot, pack_snapshot

ROUNDS: Final = 5
CALLS: Final = 400
RATE: Final = 80.0
"""Calls a second: well below what a server can do, as latency is measured and not throughput."""
HOSTILE_BUYERS: Final = 15
LARGE: Final = 200_000
SECOND: Final = 55_000
"""Numbers of generated names in the two lists."""
SCRAPE: Final = "/services/crawler/scrape"
PAGES: Final = (
    b"<div " + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">x</div><p>text</p>",
    b"".join(b"<li><a href=/p/%d>text %d</a></li>" % (number, number) for number in range(50_000)),
    b"<table>" + b"".join(b"<tr><td>%d<td>text<td>c" % number for number in range(50_000)) + b"</table>",
    b"<div>" * 100_000 + b"deep text" + b"</div>" * 100_000 + b"<p>after</p>",
    b"<p>text" + b"&amp;" * 500_000,
)


@dataclass
class Server:
    """A server in the comparison and its slices."""

    name: str
    running: Running
    slices: list[Slice] = field(default_factory=list[Slice])

    def measure(self) -> None:
        """Pay for calls at a steady rate."""
        url = self.running.url + PATH
        target = Target(self.running.pid, self.running.port, PATH, BODY, offer_of(url, BODY))
        self.slices.append(run_paced(target, 4, CALLS, RATE))

    def percentile(self, percent: float) -> float:
        """Return the median over the slices, in milliseconds."""
        return median(each.percentile(percent) for each in self.slices)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        facilitator = stack.enter_context(running(python("facilitator_stub.py"), folder))
        pages = stack.enter_context(serve_pages())
        here = Path(__file__).parents[1]
        checkouts = {"one list": (here, 0), "two lists, 255,000 names": (here, LARGE)}
        if arguments.before:
            checkouts = {"before": (arguments.before, 0), **checkouts}
        servers = [
            Server(title, start(stack, folder / str(number), facilitator, checkout, names=names, pages=pages))
            for number, (title, (checkout, names)) in enumerate(checkouts.items())
        ]
        compare(servers)
        compare_beside_pages(servers[-1], pages)


def start(
    stack: ExitStack, folder: Path, facilitator: Running, checkout: Path, *, names: int, pages: int
) -> Running:
    """Start the server of a checkout, with large lists in its folder if `names` is not zero."""
    folder.mkdir()
    if names:
        write_lists(folder / "centgate-phishing", names)
    environment = {
        "PYTHONPATH": str(checkout.absolute() / "src"),
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": file_in(folder),
        "CENTGATE_FETCH_ALLOWED": f"127.0.0.1:{pages}",
        "CENTGATE_FETCH_PORTS": f"80,443,{pages}",
        "CENTGATE_FETCH_ROBOTS": "false",
        "CENTGATE_FREE_PER_MINUTE": "0",
    }
    if (checkout / "src/centgate/phishing/store.py").exists():  # older checkouts do not know the setting
        environment["CENTGATE_PHISHING_LIST_URL"] = "off"
    command = [sys.executable, "-m", "centgate", "serve", "--port", "0"]
    return stack.enter_context(running(command, folder, environment))


def write_lists(folder: Path, names: int) -> None:
    """Write a list of the shipped names and generated ones, and a second list."""
    folder.mkdir()
    shipped = load_shipped().rules
    blocklist = (*shipped.blocklist, *(f"name-{number}.example" for number in range(names)))
    lead = PhishingRules(shipped.allowlist, blocklist, shipped.fuzzylist, tolerance=shipped.tolerance)
    second = PhishingRules(blocklist=[f"other-{number}.example" for number in range(SECOND)])
    for name, rules in (("metamask", lead), ("polkadot", second)):
        (folder / f"{name}.xz").write_bytes(
            pack_snapshot(make_snapshot(rules, source="generated", date="2026-11-23"))
        )


class PageHandler(BaseHTTPRequestHandler):
    """Heavy pages at `/<number>`."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's own names
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
    """Serve heavy pages in another process than the load that is measured; yields the port."""
    spawn = multiprocessing.get_context("spawn")
    port = spawn.Queue()
    process = spawn.Process(target=_serve_pages, args=(port,), daemon=True)
    process.start()
    try:
        yield port.get(timeout=30)
    finally:
        process.terminate()
        process.join()


def _serve_pages(port: Queue[int]) -> None:
    os.nice(15)  # sites are elsewhere and do not use the server's processors
    server = ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
    port.put(server.server_address[1])
    server.serve_forever()


def compare(servers: list[Server]) -> None:
    for server in servers:
        server.measure()  # the first calls warm the server
        server.slices.clear()
    for _ in range(ROUNDS):
        for server in servers:
            server.measure()
    table = Table("server", "p50 ms", "ratio", "p99 ms", "ratio", "CPU us", "MB")
    first = servers[0]
    for server in servers:
        p50, p99 = server.percentile(50), server.percentile(99)
        table.add_row(
            server.name,
            f"{p50:.2f}",
            f"{p50 / first.percentile(50):.2f}",
            f"{p99:.2f}",
            f"{p99 / first.percentile(99):.2f}",
            f"{median(each.cpu_us for each in server.slices):.0f}",
            f"{resident_mb(server.running.pid):.0f}",
        )
    Console().print(table)


def compare_beside_pages(server: Server, pages: int) -> None:
    """Measure calm and beside hostile pages in turns, and print the ratios."""
    calm, beside = Server("calm", server.running), Server("beside hostile pages", server.running)
    spawn = multiprocessing.get_context("spawn")
    answered = spawn.Value("i", 0)
    for _ in range(ROUNDS):
        calm.measure()
        stop = spawn.Event()
        load = spawn.Process(target=buy_pages, args=(server.running.url, pages, stop, answered))
        load.start()
        time.sleep(4)
        beside.measure()
        stop.set()
        load.join()
        time.sleep(3)
    table = Table("phishing-check", "p50 ms", "p99 ms")
    for each in (calm, beside):
        table.add_row(each.name, f"{each.percentile(50):.2f}", f"{each.percentile(99):.2f}")
    table.add_row(
        "ratio", *(f"{beside.percentile(percent) / calm.percentile(percent):.2f}" for percent in (50, 99))
    )
    Console().print(table, f"{answered.value} hostile pages were answered meanwhile")


def buy_pages(url: str, pages: int, stop: Event, answered: Any) -> None:
    """Buy heavy pages until told to stop."""
    os.nice(15)  # buyers are elsewhere and do not use the server's processors
    asyncio.run(_buy_pages(url, pages, stop, answered))


async def _buy_pages(url: str, pages: int, stop: Event, answered: Any) -> None:
    numbers = cycle(range(10_000))

    async def buy(client: httpx.AsyncClient) -> None:
        while not stop.is_set():
            body = b'{"url":"http://127.0.0.1:%d/%d"}' % (pages, next(numbers))
            offer = await asyncio.to_thread(offer_of, url + SCRAPE, body)
            headers = {
                "PAYMENT-SIGNATURE": signed_payments(offer, 1)[0].decode(),
                "Content-Type": "application/json",
            }
            reply = await client.post(url + SCRAPE, content=body, headers=headers)
            with answered.get_lock():
                answered.value += reply.status_code in (200, 502, 504)

    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        await asyncio.gather(*(buy(client) for _ in range(HOSTILE_BUYERS)))


if __name__ == "__main__":
    main()
