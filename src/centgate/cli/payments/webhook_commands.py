"""The `centgate payments webhooks` commands. Their implementation is imported when a command runs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from centgate.cli.options import Json

app = typer.Typer(
    name="webhooks",
    help="Show, test and resend the events that are sent to CENTGATE_WEBHOOK_URL.",
    no_args_is_help=True,
)
_EXIT_CODES = """\b
Exit codes:
0  done
1  the receiver did not accept it, no event has that id, or the journal
   cannot be read
2  wrong input or settings
"""


@app.command(epilog=_EXIT_CODES)
def status(*, as_json: Json = False) -> None:
    """Show the receiver, when it last accepted an event, and how many wait or have failed.

    --json prints {"receiver": ..., "lastSuccess": ..., "failingSince": ..., "disabledAt": ...,
    "oldestPending": ..., "pending": ..., "failed": ...}.
    """
    from centgate.cli.payments import context, webhooks

    shape = "json" if as_json else "table"
    raise typer.Exit(context.run_command(partial(webhooks.show_status, output_format=shape)))


@app.command("list", epilog=_EXIT_CODES)
def show_list(
    *,
    state: Annotated[
        Literal["pending", "sent", "failed"] | None,
        typer.Option(help="Only events that wait, that were accepted, or whose attempts all failed."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Events to show at most.")] = 20,
    as_json: Json = False,
) -> None:
    """Show events, newest first; they are kept for 30 days.

    --json prints {"events": [...]}, each with its id, type, state, time, attempts, nextAt, error, sentAt and
    the body that is sent.
    """
    from centgate.cli.payments import context, webhooks

    shape = "json" if as_json else "table"
    raise typer.Exit(
        context.run_command(
            partial(webhooks.list_webhooks, state=state, limit=limit, output_format=shape),
        )
    )


@app.command(epilog=_EXIT_CODES)
def test() -> None:
    """Send a signed event of type `ping` to the receiver, once."""
    from centgate.cli.payments import context, webhooks

    raise typer.Exit(context.run_command(webhooks.send_test))


@app.command(epilog=_EXIT_CODES)
def resend(
    event: Annotated[str | None, typer.Argument(metavar="[ID]", help="Its id: evt_…")] = None,
    *,
    unsent: Annotated[
        bool, typer.Option("--unsent", help="All events that wait or have failed, instead of one.")
    ] = False,
) -> None:
    """Send an event again, under the same id. A server does it within seconds.

    After a receiver was repaired, --unsent sends everything that it missed without waiting for the next
    attempts.
    """
    from centgate.cli.payments import context, webhooks

    raise typer.Exit(context.run_command(partial(webhooks.resend, event=event, unsent=unsent)))


@app.command(epilog=_EXIT_CODES)
def enable() -> None:
    """Send events again to a receiver that has answered 410, which stops them."""
    from centgate.cli.payments import context, webhooks

    raise typer.Exit(context.run_command(webhooks.enable))
