"""The HTTP face: routes made from the catalogue, and the door that every request comes in and goes out by."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import orjson
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from centgate import envelope
from centgate.body import MAX_BODY
from centgate.catalog import all_services, entry, full_entry
from centgate.client_limits import Admission, ClientLimits, Presented
from centgate.errors import (
    CentgateError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PaymentRequired,
    RateLimited,
)
from centgate.faces import front, verification, wellknown
from centgate.faces.mcp import mounting as mcp
from centgate.faces.negotiation import prefers
from centgate.faces.openapi import openapi
from centgate.log import set_up_logs
from centgate.meter import SILENT, Meter
from centgate.metrics.starting import meter_of_several
from centgate.payments.claiming import StoredAnswer
from centgate.payments.gate import receipt_header
from centgate.pipeline import Call, serve
from centgate.runtime import Runtime, open_runtime
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.text import timestamp

EXPOSED = ("Payment-Required", "Payment-Response", "X-Request-Id", "Idempotent-Replayed", "Retry-After")

UNLIMITED = frozenset({"/health", "/livez", "/readyz"})
"""Paths that whoever runs the server asks, as often as he likes."""

_BRIEFLY = "public, max-age=60"

Endpoint = Callable[[Request], Awaitable[Response]]


def app(settings: Settings, meter: Meter = SILENT) -> ASGIApp:
    """The API as an ASGI application; `meter` is told what happens in it."""
    every = routes(settings)
    starlette = Starlette(
        routes=every,
        exception_handlers={
            CentgateError: _refuse,
            HTTPException: _refuse_http,
            ClientDisconnect: _hung_up,
            Exception: _apologise,
        },
        lifespan=partial(_lifespan, settings, meter),
    )
    starlette.router.redirect_slashes = False
    counter = Counter(every, starlette, ClientLimits(settings, meter))
    cors = CORSMiddleware(  # around Starlette, so that a page of another origin can read a 500 too
        counter,
        allow_origins=settings.allowed_origins,
        allow_methods=["GET", "HEAD", "POST"],
        allow_headers=["*"],
        expose_headers=EXPOSED,
    )
    return Door(counter, cors, meter)


def app_from_environment() -> ASGIApp:
    """The API as the environment sets it up: what each server process runs."""
    settings = Settings()
    set_up_logs(settings.log_level)
    return app(settings, meter_of_several(settings))


@asynccontextmanager
async def _lifespan(settings: Settings, meter: Meter, starlette: Starlette) -> AsyncGenerator[None]:
    async with open_runtime(settings, meter) as runtime:
        starlette.state.runtime = runtime
        yield


def routes(settings: Settings) -> list[Route]:
    """Every route there is, free and paid."""
    catalog = all_services()
    described = {service.slug: _document(full_entry(service, settings)) for service in catalog}
    return [
        # in front, since routes are tried one after the other
        *(
            Route(service.path, Paid(service, described[service.slug]), methods=["GET", "HEAD", "POST"])
            for service in catalog
        ),
        Route("/", _front(settings)),
        Route("/services", _document({"services": [entry(service, settings) for service in catalog]})),
        Route("/openapi.json", _document(openapi(catalog, settings))),
        Route("/.well-known/x402", _document(wellknown.x402(catalog, settings))),
        *_mcp(catalog, settings),
        *(
            Route(file.path, _file(file.content, file.media_type))
            for file in verification.files(settings.well_known)
        ),
        *(Route(path, _file(front.icon(path), media_type)) for path, media_type in front.ICONS.items()),
        Route("/health", _health),
        Route("/livez", _alive),
        Route("/readyz", _readiness),
        # a slug is a path of its own where the paid route lies deeper; an unknown one is no route at all
        *(
            Route(f"/services/{service.slug}", described[service.slug])
            for service in catalog
            if service.path != f"/services/{service.slug}"
        ),
    ]


def _mcp(catalog: tuple[AnyService, ...], settings: Settings) -> list[Route]:
    """`/mcp`, and what leads there."""
    card = _document(mcp.server_card(settings, front.TAGLINE), mcp.CARD_TYPE)
    return [
        Route(mcp.PATH, mcp.Mcp(catalog, settings), methods=["POST"]),
        Route(mcp.CARD_PATH, card),
        Route("/.well-known/mcp/server-card.json", card),
        Route("/.well-known/ai-catalog.json", _document(mcp.ai_catalog(settings), mcp.CATALOG_TYPE)),
    ]


def _front(settings: Settings) -> Endpoint:
    """The first page: JSON, but HTML for who would rather have that."""
    body, page = orjson.dumps(front.index(settings)), front.page(settings).encode()
    headers = {"Cache-Control": _BRIEFLY, "Link": front.link_header(settings), "Vary": "Accept"}
    policy = {"Content-Security-Policy": front.POLICY, "X-Content-Type-Options": "nosniff"}

    async def endpoint(request: Request) -> Response:
        if prefers(request.headers.get("accept", ""), "text/html", "application/json"):
            return Response(page, 200, headers | policy, media_type="text/html")
        return _json(200, body, headers)

    return endpoint


def _document(content: Any, media_type: str = "application/json") -> Endpoint:
    """JSON that is the same for everybody, written once."""
    return _file(orjson.dumps(content), media_type)


def _file(content: bytes, media_type: str) -> Endpoint:
    """Bytes that are the same for everybody."""
    headers = {"Content-Type": media_type, "Cache-Control": _BRIEFLY, "X-Content-Type-Options": "nosniff"}

    async def endpoint(_request: Request) -> Response:
        return Response(content, 200, headers)

    return endpoint


class Counter:
    """Where what is sold is handed over: a POST to a paid route goes there at once, all else to Starlette.

    Its way, with its middleware and its trying of routes, takes about as long as checking a payment.
    """

    def __init__(self, every: list[Route], rest: Starlette, limits: ClientLimits) -> None:
        self._paid = {route.path: route.app for route in every if isinstance(route.app, Paid)}
        self._rest = rest
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan."""
        if scope["type"] != "http" or scope["path"] in UNLIMITED:
            await self._rest(scope, receive, send)
            return
        admission = scope["state"]["admission"] = self._limits.admit(scope)
        paid = self._paid.get(scope["path"]) if scope["method"] == "POST" else None
        if paid is not None:
            scope["app"] = self._rest
            await paid(scope, receive, send)
        elif admission.is_limited and (scope["method"], scope["path"]) != ("POST", mcp.PATH):
            response = await _refuse(Request(scope), admission.refusal())
            await response(scope, receive, send)
        else:  # what comes over MCP may have a payment, and looks at the admission itself
            await self._rest(scope, receive, send)


