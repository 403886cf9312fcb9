"""The commands `centgate payments webhooks`."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from centgate.cli.payments import render
from centgate.cli.payments.context import (
    CommandContext,
    ExitCode,
    InvalidArgument,
    OutputFormat,
    print_renderable,
)
from centgate.cli.terminal import print_json, print_message, text_line
from centgate.payments.journal import webhook_outbox
from centgate.payments.journal.webhook_outbox import OutboxEntry, OutboxState
from centgate.payments.notifications import webhook_actions
from centgate.payments.notifications.webhook_receiver import create_receiver
from centgate.payments.time_format import format_age, format_iso

NOT_SET = "no webhooks are sent: CENTGATE_WEBHOOK_URL and CENTGATE_WEBHOOK_SECRET are not set"


async def show_status(context: CommandContext, *, output_format: OutputFormat) -> ExitCode:
    """Show the state of the receiver, and the numbers of events that it has not accepted."""
    receiver = create_receiver(context.settings)
    status = await context.journal.reader.read(partial(webhook_actions.read_status, receiver))
    state, outbox = status.receiver, status.outbox
    times = {
        "lastSuccess": state.succeeded_at,
        "failingSince": state.failing_since,
        "disabledAt": state.disabled_at,
        "oldestPending": outbox.oldest,
    }
    shown = {name: None if at is None else format_iso(at) for name, at in times.items()}
    origin = receiver.origin if receiver else None
    if output_format == "json":
        print_json({"receiver": origin, **shown, "pending": outbox.pending, "failed": outbox.failed})
        return 0
    lines = [
        f"receiver      {origin}" if origin else NOT_SET,
        f"last success  {shown['lastSuccess'] or 'never'}",
        *([f"failing since {shown['failingSince']}"] if state.failing_since else []),
        *([f"disabled      {shown['disabledAt']}: it answered 410"] if state.disabled_at else []),
        f"pending       {outbox.pending}{_describe_age(outbox.oldest, context.view.now)}",
        f"failed        {outbox.failed}",
    ]
    for line in lines:
        print_renderable(text_line(line))
    if state.disabled_at:
        print_message("`centgate payments webhooks enable` sends events again")
    return 0


async def list_webhooks(
    context: CommandContext, *, state: OutboxState | None, limit: int, output_format: OutputFormat
) -> ExitCode:
    """Show the newest events of the outbox."""
    entries = await context.journal.reader.read(partial(webhook_outbox.list_events, limit, state=state))
    if output_format == "json":
        print_json({"events": [_event_members(each) for each in entries]})
    elif entries:
        print_renderable(render.webhooks_table(entries))
    else:
        print_message("there is no such event" if state else "there is no event")
    return 0


async def send_test(context: CommandContext) -> ExitCode:
    """Send a ping to the receiver, once."""
    receiver = create_receiver(context.settings)
    if receiver is None:
        raise InvalidArgument(NOT_SET)
    result = await webhook_actions.send_ping(context.settings)
    await context.record_action("ping", webhook_actions.describe_ping(result))
    if result.outcome == "accepted":
        print_renderable(text_line(f"{receiver.origin} accepted a ping"))
        return 0
    print_message(f"{receiver.origin} did not accept a ping: {result.error}")
    return 1


async def resend(context: CommandContext, *, event: str | None, unsent: bool) -> ExitCode:
    """Make an event due now, or all that were not sent."""
    if (event is None) != unsent:
        raise InvalidArgument("give the id of an event, or --unsent")
    store = context.store
    if event is None:
        text = webhook_actions.describe_resend(await webhook_actions.resend_all(store))
        await context.record_action("resend", text)
        print_renderable(text_line(text))
        return 0
    if not await store.run(partial(webhook_outbox.resend_event, event)):
        print_message(f"there is no event {event!r}: `centgate payments webhooks list` shows those kept")
        return 1
    text = f"{event} will be sent within seconds"
    await context.record_action("resend", text)
    print_renderable(text_line(text))
    return 0


async def enable(context: CommandContext) -> ExitCode:
    """Send events again to a receiver that answered 410."""
    if create_receiver(context.settings) is None:
        raise InvalidArgument(NOT_SET)
    is_enabled = await webhook_actions.enable_receiver(context.settings, context.store)
    text = webhook_actions.describe_enabling(is_enabled=is_enabled)
    await context.record_action("enable webhooks", text)
    print_renderable(text_line(text))
    return 0


def _event_members(entry: OutboxEntry) -> dict[str, Any]:
    return {
        "id": entry.event,
        "type": entry.type,
        "state": entry.state,
        "time": format_iso(entry.occurred_at),
        "attempts": entry.attempts,
        "nextAt": None if entry.next_at is None else format_iso(entry.next_at),
        "error": entry.error,
        "sentAt": None if entry.sent_at is None else format_iso(entry.sent_at),
        "body": orjson.loads(entry.payload),
    }


def _describe_age(oldest: float | None, now: float) -> str:
    return "" if oldest is None else f", the oldest for {format_age(now - oldest)}"
