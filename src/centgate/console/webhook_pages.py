"""Webhooks in the console: the receiver, the events that it has not accepted, and sending them again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from centgate.console.console import Console
from centgate.console.pages import read_last_id, redirect, render
from centgate.console.sessions import ConsoleSession
from centgate.payments.journal import webhook_outbox
from centgate.payments.journal.webhook_outbox import OUTBOX_STATES, OutboxState
from centgate.payments.notifications import webhook_actions
from centgate.payments.notifications.webhook_receiver import create_receiver
from centgate.payments.reports.console_actions import ConsoleActionName

PAGE_ROWS = 50
"""Events per page."""
_STATES: dict[str, OutboxState] = {each: each for each in OUTBOX_STATES}


async def show_webhooks(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show the receiver and a page of events, the newest first; of one state, or of all."""
    receiver = create_receiver(console.settings)
    status = await console.read(partial(webhook_actions.read_status, receiver))
    state = _STATES.get(request.query_params.get("state", ""))
    place = read_last_id(request)
    find = partial(webhook_outbox.list_events, PAGE_ROWS + 1, state=state, before=place)
    rows = await console.read(find)
    return render(
        console,
        request,
        session,
        "webhooks.html.j2",
        refreshes=place is None and state is None,
        origin=receiver.origin if receiver else None,
        delivery=status,
        states=OUTBOX_STATES,
        state=state,
        rows=rows[:PAGE_ROWS],
        last=rows[PAGE_ROWS - 1].id if len(rows) > PAGE_ROWS else None,
    )


async def resend_event(
    console: Console, request: Request, session: ConsoleSession, form: Mapping[str, str]
) -> Response:
    """Make an event due now, under the same id."""
    event = form.get("event", "")[:100]
    is_found = await console.store.run(partial(webhook_outbox.resend_event, event))
    result = f"{event} will be sent within seconds" if is_found else f"there is no event {event!r}"
    return await _finish(console, request, session, "resend", result)


async def resend_unsent(
    console: Console, request: Request, session: ConsoleSession, _form: Mapping[str, str]
) -> Response:
    """Make all events due now that were not sent."""
    result = webhook_actions.describe_resend(await webhook_actions.resend_all(console.store))
    return await _finish(console, request, session, "resend", result)


async def enable_receiver(
    console: Console, request: Request, session: ConsoleSession, _form: Mapping[str, str]
) -> Response:
    """Send events again to a receiver that answered 410."""
    is_enabled = await webhook_actions.enable_receiver(console.settings, console.store)
    result = webhook_actions.describe_enabling(is_enabled=is_enabled)
    return await _finish(console, request, session, "enable webhooks", result)


async def ping_receiver(
    console: Console, request: Request, session: ConsoleSession, _form: Mapping[str, str]
) -> Response:
    """Send a signed ping to the receiver, once."""
    receiver = create_receiver(console.settings)
    if receiver is None:
        return await _finish(console, request, session, "ping", "no receiver is set")
    result = webhook_actions.describe_ping(await webhook_actions.send_ping(console.settings))
    return await _finish(console, request, session, "ping", result)


async def _finish(
    console: Console, request: Request, session: ConsoleSession, name: ConsoleActionName, result: str
) -> Response:
    """Record an action in the log, and show the page with its result."""
    await console.record_action(name, request, result)
    session.notify(result)
    return redirect("/webhooks")