class Paid:
    """A paid route; asked with GET it describes itself for nothing."""

    def __init__(self, service: AnyService, describe: Endpoint) -> None:
        self._service = service
        self._describe = describe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = Request(scope, receive, send)
        try:
            response = await (self._sell(request) if request.method == "POST" else self._describe(request))
        except CentgateError as error:
            response = await _refuse(request, error)
        except ClientDisconnect as error:
            response = await _hung_up(request, error)
        except Exception as error:
            await (await _apologise(request, error))(scope, receive, send)
            raise
        await response(scope, receive, send)

    async def _sell(self, request: Request) -> Response:
        notes = request.state.notes
        notes["service"] = self._service.slug
        signature = _header(request, "payment-signature")
        idempotency_key = _header(request, "idempotency-key")
        presented = Presented(self._service.slug, signature, idempotency_key)
        runtime = _runtime(request)
        admission: Admission = request.state.admission

        async def answer() -> StoredAnswer:
            call = Call(
                request_id=notes["request_id"],
                body=await _body(request),
                content_type=request.headers.get("content-type", ""),
                signature=signature,
                admission=admission,
                idempotency_key=idempotency_key,
            )
            return await serve(runtime, self._service, call)

        answered = await admission.count_request(presented, runtime.gate, runtime.journal, answer)
        notes["replayed"] = answered.replayed
        return _delivery(answered)


def _header(request: Request, name: str) -> str | None:
    """A header; one that came twice is joined (RFC 9110, section 5.3), and so fits nothing."""
    return ", ".join(request.headers.getlist(name)) if name in request.headers else None


async def _body(request: Request) -> bytes:
    """As much of the body as may be read: one byte over the limit tells that there is more."""
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > MAX_BODY:
            break
    return bytes(chunks[: MAX_BODY + 1])


def _runtime(request: Request) -> Runtime:
    return request.app.state.runtime


async def _health(request: Request) -> Response:
    reachable = await _database_works(_runtime(request))
    content = {
        "status": "ok" if reachable else "unavailable",
        "db": "ok" if reachable else "unavailable",
        "time": timestamp(),
    }
    return _json(200 if reachable else 503, orjson.dumps(content), {"Cache-Control": "no-store"})


async def _alive(_request: Request) -> Response:
    return _json(200, orjson.dumps({"status": "ok"}), {"Cache-Control": "no-store"})


async def _readiness(request: Request) -> Response:
    runtime = _runtime(request)
    ready = not runtime.flights.landing and await _database_works(runtime)
    content = {"status": "ready" if ready else "unavailable"}
    if runtime.shared is not None:  # without it this server does its work all the same
        content["cache"] = "shared" if runtime.shared.up else "local"
    return _json(200 if ready else 503, orjson.dumps(content), {"Cache-Control": "no-store"})


