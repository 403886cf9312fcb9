"""Replies of a hostile API as plans in words, and a server by which programs in other languages set them."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, get_args

from buyer import encode_header
from hostile import (
    SLUG,
    Fault,
    HostileApi,
    PlannedResponse,
    ReceivedRequest,
    answer_body,
    build_offer,
    payment_response,
    service_entry,
)

STATUSES = (200, 201, 204, 206, 301, 304, 307, 400, 401, 402, 403, 404, 405, 408, 409, 418, 425, 429)
FAILURES = (500, 502, 503, 504, 511, 599)
CODES = (
    "validation_error",
    "unsupported_options",
    "payment_required",
    "payment_not_configured",
    "not_found",
    "no_data",
    "payment_conflict",
    "provider_rate_limited",
    "internal_error",
    "provider_error",
    "provider_unconfigured",
    "provider_timeout",
    "rate_limited",
    "something_else",
)
REASONS = (
    None,
    "insufficient_funds",
    "invalid_exact_evm_payload_authorization_valid_before",
    "invalid_payment_requirements",
    7,
)
BODIES = ("answer", "error", "noted", "noted", "junk", "list", "empty", "shape")
RETRIES = ("same_payment", "new_payment", "none", "perhaps")
RECEIPTS = ("true", "none", "junk", "failed")
TERMS = ("none", "good", "junk", "bad")
HEADERS = {
    "Retry-After": ["0", "-1", "soon", "99999999999", "Wed, 21 Oct 2015 07:28:00 GMT"],
    "Content-Encoding": ["gzip", "identity"],
    "Location": ["/", "http://127.0.0.1:9/", "javascript:1"],
    "Set-Cookie": ["a=b"],
}
TAKEN: tuple[tuple[str, bool], ...] = (("in_flight", False), ("settled", True), ("delivered", True))
UNTAKEN: tuple[tuple[str, bool], ...] = (("unused", False), ("refused", False), ("in_flight", False))
VOCABULARY: dict[str, Any] = {
    "slug": SLUG,
    "status": STATUSES + FAILURES,
    "fault": ("none", "none", "none", *get_args(Fault)),
    "body": BODIES,
    "code": CODES,
    "reason": REASONS,
    "retry": RETRIES,
    "receipt": RECEIPTS,
    "terms": TERMS,
    "headers": HEADERS,
}
"""Allowed values of a plan, by its keys; each header may be left out."""


def build_reply(
    api: HostileApi, plan: dict[str, Any], request: ReceivedRequest, *, lies: bool = False
) -> PlannedResponse:
    """Build the reply of a plan to a request; its statement about the money is true unless it `lies`."""
    taken = bool(request.payment) and (plan["takes"] or request.nonce in api.accepted_nonces)
    headers = dict(plan["headers"])
    if plan["terms"] != "none":
        bad = {"amount": "99999999"} if plan["terms"] == "bad" else {}
        terms = encode_header(build_offer(api.url, **bad, **plan.get("offer", {})))
        headers["PAYMENT-REQUIRED"] = (
            base64.b64encode(plan["junk"]).decode() if plan["terms"] == "junk" else terms
        )
    if request.payment and plan["receipt"] != "none":
        true = payment_response(request, success=taken and plan["receipt"] == "true")
        headers["PAYMENT-RESPONSE"] = "=" if plan["receipt"] == "junk" else true
    body = build_body(plan, taken=taken != lies, message="nothing was charged" if lies else "so")
    time.sleep(plan.get("delay", 0))
    return PlannedResponse(plan["status"], body, headers, plan["fault"], accepts_payment=plan["takes"])


def build_body(plan: dict[str, Any], *, taken: bool, message: str) -> Any:
    """Build a body whose `details.payment` states whether the payment was `taken`."""
    which: int = plan["note"]
    state, charged = (TAKEN if taken else UNTAKEN)[which]
    note: dict[str, Any] = {"state": state, "charged": charged, "retry": plan["retry"]}
    details: dict[str, Any] = {"payment": note} if plan["body"] == "noted" else {}
    if plan["reason"]:
        details["reason"] = plan["reason"]
    told: dict[str, Any] = {"code": plan["code"], "message": message, "details": details}
    error: dict[str, Any] = {"error": told, "requestId": "req_1"}
    bodies: dict[str, Any] = {
        "answer": answer_body(),
        "junk": plan["junk"],
        "list": [],
        "empty": b"",
        "shape": {"data": {}},
    }
    return bodies.get(plan["body"], error)


@contextmanager
def serve_plans(api: HostileApi) -> Generator[str]:
    """Serve the plans of an API on a loopback port, and return the URL.

    `GET` returns the vocabulary and what the API received; `POST` forgets that and sets the next replies.
    """

    class PlanHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"api": api.url, "vocabulary": VOCABULARY, "received": _describe_received(api)})

        def do_POST(self) -> None:
            _set_plans(api, json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._send(200, {})

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

        def _send(self, status: int, body: Any) -> None:
            message = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(message)))
            self.end_headers()
            self.wfile.write(message)

    server = ThreadingHTTPServer(("127.0.0.1", 0), PlanHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _describe_received(api: HostileApi) -> dict[str, Any]:
    return {
        "payments": api.payments,
        "bodies": [asked.body.decode() for asked in api.requests if asked.method == "POST"],
        "accepted": sorted(api.accepted_nonces),
    }


def _set_plans(api: HostileApi, plans: dict[str, Any]) -> None:
    """Set the next replies, and changes of the service's entry; `junk` comes in hex."""
    api.service_response = PlannedResponse(200, service_entry(**plans.get("service", {})))
    if not plans.get("continues"):
        api.requests.clear()
        api.accepted_nonces.clear()
    lies: bool = plans.get("lies", False)
    for queue, key in ((api.unpaid, "unpaid"), (api.paid, "paid")):
        queue[:] = [
            partial(build_reply, api, plan | {"junk": bytes.fromhex(plan["junk"])}, lies=lies)
            for plan in plans[key]
        ]
