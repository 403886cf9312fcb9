"""Prometheus metrics: the numbers match the requests made, on a separate port."""

# prometheus_client is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from buyer import Buyer, encode_header, pay, sign_payment
from centgate_process import run_centgate
from databases import Redis
from facilitators import StubFacilitator, build_settings, open_stub_facilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams, fake_upstreams
from metrics_docs import render_markdown
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from seeded_journals import record_payment
from served_api import ApiProcess, disable_reconciler, run_api_process

from centgate.circuit_breaker import CircuitBreaker
from centgate.client_limits import WRONG_REQUESTS_BURST
from centgate.metrics import definitions
from centgate.metrics.unfinished_payments import UnfinishedPaymentsCollector
from centgate.payments.database.store_factory import open_store
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

ROOT = Path(__file__).parents[2]
SEARCH = "/services/neuralweb/search"
SLUG = "neuralweb-search"
PHISHING = "phishing-check"
OPTIONAL = {definitions.CACHE_UP.name, definitions.CACHE_FAILURES.name}
"""Metrics that exist only with a shared cache."""

LIMITS = ("address", "payment", "payer")
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass(frozen=True)
class MeteredServer:
    """A server process with its published metrics."""

    process: ApiProcess
    client: httpx.Client
    metrics: str
    facilitator: StubFacilitator
    folder: Path

    def text(self) -> str:
        return httpx.get(self.metrics, timeout=30).text

    def read(self) -> Samples:
        """Return every sample by its name and labels."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """Return one sample, or None."""
        return self.read().get((name, frozenset(labels.items())))


@contextmanager
def run_metered_server(folder: Path, **more: str) -> Generator[MeteredServer]:
    """Run a server with metrics on a free port; `more` are settings by environment name without prefix."""
    log = folder / "log"
    with open_stub_facilitator() as stub:
        settings = build_settings(folder, stub.url)
        with (
            run_api_process(settings, log=log, METRICS_PORT="0", **more) as process,
            httpx.Client(base_url=process.url, timeout=30) as client,
        ):
            lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
            port = next(line["port"] for line in lines if line["event"] == "metrics are served")
            yield MeteredServer(process, client, f"http://127.0.0.1:{port}/metrics", stub, folder)


@pytest.fixture(scope="module")
def upstreams() -> Generator[FakeUpstreams]:
    """Fake upstreams with a search provider."""
    with fake_upstreams() as standing:
        standing.set_response("searxng", "/search", FOUND)
        yield standing


@pytest.fixture(scope="module")
def server(upstreams: FakeUpstreams, tmp_path_factory: pytest.TempPathFactory) -> Generator[MeteredServer]:
    """A server without any payment yet."""
    folder = tmp_path_factory.mktemp("metered")
    with run_metered_server(folder, SEARXNG_URL=upstreams.url_of("searxng")) as one:
        assert wait_until(lambda: one.value("centgate_journal_up"), lambda up: up == 1)
        disable_reconciler(folder)
        yield one


FOUND: dict[str, Any] = {
    "query": "q",
    "results": [{"url": "https://example.com/", "title": "A page", "content": "It has words."}],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": [],
    "unresponsive_engines": [],
}


@pytest.fixture(scope="module")
def samples_after_use(server: MeteredServer, upstreams: FakeUpstreams) -> Samples:
    """Samples of the server after the requests that `DONE` counts."""
    shop, buyer = server.client, Buyer()
    payment = sign_payment(shop, buyer)
    for each in (payment, payment, sign_payment(shop, buyer)):
        assert pay(shop, each).status_code == 200
    server.facilitator.next[:] = [refuse_with("insufficient_funds"), reply_with(502, "")]
    assert pay(shop, sign_payment(shop, buyer)).status_code == 402
    assert pay(shop, sign_payment(shop, buyer)).status_code == 502
    search = partial(sign_payment, shop, buyer, SEARCH)
    body = {"query": "rollups"}
    for _ in range(2):
        assert pay(shop, search(body), SEARCH, body).status_code == 200
    upstreams.faults["searxng"] = "500"
    for other in ({"query": "bridges"}, {"query": "oracles"}):
        owed = search(other)
        assert pay(shop, owed, SEARCH, other).status_code == 502
    upstreams.faults.clear()
    assert pay(shop, owed, SEARCH, other).status_code == 200
    for path in ("/services", "/nope", "/nope/2", "/services/nope"):
        shop.get(path)
    assert wait_until(lambda: server.value("centgate_requests_in_flight"), lambda value: value == 0)
    return server.read()


DONE: dict[str, tuple[str, dict[str, str], float]] = {
    "taken up": ("centgate_payments_total", {"service": PHISHING, "state": "settling"}, 4),
    "settled": ("centgate_payments_total", {"service": PHISHING, "state": "settled"}, 2),
    "delivered": ("centgate_payments_total", {"service": PHISHING, "state": "delivered"}, 2),
    "refused": ("centgate_payments_total", {"service": PHISHING, "state": "refused"}, 1),
    "earned": ("centgate_settled_test_dollars_total", {"service": SLUG, "network": "eip155:84532"}, 0.04),
    "replayed": ("centgate_replayed_total", {"service": PHISHING}, 1),
    "redeemed": ("centgate_redeemed_total", {"service": SLUG}, 1),
    "not redeemed": ("centgate_redeemed_total", {"service": PHISHING}, 0),
    "settlements": (
        "centgate_settle_duration_seconds_count",
        {"outcome": "settled", "facilitator": "first"},
        6,
    ),
    "refusals": ("centgate_settle_duration_seconds_count", {"outcome": "refused", "facilitator": "first"}, 1),
    "unknown outcomes": (
        "centgate_settle_duration_seconds_count",
        {"outcome": "unresolved", "facilitator": "first"},
        1,
    ),
    "still unresolved": ("centgate_payments_open", {"state": "settling"}, 1),
    "still redeemable": ("centgate_payments_open", {"state": "redeemable"}, 1),
    "journal": ("centgate_journal_up", {}, 1),
    "hits": ("centgate_cache_lookups_total", {"service": SLUG, "cache": "local", "result": "hit"}, 1),
    "misses": ("centgate_cache_lookups_total", {"service": SLUG, "cache": "local", "result": "miss"}, 4),
    "answers": ("centgate_provider_calls_total", {"provider": "searxng", "outcome": "ok"}, 2),
    "failures": ("centgate_provider_calls_total", {"provider": "searxng", "outcome": "error"}, 2),
    "questions": ("centgate_provider_call_duration_seconds_count", {"provider": "searxng"}, 4),
    "paid": ("centgate_request_duration_seconds_count", {"service": PHISHING, "status": "2xx"}, 3),
    "asked to pay": ("centgate_request_duration_seconds_count", {"service": PHISHING, "status": "4xx"}, 5),
    "failed": ("centgate_request_duration_seconds_count", {"service": SLUG, "status": "5xx"}, 2),
    "free": ("centgate_request_duration_seconds_count", {"service": "free", "status": "2xx"}, 1),
    "unknown": ("centgate_request_duration_seconds_count", {"service": "unknown", "status": "4xx"}, 3),
    "in flight": ("centgate_requests_in_flight", {}, 0),
    "none limited": ("centgate_rate_limited_total", {"by": "address"}, 0),
}


@pytest.mark.extended
@pytest.mark.parametrize(("name", "labels", "value"), DONE.values(), ids=DONE.keys())
def test_samples_match_requests(
    samples_after_use: Samples, name: str, labels: dict[str, str], value: float
) -> None:
    assert samples_after_use[name, frozenset(labels.items())] == pytest.approx(value)


@pytest.mark.extended
def test_open_payment_ages(samples_after_use: Samples, server: MeteredServer) -> None:
    name = "centgate_payments_oldest_unresolved_seconds"

    later = wait_until(
        lambda: server.value(name), lambda age: age is not None and age > samples_after_use[name, frozenset()]
    )

    assert later


def test_journal_commits_are_timed(samples_after_use: Samples) -> None:
    commits = samples_after_use["centgate_journal_commit_duration_seconds_count", frozenset()]
    entries = samples_after_use["centgate_journal_commit_entries_sum", frozenset()]

    assert entries >= commits >= 8 * 3


def test_published_metrics_are_declared(samples_after_use: Samples, server: MeteredServer) -> None:
    families = text_string_to_metric_families(server.text())
    read = {family.name: family.type for family in families}

    wanted = {
        each.name.removesuffix("_total"): each.kind
        for each in definitions.ALL_METRICS
        if each.name not in OPTIONAL
    }
    assert read == wanted


def test_labels_are_as_declared(samples_after_use: Samples) -> None:
    kinds = {each.name: set(each.labels) for each in definitions.ALL_METRICS}
    suffix = re.compile(r"_(bucket|sum|count)$")

    for name, labels in samples_after_use:
        declared_labels = kinds.get(name) or kinds[suffix.sub("", name)]
        assert {label for label, _ in labels} - {"le"} == declared_labels, name


def test_samples_name_no_buyer_path_or_request(samples_after_use: Samples, server: MeteredServer) -> None:
    text = server.text().lower()

    assert Buyer().address.lower() not in text
    assert "0x" not in text
    assert "/" not in re.sub(r"(?m)^#.*$", "", text)
    assert "req_" not in text


@pytest.mark.extended
def test_limited_requests_are_counted_by_limit(tmp_path: Path) -> None:
    buyer = Buyer()
    limits = {"FREE_PER_MINUTE": "1", "FREE_BURST": "100", "REFUSED_PER_MINUTE": "1"}
    with run_metered_server(tmp_path, **limits) as one:
        payment = sign_payment(one.client, buyer)
        pay(one.client, payment)
        for number in range(WRONG_REQUESTS_BURST + 20):
            pay(one.client, payment, body={"url": f"https://guess-{number}.example/"})
        one.facilitator.usually = refuse_with("insufficient_funds")
        for _ in range(2):
            pay(one.client, sign_payment(one.client, buyer))
        while one.client.get("/services").status_code == 200:
            pass
        read = one.read()

    counted = {by: read["centgate_rate_limited_total", frozenset({("by", by)})] for by in LIMITS}
    assert (counted["address"], counted["payer"]) == (1, 1)
    assert 0 < counted["payment"] <= 20, "one of them is allowed every six seconds"


def test_running_requests_are_counted(server: MeteredServer) -> None:
    arrived, release = threading.Event(), threading.Event()
    server.facilitator.next[:] = [server.facilitator.reply_when_released(arrived, release)]
    payment = sign_payment(server.client, Buyer())

    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(pay, server.client, payment)
        assert arrived.wait(10)
        during = server.value("centgate_requests_in_flight")
        release.set()

    assert (during, response.result().status_code) == (1, 200)


def test_openmetrics_and_gzip_are_negotiated(server: MeteredServer) -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"

    response = httpx.get(server.metrics, headers={"Accept": accept, "Accept-Encoding": "gzip"})

    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert response.headers["content-encoding"] == "gzip"
    assert list(openmetrics.text_string_to_metric_families(response.text))


def test_metrics_have_own_port(server: MeteredServer) -> None:
    base = server.metrics.removesuffix("/metrics")

    assert server.client.get("/metrics").status_code == 404
    assert [httpx.get(base + path).status_code for path in ("/", "/services", "/metrics/")] == [404, 404, 404]
    assert httpx.post(server.metrics).status_code == 405


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Generator[MeteredServer]:
    """A server of two processes."""
    with run_metered_server(tmp_path_factory.mktemp("pair"), WORKERS="2") as both:
        yield both


@pytest.mark.extended
def test_counts_of_two_processes_are_added(pair: MeteredServer) -> None:
    count = 30

    with ThreadPoolExecutor(6) as pool:
        payments = [sign_payment(pair.client, Buyer()) for _ in range(count)]
        statuses = set(pool.map(partial(_pay_on_new_connection, pair.process.url), payments))

    samples = pair.read()
    state = {"service": PHISHING, "state": "delivered"}
    busy_workers = [
        value for (name, _), value in samples.items() if name == "process_cpu_seconds_total" and value > 0
    ]
    assert statuses == {200}
    assert samples["centgate_payments_total", frozenset(state.items())] == count
    assert len(busy_workers) == 2


@pytest.mark.extended
def test_gauges_of_replaced_processes_are_kept(tmp_path: Path) -> None:
    with run_metered_server(tmp_path, WORKERS="2") as both:
        old = set(_list_workers(both.process))
        both.process.popen.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while old & set(_list_workers(both.process)) and time.monotonic() < deadline:
            both.read()
            time.sleep(0.05)

        assert both.value("centgate_requests_in_flight") is not None


@pytest.mark.extended
def test_killed_process_leaves_counts_without_gauges(pair: MeteredServer) -> None:
    arrived, release = threading.Event(), threading.Event()
    payment = sign_payment(pair.client, Buyer())
    settled: dict[str, str] = {"service": PHISHING, "state": "settled"}
    before = pair.value("centgate_payments_total", **settled)
    assert before is not None
    assert _pay_on_new_connection(pair.process.url, sign_payment(pair.client, Buyer())) == 200
    pair.facilitator.next[:] = [pair.facilitator.reply_when_released(arrived, release)]

    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(_pay_on_new_connection, pair.process.url, payment)
        assert arrived.wait(10)
        during = pair.value("centgate_requests_in_flight")
        for pid in _list_workers(pair.process):
            os.kill(pid, signal.SIGKILL)
        release.set()
        assert isinstance(lost.exception(30), httpx.HTTPError)

    assert during == 1
    assert wait_until(lambda: pair.value("centgate_requests_in_flight"), lambda value: not value)
    after = pair.value("centgate_payments_total", **settled)
    assert after is not None
    assert after > before


@pytest.mark.extended
async def test_open_payments_are_counted_by_database(
    database_url: str, settings: Settings, buyer: Buyer
) -> None:
    deployment = settings.model_copy(update={"database_url": database_url})
    now = int(time.time())
    for transaction, at in ((None, now - 100), (None, now - 50), ("0x1", now - 10), ("0x2", now - 9000)):
        payment = encode_header(buyer.payload(build_terms(phishing_check, deployment).header, now=at))
        await record_payment(deployment, payment, at, transaction=transaction)
    store = open_store(database_url)
    journal = UnfinishedPaymentsCollector(store, keep_seconds=3600)

    await journal.refresh()
    await store.close()

    values = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in journal.collect()
        for sample in metric.samples
    }
    assert values["centgate_payments_open", "settling"] == 2
    assert values["centgate_payments_open", "redeemable"] == 1
    assert values["centgate_payments_oldest_unresolved_seconds",] == pytest.approx(100, abs=30)
    assert values["centgate_payments_oldest_redeemable_seconds",] == pytest.approx(10, abs=30)


def test_missing_database_removes_gauges_and_is_reported(
    server: MeteredServer, samples_after_use: Samples
) -> None:
    """The last test of this server: it breaks the journal."""
    assert server.value("centgate_payments_open", state="settling") is not None
    for path in server.folder.glob("journal.db*"):
        with path.open("r+b") as file:  # the server maps one of them, and would end if that was cut
            file.write(b"no database, but a long enough text in its place " * 500)

    samples = server.read()

    assert samples["centgate_journal_up", frozenset()] == 0
    assert not [name for name, _ in samples if name.startswith("centgate_payments_o")]
    assert server.client.get("/livez").status_code == 200


@pytest.mark.extended
def test_shared_cache_and_its_failure_are_counted(
    redis: Redis, upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    body = {"query": "sequencers"}
    with run_metered_server(tmp_path, SEARXNG_URL=upstreams.url_of("searxng"), CACHE_URL=redis.url) as server:
        assert wait_until(lambda: server.value("centgate_shared_cache_up"), lambda up: up == 1)
        search = partial(sign_payment, server.client, Buyer(), SEARCH)
        assert pay(server.client, search(body), SEARCH, body).status_code == 200
        looked = server.value("centgate_cache_lookups_total", service=SLUG, cache="shared", result="miss")

        redis.kill()
        for query in ("rollups", "bridges"):  # one process is the first to notice
            pay(server.client, search({"query": query}), SEARCH, {"query": query})

        assert looked == 1
        assert wait_until(lambda: server.value("centgate_shared_cache_up"), lambda up: up == 0)
        assert wait_until(
            lambda: server.value("centgate_shared_cache_failures_total"), lambda count: count != 0
        )


def test_breaker_counts_each_opening_and_closing() -> None:
    told: list[int] = []
    breaker = CircuitBreaker(told.append)

    for failure in [True] * (CircuitBreaker.FAILURE_LIMIT + 2) + [False] * 2:
        breaker.record_outcome(failure=failure)

    assert told == [1, -1]


@pytest.mark.extended
def test_occupied_port_is_reported_at_start(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]

        done = _run_serve_command(tmp_path, CENTGATE_METRICS_PORT=str(port))

    assert done.returncode == 1
    assert f"centgate: cannot listen on 127.0.0.1:{port} for /metrics: Address already in use" in done.stderr
    assert "CENTGATE_METRICS_PORT" in done.stderr


@pytest.mark.extended
def test_port_of_api_is_refused(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]

    done = _run_serve_command(tmp_path, CENTGATE_PORT=str(port), CENTGATE_METRICS_PORT=str(port))

    assert done.returncode == 1
    assert f"CENTGATE_METRICS_PORT is the port of the API, {port}" in done.stderr


@pytest.mark.extended
def test_metrics_libraries_load_only_when_enabled() -> None:
    program = """