async def _database_works(runtime: Runtime) -> bool:
    """Whether the journal can be written, tried by writing to it."""
    try:
        await runtime.journal.beat()
    except CentgateError:
        return False
    return True


def _delivery(answer: StoredAnswer) -> Response:
    headers = {
        "PAYMENT-RESPONSE": answer.receipt,
        "X-Request-Id": answer.request_id,
        "Cache-Control": "private",
    }
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
    return _json(answer.status, answer.body, headers)


async def _refuse(request: Request, error: Exception) -> Response:
    """An error of ours as a response."""
    assert isinstance(error, CentgateError)
    notes = request.state.notes
    notes["code"] = error.code
    if error.payment:
        notes["payment"] = error.payment.state
    if isinstance(error, RateLimited):
        notes["client"] = request.state.admission.client
    headers = {"Cache-Control": "no-store"}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.allowed)
    if isinstance(error, PaymentRequired):
        error.details.update(_offer(request, error, headers))
    return _json(envelope.status_of(error), envelope.failure(error, notes["request_id"]), headers)


def _offer(request: Request, error: PaymentRequired, headers: dict[str, str]) -> dict[str, Any]:
    """Fresh terms beside a 402: the header, and their mirror in the error's details."""
    terms = _runtime(request).gate.terms[request.state.notes["service"]]
    headers["PAYMENT-REQUIRED"] = terms.header_saying(error.reason) if error.reason else terms.header
    if error.settlement:
        headers["PAYMENT-RESPONSE"] = receipt_header(error.settlement)
    return {"accepts": [terms.requirements]}


async def _refuse_http(request: Request, error: Exception) -> Response:
    """Starlette's own refusals, which are of a route or of its method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = sorted((error.headers or {})["Allow"].split(", "))
        return await _refuse(request, MethodNotAllowed(request.method, allowed))
    message = f"no route {request.url.path[:80]!r}; see GET /services and GET /openapi.json"
    return await _refuse(request, NotFound(message))


async def _hung_up(request: Request, _error: Exception) -> Response:
    """Nobody is there to read this; the log is."""
    request.state.notes["code"] = "client_disconnected"
    return Response(status_code=499)


async def _apologise(request: Request, _error: Exception) -> Response:
    """What nobody foresaw; the door writes down what it was."""
    return await _refuse(request, InternalError("unexpected server error; report the requestId"))


def _json(status: int, body: bytes, headers: dict[str, str]) -> Response:
    return Response(body, status, headers, media_type="application/json")


class Door:
    """Gives every request its id and its line in the log, and lets no exception out."""

    def __init__(self, inner: ASGIApp, for_browsers: ASGIApp, meter: Meter = SILENT) -> None:
        """`for_browsers` does what `inner` does, and answers as pages of other origins need it."""
        self._inner = inner
        self._for_browsers = for_browsers
        self._meter = meter
        self._log = structlog.get_logger()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = time.perf_counter()
        self._meter.came()
        notes: dict[str, Any] = {"request_id": "req_" + secrets.token_hex(12)}
        scope.setdefault("state", {})["notes"] = notes
        if b"%" in scope.get("raw_path", b""):
            # a route has one spelling: what a proxy in front compares is what is compared here
            scope["path"] = scope["raw_path"].decode("latin-1")
        by_browser = any(name == b"origin" for name, _ in scope["headers"])
        inner = self._for_browsers if by_browser or scope["method"] != "POST" else self._inner
        try:
            await inner(scope, receive, _with_id(send, notes))
        except Exception:  # noqa: BLE001 - the outermost door; the apology has been sent
            self._log.exception("unexpected", request_id=notes["request_id"])
        finally:
            seconds = time.perf_counter() - started
            self._count(notes, seconds)
            milliseconds = round(seconds * 1000, 1)
            path = scope["path"][:200]
            self._log.info("request", method=scope["method"], path=path, **notes, ms=milliseconds)

    def _count(self, notes: Mapping[str, Any], seconds: float) -> None:
        """What has become of a request; all paths that lead nowhere are one."""
        service = notes.get("service") or ("unknown" if notes.get("code") == "not_found" else "free")
        replayed = notes.get("replayed", False)
        self._meter.went(service, notes.get("status", 500), seconds, replayed=replayed)


def _with_id(send: Send, notes: dict[str, Any]) -> Send:
    """`send` that adds the request's id, unless the response has one: that of the answer it repeats."""

    async def send_with_id(message: Message) -> None:
        if message["type"] == "http.response.start":
            notes["status"] = message["status"]
            headers = message["headers"] = list(message.get("headers", ()))
            if not any(name.lower() == b"x-request-id" for name, _ in headers):
                headers.append((b"x-request-id", notes["request_id"].encode()))
        await send(message)

    return send_with_id
