"""phishing-check while other buyers have hostile pages read: its latency beside that of a calm server.

    PYTHONPATH=tests .venv/bin/python bench/hostile_pages.py

One server on SQLite. Calls of phishing-check arrive at a constant rate; calm and disturbed slices alternate.
During a disturbed one, buyers keep a number of requests for pages open that take seconds to parse.
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

from contenders import BODY, NETWORK, PATH, PAY_TO, file_in
from load import Slice, Target, run_paced
from payment_signer import offer_of, signed_payments
from processes import Running, python, running

SCRAPE = "/services/crawler/scrape"
RATE = 50
CALLS = 400
SLICES = 5
BUYERS = 16
PAGES = (
    b"<p>" + b"".join(b"<b class=c%d>" % n for n in range(900)) + b"text</p>" + b"<p>x" * 2_000,
    b"<p>text " + b"[a](b" * 200_000,
    b"<table>" + b"<tr><td colspan=1000>text<td>b" * 50_000,
    b"<blockquote>" * 1500 + b"text",
)
"""Each takes seconds to parse, or as long as it may."""


def main() -> None:
    """Measure and print."""
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="centgate-bench-") as name,
        serve_pages() as site,
        running(python("facilitator_stub.py"), Path(name)) as facilitator,
        serve_api(Path(name), facilitator, site) as server,
        ProcessPoolExecutor(1, mp_context=spawn) as load,
        ProcessPoolExecutor(1, mp_context=spawn) as buyers,
    ):
        url = f"http://127.0.0.1:{server.port}"
        target = Target(server.pid, server.port, PATH, BODY, offer_of(url + PATH, BODY))
        slices: dict[str, list[Slice]] = {"calm": [], "beside hostile pages": []}
        answers = Counter[str]()
        load.submit(run_paced, target, 8, CALLS, RATE).result()
        for number in range(SLICES):
            slices["calm"].append(load.submit(run_paced, target, 8, CALLS, RATE).result())
            disturbing = buyers.submit(buy_pages, url, site, number, CALLS / RATE + 2)
            time.sleep(1.5)
            slices["beside hostile pages"].append(load.submit(run_paced, target, 8, CALLS, RATE).result())
            answers.update(disturbing.result())
            time.sleep(8)  # for what is still being parsed
    print_table(slices, answers)


def print_table(slices: dict[str, list[Slice]], answers: Counter[str]) -> None:
    """Print the medians over the slices, and what the requests for pages came to."""
    calm: list[float] = []
    for label, runs in slices.items():
        figures = [median(each.percentile(percent) for each in runs) for percent in (50, 99)]
        calm = calm or figures
        ratios = [figure / before for figure, before in zip(figures, calm, strict=True)]
        p50, p99 = (
            f"{figure:6.2f} ms (x {ratio:.2f})" for figure, ratio in zip(figures, ratios, strict=True)
        )
        write(f"{label:22} p50 {p50}  p99 {p99}")
    write(f"requests for pages: {dict(answers)}")


def write(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


@contextmanager
def serve_api(folder: Path, facilitator: Running, site: str) -> Generator[Running]:
    """Run `centgate serve`, which may fetch from the site of this program."""
    address = site.removeprefix("http://")
    environment = {
        "CENTGATE_PAY_TO": PAY_TO,
        "CENTGATE_NETWORK": NETWORK,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
        "CENTGATE_DATABASE_URL": file_in(folder / "journal"),
        "CENTGATE_FETCH_ALLOWED": address,
        "CENTGATE_FETCH_PORTS": f"80,443,{address.rpartition(':')[2]}",
        "CENTGATE_FETCH_ROBOTS": "false",
        "CENTGATE_PHISHING_LIST_URL": "off",
        "CENTGATE_PAGEREADER_RENDER": "false",
    }
    with running([sys.executable, "-m", "centgate", "serve", "--port", "0"], folder, environment) as server:
        yield server


@contextmanager
def serve_pages() -> Generator[str]:
    """Serve a hostile page at each path; yields the site's address."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = PAGES[next(numbers) % len(PAGES)]
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def buy_pages(url: str, site: str, number: int, seconds: float) -> Counter[str]:
    """Keep `BUYERS` requests for different pages open for a time; returns the number of each status."""
    offer = offer_of(url + SCRAPE, json.dumps({"url": f"{site}/"}).encode())
    statuses, until = Counter[str](), time.monotonic() + seconds
    pages = count()

    def buy() -> None:
        while time.monotonic() < until:
            body = json.dumps({"url": f"{site}/{number}/{next(pages)}"}).encode()
            [payment] = signed_payments(offer, 1)
            headers = {"Content-Type": "application/json", "PAYMENT-SIGNATURE": payment.decode()}
            request = urllib.request.Request(url + SCRAPE, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=90) as response:
                    statuses[str(response.status)] += 1
            except urllib.error.HTTPError as error:
                statuses[str(error.code)] += 1
                time.sleep(0.2)

    threads = [threading.Thread(target=buy) for _ in range(BUYERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


if __name__ == "__main__":
    main()
