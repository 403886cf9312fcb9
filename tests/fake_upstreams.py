"""Fake upstreams on loopback: HTTP servers with responses set by tests, or with realistic failures."""

from __future__ import annotations

import importlib.util
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
import pytest
from _pytest.mark import ParameterSet
from buyer import Buyer, pay, sign_payment
from facilitators import build_settings

from centgate.provider import Provider
from centgate.resources import open_resources
from centgate.settings import ProviderSettings, Settings

BODIES = Path(__file__).parent / "bodies"
"""Folder of small bodies in the format of each upstream: `<upstream>/<case>.json`."""
SHARED = Path(__file__).parents[2] / "shared"
"""Folder beside the repository with bodies recorded from real upstreams; optional."""
RECORDINGS = SHARED / "recordings"

Fault = Literal[
    "timeout",
    "500",
    "503",
    "429",
    "403 page",
    "200 page",
    "cut",
    "reset",
    "empty",
    "wrong types",
    "50 MB",
    "text",
]
FAULTS: Mapping[Fault, tuple[int, str]] = {
    "timeout": (504, "provider_timeout"),
    "500": (502, "provider_error"),
    "503": (502, "provider_error"),
    "429": (429, "provider_rate_limited"),
    "403 page": (502, "provider_error"),
    "200 page": (502, "provider_error"),
    "cut": (502, "provider_error"),
    "reset": (502, "provider_error"),
    "empty": (502, "provider_error"),
    "wrong types": (502, "provider_error"),
    "50 MB": (502, "provider_error"),
    "text": (502, "provider_error"),
}
"""Failures of an upstream, with the status and error code of a service that depends on it."""
SHORT_TIMEOUT = 0.5
"""Seconds that a provider waits for an upstream that never responds."""
PAGE = "<!doctype html><html><title>Just a moment...</title></html>"
P = TypeVar("P", bound=Provider)


@dataclass(frozen=True)
class RecordedRequest:
    """A request received by a fake upstream."""

    name: str
    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    at: float


ResponseFunction = Callable[[RecordedRequest], tuple[int, Any]]
"""Status and body of a response: JSON, or text and bytes unchanged."""


@dataclass
class FakeUpstreams:
    """Fake upstreams at `<url>/<name>`; each request is recorded in `requests`."""

    url: str = ""
    requests: list[RecordedRequest] = field(default_factory=list[RecordedRequest])
    faults: dict[str, Fault] = field(default_factory=dict[str, Fault])
    """Current failures by upstream."""
    delay: float = 0
    """Delay of each response in seconds."""
    _answers: list[tuple[str, str, str, ResponseFunction]] = field(
        default_factory=list[tuple[str, str, str, ResponseFunction]]
    )

    def url_of(self, name: str) -> str:
        """Return the base URL of an upstream."""
        return f"{self.url}/{name}"

    def set_response(
        self, name: str, path: str, body: Any, *, status: int = 200, method: str = "GET"
    ) -> None:
        """Set the response to a path of an upstream; it replaces earlier ones."""
        self.set_response_function(name, path, lambda _asked: (status, body), method=method)

    def set_response_function(
        self, name: str, path: str, answer: ResponseFunction, *, method: str = "GET"
    ) -> None:
        """Set a function that answers a path of an upstream.

        A path that ends with `*` matches all paths with this beginning.
        """
        self._answers.insert(0, (name, method, path.lower(), answer))

    def requests_of(self, name: str) -> list[RecordedRequest]:
        """Return the requests that an upstream received."""
        return [each for each in self.requests if each.name == name]

    def provider_settings(self, *names: str, **more: Any) -> dict[str, ProviderSettings]:
        """Return settings that replace these upstreams by the fake ones; `more` is set for each."""
        return {
            name: ProviderSettings(url=self.url_of(name), **{**more, **self.time_limit(name)})
            for name in names
        }

    def time_limit(self, name: str) -> dict[str, Any]:
        """Return the `timeout` setting of an upstream that never responds; empty for any other.

        The limit is short only for that upstream: on a busy machine another one may need longer.
        """
        return {"timeout": SHORT_TIMEOUT} if self.faults.get(name) == "timeout" else {}

    def answer(self, request: RecordedRequest) -> tuple[int, Any]:
        """Return the response set by the test; 404 in plain text otherwise."""
        for name, method, path, answer in self._answers:
            if (name, method) == (request.name, request.method) and _matches(path, request.path.lower()):
                return answer(request)
        return 404, "404 page not found"


