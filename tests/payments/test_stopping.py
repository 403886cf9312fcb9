"""Shutdown: a server ends within twenty seconds whatever blocks it, and no payment is lost."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from buyer import PHISHING, SHARED, Buyer, encode_header, fetch_terms, pay
from facilitators import StubFacilitator, build_settings
from fake_upstreams import send_paid
from served_api import ApiProcess, run_api_process
from small_site import serve_small_site

from centgate.settings import Settings

pytestmark = pytest.mark.extended

ENDS_WITHIN = 20.0
AT_ONCE = 20


def connect(url: str) -> socket.socket:
    """Open a bare connection to a server."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)


def open_idle_connection(process: ApiProcess) -> socket.socket:
    """Open a connection, use it once, and keep it open."""
    connection = connect(process.url)
    connection.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    return connection


def send_half_request(process: ApiProcess) -> socket.socket:
    """Send an incomplete request."""
    connection = connect(process.url)
    connection.sendall(f"POST {PHISHING} HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n".encode())
    return connection


def request_without_reading(process: ApiProcess) -> socket.socket:
    """Request more than fits in the network's buffers, and read none of it."""
    connection = connect(process.url)
    with suppress(TimeoutError):
        connection.settimeout(2)
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 200)
    return connection


HANGERS = {
    "an idle connection": open_idle_connection,
    "half a request": send_half_request,
    "a reader who does not": request_without_reading,
}


@pytest.fixture
def settings(database_url: str, tmp_path: Path, facilitator: StubFacilitator) -> Settings:
    """A deployment whose facilitator can be made to wait."""
    return build_settings(tmp_path, facilitator.url, database_url=database_url)


@contextmanager
def terminate(process: ApiProcess) -> Generator[None]:
    """Terminate the process, and run the body of the context; check that the process ends in time."""
    stopped_at = time.monotonic()
    process.popen.terminate()
    yield
    assert process.popen.wait(timeout=ENDS_WITHIN + stopped_at - time.monotonic()) in (0, -signal.SIGTERM)


def send_during_shutdown(client: httpx.Client, payment: str) -> tuple[int, bytes]:
    """Return status and body of a request during which the server may stop; 0 if the connection breaks."""
    try:
        response = pay(client, payment)
    except httpx.TransportError:
        return 0, b""
    return response.status_code, response.content


def test_server_ends_despite_open_connections(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """An idle connection, half a request, a reader who does not read, a facilitator that does not answer."""
    release = threading.Event()
    facilitator.usually = facilitator.reply_when_released(threading.Event(), release)
    settings = build_settings(tmp_path, facilitator.url)

    with ExitStack() as hanging, run_api_process(settings, WORKERS="2") as process:
        client = hanging.enter_context(open_client(process))
        payments = _sign_payments(client, buyer, AT_ONCE)
        for hang in HANGERS.values():
            hanging.enter_context(hang(process))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            paid = [pool.submit(send_during_shutdown, client, payment) for payment in payments]
            _wait_until(lambda: facilitator.settle_calls == AT_ONCE)
            with terminate(process):
                _wait_until(lambda: is_refused(process.url))
            answers = [each.result() for each in paid]
        release.set()

    facilitator.usually = facilitator.settle
    assert all(status == 0 or _retry_advice(content) == "same_payment" for status, content in answers)
    with run_api_process(settings) as process, open_client(process) as client:
        assert {pay(client, payment).status_code for payment in payments} == {200}
    assert set(facilitator.moved.values()) == {1}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_stopped_server_with_running_payment_is_unready(
    tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer, workers: str
) -> None:
    release = threading.Event()
    facilitator.usually = facilitator.reply_when_released(threading.Event(), release)
    with (
        run_api_process(build_settings(tmp_path, facilitator.url), WORKERS=workers) as process,
        open_client(process) as client,
        ThreadPoolExecutor() as pool,
    ):
        assert client.get("/readyz").status_code == 200
        (payment,) = _sign_payments(client, buyer, 1)
        paid = pool.submit(pay, client, payment)
        _wait_until(lambda: facilitator.settle_calls == 1)
        with terminate(process):
            _wait_until(lambda: client.get("/readyz").status_code == 503)
            release.set()
        assert paid.result().status_code == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_stopped_server_leaves_no_temporary_files(
    tmp_path: Path, facilitator: StubFacilitator, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    folder = tmp_path / "t"  # short, since it becomes part of a socket's address
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    settings = build_settings(tmp_path, facilitator.url)

    with (
        serve_small_site() as site,
        run_api_process(settings, WORKERS=workers, FETCH_ALLOWED=site.address) as process,
        open_client(process) as client,
    ):
        site.respond("/", "<p>A page that a sandbox parses.</p>")
        assert send_paid(client, "/services/crawler/scrape", {"url": site.url}).status_code == 200
        assert [*folder.iterdir()]

    assert not [*folder.iterdir()]


def test_second_signal_loses_no_payment(tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer) -> None:
    release = threading.Event()
    facilitator.usually = facilitator.reply_when_released(threading.Event(), release)
    with (
        run_api_process(build_settings(tmp_path, facilitator.url)) as process,
        open_client(process) as client,
        ThreadPoolExecutor() as pool,
    ):
        (payment,) = _sign_payments(client, buyer, 1)
        paid = pool.submit(pay, client, payment)
        _wait_until(lambda: facilitator.settle_calls == 1)
        with terminate(process):
            _wait_until(lambda: client.get("/readyz").status_code == 503)
            process.popen.terminate()
            _wait_until(lambda: is_refused(process.url))
            release.set()
        assert paid.result().status_code == 200


def test_hundred_running_requests_finish_first(settings: Settings, facilitator: StubFacilitator) -> None:
    release = threading.Event()
    facilitator.usually = facilitator.reply_when_released(threading.Event(), release)

    with (
        run_api_process(settings) as process,
        open_client(process) as client,
        ThreadPoolExecutor(100) as pool,
    ):
        payments = _sign_payments(client, Buyer(), 100)
        paid = [pool.submit(send_during_shutdown, client, payment) for payment in payments]
        _wait_until(lambda: facilitator.settle_calls == len(payments))
        with terminate(process):
            _wait_until(lambda: is_refused(process.url))
            release.set()
        statuses = Counter(each.result()[0] for each in paid)

    assert statuses == {200: len(payments)}
    assert facilitator.moved.total() == len(payments)


def open_client(process: ApiProcess) -> httpx.Client:
    """Open a client with a connection for each request."""
    return httpx.Client(base_url=process.url, timeout=60, limits=SHARED)


def is_refused(url: str) -> bool:
    """Return True if a server accepts no new connections."""
    try:
        with suppress(ConnectionResetError):  # the server closed its port at this moment
            connect(url).close()
    except ConnectionRefusedError:
        return True
    return False


def _sign_payments(client: httpx.Client, buyer: Buyer, count: int) -> list[str]:
    terms = fetch_terms(client)
    return [encode_header(buyer.payload(terms, now=int(time.time()))) for _ in range(count)]


def _wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENDS_WITHIN
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _retry_advice(content: bytes) -> str:
    return json.loads(content)["error"]["details"]["payment"]["retry"]
