"""Limits of connections over plain sockets: too large, too slow and too many requests are ended."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn
from buyer import PHISHING, QUESTION, Buyer, sign_payment
from facilitators import build_settings, open_stub_facilitator
from httpx import Client
from msgspec.structs import replace
from payments.served_api import ServedApi, run_api_process

from centgate.client_address import address_key, parse_address
from centgate.connection_limits import (
    MAX_HEADERS,
    MAX_PIPELINED,
    ConnectionLimits,
)
from centgate.server import create_config, local_url, open_listener, run_in_thread
from centgate.settings import Settings

SHORT = ConnectionLimits(header_timeout=0.3, body_timeout=0.3, write_timeout=0.3, sweep_interval=0.05)
GET = b"GET /livez HTTP/1.1\r\nHost: a\r\n"
POST = f"POST {PHISHING} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n".encode()
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Response:
    """Received response."""

    status: int
    headers: bytes
    body: bytes

    @property
    def is_envelope(self) -> bool:
        """Return True for an error envelope with its request id in a header, which closes the connection."""
        content = json.loads(self.body)
        request_id = f"x-request-id: {content['requestId']}".encode()
        has_headers = request_id in self.headers and b"connection: close" in self.headers
        return has_headers and content["error"]["code"] == "validation_error"


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that takes payments, with short timeouts."""
    with ExitStack() as stack:
        stub = stack.enter_context(open_stub_facilitator())
        settings = build_settings(tmp_path_factory.mktemp("served_api"), stub.url)
        url = stack.enter_context(run_in_thread(settings, SHORT))
        yield ServedApi(stack.enter_context(Client(base_url=url, timeout=30)), stub)


def open_connection(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)


def send_and_read(served_api: ServedApi, request: bytes) -> list[Response]:
    """Send bytes, and read until the server closes the connection."""
    with open_connection(str(served_api.client.base_url)) as connection:
        send_bytes(connection, request)
        return read_responses(connection)


def send_bytes(connection: socket.socket, request: bytes) -> int:
    """Send as much as the server accepts, and return the number of bytes."""
    sent = 0
    try:
        while sent < len(request):
            sent += connection.send(request[sent : sent + 65536])
    except OSError:
        pass
    return sent


def read_responses(connection: socket.socket) -> list[Response]:
    """Read until the server closes the connection."""
    received = bytearray()
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return split_responses(bytes(received))


def split_responses(received: bytes) -> list[Response]:
    responses: list[Response] = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        size = int(length[1]) if length else 0
        responses.append(Response(int(head.split()[1]), head, rest[:size]))
        received = rest[size:]
    return responses


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET + b"A: " + b"a" * 90_000,
        GET + b"A: " + b"a" * 70_000 + b"\r\n\r\n",
        GET + b"A: a\r\n" * (MAX_HEADERS + 1),
        GET + b"A: a\r\n" * MAX_HEADERS + b"\r\n",
        b"GET /" + b"a" * 90_000,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        CHUNKED + b"1\r\n{\r\n0\r\nA: " + b"a" * 90_000,
        CHUNKED + b"1\r\n{\r\n0\r\n" + b"A: a\r\n" * 150,
        CHUNKED + b"1;" + b"a" * 90_000,
    ],
    ids=[
        "half a header",
        "a header",
        "many headers, incomplete",
        "many headers",
        "half a path",
        "a path",
        "a trailer",
        "many trailers",
        "a chunk extension",
    ],
)
def test_headers_too_large_are_431(served_api: ServedApi, request_bytes: bytes) -> None:
    [response] = send_and_read(served_api, request_bytes)

    assert response.status == 431
    assert response.is_envelope


def test_continued_header_line_is_400(served_api: ServedApi) -> None:
    [response] = send_and_read(served_api, GET + b"A: a\r\n" + b" a\r\n" * 20_000)

    assert response.status == 400


