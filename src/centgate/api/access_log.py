"""ASGI middleware around all routes: request IDs, the access log, and the last handler of exceptions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from centgate.connection_limits import DISCONNECTED
from centgate.instrumentation import NULL_METER, Meter

AddedHeaders = tuple[tuple[bytes, bytes], ...]


class AccessLogMiddleware:
    """Middleware that assigns request IDs, writes the access log and catches all exceptions."""

    def __init__(
        self,
        inner: ASGIApp,
        for_browsers: ASGIApp,
        meter: Meter = NULL_METER,
        *,
        added_headers: AddedHeaders = (),
    ) -> None:
        """`for_browsers` is `inner` with CORS headers, for pages of other origins."""
        self._added_headers = added_headers
        self._inner = inner
        self._for_browsers = for_browsers
        self._meter = meter
        self._log = structlog.get_logger()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = time.perf_counter()
        self._meter.record_request_start()
        notes: dict[str, Any] = {"request_id": "req_" + secrets.token_hex(12)}
        scope.setdefault("state", {})["notes"] = notes
        if b"%" in scope.get("raw_path", b""):
            # match the undecoded path, as a proxy in front does: each route has exactly one spelling
            scope["path"] = scope["raw_path"].decode("latin-1")
        by_browser = b"origin" in dict(scope["headers"])
        inner = self._for_browsers if by_browser or scope["method"] != "POST" else self._inner
        try:
            await inner(scope, receive, _add_headers(send, notes, self._added_headers))
        except Exception:  # noqa: BLE001 - outermost middleware; the 500 response has been sent
            self._log.exception("a request failed unexpectedly", request_id=notes["request_id"])
        finally:
            if DISCONNECTED in scope["state"]:
                notes.setdefault("code", DISCONNECTED)
            seconds = time.perf_counter() - started
            self._record_outcome(notes, seconds)
            milliseconds = round(seconds * 1000, 1)
            method, path = scope["method"], scope["path"][:200]
            self._log.info("a request was handled", method=method, path=path, **notes, ms=milliseconds)

    def _record_outcome(self, notes: Mapping[str, Any], seconds: float) -> None:
        """Report a request's outcome to the meter. All unknown paths share the label `unknown`."""
        service = notes.get("service") or ("unknown" if notes.get("code") == "not_found" else "free")
        replayed = notes.get("replayed", False)
        self._meter.record_request_end(service, notes.get("status", 500), seconds, replayed=replayed)


def _add_headers(send: Send, notes: dict[str, Any], added: AddedHeaders) -> Send:
    """Wrap `send` to add the request ID and other headers that a response lacks (a replay has its own ID)."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            notes["status"] = message["status"]
            headers = message["headers"] = list(message.get("headers", ()))
            present = dict(headers)
            wanted = ((b"x-request-id", notes["request_id"].encode()), *added)
            headers += [header for header in wanted if header[0] not in present]
        await send(message)

    return send_with_headers
