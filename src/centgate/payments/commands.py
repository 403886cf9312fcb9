"""`centgate payments`: what was paid, what came of it, and what is owed.

What the commands do stands in modules of their own, loaded when one runs: help comes without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

import typer

from centgate.payments.columns import COLUMNS, DAILY, OWED

app = typer.Typer(
    name="payments",
    help="Look after payments: what was paid, what came of it, what is owed. Reads the journal that "
    "CENTGATE_DATABASE_URL names, also while servers run.",
    no_args_is_help=True,
)

_TIMES = (
    "Times are a date (2026-11-21), a UTC time (2026-11-21T09:00:00Z) or how long ago (30m, 24h, 7d, 2w)."
)
_EXITS = """\b
Exit codes:
0  done, also where there is nothing to show
1  the journal cannot be read or has another version, or nothing has that name
2  wrong input or settings
"""
_RECONCILED = """\b
Exit codes:
0  nothing is open any more
1  some payments are open still, or the journal cannot be read
2  wrong input or settings
"""


_AUDITED_EXITS = """\b
Exit codes:
0  nothing was found
1  something was found, or a part could not be audited
2  wrong input or settings
"""


def _block(title: str, columns: Mapping[str, str]) -> str:
    width = max(map(len, columns))
    return "\n".join(["\b", title, *(f"{name:<{width}}  {meaning}" for name, meaning in columns.items())])


_MEMBERS = "Members of each payment, null where there is nothing:"
_LISTED = _block(_MEMBERS, COLUMNS)
_EXPORTED = _block("Columns of CSV, and members of lines of JSON:", COLUMNS)
_SUMMED = _block("Columns, and members:", DAILY)
_OWED = _block("Columns of CSV, and members of JSON:", OWED)
_TOLD = _block(
    _MEMBERS,
    {
        **COLUMNS,
        "validBefore": "when its authorization ends, in seconds since 1970",
        "paymentIdentifier": "the buyer's idempotency key",
        "attempts": "tries to find out what became of it",
        "retryAt": "the next of them",
        "events": "what happened: at, what",
        "owed": "what is owed to the buyer, in words",
        "toDo": "what the operator can do, in words",
        "answer": "what is kept of it: status, bytes, storedAt; with --body, body",
    },
)
_ASKED = _block(
    "Members of what was asked about:",
    {
        "network, asset, payer, nonce": "which payment it is",
        "before, after": "its states: settling, settled or refused",
        "transaction": "where it settled, or may have",
        "reason": "why it was refused, or is open still",
    },
)

_FOUND = _block(
    "Members of each finding, null where there is nothing:",
    {
        "finding": "refused, open, unknown or not_on_chain",
        "network, asset, payTo": "who was paid, in which token",
        "payer, nonce": "which payment it is",
        "amount, dollars": "what was paid, or was to be",
        "transaction": "of the transfer; where there is none, the one that the journal has",
        "block": "of the transfer",
        "state, service, time": "of the payment in the journal",
        "meaning, toDo": "in words",
    },
)
_AUDITED = _block(
    "Members of what was audited, one for each token and address:",
    {
        "network, asset, payTo": "who is paid, in which token",
        "fromBlock, toBlock": "the blocks that were read",
        "transfers": "by authorization, which these blocks have",
        "payments": "of the journal, which were looked for on the chain",
        "problem": "what ended it early",
    },
)

Json = Annotated[bool, typer.Option("--json", help="As JSON, and nothing else on standard output.")]
State = Annotated[
    str | None,
    typer.Option(
        metavar="STATE",
        help="settling, settled, delivered, refused or unused (never sent to the facilitator); open: not "
        "known what became of it; redeemable: paid, and its answer can be fetched; refundable: paid, too "
        "late for that; refunded.",
    ),
]
Service = Annotated[str | None, typer.Option(metavar="SLUG", help="Presented for this service.")]
Payer = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Paid from this address.")]
Transaction = Annotated[str | None, typer.Option(metavar="HASH", help="Settled in this transaction.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Presented then or later.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Presented before then.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its transaction, nonce, request id, or payer:nonce.")
]
AsRows = Annotated[
    Literal["table", "csv", "jsonl"], typer.Option("--format", help="As a table, CSV or lines of JSON.")
]


@app.command("list", epilog=f"{_TIMES}\n\n{_LISTED}\n\n{_EXITS}")
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
        str | None, typer.Option(metavar="NEXT", help="The page after one: what that one says under `next`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show payments, newest first.

    --json gives {"payments": [...], "next": ...}; `next` is for --after, null on the last page.
    """
    from centgate.payments import browsing, desk

    question = browsing.Question(state, service, payer, transaction, since, until)
    shape = "json" if as_json else "table"
    work = partial(browsing.show_list, question=question, limit=limit, past=after, shape=shape)
    raise typer.Exit(desk.perform(work))