def _matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def serve_prices(
    upstreams: FakeUpstreams,
    usd: Mapping[str, Any],
    *,
    chain: str | None = None,
    quoted_at: float | None = None,
) -> None:
    """Serve these prices as DefiLlama: a number, or number and confidence; `quoted_at` is now by default.

    `chain` is the required slug of all tokens; None: any.
    """
    quoted_at = time.time() if quoted_at is None else quoted_at

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        coins: dict[str, Any] = {}
        for name in request.path.rpartition("/")[2].split(","):
            slug, _, token = name.partition(":")
            assert chain in (None, slug)
            if token in usd:
                price, confidence = usd[token] if isinstance(usd[token], tuple) else (usd[token], 0.99)
                coins[name] = {
                    "price": price,
                    "symbol": "X",
                    "timestamp": quoted_at,
                    "confidence": confidence,
                }
        return 200, {"coins": coins}

    upstreams.set_response_function("defillama", "/prices/current/*", answer)


@contextmanager
def fake_upstreams() -> Generator[FakeUpstreams]:
    """Start fake upstreams on a loopback port."""
    standing = FakeUpstreams()
    server = _Server(("127.0.0.1", 0), _handler(standing))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    standing.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield standing
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client may disconnect
            super().handle_error(request, client_address)


def _handler(standing: FakeUpstreams) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are sent separately: 40 ms for each answer otherwise

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
            pass

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            name, _, rest = url.path.lstrip("/").partition("/")
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = RecordedRequest(
                name,
                self.command,
                "/" + unquote(rest),
                dict(parse_qsl(url.query, keep_blank_values=True)),
                {key.lower(): value for key, value in self.headers.items()},
                json.loads(raw) if raw else None,
                time.monotonic(),
            )
            standing.requests.append(request)
            if standing.delay:
                time.sleep(standing.delay)
            fault = standing.faults.get(name)
            if fault:
                self._fail(fault)
            else:
                self._send_body(*standing.answer(request))

        do_POST = do_GET  # noqa: N815

        def _send_body(self, status: int, body: Any) -> None:
            match body:
                case bytes():
                    self._send(status, "application/octet-stream", body)
                case str():
                    page = body.lstrip().startswith("<")
                    self._send(status, "text/html" if page else "text/plain", body.encode())
                case _:
                    self._send(status, "application/json", json.dumps(body).encode())

        def _send(self, status: int, kind: str, body: bytes, length: int | None = None) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = True

        def _fail(self, fault: Fault) -> None:
            match fault:
                case "timeout":
                    time.sleep(20)
                    self.close_connection = True
                case "500" | "503" | "429":
                    self._send(int(fault), "application/json", b'{"error":"injected"}')
                case "403 page":
                    self._send(403, "text/html", PAGE.encode())
                case "200 page":
                    self._send(200, "text/html", PAGE.encode())
                case "cut":
                    self._send(200, "application/json", b'{"code":1,"result":{', length=5000)
                    self.close_connection = True
                case "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                    self.connection.close()
                case "empty":
                    self._send(200, "application/json", b"")
                case "wrong types":
                    self._send(200, "application/json", b'[7, {"code": [], "result": "x", "data": 3}]')
                case "50 MB":
                    self._send(200, "application/json", b'{"result":"' + b"x" * 50_000_000 + b'"}')
                case "text":
                    self._send(200, "text/plain", b"something went wrong")

    return Handler


@contextmanager
def recordings() -> Generator[str]:
    """Serve the recorded bodies at `<url>/<upstream>`."""
    spec = importlib.util.spec_from_file_location("replay", SHARED / "tools" / "replay.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server, url, _, _ = module.start(RECORDINGS)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def load_body(upstream: str, case: str) -> Any:
    """Return a body of an upstream, from tests/bodies or else from the recordings."""
    own = BODIES / upstream / f"{case}.json"
    if own.exists():
        return json.loads(own.read_text())
    return json.loads((RECORDINGS / upstream / f"{case}.json").read_text())["body"]


def recorded_case(*values: Any) -> ParameterSet:
    """Return a test case that runs only where the recordings are."""
    return pytest.param(*values, marks=pytest.mark.recorded)


@asynccontextmanager
async def open_provider(kind: type[P], folder: Path, **options: Any) -> AsyncGenerator[P]:
    """Open a provider with a session; `options` are those of its ProviderSettings."""
    settings = build_settings(
        folder, "http://127.0.0.1:9", providers={kind.info.name: ProviderSettings(**options)}
    )
    async with open_resources(settings) as resources:
        yield kind(settings, resources)


def configure_providers(settings: Settings, providers: Mapping[str, ProviderSettings]) -> Settings:
    """Return settings with these providers configured; others keep theirs."""
    return settings.model_copy(update={"providers": {**settings.providers, **providers}})


def send_paid(client: httpx.Client, path: str, body: Any, buyer: Buyer | None = None) -> httpx.Response:
    """Send a request with a new payment and return the response."""
    return pay(client, sign_payment(client, buyer or Buyer(), path, body), path, body)
