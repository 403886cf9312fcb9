"""Login to the console: by the one-time link or by the password, limited by address and in total."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from math import ceil

from starlette.requests import Request
from starlette.responses import Response

from centgate.console.console import Console
from centgate.console.pages import (
    find_session,
    is_from_own_page,
    read_form,
    redirect,
    refuse_form,
    render,
)
from centgate.console.passwords import is_password_correct
from centgate.console.sessions import COOKIE, MAX_SECONDS, VISITOR_COOKIE, ConsoleSession
from centgate.payments.database.store import JournalUnavailable
from centgate.payments.reports.console_actions import ConsoleActionName

_ALL = "all"


async def show_login(console: Console, request: Request) -> Response:
    """Show the login page. A one-time link is used by its button only: link previews must not use it up."""
    if find_session(console, request):
        return redirect("/")
    return _render_login(console, request, link_token=request.query_params.get("token"))


async def log_in(console: Console, request: Request) -> Response:
    """Start a session for a valid link or password."""
    form = await read_form(request)
    visitor = request.cookies.get(VISITOR_COOKIE, "")
    expected = console.visitors.form_token(visitor)
    if form is None or not visitor or not is_from_own_page(request, form, expected):
        return refuse_form(console, request, None)
    client = console.clients.read_client_key(request.scope)
    if (wait := _seconds_to_wait(console, client)) > 0:
        return _refuse_many(console, request, wait)
    if "new_link" in form:
        return _print_new_link(console, request, client)
    # before the check, so that parallel attempts do not get past the limit
    _spend_attempt(console, client)
    if not await _is_valid(console, form):
        await _record(console, "login refused", request, "wrong password or link")
        message = "This password or link is not valid. A link works once, for 15 minutes."
        return _render_login(console, request, status=403, problem=message)
    _return_attempt(console, client)
    await _record(console, "login", request, "by link" if "link" in form else "by password")
    response = redirect("/")
    response.set_cookie(
        COOKIE,
        console.sessions.start(),
        max_age=MAX_SECONDS,
        httponly=True,
        samesite="strict",
        secure=console.is_encrypted,
    )
    response.delete_cookie(VISITOR_COOKIE)
    return response


async def log_out(
    console: Console, request: Request, _session: ConsoleSession, _form: Mapping[str, str]
) -> Response:
    """End the session."""
    console.sessions.end(request.cookies.get(COOKIE))
    await _record(console, "logout", request, "done")
    response = redirect("/login")
    response.delete_cookie(COOKIE)
    return response


async def _is_valid(console: Console, form: Mapping[str, str]) -> bool:
    if "link" in form:
        return console.link.use(form["link"])
    if console.password_hash is None:
        return False
    async with console.password_lock:
        return await asyncio.to_thread(is_password_correct, form.get("password", ""), console.password_hash)


def _print_new_link(console: Console, request: Request, client: str) -> Response:
    """Print another link where the console was started, if the last one cannot be used any more.

    Otherwise any visitor could make the operator's link void. It counts as an attempt, and the answer does
    not tell which of both is the case.
    """
    _spend_attempt(console, client)
    message = "This console is opened by its password."
    if console.password_hash is None:
        if not console.link.is_valid:
            console.print_link()
        message = (
            "The link is where the console was started, in its log; a new one was printed there if the last "
            "one was used or has expired."
        )
    return _render_login(console, request, problem=message)


def _seconds_to_wait(console: Console, client: str) -> float:
    return max(console.failed_logins.seconds_until(client), console.all_failed_logins.seconds_until(_ALL))


def _spend_attempt(console: Console, client: str) -> None:
    console.failed_logins.spend_tokens(client)
    console.all_failed_logins.spend_tokens(_ALL)


def _return_attempt(console: Console, client: str) -> None:
    console.failed_logins.return_tokens(client)
    console.all_failed_logins.return_tokens(_ALL)


def _refuse_many(console: Console, request: Request, wait: float) -> Response:
    message = f"Too many attempts to log in: wait {ceil(wait)} seconds."
    response = _render_login(console, request, status=429, problem=message)
    response.headers["Retry-After"] = str(ceil(wait))
    return response


def _render_login(
    console: Console,
    request: Request,
    *,
    status: int = 200,
    link_token: str | None = None,
    problem: str | None = None,
) -> Response:
    visitor = request.cookies.get(VISITOR_COOKIE) or console.visitors.create_cookie()
    response = render(
        console,
        request,
        None,
        "login.html.j2",
        status=status,
        link_token=link_token,
        has_password=console.password_hash is not None,
        token=console.visitors.form_token(visitor),
        problem=problem,
    )
    response.set_cookie(
        VISITOR_COOKIE, visitor, httponly=True, samesite="strict", secure=console.is_encrypted
    )
    return response


async def _record(console: Console, action: ConsoleActionName, request: Request, result: str) -> None:
    """Record an action; a database that is down does not keep the operator out."""
    with suppress(JournalUnavailable):
        await console.record_action(action, request, result)
