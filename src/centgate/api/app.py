"""The ASGI application: routes generated from the catalogue, and request-ID and access-log middleware."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any

import orjson
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from centgate import envelope
from centgate.api import index_page, wellknown_files, x402_discovery
from centgate.api.content_negotiation import is_preferred
from centgate.api.cors import BrowserAccess
from centgate.api.documents import StaticDocument
from centgate.api.http_requests import note_error, read_body, read_header
from centgate.api.mcp import endpoint as mcp
from centgate.api.openapi import openapi_document
from centgate.api.wallet_payments import PRIVATE_HEADERS, answer_headers, wallet_payment_routes
from centgate.catalog import all_services, list_prices, service_details, service_summary
from centgate.client.catalog import ServiceDetail
from centgate.client.tools import TOOL_FLAVOURS, ToolFlavour, build_tool
from centgate.client_limits import Admission, ClientLimits
from centgate.errors import (
    CentgateError,
    InternalError,
    InvalidRequest,
    Issue,
    MethodNotAllowed,
    NotFound,
    PaymentRequired,
    SignInRequired,
)
from centgate.garbage_collection import resume_garbage_collection
from centgate.instrumentation import NULL_METER, Meter
from centgate.log import configure_logging
from centgate.metrics.setup import create_worker_meter
from centgate.payments.claim_values import StoredAnswer
from centgate.payments.gate import PaymentHeaders
from centgate.payments.mpp.credential import find_credential
from centgate.payments.mpp.receipt import encode_payment_receipt
from centgate.payments.terms import encode_header
from centgate.pipeline import PaidCall, serve
from centgate.request_body import MAX_BODY_BYTES
from centgate.runtime import Runtime, open_runtime
from centgate.service import AnyService
from centgate.service_status import REPORT_TTL
from centgate.settings import Settings
from centgate.timestamps import format_timestamp

UNLIMITED_PATHS = frozenset({"/health", "/livez", "/readyz"})
"""Health-check paths for the operator; they are never rate limited."""

HSTS_SECONDS = 31_536_000
"""Seconds for which browsers use only TLS for this host (RFC 6797): a year."""
_JSON, _HTML = "application/json", "text/html; charset=utf-8"

Endpoint = Callable[[Request], Awaitable[Response]]
AddedHeaders = tuple[tuple[bytes, bytes], ...]


def create_app(settings: Settings, meter: Meter = NULL_METER) -> ASGIApp:
    """Return the API as an ASGI application that reports its events to `meter`."""
    all_routes = create_routes(settings)
    starlette = Starlette(
        routes=all_routes,
        exception_handlers={
            CentgateError: _error_response,
            HTTPException: _http_error_response,
            ClientDisconnect: _client_disconnected,
            Exception: _internal_error,
        },
        lifespan=partial(_lifespan, settings, meter),
    )
    starlette.router.redirect_slashes = False
    dispatcher = PaidRouteDispatcher(all_routes, starlette, ClientLimits(settings, meter))
    # around Starlette, so that a page of another origin can read a 500 too
    cors = BrowserAccess(dispatcher, settings, _error_response)
    return AccessLogMiddleware(dispatcher, cors, meter, added_headers=_security_headers(settings))


def _security_headers(settings: Settings) -> AddedHeaders:
    """Return the headers of every response; HSTS only where buyers reach the API over TLS."""
    nosniff = (b"x-content-type-options", b"nosniff")
    if not settings.base_url.startswith("https://"):
        return (nosniff,)
    return nosniff, (b"strict-transport-security", f"max-age={HSTS_SECONDS}".encode())


def app_from_environment() -> ASGIApp:
    """Return the API configured by the environment. Each server process runs this factory."""
    from centgate.worker_processes import stop_with_supervisor

    stop_with_supervisor()
    settings = Settings()
    configure_logging(settings.log_level)
    app = create_app(settings, create_worker_meter(settings))
    resume_garbage_collection()
    return app


@asynccontextmanager
async def _lifespan(settings: Settings, meter: Meter, starlette: Starlette) -> AsyncGenerator[None]:
    async with open_runtime(settings, meter) as runtime:
        starlette.state.runtime = runtime
        yield


def create_routes(settings: Settings) -> list[Route]:
    """Return all routes, free and paid."""
    catalog = all_services()
    descriptions = {
        service.slug: _json_endpoint(partial(service_details, service, settings)) for service in catalog
    }
    return [
        # first, because Starlette tries routes in order
        *(
            Route(
                service.path,
                PaidEndpoint(service, descriptions[service.slug]),
                methods=["GET", "HEAD", "POST"],
            )
            for service in catalog
        ),
        Route("/", _index_endpoint(catalog, settings)),
        Route("/services", _catalog_endpoint(catalog, settings)),
        Route("/openapi.json", _json_endpoint(partial(openapi_document, catalog, settings))),
        Route("/.well-known/x402", _json_endpoint(partial(x402_discovery.x402_document, catalog, settings))),
        *_mcp_routes(catalog, settings),
        *wallet_payment_routes(),
        *(
            Route(file.path, _static_endpoint(partial(bytes, file.content), file.media_type))
            for file in wellknown_files.read_wellknown_files(settings.well_known)
        ),
        *(
            Route(path, _static_endpoint(partial(index_page.read_icon, path), media_type))
            for path, media_type in index_page.ICONS.items()
        ),
        Route("/health", _handle_health),
        Route("/status.json", _handle_status),
        Route("/livez", _handle_livez),
        Route("/readyz", _handle_readyz),
        # only needed where the paid route has a longer path; an unknown slug matches no route
        *(
            Route(f"/services/{service.slug}", descriptions[service.slug])
            for service in catalog
            if service.path != f"/services/{service.slug}"
        ),
    ]


def _mcp_routes(catalog: tuple[AnyService, ...], settings: Settings) -> list[Route]:
    """Return the routes of `/mcp` and of its discovery documents."""

    def build_card() -> dict[str, Any]:
        return mcp.server_card(settings, index_page.build_tagline(list_prices(catalog, settings)))

    card = _json_endpoint(build_card, mcp.CARD_TYPE)
    ai_catalog = _json_endpoint(partial(mcp.ai_catalog, settings), mcp.CATALOG_TYPE)
    return [
        Route(mcp.MCP_PATH, mcp.McpEndpoint(catalog, settings), methods=["POST"]),
        Route(mcp.CARD_PATH, card),
        *(Route(path, card) for path in mcp.WELL_KNOWN_CARD_PATHS),
        Route("/.well-known/ai-catalog.json", ai_catalog),
    ]


def _index_endpoint(catalog: tuple[AnyService, ...], settings: Settings) -> Endpoint:
    """Return the endpoint of `/`: JSON by default, HTML if the `Accept` header prefers it."""
    headers = {"Link": index_page.index_link_header(settings), "Vary": "Accept"}
    index = StaticDocument(lambda: orjson.dumps(index_page.index_document(catalog, settings)), _JSON, headers)
    policy = {"Content-Security-Policy": index_page.INDEX_CSP}
    page = StaticDocument(
        lambda: index_page.render_index_page(catalog, settings).encode(), _HTML, headers | policy
    )

    async def endpoint(request: Request) -> Response:
        wants_page = is_preferred(request.headers.get("accept", ""), "text/html", _JSON)
        return (page if wants_page else index).respond(request)

    return endpoint


def _catalog_endpoint(catalog: Sequence[AnyService], settings: Settings) -> Endpoint:
    """Return the endpoint of the catalogue, and of the services as tools for a model (`?format=`)."""

    def build_summaries() -> dict[str, Any]:
        return {"services": [service_summary(service, settings) for service in catalog]}

    def build_tools(flavour: ToolFlavour) -> dict[str, Any]:
        details = [ServiceDetail.model_validate(service_details(service, settings)) for service in catalog]
        return {"tools": [build_tool(each, flavour) for each in details if each.available]}

    whole = _json_endpoint(build_summaries)
    tools = {flavour: _json_endpoint(partial(build_tools, flavour)) for flavour in TOOL_FLAVOURS}

    async def endpoint(request: Request) -> Response:
        wanted = request.query_params.getlist("format")
        if not wanted:
            return await whole(request)
        if len(wanted) > 1 or wanted[0] not in TOOL_FLAVOURS:
            choices = ", ".join(TOOL_FLAVOURS)
            raise InvalidRequest([Issue("format", f"must be one of {choices}, or be left out")])
        return await tools[wanted[0]](request)

    return endpoint


def _json_endpoint(build: Callable[[], Any], media_type: str = _JSON) -> Endpoint:
    """Return an endpoint for a static JSON document, built and serialized once."""
    return _static_endpoint(lambda: orjson.dumps(build()), media_type)


def _static_endpoint(build: Callable[[], bytes], media_type: str) -> Endpoint:
    """Return an endpoint for static bytes."""
    document = StaticDocument(build, media_type)

    async def endpoint(request: Request) -> Response:
        return document.respond(request)

    return endpoint


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
        if scope["type"] != "http" or scope["path"] in UNLIMITED_PATHS:
            await self._rest(scope, receive, send)
            return
        admission = scope["state"]["admission"] = self._limits.admit(scope)
        paid = self._paid.get(scope["path"]) if scope["method"] == "POST" else None
        if paid is not None:
            scope["app"] = self._rest
            await paid(scope, receive, send)
        elif admission.is_limited and (scope["method"], scope["path"]) != ("POST", mcp.MCP_PATH):
            response = await _error_response(Request(scope), admission.rate_limit_error())
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
            response = await _error_response(request, error)
        except ClientDisconnect as error:
            response = await _client_disconnected(request, error)
        except Exception as error:
            await (await _internal_error(request, error))(scope, receive, send)
            raise
        await response(scope, receive, send)

    async def _handle_paid(self, request: Request) -> Response:
        notes = request.state.notes
        notes["service"] = self._service.slug
        runtime = _get_runtime(request)
        authorization = read_header(request, "authorization") if runtime.gate.issuer else None
        headers = PaymentHeaders(
            signature=read_header(request, "payment-signature"),
            credential=find_credential(authorization),
            idempotency_key=read_header(request, "idempotency-key"),
        )
        admission: Admission = request.state.admission
        async with admission.limit_request(self._service.slug, headers, runtime.gate, runtime.journal):
            call = PaidCall(
                request_id=notes["request_id"],
                body=await read_body(request, MAX_BODY_BYTES),
                content_type=request.headers.get("content-type", ""),
                headers=headers,
                admission=admission,
            )
            answer = await serve(runtime, self._service, call)
        notes["replayed"] = answer.replayed
        return _build_paid_response(answer, {} if headers.credential is None else _mpp_receipt(answer))


def _get_runtime(request: Request) -> Runtime:
    return request.app.state.runtime


async def _handle_health(request: Request) -> Response:
    reachable = await _is_database_writable(_get_runtime(request))
    content = {
        "status": "ok" if reachable else "unavailable",
        "db": "ok" if reachable else "unavailable",
        "time": format_timestamp(),
    }
    return _json_response(200 if reachable else 503, orjson.dumps(content), {"Cache-Control": "no-store"})


async def _handle_status(request: Request) -> Response:
    """Return the state of every service, measured from real calls; 500 without the database."""
    content = await _get_runtime(request).status.render_report()
    return _status_document(content).respond(request)


@lru_cache(maxsize=4)
def _status_document(content: bytes) -> StaticDocument:
    """Return the document of a report, which is the same for several seconds."""
    return StaticDocument(lambda: content, _JSON, {"Cache-Control": f"public, max-age={REPORT_TTL:.0f}"})


async def _handle_livez(_request: Request) -> Response:
    return _json_response(200, orjson.dumps({"status": "ok"}), {"Cache-Control": "no-store"})


async def _handle_readyz(request: Request) -> Response:
    runtime = _get_runtime(request)
    ready = not runtime.single_flight.draining and await _is_database_writable(runtime)
    content = {"status": "ready" if ready else "unavailable"}
    if runtime.shared is not None:  # the server stays ready without the shared cache
        content["cache"] = "shared" if runtime.shared.is_up else "local"
    return _json_response(200 if ready else 503, orjson.dumps(content), {"Cache-Control": "no-store"})


async def _is_database_writable(runtime: Runtime) -> bool:
    """Return True if the journal is writable; tests it with a write."""
    try:
        await runtime.journal.heartbeat()
    except CentgateError:
        return False
    return True


def _mpp_receipt(answer: StoredAnswer) -> dict[str, str]:
    """Return the header of the answer to a request that was paid for by `Authorization: Payment`.

    An error has none, though it may be charged: draft-ietf-httpauth-payment, "Receipt Status Semantics".
    """
    receipt = encode_payment_receipt(answer) if answer.status < 300 else None
    return {"Payment-Receipt": receipt} if receipt else {}


def _build_paid_response(answer: StoredAnswer, more_headers: Mapping[str, str]) -> Response:
    headers = {**more_headers, **answer_headers(answer), "Cache-Control": "private"}
    return _json_response(answer.status, answer.body, headers)


async def _error_response(request: Request, error: Exception) -> Response:
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
    return _json_response(
        envelope.http_status(error),
        envelope.render_error(error, request.state.notes["request_id"]),
        headers,
    )


def _add_payment_terms(request: Request, error: PaymentRequired, headers: dict[str, str]) -> dict[str, Any]:
    """Add the payment terms to the headers of a 402 and return the same terms for the error's details."""
    runtime = _get_runtime(request)
    gate = runtime.gate
    terms = gate.terms[request.state.notes["service"]]
    headers["PAYMENT-REQUIRED"] = terms.header_with_error(error.reason) if error.reason else terms.header
    if gate.issuer and gate.issuer.is_enabled:
        headers["WWW-Authenticate"] = gate.issuer.issue(terms.first, runtime.journal.estimate_now())
    if error.settlement:
        headers["PAYMENT-RESPONSE"] = encode_header(error.settlement)
    return {"accepts": terms.accepts}


