"""API with responses planned by a test, valid or broken, that records the payments it accepted."""

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

from buyer import decode_header, encode_header

from centgate.signing.assets import USDC

NETWORK = "eip155:84532"
PAYEE = "0x1111111111111111111111111111111111111111"
SLUG = "some-facts"
PATH = "/services/some/facts"
DATA = {"fact": "water is wet"}

Fault = Literal["none", "no_response", "cut_headers", "cut_body", "reset"]


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request."""

    method: str
    path: str
    body: bytes
    payment: str | None
    headers: Mapping[str, str]

    @property
    def nonce(self) -> str:
        """Nonce of the payment in the request."""
        return decode_header(self.payment or "")["payload"]["authorization"]["nonce"]


@dataclass(frozen=True)
class PlannedResponse:
    """A planned response, and the fault in sending it."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: Fault = "none"
    accepts_payment: bool = False
    """True if the payment in the request is accepted first."""
    drip: tuple[bytes, bytes] | None = None
    """Sent instead of everything else: a first part, then the second part repeatedly."""

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def build_offer(url: str, **changes: Any) -> dict[str, Any]:
    """Build valid terms; `changes` replace fields of the entry, of its `extra`, or of the top level."""
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
    terms: dict[str, Any] = {
        "x402Version": 2,
        "error": "Payment required",
        "resource": {"url": url + PATH},
        "accepts": [entry],
        "extensions": {},
    }
    for name, value in changes.items():
        (terms if name in terms else entry)[name] = value
    return terms


def payment_required(terms: Any) -> PlannedResponse:
    """Build a 402 with these terms."""
    body = {"error": {"code": "payment_required", "message": "pay"}, "requestId": "req_1"}
    return PlannedResponse(
        402, body, {"PAYMENT-REQUIRED": terms if isinstance(terms, str) else encode_header(terms)}
    )


def error_response(
    status: int,
    code: str,
    *,
    note: Mapping[str, Any] | None = None,
    provider: str | None = None,
    after: int | None = None,
    **details: Any,
) -> PlannedResponse:
    """Build a Centgate error response; `after` is its Retry-After."""
    all_details = {**details, **({"payment": dict(note)} if note else {})}
    error = {"code": code, "message": "so it is", "details": all_details} | (
        {"provider": provider} if provider else {}
    )
    headers = {} if after is None else {"Retry-After": str(after)}
    return PlannedResponse(status, {"error": error, "requestId": "req_2"}, headers)


def answer_body() -> dict[str, Any]:
    """Build the body of an answer."""
    return {
        "service": SLUG,
        "requestId": "req_3",
        "cache": {"hit": False},
        "providers": [{"name": "book", "status": "ok"}],
        "warnings": [],
        "data": DATA,
    }


def build_payment(nonce: str, **changes: Any) -> PlannedResponse:
    """Build a payment whose answer is owed, in the format of `GET /payments/<nonce>`."""
    shown: dict[str, Any] = {
        "transaction": "0x" + "aa" * 32,
        "network": NETWORK,
        "asset": USDC[NETWORK].address,
        "nonce": nonce,
        "amount": "10000",
        "payTo": PAYEE,
        "service": SLUG,
        "state": "settled",
        "charged": True,
        "retry": "same_payment",
        "next": "redeem",
        "createdAt": "2026-11-24T10:00:00Z",
        "hasAnswer": False,
        "url": f"/payments/{nonce}",
        "answer": None,
        **dict.fromkeys(("reason", "settledAt", "deliveredAt", "redeemableUntil", "refund")),
    }
    return PlannedResponse(200, {"payments": [shown | changes]})


def join_payments(*shown: PlannedResponse) -> PlannedResponse:
    """Build the payments of one transaction from several payments."""
    return PlannedResponse(200, {"payments": [each for part in shown for each in part.body["payments"]]})


def payment_response(request: ReceivedRequest, **changes: Any) -> str:
    """Build PAYMENT-RESPONSE for the payment in the request."""
    authorization = decode_header(request.payment or "")["payload"]["authorization"]
    settlement = {
        "success": True,
        "payer": authorization["from"],
        "transaction": "0x" + authorization["nonce"][2:],
        "network": NETWORK,
    }
    return encode_header(settlement | changes)


