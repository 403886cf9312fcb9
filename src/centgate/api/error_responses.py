"""Responses to exceptions: an error of SPEC's kinds with its headers, and the payment terms of a 402."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from centgate import envelope
from centgate.api.http_requests import get_runtime, json_response, note_error
from centgate.api.wallet_payments import PRIVATE_HEADERS
from centgate.errors import (
    CentgateError,
    MethodNotAllowed,
    NotFound,
    PaymentRequired,
    SignInRequired,
    unexpected_error,
)
from centgate.payments.terms import encode_header


async def error_response(request: Request, error: Exception) -> Response:
    """Convert a CentgateError to a response."""
    assert isinstance(error, CentgateError)
    note_error(request, error)
    headers = {"Cache-Control": "no-store"}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.allowed)
    if isinstance(error, SignInRequired):
        headers |= {"PAYMENT-REQUIRED": encode_header(error.offer), **PRIVATE_HEADERS}
    if isinstance(error, PaymentRequired):
        error.details.update(_add_payment_terms(request, error, headers))
        if error.reason is None and "x-payment" in request.headers:
            error.message += ". X-PAYMENT is the header of x402 version 1; this API takes version 2"
    return json_response(
        envelope.http_status(error),
        envelope.render_error(error, request.state.notes["request_id"]),
        headers,
    )


def _add_payment_terms(request: Request, error: PaymentRequired, headers: dict[str, str]) -> dict[str, Any]:
    """Add the payment terms to the headers of a 402 and return the same terms for the error's details."""
    runtime = get_runtime(request)
    gate = runtime.gate
    terms = gate.terms[request.state.notes["service"]]
    headers["PAYMENT-REQUIRED"] = terms.header_with_error(error.reason) if error.reason else terms.header
    if gate.issuer and gate.issuer.is_enabled:
        headers["WWW-Authenticate"] = gate.issuer.issue(terms.first, runtime.journal.estimate_now())
    if error.settlement:
        headers["PAYMENT-RESPONSE"] = encode_header(error.settlement)
    return {"accepts": terms.accepts}


async def http_error_response(request: Request, error: Exception) -> Response:
    """Convert Starlette's 404 and 405 errors to responses."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = sorted((error.headers or {})["Allow"].split(", "))
        return await error_response(request, MethodNotAllowed(request.method, allowed))
    message = f"no route {request.url.path[:80]!r}; see GET /services and GET /openapi.json"
    return await error_response(request, NotFound(message))


async def client_disconnected(request: Request, _error: Exception) -> Response:
    """Return a response that only the log will see: the client has disconnected."""
    request.state.notes["code"] = "client_disconnected"
    return Response(status_code=499)


async def internal_error(request: Request, _error: Exception) -> Response:
    """Return 500 for an unexpected exception; the middleware logs it."""
    return await error_response(request, unexpected_error())
