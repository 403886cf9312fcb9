"""Latency of phishing-check while other buyers have hostile pages read, and without that load.

    PYTHONPATH=tests .venv/bin/python bench/hostile_pages.py

One server on SQLite gets calls of phishing-check at a constant rate. Slices without and with other load
alternate; the other load is a number of concurrent requests for pages that take seconds to parse.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from statistics import median

from benchmark_servers import BODY, NETWORK, PATH, PAY_TO, create_journal_url
from load_generator import Slice, Target, run_paced_slice
from payment_signer import fetch_challenge, sign_payments
from server_process import ServerProcess, build_script_command, run_server

SCRAPE = "/services/crawler/scrape"
RATE = 50
"""Calls of phishing-check per second."""
CALLS = 400
"""Calls of phishing-check per slice."""
SLICES = 5
BUYERS = 16
QUIET, LOADED = "no other load", "hostile pages"
PAGES = (
    b"<p>" + b"".join(b"<b class=c%d>" % n for n in range(900)) + b"text</p>" + b"<p>x" * 2_000,
    b"<p>text " + b"[a](b" * 200_000,
    b"<table>" + b"<tr><td colspan=1000>text<td>b" * 50_000,
    b"<blockquote>" * 1500 + b"text",
)
"""Hostile pages: each takes seconds to parse, or is stopped at the time limit."""


def main() -> None:
    """Measure both kinds of slices and print the medians."""
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        serve_pages() as site,
        run_server(build_script_command("facilitator_stub.py"), Path(name)) as facilitator,
        serve_api(Path(name), facilitator, site) as server,
        ProcessPoolExecutor(1, mp_context=spawn) as load_pool,
        ProcessPoolExecutor(1, mp_context=spawn) as buyer_pool,
    ):
        url = f"http://127.0.0.1:{server.port}"
        target = Target(server.pid, server.port, PATH, BODY, fetch_challenge(url + PATH, BODY))
        slices: dict[str, list[Slice]] = {QUIET: [], LOADED: []}
        statuses = Counter[str]()
        load_pool.submit(run_paced_slice, target, 8, CALLS, RATE).result()
        for number in range(SLICES):
            slices[QUIET].append(load_pool.submit(run_paced_slice, target, 8, CALLS, RATE).result())
            purchases = buyer_pool.submit(buy_pages, url, site, number, CALLS / RATE + 2)
            time.sleep(1.5)
            slices[LOADED].append(load_pool.submit(run_paced_slice, target, 8, CALLS, RATE).result())
            statuses.update(purchases.result())
            time.sleep(8)  # pages of this slice are still being parsed
    print_table(slices, statuses)


def print_table(slices: dict[str, list[Slice]], statuses: Counter[str]) -> None:
    """Print the medians over the slices, and the number of requests for pages by HTTP status."""
    baseline: list[float] = []
    for label, runs in slices.items():
        figures = [median(each.percentile(percent) for each in runs) for percent in (50, 99)]
        baseline = baseline or figures
        ratios = [figure / base for figure, base in zip(figures, baseline, strict=True)]
        p50, p99 = (
            f"{figure:6.2f} ms (x {ratio:.2f})" for figure, ratio in zip(figures, ratios, strict=True)
        )
        print_line(f"{label:22} p50 {p50}  p99 {p99}")
    print_line(f"requests for pages by status: {dict(statuses)}")


def print_line(line: str) -> None:
    sys.stdout.write(line + "\n")


@contextmanager
def serve_api(folder: Path, facilitator: ServerProcess, site: str) -> Generator[ServerProcess]:
    """Run `centgate serve` with permission to fetch pages from the site of this program."""
    address = site.removeprefix("http://")
    environment = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": create_journal_url(folder / "journal"),
        "CENTGATE_FETCH_ALLOWED": address,
        "CENTGATE_FETCH_PORTS": f"80,443,{address.rpartition(':')[2]}",
        "CENTGATE_FETCH_ROBOTS": "false",
        "CENTGATE_PHISHING_LIST_URL": "off",
        "CENTGATE_PAGEREADER_RENDER": "false",
    }
    command = [sys.executable, "-m", "centgate", "serve", "--port", "0"]
    with run_server(command, folder, environment) as server:
        yield server


@contextmanager
def serve_pages() -> Generator[str]:
    """Serve a hostile page at each path; yields the site's URL."""
    numbers = count()

    class PageHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = PAGES[next(numbers) % len(PAGES)]
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), PageHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def buy_pages(url: str, site: str, slice_number: int, duration: float) -> Counter[str]:
    """Keep `BUYERS` requests for different pages open, and return the number of responses by HTTP status.

    `duration` is in seconds.
    """
    challenge = fetch_challenge(url + SCRAPE, json.dumps({"url": f"{site}/"}).encode())
    statuses, deadline = Counter[str](), time.monotonic() + duration
    pages = count()

    def buy_until_deadline() -> None:
        while time.monotonic() < deadline:
            body = json.dumps({"url": f"{site}/{slice_number}/{next(pages)}"}).encode()
            [payment] = sign_payments(challenge, 1)
            headers = {"Content-Type": "application/json", "PAYMENT-SIGNATURE": payment.decode()}
            request = urllib.request.Request(url + SCRAPE, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=90) as response:
                    statuses[str(response.status)] += 1
            except urllib.error.HTTPError as error:
                statuses[str(error.code)] += 1
                time.sleep(0.2)

    threads = [threading.Thread(target=buy_until_deadline) for _ in range(BUYERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


if __name__ == "__main__":
    main()
