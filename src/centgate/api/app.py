"""The ASGI application: its routes, generated from the catalogue, and what stands around them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from centgate.api import index_page, wellknown_files, x402_discovery
from centgate.api.access_log import AccessLogMiddleware, AddedHeaders
from centgate.api.content_negotiation import is_preferred
from centgate.api.cors import BrowserAccess
from centgate.api.documents import StaticDocument
from centgate.api.error_responses import (
    client_disconnected,
    error_response,
    http_error_response,
    internal_error,
)
from centgate.api.health import health_routes
from centgate.api.mcp import endpoint as mcp
from centgate.api.openapi import openapi_document
from centgate.api.paid_endpoint import Endpoint, PaidEndpoint, PaidRouteDispatcher
from centgate.api.wallet_payments import wallet_payment_routes
from centgate.catalog import all_services, list_prices, service_details, service_summary
from centgate.client.catalog import ServiceDetail
from centgate.client.tools import TOOL_FLAVOURS, ToolFlavour, build_tool
from centgate.client_limits import ClientLimits
from centgate.errors import (
    CentgateError,
    InvalidRequest,
    Issue,
)
from centgate.garbage_collection import resume_garbage_collection
from centgate.instrumentation import NULL_METER, Meter
from centgate.log import configure_logging
from centgate.metrics.setup import create_worker_meter
from centgate.runtime import open_runtime
from centgate.service import AnyService
from centgate.settings import Settings

HSTS_SECONDS = 31_536_000
"""Seconds for which browsers use only TLS for this host (RFC 6797): a year."""
_JSON, _HTML = "application/json", "text/html; charset=utf-8"


def create_app(settings: Settings, meter: Meter = NULL_METER) -> ASGIApp:
    """Return the API as an ASGI application that reports its events to `meter`."""
    all_routes = create_routes(settings)
    starlette = Starlette(
        routes=all_routes,
        exception_handlers={
            CentgateError: error_response,
            HTTPException: http_error_response,
            ClientDisconnect: client_disconnected,
            Exception: internal_error,
        },
        lifespan=partial(_lifespan, settings, meter),
    )
    starlette.router.redirect_slashes = False
    dispatcher = PaidRouteDispatcher(all_routes, starlette, ClientLimits(settings, meter))
    # around Starlette, so that a page of another origin can read a 500 too
    cors = BrowserAccess(dispatcher, settings, error_response)
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
        *health_routes(),
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