Reply = Callable[[ReceivedRequest], PlannedResponse] | PlannedResponse


class HostileApi:
    """API with one service. `unpaid` and `paid` queue the next responses; then it responds normally."""

    def __init__(self) -> None:
        self.url = ""
        self.service_response = PlannedResponse(200, service_entry())
        self.catalogue = error_response(404, "not_found")
        self.shown_payment = error_response(404, "not_found")
        self.unpaid: list[Reply] = []
        self.paid: list[Reply] = []
        self.refused_bodies: dict[bytes, PlannedResponse] = {}
        """Responses to unpaid requests with these bodies."""
        self.requests: list[ReceivedRequest] = []
        self.accepted_nonces: set[str] = set()
        """Nonces of the accepted payments."""
        self._lock = threading.Lock()

    @property
    def payments(self) -> list[str]:
        """Header of every received payment."""
        return [each.payment for each in self.requests if each.payment]

    def deliver(self, request: ReceivedRequest) -> PlannedResponse:
        """Accept the payment and answer."""
        return PlannedResponse(
            200, answer_body(), {"PAYMENT-RESPONSE": payment_response(request)}, accepts_payment=True
        )

    def respond(self, request: ReceivedRequest) -> PlannedResponse:
        """Return the response to a request."""
        with self._lock:
            self.requests.append(request)
            queue = self.paid if request.payment else self.unpaid
            if request.method == "GET":
                reply: Reply = self._describe_service
            else:
                reply = queue.pop(0) if queue else self._default_response
        response = reply if isinstance(reply, PlannedResponse) else reply(request)
        if response.accepts_payment and request.payment:
            self.accepted_nonces.add(request.nonce)
        return response

    def _default_response(self, request: ReceivedRequest) -> PlannedResponse:
        if request.body in self.refused_bodies and not request.payment:
            return self.refused_bodies[request.body]
        return self.deliver(request) if request.payment else payment_required(build_offer(self.url))

    def _describe_service(self, request: ReceivedRequest) -> PlannedResponse:
        if request.path == "/services":
            return self.catalogue
        if request.path.startswith("/payments/"):
            return self.shown_payment
        if request.path != f"/services/{SLUG}":
            return error_response(404, "not_found")
        return self.service_response


def service_entry(**changes: Any) -> dict[str, Any]:
    """Build the service as returned by `GET /services/<slug>`."""
    service: dict[str, Any] = {
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
    return service | changes


@contextmanager
def hostile_api() -> Generator[HostileApi]:
    """Serve a hostile API on a loopback port."""
    api = HostileApi()

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore errors: some tests disconnect on purpose."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._handle()

        def do_POST(self) -> None:
            self._handle()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            payment = self.headers.get("payment-signature")
            response = api.respond(
                ReceivedRequest(self.command, self.path, body, payment, dict(self.headers))
            )
            send_response(self, response)

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


def send_response(handler: BaseHTTPRequestHandler, response: PlannedResponse) -> None:
    """Send a response with its planned fault."""
    if response.drip is not None:
        _drip(handler, *response.drip)
        return
    content = response.content
    head = f"HTTP/1.1 {response.status} Said\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(content)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    message = head.encode("latin-1") + b"\r\n" + content
    cut = {"no_response": 0, "reset": 0, "cut_headers": len(head) // 2, "cut_body": len(message) - 3}
    if response.fault == "none":
        handler.wfile.write(message)
        return
    handler.wfile.write(message[: cut[response.fault]])
    handler.wfile.flush()
    handler.close_connection = True
    if response.fault == "reset":
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _drip(handler: BaseHTTPRequestHandler, beginning: bytes, again: bytes) -> None:
    """Send bytes slowly until the client disconnects."""
    handler.close_connection = True
    handler.wfile.write(beginning)
    while True:
        handler.wfile.write(again)
        handler.wfile.flush()
        time.sleep(0.02)
