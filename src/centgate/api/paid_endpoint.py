"""The paid routes: dispatch of POSTs past Starlette's router, and the way from a request to a paid call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from centgate.api.error_responses import client_disconnected, error_response, internal_error
from centgate.api.health import HEALTH_PATHS
from centgate.api.http_requests import get_runtime, json_response, read_header, read_request_body
from centgate.api.mcp.endpoint import MCP_PATH
from centgate.api.wallet_payments import answer_headers
from centgate.client_limits import Admission, ClientLimits
from centgate.errors import CentgateError
from centgate.payments.claim_values import StoredAnswer
from centgate.payments.gate import PaymentHeaders
from centgate.payments.mpp.credential import find_credential
from centgate.payments.mpp.receipt import encode_payment_receipt
from centgate.pipeline import PaidCall, serve
from centgate.service import AnyService

Endpoint = Callable[[Request], Awaitable[Response]]


class PaidRouteDispatcher:
    """Dispatch POSTs to paid routes directly, bypassing Starlette's router for speed.

    Starlette's middleware stack and route matching take about as long as checking a payment.
    """

    def __init__(self, all_routes: list[Route], rest: Starlette, limits: ClientLimits) -> None:
        self._paid = {route.path: route.app for route in all_routes if isinstance(route.app, PaidEndpoint)}
        self._rest = rest
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan."""
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await self._rest(scope, receive, send)
            return
        admission = scope["state"]["admission"] = self._limits.admit(scope)
        paid = self._paid.get(scope["path"]) if scope["method"] == "POST" else None
        if paid is not None:
            scope["app"] = self._rest
            await paid(scope, receive, send)
        elif admission.is_limited and (scope["method"], scope["path"]) != ("POST", MCP_PATH):
            response = await error_response(Request(scope), admission.rate_limit_error())
            await response(scope, receive, send)
        else:  # an MCP message may carry a payment, so the MCP endpoint checks the admission itself
            await self._rest(scope, receive, send)


class PaidEndpoint:
    """A paid route. GET returns its catalogue entry free of charge."""

    def __init__(self, service: AnyService, describe: Endpoint) -> None:
        self._service = service
        self._describe = describe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        request = Request(scope, receive, send)
        try:
            response = await (
                self._handle_paid(request) if request.method == "POST" else self._describe(request)
            )
        except CentgateError as error:
            response = await error_response(request, error)
        except ClientDisconnect as error:
            response = await client_disconnected(request, error)
        except Exception as error:
            await (await internal_error(request, error))(scope, receive, send)
            raise
        await response(scope, receive, send)

    async def _handle_paid(self, request: Request) -> Response:
        # the scope itself, since `request.state` takes ten times as long
        state: Mapping[str, Any] = request.scope["state"]
        notes, admission = state["notes"], cast(Admission, state["admission"])
        notes["service"] = self._service.slug
        runtime = get_runtime(request)
        authorization = read_header(request, "authorization") if runtime.gate.issuer else None
        headers = PaymentHeaders(
            signature=read_header(request, "payment-signature"),
            credential=find_credential(authorization),
            idempotency_key=read_header(request, "idempotency-key"),
        )
        async with admission.limit_request(self._service.slug, headers, runtime.gate, runtime.journal):
            call = PaidCall(
                request_id=notes["request_id"],
                body=await read_request_body(request),
                headers=headers,
                admission=admission,
            )
            answer = await serve(runtime, self._service, call)
        notes["replayed"] = answer.replayed
        return _build_paid_response(answer, {} if headers.credential is None else _mpp_receipt(answer))


def _mpp_receipt(answer: StoredAnswer) -> dict[str, str]:
    """Return the header of the answer to a request that was paid for by `Authorization: Payment`.

    An error has none, though it may be charged: draft-ietf-httpauth-payment, "Receipt Status Semantics".
    """
    receipt = encode_payment_receipt(answer) if answer.status < 300 else None
    return {"Payment-Receipt": receipt} if receipt else {}


def _build_paid_response(answer: StoredAnswer, more_headers: Mapping[str, str]) -> Response:
    headers = {**more_headers, **answer_headers(answer), "Cache-Control": "private"}
    return json_response(answer.status, answer.body, headers)
