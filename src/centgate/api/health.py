"""Routes that tell whether the API works: /health, /livez, /readyz, and /status.json for the services."""

from __future__ import annotations

from functools import lru_cache

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from centgate.api.documents import StaticDocument
from centgate.api.http_requests import get_runtime, json_response
from centgate.service_status import REPORT_TTL
from centgate.timestamps import format_timestamp

HEALTH_PATHS = frozenset({"/health", "/livez", "/readyz"})
"""Paths for the operator; they are never rate limited."""


def health_routes() -> list[Route]:
    """Return the routes."""
    return [
        Route("/health", _handle_health),
        Route("/status.json", _handle_status),
        Route("/livez", _handle_livez),
        Route("/readyz", _handle_readyz),
    ]


async def _handle_health(request: Request) -> Response:
    reachable = await get_runtime(request).journal.is_writable()
    content = {
        "status": "ok" if reachable else "unavailable",
        "db": "ok" if reachable else "unavailable",
        "time": format_timestamp(),
    }
    return json_response(200 if reachable else 503, orjson.dumps(content), {"Cache-Control": "no-store"})


async def _handle_status(request: Request) -> Response:
    """Return the state of every service, measured from real calls; 500 without the database."""
    content = await get_runtime(request).status.render_report()
    return _status_document(content).respond(request)


@lru_cache(maxsize=4)
def _status_document(content: bytes) -> StaticDocument:
    """Return the document of a report, which is the same for several seconds."""
    return StaticDocument(
        lambda: content, "application/json", {"Cache-Control": f"public, max-age={REPORT_TTL:.0f}"}
    )


async def _handle_livez(_request: Request) -> Response:
    return json_response(200, orjson.dumps({"status": "ok"}), {"Cache-Control": "no-store"})


async def _handle_readyz(request: Request) -> Response:
    runtime = get_runtime(request)
    ready = not runtime.single_flight.draining and await runtime.journal.is_writable()
    content = {"status": "ready" if ready else "unavailable"}
    if runtime.shared is not None:  # the server stays ready without the shared cache
        content["cache"] = "shared" if runtime.shared.is_up else "local"
    return json_response(200 if ready else 503, orjson.dumps(content), {"Cache-Control": "no-store"})