async def _http_error_response(request: Request, error: Exception) -> Response:
    """Convert Starlette's 404 and 405 errors to responses."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = sorted((error.headers or {})["Allow"].split(", "))
        return await _error_response(request, MethodNotAllowed(request.method, allowed))
    message = f"no route {request.url.path[:80]!r}; see GET /services and GET /openapi.json"
    return await _error_response(request, NotFound(message))


async def _client_disconnected(request: Request, _error: Exception) -> Response:
    """Return a response that only the log will see: the client has disconnected."""
    request.state.notes["code"] = "client_disconnected"
    return Response(status_code=499)


async def _internal_error(request: Request, _error: Exception) -> Response:
    """Return 500 for an unexpected exception; the middleware logs it."""
    return await _error_response(request, InternalError("unexpected server error; report the requestId"))


def _json_response(status: int, body: bytes, headers: dict[str, str]) -> Response:
    return Response(body, status, headers, media_type="application/json")


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
        by_browser = any(name == b"origin" for name, _ in scope["headers"])
        inner = self._for_browsers if by_browser or scope["method"] != "POST" else self._inner
        try:
            await inner(scope, receive, _add_headers(send, notes, self._added_headers))
        except Exception:  # noqa: BLE001 - outermost middleware; the 500 response has been sent
            self._log.exception("a request failed unexpectedly", request_id=notes["request_id"])
        finally:
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
            present = {name.lower() for name, _ in headers}
            wanted = ((b"x-request-id", notes["request_id"].encode()), *added)
            headers.extend(header for header in wanted if header[0] not in present)
        await send(message)

    return send_with_headers