def test_headers_of_nearly_64_kilobytes_are_accepted(served_api: ServedApi) -> None:
    value = b"a" * (64 * 1024 - len(GET) - 50)

    [response] = send_and_read(served_api, GET + b"Connection: close\r\nA: " + value + b"\r\n\r\n")

    assert response.status == 200


def test_endless_header_is_not_read(served_api: ServedApi) -> None:
    with open_connection(str(served_api.client.base_url)) as connection:
        sent = send_bytes(connection, GET + b"A: " + b"a" * 40_000_000)

    assert sent < 20_000_000  # as much as the kernel buffers


def test_trailer_is_not_header(served_api: ServedApi) -> None:
    payment = sign_payment(served_api.client, Buyer())
    body = json.dumps(QUESTION).encode()
    chunks = b"%x\r\n%b\r\n0\r\nPAYMENT-SIGNATURE: %b\r\n\r\n" % (len(body), body, payment.encode())

    [response] = send_and_read(
        served_api, POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    )

    assert response.status == 402


def test_invalid_http_is_400(served_api: ServedApi) -> None:
    [response] = send_and_read(served_api, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")

    assert response.status == 400
    assert response.is_envelope


def test_late_headers_are_408(served_api: ServedApi) -> None:
    [response] = send_and_read(served_api, GET + b"A: a")

    assert response.status == 408
    assert response.is_envelope


@pytest.mark.extended
def test_slowly_sent_headers_are_408(served_api: ServedApi) -> None:
    with open_connection(str(served_api.client.base_url)) as connection:
        for byte in (GET + b"A" * 40)[:60]:
            time.sleep(0.01)
            send_bytes(connection, bytes([byte]))
        [response] = read_responses(connection)

    assert response.status == 408


@pytest.mark.extended
def test_idle_connection_is_closed(served_api: ServedApi) -> None:
    assert send_and_read(served_api, b"") == []


def test_blank_lines_count_as_idle(served_api: ServedApi) -> None:
    assert send_and_read(served_api, b"\r\n" * 10) == []


@pytest.mark.extended
def test_late_body_is_408_and_free(served_api: ServedApi) -> None:
    payment = sign_payment(served_api.client, Buyer())
    calls = served_api.facilitator.settle_calls
    head = POST + f"PAYMENT-SIGNATURE: {payment}\r\nContent-Length: 99\r\n\r\n".encode()

    [response] = send_and_read(served_api, head + b'{"url":')

    assert response.status == 408
    assert response.is_envelope
    assert served_api.facilitator.settle_calls == calls


def test_unread_body_closes_connection(served_api: ServedApi) -> None:
    [response] = send_and_read(served_api, GET + b"Content-Length: 1000000\r\n\r\n" + b"a" * 1000)

    assert response.status == 200


@pytest.mark.extended
def test_second_request_has_longer_timeout_than_headers(served_api: ServedApi) -> None:
    with open_connection(str(served_api.client.base_url)) as connection:
        connection.sendall(GET + b"\r\n")
        time.sleep(SHORT.header_timeout + 3 * SHORT.sweep_interval)
        connection.sendall(GET + b"Connection: close\r\n\r\n")

        assert [response.status for response in read_responses(connection)] == [200, 200]


@pytest.mark.extended
def test_blank_lines_do_not_prolong_idle_connection(tmp_path: Path) -> None:
    settings = Settings(port=0, database_url=f"sqlite:///{tmp_path / 'journal.db'}")
    listener, settings = open_listener(settings)
    limited = create_config(settings, limits=SHORT)
    limited.timeout_keep_alive = 1
    with run_server(limited, listener), open_connection(local_url(settings)) as connection:
        connection.sendall(GET + b"\r\n")
        started = time.monotonic()
        while time.monotonic() < started + 1.2:
            send_bytes(connection, b"\r\n")
            time.sleep(0.05)

        assert send_bytes(connection, b"\r\n") == 0


def test_client_that_does_not_read_is_disconnected(served_api: ServedApi) -> None:
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        parts = urlsplit(str(served_api.client.base_url))
        connection.connect((parts.hostname, parts.port))
        connection.settimeout(10)
        request = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"

        deadline = time.monotonic() + 5
        while send_bytes(connection, request * 20) and time.monotonic() < deadline:
            time.sleep(0.02)

        assert time.monotonic() < deadline


def test_error_follows_response_to_earlier_request(served_api: ServedApi) -> None:
    arrived, release = threading.Event(), threading.Event()
    served_api.facilitator.next.append(served_api.facilitator.reply_when_released(arrived, release))
    with open_connection(str(served_api.client.base_url)) as connection:
        connection.sendall(build_paid_request(served_api))
        assert arrived.wait(10)
        send_bytes(connection, GET + b"A: " + b"a" * 200_000)
        release.set()

        first, second = read_responses(connection)

    assert (first.status, second.status) == (200, 431)
    assert json.loads(first.body)["data"]


@contextmanager
def open_with_waiting_payment(
    served_api: ServedApi, second: bytes = b""
) -> Generator[tuple[socket.socket, threading.Event]]:
    """Open a connection, send a payment that is settled once the event is set, and a second request."""
    arrived, release = threading.Event(), threading.Event()
    served_api.facilitator.next.append(served_api.facilitator.reply_when_released(arrived, release))
    with open_connection(str(served_api.client.base_url)) as connection:
        connection.sendall(build_paid_request(served_api) + second)
        assert arrived.wait(10)
        yield connection, release


@pytest.mark.extended
def test_clients_that_leave_are_logged_as_disconnected(tmp_path: Path) -> None:
    with open_stub_facilitator() as stub:
        settings, log = build_settings(tmp_path, stub.url), tmp_path / "log"
        with (
            run_api_process(settings, log=log) as process,
            Client(base_url=process.url, timeout=30) as client,
        ):
            for pipelined in (b"", GET + b"\r\n"):
                with open_with_waiting_payment(ServedApi(client, stub), pipelined) as (connection, release):
                    reset_on_close(connection)
                time.sleep(0.3)
                release.set()
            answered = send_and_read(ServedApi(client, stub), GET + b"Connection: close\r\n\r\n")

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    by_path = {PHISHING: [(200, "client_disconnected")] * 2, "/livez": [(200, None)]}
    handled = [line for line in lines if line.get("path") in by_path and line.get("status") != 402]
    assert [each.status for each in answered] == [200]
    assert {
        path: [(line["status"], line.get("code")) for line in handled if line["path"] == path]
        for path in by_path
    } == by_path
    assert [line for line in lines if line["level"] == "error"] == []


def reset_on_close(connection: socket.socket) -> None:
    """Let a connection end by a reset, as that of a client that was killed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.extended
def test_incomplete_second_request_is_408_after_first_response(served_api: ServedApi) -> None:
    with open_with_waiting_payment(served_api, GET) as (connection, release):
        time.sleep(SHORT.header_timeout + 3 * SHORT.sweep_interval)
        release.set()

        assert [response.status for response in read_responses(connection)] == [200, 408]


@pytest.mark.extended
def test_body_timeout_starts_after_previous_response(served_api: ServedApi) -> None:
    second = POST + b"Connection: close\r\nContent-Length: 4\r\n\r\n"
    with open_with_waiting_payment(served_api, second) as (connection, release):
        time.sleep(SHORT.body_timeout + 3 * SHORT.sweep_interval)
        release.set()
        connection.sendall(b"null")

        assert [response.status for response in read_responses(connection)] == [200, 400]


def test_header_timeout_starts_after_previous_response(served_api: ServedApi) -> None:
    """The server stops to read once a request waits, so that the rest of the next one cannot arrive."""
    with open_with_waiting_payment(served_api) as (connection, release):
        connection.sendall(GET + b"\r\n" + GET)
        time.sleep(SHORT.sweep_interval)
        connection.sendall(b"Connection: close\r\n\r\n")
        time.sleep(SHORT.header_timeout + 3 * SHORT.sweep_interval)
        release.set()

        assert [response.status for response in read_responses(connection)] == [200, 200, 200]


def test_late_headers_after_previous_response_are_408(served_api: ServedApi) -> None:
    with open_with_waiting_payment(served_api) as (connection, release):
        connection.sendall(GET + b"\r\n" + GET)
        time.sleep(SHORT.sweep_interval)
        release.set()

        assert [response.status for response in read_responses(connection)] == [200, 200, 408]


def test_pipelined_requests_are_answered_in_order(served_api: ServedApi) -> None:
    requests = GET + b"\r\n" + b"GET /nowhere HTTP/1.1\r\n\r\n" + GET + b"Connection: close\r\n\r\n"

    assert [response.status for response in send_and_read(served_api, requests)] == [200, 404, 200]


def test_too_many_pipelined_requests_close_connection(served_api: ServedApi) -> None:
    responses = send_and_read(served_api, (GET + b"\r\n") * 10_000)

    assert [response.status for response in responses] == [200] * (1 + MAX_PIPELINED) + [400]
    assert responses[-1].is_envelope


@pytest.fixture
def open_api(tmp_path: Path) -> Generator[Callable[[ConnectionLimits], str]]:
    """Function that serves the API with these limits."""
    settings = Settings(port=0, database_url=f"sqlite:///{tmp_path / 'journal.db'}")
    with ExitStack() as stack:
        yield lambda limits: stack.enter_context(run_in_thread(settings, limits))


@pytest.mark.extended
@pytest.mark.parametrize(
    "limits",
    [ConnectionLimits(connections=3), ConnectionLimits(connections_per_address=3)],
    ids=["in all", "per address"],
)
def test_connections_over_limit_are_503_until_one_closes(
    open_api: Callable[[ConnectionLimits], str], limits: ConnectionLimits
) -> None:
    url = open_api(replace(limits, sweep_interval=0.05))
    with ExitStack() as stack:
        kept = [stack.enter_context(open_connection(url)) for _ in range(3)]
        time.sleep(0.05)

        [refused] = read_responses(stack.enter_context(open_connection(url)))
        kept[0].close()
        time.sleep(0.5)
        [accepted] = send_request(stack.enter_context(open_connection(url)))

    assert (refused.status, accepted.status) == (503, 200)
    assert json.loads(refused.body)["error"]["code"] == "internal_error"


def test_trusted_proxies_are_exempt_from_address_limit(open_api: Callable[[ConnectionLimits], str]) -> None:
    url = open_api(ConnectionLimits(connections_per_address=1, trusted_proxies=("127.0.0.0/8",)))

    with ExitStack() as stack:
        responses = [send_request(stack.enter_context(open_connection(url))) for _ in range(3)]

    assert [response.status for [response] in responses] == [200] * 3


@pytest.mark.extended
@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_address_key_of_ipv6_is_its_network(host: str, key: str) -> None:
    address = parse_address(host)

    assert address is not None
    assert address_key(address) == key


@contextmanager
def run_server(limited: uvicorn.Config, listener: socket.socket) -> Generator[None]:
    """Run a server in a thread."""
    server = uvicorn.Server(limited)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    yield
    server.should_exit = True
    thread.join()
    listener.close()


def send_request(connection: socket.socket) -> list[Response]:
    """Send a request on a connection that stays open, and return the responses."""
    connection.sendall(GET + b"\r\n")
    return split_responses(connection.recv(65536))


def build_paid_request(served_api: ServedApi) -> bytes:
    body = json.dumps(QUESTION).encode()
    payment = sign_payment(served_api.client, Buyer())
    return POST + f"PAYMENT-SIGNATURE: {payment}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
