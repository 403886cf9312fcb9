"""The console as an ASGI application: its routes, and the host names that it answers to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from importlib.resources import files
from urllib.parse import urlsplit

import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from centgate.console import (
    directories,
    login,
    operation_pages,
    overview,
    payment_pages,
    provider_pages,
    totals_pages,
    webhook_pages,
)
from centgate.console.console import Console
from centgate.console.pages import SECURITY_HEADERS, action, find_session, page, render

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_ASSETS = {
    "console.css": ("centgate.console", "text/css; charset=utf-8"),
    "favicon.svg": ("centgate.website", "image/svg+xml"),
}
"""The package and media type of each file."""


def create_console_app(console: Console) -> Starlette:
    """Return the console. Requests for other host names are refused (DNS rebinding)."""
    return Starlette(
        routes=_list_routes(console),
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_allowed_hosts(console))],
        exception_handlers={
            404: partial(_error_page, console, 404, "Not found", "There is no such page."),
            405: partial(_method_not_allowed, console),
            500: partial(_error_page, console, 500, "Failure", "The console failed; its log has the reason."),
        },
        lifespan=partial(_run_background, console),
    )


def _list_routes(console: Console) -> list[Route]:
    pages = {
        "/": partial(overview.show_overview, overview.FigureCache()),
        "/payments": payment_pages.show_payments,
        "/payments/{reference}": payment_pages.show_payment,
        "/totals": partial(totals_pages.show_totals, totals_pages.TotalsCache()),
        "/providers": provider_pages.show_providers,
        "/directories": directories.show_directories,
        "/webhooks": webhook_pages.show_webhooks,
        "/doctor": operation_pages.show_doctor,
        "/settings": operation_pages.show_settings,
        "/actions": operation_pages.show_actions,
    }
    actions = {
        "/logout": login.log_out,
        "/refresh": operation_pages.switch_refresh,
        "/reconcile": payment_pages.reconcile_now,
        "/payments/{reference}/refund": payment_pages.enter_refund,
        "/webhooks/resend": webhook_pages.resend_event,
        "/webhooks/resend-unsent": webhook_pages.resend_unsent,
        "/webhooks/enable": webhook_pages.enable_receiver,
        "/webhooks/ping": webhook_pages.ping_receiver,
        "/doctor": operation_pages.run_doctor,
    }
    return [
        Route("/login", partial(login.show_login, console), methods=["GET"]),
        Route("/login", partial(login.log_in, console), methods=["POST"]),
        Route("/assets/{name}", _send_asset, methods=["GET"]),
        *(Route(path, page(console, show), methods=["GET"]) for path, show in pages.items()),
        *(Route(path, action(console, act), methods=["POST"]) for path, act in actions.items()),
    ]


def _allowed_hosts(console: Console) -> list[str]:
    own = urlsplit(console.base_url).hostname or ""
    return [*LOOPBACK_NAMES, f"[{own}]" if ":" in own else own]


async def _send_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return Response("not found\n", 404, SECURITY_HEADERS, "text/plain")
    headers = {**SECURITY_HEADERS, "Cache-Control": "max-age=300"}
    return Response(_read_asset(name), headers=headers, media_type=_ASSETS[name][1])


@cache
def _read_asset(name: str) -> bytes:
    return files(_ASSETS[name][0]).joinpath("assets", name).read_bytes()


async def _error_page(
    console: Console, status: int, title: str, detail: str, request: Request, _error: Exception
) -> Response:
    session = find_session(console, request)
    return render(console, request, session, "failed.html.j2", status=status, title=title, detail=detail)


async def _method_not_allowed(console: Console, request: Request, error: Exception) -> Response:
    routes = [each for each in _list_routes(console) if each.matches(request.scope)[0] is not Match.NONE]
    detail = f"This address does not accept the method {request.method}."
    response = await _error_page(console, 405, "Method not allowed", detail, request, error)
    response.headers["Allow"] = ", ".join(sorted({name for each in routes for name in each.methods or ()}))
    return response


@asynccontextmanager
async def _run_background(console: Console, _app: Starlette) -> AsyncGenerator[None]:
    """Read the server's metrics while the console runs, and close the journal at its end."""
    reading = asyncio.create_task(_read_metrics(console))
    try:
        yield
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        await console.store.close()


async def _read_metrics(console: Console) -> None:
    try:
        await console.metrics.read_forever()
    except Exception:  # noqa: BLE001 - outermost handler of this task; the pages say that nothing is known
        console.metrics.problem = "reading the server's metrics failed"
        structlog.get_logger().exception("the console cannot read metrics")
