"""Handling of requests that HTTP routes and MCP share: reading body and headers, noting an error."""

from __future__ import annotations

from starlette.requests import Request

from centgate.errors import CentgateError, RateLimited


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
