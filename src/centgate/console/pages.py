"""HTTP of the console: responses with their headers, forms, and who may see and do what.

Every page is made by `page`, every change by `action`: both need a session, and an action a form token.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from centgate.console import formats
from centgate.console.console import Console
from centgate.console.sessions import COOKIE, ConsoleSession, is_same_token
from centgate.payments.database.store import JournalUnavailable
from centgate.payments.journal.read_model import FOREVER, PaymentFilter
from centgate.payments.time_format import parse_time

MAX_FORM_BYTES = 16 << 10
"""Maximum size of a form."""
REFRESH_SECONDS = 30
"""Seconds after which a page that refreshes itself is loaded again."""
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response: nothing is loaded from elsewhere, nothing runs, nothing is kept."""

Endpoint = Callable[[Request], Awaitable[Response]]
Page = Callable[[Console, Request, ConsoleSession], Awaitable[Response]]
Action = Callable[[Console, Request, ConsoleSession, Mapping[str, str]], Awaitable[Response]]


def page(console: Console, show: Page) -> Endpoint:
    """Return the endpoint of a page for operators who are logged in; others are sent to the login page."""

    async def endpoint(request: Request) -> Response:
        session = find_session(console, request)
        if session is None:
            return redirect("/login")
        try:
            return await show(console, request, session)
        except JournalUnavailable as error:
            return render(console, request, session, "error.html.j2", status=503, detail=error.detail)

    return endpoint


def action(console: Console, act: Action) -> Endpoint:
    """Return the endpoint of a change; it needs a session and the form token of this session."""

    async def endpoint(request: Request) -> Response:
        session = find_session(console, request)
        if session is None:
            return redirect("/login")
        form = await read_form(request)
        if form is None or not is_from_own_page(request, form, session.form_token):
            return refuse_form(console, request, session)
        try:
            return await act(console, request, session, form)
        except JournalUnavailable as error:
            return render(console, request, session, "error.html.j2", status=503, detail=error.detail)

    return endpoint


def find_session(console: Console, request: Request) -> ConsoleSession | None:
    """Return the session of a request; a page that refreshes itself does not prolong it."""
    is_refresh = request.query_params.get("refresh") == "1"
    return console.sessions.find(request.cookies.get(COOKIE), is_refresh=is_refresh)


async def read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None if it is too long or not a form."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            return None
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=32))
    except ValueError:
        return None


def parse_period(inputs: Mapping[str, str], now: float) -> PaymentFilter:
    """Parse the inputs `since` and `until` of a form. Raises ValueError."""
    return PaymentFilter(
        since=parse_time(inputs["since"], now) if inputs["since"] else 0.0,
        until=parse_time(inputs["until"], now) if inputs["until"] else FOREVER,
    )


def read_last_id(request: Request) -> int | None:
    """Return the id of the previous page's last row, None for the first page."""
    before = request.query_params.get("before", "")
    return int(before) if re.fullmatch(r"[0-9]{1,18}", before) else None


def is_from_own_page(request: Request, form: Mapping[str, str], token: str) -> bool:
    """True if a form comes from a page of this console: with its token, and from its origin."""
    origin, host = request.headers.get("origin"), request.headers.get("host")
    is_own = origin is None or origin in (f"http://{host}", f"https://{host}")
    return is_own and is_same_token(form.get("token", ""), token)


def refuse_form(console: Console, request: Request, session: ConsoleSession | None) -> Response:
    """Return the answer to a form that did not come from a page of this console."""
    detail = "The form was not sent by a page of this session. Open the page again, then send it."
    return render(console, request, session, "refused.html.j2", status=403, detail=detail)


def render(
    console: Console,
    request: Request,
    session: ConsoleSession | None,
    template: str,
    *,
    status: int = 200,
    refreshes: bool = False,
    **values: Any,
) -> Response:
    """Render a page. `refreshes`: it is loaded again by itself, unless the operator switched that off."""
    notice = None
    if session is not None and request.method == "GET" and status == 200:
        notice, session.notice = session.notice, None
    html = (
        _environment()
        .get_template(template)
        .render(
            console=console,
            session=session,
            path=request.url.path,
            notice=notice,
            refreshes=refreshes,
            refresh_seconds=REFRESH_SECONDS,
            **values,
        )
    )
    headers = dict(SECURITY_HEADERS)
    if refreshes and session is not None and session.refreshes:
        headers["Refresh"] = f"{REFRESH_SECONDS};url={_refresh_url(request)}"
    return Response(html, status, headers, "text/html; charset=utf-8")


def redirect(path: str) -> Response:
    """Send the browser to a path of this console by GET."""
    return RedirectResponse(path, 303, SECURITY_HEADERS)


def _refresh_url(request: Request) -> str:
    """Return the URL of the same page, marked as loaded by itself; it is made of known parts only."""
    return f"{request.url.path}?refresh=1"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("centgate.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(formats.FILTERS)
    return environment
