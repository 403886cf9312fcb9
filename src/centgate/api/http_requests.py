"""Parts that the handlers of HTTP routes and of MCP share: reading a request, noting an error, JSON."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.requests import Request
from starlette.responses import Response

from centgate.errors import CentgateError, RateLimited
from centgate.request_body import MAX_BODY_BYTES, RequestBody
from centgate.runtime import Runtime


def get_runtime(request: Request) -> Runtime:
    """Return the runtime that the application's lifespan has opened."""
    return request.app.state.runtime


def json_response(status: int, body: bytes, headers: Mapping[str, str]) -> Response:
    """Return a response of JSON that is serialized already."""
    return Response(body, status, headers, media_type="application/json")


def jsonrpc_error(status: int, message: str) -> Response:
    """Return a JSON-RPC error for a message that was not parsed; its id is null."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return json_response(status, orjson.dumps(error), {})


async def read_request_body(request: Request) -> RequestBody:
    """Read the body of a paid request, of which one byte too many is kept. Raises ClientDisconnect."""
    content_type = content_encoding = b""
    for name, value in reversed(request.scope["headers"]):  # of repeated ones the first counts
        if name == b"content-type":
            content_type = value
        elif name == b"content-encoding":
            content_encoding = value
    content = await read_body(request, MAX_BODY_BYTES)
    return RequestBody(content, content_type.decode("latin-1"), content_encoding.decode("latin-1"))


async def read_body(request: Request, limit: int) -> bytes:
    """Read at most `limit` + 1 bytes; the extra byte shows a longer body. Raises ClientDisconnect."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            break
    return bytes(body[: limit + 1])


def read_header(request: Request, name: str) -> str | None:
    """Return a header by its name in lower case, or None.

    Repeated headers are joined (RFC 9110, section 5.3), and so are invalid. White space around a value is no
    part of it (section 5.5); the parser leaves it at the end.
    """
    wanted = name.encode()
    values = [value for field, value in request.scope["headers"] if field == wanted]
    return b", ".join(values).strip(b" \t").decode("latin-1") if values else None


def note_error(request: Request, error: CentgateError) -> None:
    """Add an error to the notes of its request, for the access log."""
    notes = request.state.notes
    notes["code"] = error.code
    if error.payment:
        notes["payment"] = error.payment.state
    if isinstance(error, RateLimited):
        notes["client"] = request.state.admission.client