@app.command(epilog=f"{_TOLD}\n\n{_EXITS}")
def show(
    name: Name,
    *,
    body: Annotated[bool, typer.Option("--body", help="With the answer's body, while it is kept.")] = False,
    as_json: Json = False,
) -> None:
    """Show all that is known of a payment: what happened, what is owed, what to do.

    A name can be shortened in the middle, as tables show it. --json gives {"payments": [...]}, since several
    can share a transaction.
    """
    from centgate.payments import browsing, desk

    work = partial(browsing.show_one, name=name, body=body, shape="json" if as_json else "table")
    raise typer.Exit(desk.perform(work))


@app.command(epilog=f"{_TIMES}\n\n{_EXPORTED}\n\n{_EXITS}")
def export(
    *,
    out: Annotated[str, typer.Option(metavar="FILE", help="Where to; - is standard output.")] = "-",
    form: Annotated[
        Literal["csv", "jsonl"] | None,
        typer.Option("--format", help="Unless given, what the name of --out ends in."),
    ] = None,
    state: State = None,
    service: Service = None,
    payer: Payer = None,
    since: Since = None,
    until: Until = None,
    days: Annotated[bool, typer.Option("--daily", help="The figures of `payments summary` instead.")] = False,
) -> None:
    """Write all payments, oldest first, as CSV or as lines of JSON.

    A file is there when it is whole, and not before. What comes while it is written is left to the next
    one. In CSV, a text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    from centgate.payments import browsing, desk

    question = browsing.Question(state, service, payer, None, since, until)
    work = partial(browsing.export, question=question, out=out, form=form, days=days)
    raise typer.Exit(desk.perform(work))


@app.command(epilog=f"{_TIMES}\n\n{_SUMMED}\n\n{_EXITS}")
def summary(
    *, since: Since = None, until: Until = None, form: AsRows = "table", as_json: Json = False
) -> None:
    """Show figures for each UTC day, network and token.

    A payment counts on the day it was presented on. --json gives {"days": [...], "totals": [...]}.
    """
    from centgate.payments import browsing, desk

    question = browsing.Question(since=since, until=until)
    work = partial(browsing.summarise, question=question, shape="json" if as_json else form)
    raise typer.Exit(desk.perform(work))


@app.command("refund-list", epilog=f"{_OWED}\n\n{_EXITS}")
def refund_list(
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what can still be redeemed by its buyer.")
    ] = False,
    form: AsRows = "table",
    as_json: Json = False,
) -> None:
    """Show payments that were taken, never delivered, and can no longer be redeemed.

    It moves no money. Pay back by a plain transfer from a wallet of yours, then enter it with
    `payments refunded`. --json gives {"payments": [...], "totals": [...]}.
    """
    from centgate.payments import desk, owing

    shape = "json" if as_json else form
    work = partial(owing.list_refunds, redeemable_too=everything, shape=shape)
    raise typer.Exit(desk.perform(work))


@app.command(epilog=_EXITS)
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
    """Enter that a payment was paid back, so that it leaves the list.

    The transaction is looked up: it must have moved what is owed, of the payment's token, to its payer. One
    transaction can pay back several payments of a payer. A payment that was refused can be entered too if
    the chain shows that its money came all the same.
    """
    from centgate.payments import desk, owing

    work = partial(owing.enter, name=name, transaction=transaction, unchecked=unchecked)
    raise typer.Exit(desk.perform(work))


@app.command(epilog=f"{_ASKED}\n\n{_RECONCILED}")
def reconcile(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be asked about.")] = False,
    rpc: Annotated[
        str | None, typer.Option(metavar="URL", help="A node of the payment network to ask, for this once.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find out, once and now, what became of every payment that is open.

    --json gives {"resolved": [...], "open": [...]}: what came of each that was asked about, and what is open
    still. With --dry-run it gives {"wouldAsk": [...]}.
    """
    from centgate.payments import desk, resolving

    shape = "json" if as_json else "table"
    raise typer.Exit(desk.perform(partial(resolving.reconcile, dry_run=dry_run, rpc=rpc, shape=shape)))


@app.command(epilog=f"{_TIMES}\n\n{_FOUND}\n\n{_AUDITED}\n\n{_AUDITED_EXITS}")
def audit(
    *,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Blocks from then on; a day ago unless given.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Blocks before then; the newest safe one unless given.")
    ] = None,
    from_block: Annotated[int | None, typer.Option(min=0, help="The first block, instead of a time.")] = None,
    to_block: Annotated[int | None, typer.Option(min=0, help="The last block, instead of a time.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the last audit without a gap has ended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare the journal with the EIP-3009 transfers on the chain that reached your addresses.

    Finds payments that were taken although their buyers were told that they were not, that nobody here knows,
    or that were never taken although they are settled here. Asks the nodes of CENTGATE_RPC_<CHAINID>_URL, or
    public ones of which two must agree, slowly; reads blocks that the network calls safe. Servers audit the
    last day by themselves about once an hour. --json gives {"findings": [...], "audited": [...]}.
    """
    from centgate.payments import audit_command, desk

    period = audit_command.Period(since, until, from_block, to_block, resume)
    shape = "json" if as_json else "table"
    raise typer.Exit(desk.perform(partial(audit_command.audit, period=period, shape=shape)))