import sys
from centgate.api.app import create_app
from centgate.metrics.setup import open_meter
from centgate.settings import Settings
with open_meter(Settings()) as meter:
    create_app(Settings(), meter)
print([name for name in sys.modules if name.startswith("prometheus_client")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "[]\n"


def test_page_matches_declaration() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == render_markdown()


@pytest.mark.extended
@pytest.mark.parametrize("file", ["alerts.yml", "grafana-dashboard.json"])
def test_rules_and_dashboard_use_declared_metrics(file: str) -> None:
    known = {each.name for each in definitions.ALL_METRICS}
    known |= {
        each.name + end
        for each in definitions.ALL_METRICS
        if each.buckets
        for end in ("_bucket", "_sum", "_count")
    }

    metrics = set(re.findall(r"\b(?:centgate|process)_[a-z_]+", " ".join(_expressions(file))))

    assert metrics
    assert metrics - known == set()


def _expressions(file: str) -> list[str]:
    text = (ROOT / "deploy" / file).read_text(encoding="utf-8")
    if file.endswith(".yml"):
        return [rule["expr"] for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    panels: list[dict[str, Any]] = json.loads(text)["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def wait_until(ask: Callable[[], float | None], good: Callable[[float | None], bool]) -> bool:
    """Call a function until its result is accepted; return False after a timeout."""
    deadline = time.monotonic() + 20
    while not good(ask()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _pay_on_new_connection(url: str, payment: str) -> int:
    """Return the status of a paid request on a new connection, which any process may accept."""
    with httpx.Client(base_url=url, timeout=30) as client:
        return pay(client, payment).status_code


def _list_workers(process: ApiProcess) -> list[int]:
    """Return the process IDs of a server's workers."""
    pid = process.popen.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines: dict[int, bytes] = {}
    for child in children:
        with suppress(FileNotFoundError):  # it has ended since
            lines[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes()
    return [child for child, line in lines.items() if b"resource_tracker" not in line]


def _run_serve_command(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `centgate serve`, which is expected to end by itself."""
    environment = {**os.environ, "CENTGATE_PORT": "0", "CENTGATE_DATABASE_URL": "sqlite:///j.db", **more}
    return run_centgate(["serve"], cwd=folder, env=environment)
