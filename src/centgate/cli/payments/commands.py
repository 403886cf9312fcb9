"""The `centgate payments` commands: list, show, export, total, refund, reconcile and audit payments.

Their implementations are in other modules, imported when a command runs, so that help is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Annotated, Literal

import typer

from centgate.cli.options import Json
from centgate.cli.payments import webhook_commands
from centgate.cli.payments.export_columns import (
    DAILY_COLUMNS,
    PAYMENT_COLUMNS,
    REFUND_COLUMNS,
    totals_columns,
)
from centgate.payments.reports.totals_group import TotalsGroup

app = typer.Typer(
    name="payments",
    help="Manage payments: list, show, export, refund, reconcile and audit them, and send their webhooks. "
    "Reads the journal of CENTGATE_DATABASE_URL, also while servers run.",
    no_args_is_help=True,
)

app.add_typer(webhook_commands.app)

HELP_WIDTH = 78
"""Characters of a line of help, which a terminal of 80 shows indented."""
_TIMES_HELP = "Times are a date (2026-11-21), a UTC time (2026-11-21T09:00:00Z) or an age (30m, 24h, 7d, 2w)."
_EXIT_CODES = """\b
Exit codes:
0  done, also if there is nothing to show
1  there is no journal, it cannot be read or has another version, or no
   payment has that name
2  wrong input or settings
"""
_RECONCILE_EXIT_CODES = """\b
Exit codes:
0  no payment is open
1  some payments are still open, there is no journal, or it cannot be read
2  wrong input or settings
"""


_AUDIT_EXIT_CODES = """\b
Exit codes:
0  no findings
1  there are findings, or a part could not be audited
2  wrong input or settings
"""


def _format_block(title: str, columns: Mapping[str, str]) -> str:
    width = max(map(len, columns)) + 2
    lines = (
        fill(meaning, HELP_WIDTH, initial_indent=f"{name:<{width}}", subsequent_indent=" " * width)
        for name, meaning in columns.items()
    )
    return "\n".join(["\b", title, *lines])


_MEMBERS_TITLE = "Members of each payment, null if empty:"
_LIST_HELP = _format_block(_MEMBERS_TITLE, PAYMENT_COLUMNS)
_EXPORT_HELP = _format_block("Columns of CSV, and members of lines of JSON:", PAYMENT_COLUMNS)
_SUMMARY_HELP = _format_block("Columns, and members:", DAILY_COLUMNS)
_TOTALS_HELP = _format_block("Columns, and members, by payer:", totals_columns("payer"))
_REFUND_LIST_HELP = _format_block("Columns of CSV, and members of JSON:", REFUND_COLUMNS)
_DETAILS_HELP = _format_block(
    _MEMBERS_TITLE,
    {
        **PAYMENT_COLUMNS,
        "validBefore": "when its authorization expires, in seconds since 1970",
        "paymentIdentifier": "the buyer's idempotency key",
        "attempts": "number of attempts to look up its outcome",
        "retryAt": "time of the next attempt",
        "events": "its events: at, what",
        "owed": "what is owed to the buyer, as text",
        "toDo": "what the operator can do, as text",
        "answer": "the stored answer: status, bytes, storedAt; with --body, body",
    },
)
_LOOKUP_HELP = _format_block(
    "Members of each payment that was looked up:",
    {
        "network, asset, payer, nonce": "identify the payment",
        "before, after": "its states: settling, settled or refused",
        "transaction": "the settlement's transaction, or a possible one",
        "reason": "why it was refused, or is still open",
    },
)

_FINDINGS_HELP = _format_block(
    "Members of each finding, null if empty:",
    {
        "finding": "refused, open, unknown or not_on_chain",
        "network, asset, payTo": "payee and token",
        "payer, nonce": "identify the payment",
        "amount, dollars": "what was paid, or should have been",
        "transaction": "of the transfer; without a transfer, the one in the journal",
        "block": "of the transfer",
        "state, service, time": "of the payment in the journal",
        "meaning, toDo": "explanation and next step, as text",
    },
)
_AUDITED_HELP = _format_block(
    "Members of each audited token and address:",
    {
        "network, asset, payTo": "payee and token",
        "fromBlock, toBlock": "range of blocks read",
        "transfers": "number of transfers by authorization in these blocks",
        "payments": "number of the journal's payments looked up on the chain",
        "problem": "why it ended early",
    },
)

State = Annotated[
    str | None,
    typer.Option(
        metavar="STATE",
        help="settling, settled, delivered, refused or unused (never sent to the facilitator); open: outcome "
        "unknown; redeemable: paid, and its answer can be fetched; refundable: paid, and its answer can no "
        "longer be fetched; refunded.",
    ),
]
Service = Annotated[str | None, typer.Option(metavar="SLUG", help="Presented for this service.")]
Payer = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Paid from this address.")]
Transaction = Annotated[str | None, typer.Option(metavar="HASH", help="Settled in this transaction.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Presented at this time or later.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Presented before this time.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A transaction (its own or its refund's), nonce, request id or payer:nonce."
    ),
]
AsRows = Annotated[
    Literal["table", "csv", "jsonl"], typer.Option("--format", help="As a table, CSV or lines of JSON.")
]


@app.command("list", epilog=f"{_TIMES_HELP}\n\n{_LIST_HELP}\n\n{_EXIT_CODES}")
def show_list(
    *,
    state: State = None,
    service: Service = None,
    payer: Payer = None,
    transaction: Transaction = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Payments to show at most.")] = 20,
    after: Annotated[
        str | None,
        typer.Option(metavar="NEXT", help="Show the next page: the value of `next` from the previous page."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show payments, newest first.

    --json prints {"payments": [...], "next": ...}; `next` is for --after, null on the last page.
    """
    from centgate.cli.payments import context, queries

    options = queries.PaymentFilterOptions(state, service, payer, transaction, since, until)
    shape = "json" if as_json else "table"
    work = partial(queries.list_payments, options=options, limit=limit, after=after, output_format=shape)
    raise typer.Exit(context.run_command(work))


