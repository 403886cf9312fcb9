"""An API that answers as a test says, well or ill, and keeps count of the payments it took."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from buyer import decoded, encoded

from centgate.dollars import USDC

NETWORK = "eip155:84532"
PAYEE = "0x1111111111111111111111111111111111111111"
SLUG = "some-facts"
PATH = "/services/some/facts"
DATA = {"fact": "water is wet"}

Fault = Literal["none", "no_response", "cut_headers", "cut_body", "reset"]


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    body: bytes
    payment: str | None
    headers: Mapping[str, str]

    @property
    def nonce(self) -> str:
        """What identifies the payment that came with it."""
        return decoded(self.payment or "")["payload"]["authorization"]["nonce"]


@dataclass(frozen=True)
class Said:
    """A response, and how its sending goes wrong."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: Fault = "none"
    takes: bool = False
    """Whether the payment that came is taken before."""
    drips: tuple[bytes, bytes] | None = None
    """What is sent in place of all this: a beginning, and then the same bytes again and again."""

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def offer(url: str, **changes: Any) -> dict[str, Any]:
    """Terms that are fine; `changes` replace fields of the entry, of its extra, or of the whole."""
    token = USDC[NETWORK]
    extra = {"name": token.name, "version": token.version, "paymentFlow": "upfront"} | changes.pop(
        "extra", {}
    )
    extra = {name: value for name, value in extra.items() if value is not None}
    entry = {
        "scheme": "exact",
        "network": NETWORK,
        "asset": token.address,
        "amount": "10000",
        "payTo": PAYEE,
        "maxTimeoutSeconds": 60,
        "extra": extra,
    }
    whole: dict[str, Any] = {
        "x402Version": 2,
        "error": "Payment required",
        "resource": {"url": url + PATH},
        "accepts": [entry],
        "extensions": {},
    }
    for name, value in changes.items():
        (whole if name in whole else entry)[name] = value
    return whole


def demand(terms: Any) -> Said:
    """A 402 with these terms."""
    body = {"error": {"code": "payment_required", "message": "pay"}, "requestId": "req_1"}
    return Said(402, body, {"PAYMENT-REQUIRED": terms if isinstance(terms, str) else encoded(terms)})


def failure(
    status: int,
    code: str,
    *,
    note: Mapping[str, Any] | None = None,
    provider: str | None = None,
    after: int | None = None,
    **details: Any,
) -> Said:
    """An error as a Centgate tells it; `after` is its Retry-After."""
    told = {**details, **({"payment": dict(note)} if note else {})}
    error = {"code": code, "message": "so it is", "details": told} | (
        {"provider": provider} if provider else {}
    )
    headers = {} if after is None else {"Retry-After": str(after)}
    return Said(status, {"error": error, "requestId": "req_2"}, headers)


def envelope() -> dict[str, Any]:
    """The body of an answer."""
    return {
        "service": SLUG,
        "requestId": "req_3",
        "cache": {"hit": False},
        "providers": [{"name": "book", "status": "ok"}],
        "warnings": [],
        "data": DATA,
    }


def receipt(asked: Asked, **changes: Any) -> str:
    """PAYMENT-RESPONSE for the payment that came."""
    authorization = decoded(asked.payment or "")["payload"]["authorization"]
    settled = {
        "success": True,
        "payer": authorization["from"],
        "transaction": "0x" + authorization["nonce"][2:],
        "network": NETWORK,
    }
    return encoded(settled | changes)


Reply = Callable[[Asked], Said] | Said


class HostileApi:
    """Sells one service. `unpaid` and `paid` hold what the next requests get; then it behaves."""

    def __init__(self) -> None:
        self.url = ""
        self.described = Said(200, entry())
        self.unpaid: list[Reply] = []
        self.paid: list[Reply] = []
        self.asked: list[Asked] = []
        self.taken: set[str] = set()
        """The nonces of the payments that were taken."""
        self._lock = threading.Lock()

    @property
    def payments(self) -> list[str]:
        """Every payment that came, as it came."""
        return [each.payment for each in self.asked if each.payment]

    def delivered(self, asked: Asked) -> Said:
        """Take the payment and answer."""
        return Said(200, envelope(), {"PAYMENT-RESPONSE": receipt(asked)}, takes=True)

    def answer(self, asked: Asked) -> Said:
        """What a request gets."""
        with self._lock:
            self.asked.append(asked)
            queue = self.paid if asked.payment else self.unpaid
            if asked.method == "GET":
                reply: Reply = self._described
            else:
                reply = queue.pop(0) if queue else self._usual
        said = reply if isinstance(reply, Said) else reply(asked)
        if said.takes and asked.payment:
            self.taken.add(asked.nonce)
        return said

    def _usual(self, asked: Asked) -> Said:
        return self.delivered(asked) if asked.payment else demand(offer(self.url))

    def _described(self, asked: Asked) -> Said:
        if asked.path != f"/services/{SLUG}":
            return failure(404, "not_found")
        return self.described


def entry(**changes: Any) -> dict[str, Any]:
    """The service as `GET /services/<slug>` tells it."""
    described: dict[str, Any] = {
        "slug": SLUG,
        "title": "Some facts",
        "summary": "Facts.",
        "description": "Facts.",
        "category": "web-context",
        "tags": [],
        "method": "POST",
        "path": PATH,
        "price": "$0.01",
        "priceUsd": 0.01,
        "pricingNote": "",
        "inputExample": {},
        "outputFields": [],
        "guardrails": [],
        "providers": [],
        "payment": {"protocol": "x402", "network": NETWORK, "enforced": True, "devMode": True},
        "inputSchema": {"type": "object"},
    }
    return described | changes


@contextmanager
def hostile_api() -> Generator[HostileApi]:
    """A hostile API on a loopback port."""
    api = HostileApi()

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is what some tests are about."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._do()

        def do_POST(self) -> None:
            self._do()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            payment = self.headers.get("payment-signature")
            said = api.answer(Asked(self.command, self.path, body, payment, dict(self.headers)))
            send(self, said)

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler: BaseHTTPRequestHandler, said: Said) -> None:
    """Send a response, as badly as it is to be sent."""
    if said.drips is not None:
        _drip(handler, *said.drips)
        return
    content = said.content
    head = (
        f"HTTP/1.1 {said.status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    )
    head += "".join(f"{name}: {value}\r\n" for name, value in said.headers.items())
    whole = head.encode("latin-1") + b"\r\n" + content
    cut = {"no_response": 0, "reset": 0, "cut_headers": len(head) // 2, "cut_body": len(whole) - 3}
    if said.fault == "none":
        handler.wfile.write(whole)
        return
    handler.wfile.write(whole[: cut[said.fault]])
    handler.wfile.flush()
    handler.close_connection = True
    if said.fault == "reset":
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _drip(handler: BaseHTTPRequestHandler, beginning: bytes, again: bytes) -> None:
    """Until the client has had enough."""
    handler.close_connection = True
    handler.wfile.write(beginning)
    while True:
        handler.wfile.write(again)
        handler.wfile.flush()
        time.sleep(0.02)
