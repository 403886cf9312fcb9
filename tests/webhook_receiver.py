"""Receiver of webhooks over real HTTP, which verifies each with the library that receivers use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import SecretStr
from standardwebhooks.webhooks import Webhook

from centgate.settings import Settings

SECRET = "whsec_" + "Y2VudGdhdGUtd2ViaG9vay1zZWNyZXQtZm9yLXRlc3Rz"
OTHER_SECRET = "whsec_" + "YW5vdGhlci1zZWNyZXQtb2YtY2VudGdhdGUtdGVzdHM="
PATIENCE = 25.0

Reply = tuple[int, Mapping[str, str]]


@dataclass(frozen=True)
class ReceivedWebhook:
    """A webhook whose signature was verified."""

    id: str
    body: dict[str, Any]
    raw: bytes
    headers: Mapping[str, str]
    at: float

    @property
    def data(self) -> dict[str, Any]:
        """Its payment."""
        return self.body["data"]


@dataclass
class WebhookReceiver:
    """Received webhooks, and the responses to the next ones."""

    url: str = ""
    secret: str = SECRET
    received: list[ReceivedWebhook] = field(default_factory=list[ReceivedWebhook])
    reply: Callable[[ReceivedWebhook], Reply] = field(default=lambda _: (204, {}))
    unsigned: int = 0
    """Requests whose signature was not verified."""

    @property
    def ids(self) -> list[str]:
        """Ids in the order of arrival."""
        return [each.id for each in self.received]

    def configure(self, settings: Settings, secret: str = SECRET) -> Settings:
        """Return the settings of a deployment that sends its webhooks here."""
        return settings.model_copy(update={"webhook_url": self.url, "webhook_secret": SecretStr(secret)})

    def answer(self, *statuses: int, **headers: str) -> None:
        """Answer with these statuses in order, then always with the last one."""
        left = list(statuses)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.reply = lambda _: (left.pop(0) if len(left) > 1 else left[0], named)

    def wait_for(self, number: int) -> list[ReceivedWebhook]:
        """Wait until so many webhooks have arrived, and return them."""
        deadline = time.monotonic() + PATIENCE
        while len(self.received) < number:
            assert time.monotonic() < deadline, self.received
            time.sleep(0.02)
        return self.received


@contextmanager
def open_receiver() -> Generator[WebhookReceiver]:
    """Serve a receiver in a thread."""
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                body = Webhook(receiver.secret).verify(raw, headers)
            except Exception:  # noqa: BLE001 - counted, whatever the library objects to
                receiver.unsigned += 1
                self.send_reply(401, {})
                return
            webhook = ReceivedWebhook(headers["webhook-id"], body, raw, headers, time.time())
            receiver.received.append(webhook)
            self.send_reply(*receiver.reply(webhook))

        def send_reply(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_request(self, code: Any = "-", size: Any = "-") -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Print nothing: senders are killed while they wait."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?key=a-secret-of-the-operator"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