@app.command(epilog=f"{_DETAILS_HELP}\n\n{_EXIT_CODES}")
def show(
    name: Name,
    *,
    body: Annotated[
        bool, typer.Option("--body", help="Include the answer's body, if it is still stored.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show all details of a payment: its events, what is owed, what to do.

    A name can be shortened in the middle, as tables show it. --json prints {"payments": [...]}, since several
    payments can share a transaction.
    """
    from centgate.cli.payments import context, queries

    work = partial(
        queries.show_payment, name=name, include_body=body, output_format="json" if as_json else "table"
    )
    raise typer.Exit(context.run_command(work))


@app.command(epilog=f"{_TIMES_HELP}\n\n{_EXPORT_HELP}\n\n{_EXIT_CODES}")
def export(
    *,
    out: Annotated[str, typer.Option(metavar="FILE", help="Output file; - is standard output.")] = "-",
    form: Annotated[
        Literal["csv", "jsonl"] | None,
        typer.Option("--format", help="Default: by the suffix of --out."),
    ] = None,
    state: State = None,
    service: Service = None,
    payer: Payer = None,
    since: Since = None,
    until: Until = None,
    days: Annotated[
        bool, typer.Option("--daily", help="Export the figures of `payments summary` instead.")
    ] = False,
) -> None:
    """Write all payments, oldest first, as CSV or as lines of JSON.

    A file appears only when it is complete. Payments that arrive during the export are not included.
    In CSV, a text that a spreadsheet would treat as a formula begins with an apostrophe.
    """
    from centgate.cli.payments import context, queries

    options = queries.PaymentFilterOptions(state, service, payer, None, since, until)
    work = partial(queries.export_payments, options=options, out=out, file_format=form, days=days)
    raise typer.Exit(context.run_command(work))


@app.command(epilog=f"{_TIMES_HELP}\n\n{_SUMMARY_HELP}\n\n{_EXIT_CODES}")
def summary(
    *, since: Since = None, until: Until = None, form: AsRows = "table", as_json: Json = False
) -> None:
    """Show figures for each UTC day, network and token.

    A payment counts for the day it was presented on. --json prints {"days": [...], "totals": [...]}.
    """
    from centgate.cli.payments import context, queries

    options = queries.PaymentFilterOptions(since=since, until=until)
    work = partial(queries.show_summary, options=options, output_format="json" if as_json else form)
    raise typer.Exit(context.run_command(work))


@app.command(epilog=f"{_TIMES_HELP}\n\n{_TOTALS_HELP}\n\n{_EXIT_CODES}")
def totals(
    *,
    by: Annotated[TotalsGroup, typer.Option(help="What the figures are grouped by.")] = "service",
    service: Service = None,
    payer: Payer = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Groups to show at most; default: 50 in a table, else all.")
    ] = None,
    form: AsRows = "table",
    as_json: Json = False,
) -> None:
    """Show figures for each payer, service, UTC day or network, and token.

    Payers and services with the largest charged amount come first. --json prints {"groups": [...],
    "totals": [...]}; the totals are of all groups, also of those beyond --limit. Refused and unused payments
    are counted until they are pruned; charged ones are never pruned.
    """
    from centgate.cli.payments import context, queries

    options = queries.PaymentFilterOptions(service=service, payer=payer, since=since, until=until)
    shape = "json" if as_json else form
    work = partial(queries.show_totals, options=options, by=by, limit=limit, output_format=shape)
    raise typer.Exit(context.run_command(work))


@app.command("refund-list", epilog=f"{_REFUND_LIST_HELP}\n\n{_EXIT_CODES}")
def refund_list(
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Include payments that the buyer can still redeem.")
    ] = False,
    form: AsRows = "table",
    as_json: Json = False,
) -> None:
    """Show payments that were charged, never delivered, and can no longer be redeemed.

    It moves no money. Refund by a plain transfer from your own wallet, then record it with
    `payments refunded`. --json prints {"payments": [...], "totals": [...]}.
    """
    from centgate.cli.payments import context, refunds

    shape = "json" if as_json else form
    work = partial(refunds.show_refund_list, include_redeemable=everything, output_format=shape)
    raise typer.Exit(context.run_command(work))


@app.command(epilog=_EXIT_CODES)
def refunded(
    name: Name,
    *,
    transaction: Annotated[
        str, typer.Option("--in", metavar="HASH", help="The transaction that paid it back.")
    ],
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Without looking the transaction up on the chain.")
    ] = False,
) -> None:
    """Record the refund of a payment, which removes it from the list.

    The transaction is looked up: it must transfer the owed amount of the payment's token to its payer. One
    transaction can refund several payments of a payer. A refused payment can be refunded too if
    the chain shows that it was charged nevertheless.
    """
    from centgate.cli.payments import context, refunds

    work = partial(refunds.mark_refunded, name=name, transaction=transaction, unchecked=unchecked)
    raise typer.Exit(context.run_command(work))


@app.command(epilog=f"{_LOOKUP_HELP}\n\n{_RECONCILE_EXIT_CODES}")
def reconcile(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the payments that would be looked up.")
    ] = False,
    rpc: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="A node of the payment network to use for this run; with several networks NETWORK=URL, such "
            "as eip155:8453=https://…, once for each.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look up, once and now, the outcome of every open payment.

    --json prints {"resolved": [...], "open": [...]}: the result of each lookup, and the payments that are
    still open. With --dry-run it prints {"wouldAsk": [...]}.
    """
    from centgate.cli.payments import context, reconcile

    shape = "json" if as_json else "table"
    work = partial(reconcile.reconcile_now, dry_run=dry_run, nodes=rpc or (), output_format=shape)
    raise typer.Exit(context.run_command(work))


@app.command(epilog=f"{_TIMES_HELP}\n\n{_FINDINGS_HELP}\n\n{_AUDITED_HELP}\n\n{_AUDIT_EXIT_CODES}")
def audit(
    *,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Start time; default: a day ago.")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End time; default: the newest safe block.")
    ] = None,
    from_block: Annotated[int | None, typer.Option(min=0, help="First block, instead of a time.")] = None,
    to_block: Annotated[int | None, typer.Option(min=0, help="Last block, instead of a time.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue where the last audit without a gap ended.")
    ] = False,
    network: Annotated[
        str | None, typer.Option(metavar="NETWORK", help="Only this network, such as eip155:8453.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the journal with the EIP-3009 transfers to your addresses on the chain.

    Finds payments that were charged although the journal has them as refused, that the journal does not have,
    or that are settled in the journal but not on the chain. Uses the nodes of CENTGATE_RPC_<CHAINID>_URL, or
    public ones of which two must agree, at a slow rate; reads blocks marked as safe. Servers audit the
    last day by themselves about once an hour. --json prints {"findings": [...], "audited": [...]}.
    """
    from centgate.cli.payments import audit, context

    period = audit.AuditPeriod(since, until, from_block, to_block, resume, network)
    shape = "json" if as_json else "table"
    raise typer.Exit(context.run_command(partial(audit.audit_now, period=period, output_format=shape)))


@app.command(epilog=_EXIT_CODES)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file to write the copy to.")],
) -> None:
    """Copy a SQLite journal to a new file, also while servers write to it.

    The copy is one moment of the journal, checked and on the disk when the command ends. For PostgreSQL
    use pg_dump.
    """
    from centgate.cli.payments import backup

    raise typer.Exit(backup.write_backup(file))
