"""Command line of `centgate call`, `centgate services` and `centgate wallet`.

The implementations are imported when a command runs, so that `--help` is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from centgate.cli.options import Json

app = typer.Typer()
wallet = typer.Typer(
    name="wallet", help="The key that pays, its balance, and its payments.", no_args_is_help=True
)
app.add_typer(wallet)

_EXIT_CODES = """\b
Exit codes:
0  an answer
1  it failed: nothing was signed, or the API reports that no money moved
2  wrong input or usage
3  the API has no data: a final answer, and charged
4  refused by a cap, the terms, the wallet or the balance: nothing was signed,
   or the API reports that no money moved
5  paid and not delivered yet, or payment state unknown: run the same command
   again, it sends the same payment
6  charged, and the payment is closed: the same command would pay again; what
   it bought is shown by `centgate wallet payments`
130  stopped before anything was signed
"""


def _complete_slugs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from centgate.cli.buyer.completion import api_origin, complete_slug

    return complete_slug(api_origin(context.params.get("api")), incomplete)


def _complete_pairs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from centgate.cli.buyer.completion import api_origin, complete_pair

    params = context.params
    return complete_pair(
        api_origin(params.get("api")), params.get("slug") or "", list(params.get("pairs") or ()), incomplete
    )


Api = Annotated[str | None, typer.Option(metavar="URL", help="The API's address; default CENTGATE_API_URL.")]
Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The service.", autocompletion=_complete_slugs)]
OneSlug = Annotated[
    str | None,
    typer.Argument(metavar="SLUG", help="One service, in full.", autocompletion=_complete_slugs),
]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Its input. A list takes commas, JSON, or a repeated key.",
        autocompletion=_complete_pairs,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and errors, and nothing else.")]
Body = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="The input as a JSON object; - reads it from standard input."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the terms; sign nothing. Needs no wallet.")]
MaxPrice = Annotated[
    str | None,
    typer.Option(metavar="USD", help="Maximum price of the call; default CENTGATE_CAP_PER_CALL (0.02)."),
]
Networks = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NETWORK",
        help="A network to allow payments on, such as eip155:8453; may be repeated. Default "
        "CENTGATE_NETWORKS, or test networks only.",
    ),
]
KeyFile = Annotated[Path | None, typer.Option(metavar="FILE", help="The key file; default CENTGATE_WALLET.")]
Rpc = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Your own Ethereum node, to read the balance; default CENTGATE_WALLET_RPC."
    ),
]
NodeToAsk = Annotated[
    str | None,
    typer.Option(
        "--rpc",
        metavar="URL",
        help="Your own Ethereum node; default CENTGATE_WALLET_RPC. Payments whose nonce it shows unused in a "
        "safe block, ten minutes after their window, stop counting.",
    ),
]
Transaction = Annotated[
    str | None,
    typer.Argument(metavar="TRANSACTION", help="A transaction, or a payment's nonce, to show its answers."),
]
RedeemBody = Annotated[
    str | None,
    typer.Option(
        "--body", metavar="JSON", help="The input that was paid for; - reads it from standard input."
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=100, help="Maximum number of payments.")]
Cursor = Annotated[str | None, typer.Option(help="The cursor of the previous page.")]
Reset = Annotated[bool, typer.Option("--reset", help="Reset the count: earlier payments stop counting.")]


@app.command(epilog=_EXIT_CODES)
def call(
    slug: Slug,
    pairs: Pairs = None,
    *,
    body: Body = None,
    api: Api = None,
    max_price: MaxPrice = None,
    network: Networks = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Buy an answer of a service: pay from the wallet within the caps, and print it.

    If an earlier run with the same input left a payment open, it is sent again, never a second one.
    """
    from centgate.cli.buyer.call import CallArguments, run_purchase, show_terms

    arguments = CallArguments(
        slug,
        tuple(pairs or ()),
        body,
        api=api,
        max_price=max_price,
        networks=tuple(network or ()),
        quiet=quiet,
    )
    raise typer.Exit((show_terms if dry_run else run_purchase)(arguments, json=as_json))


@app.command()
def services(slug: OneSlug = None, *, api: Api = None, as_json: Json = False) -> None:
    """Show the services of an API, or one service with its input and output fields."""
    from centgate.cli.buyer.call import show_service, show_services

    raise typer.Exit(show_service(slug, api, json=as_json) if slug else show_services(api, json=as_json))


@wallet.command("new")
def new(path: KeyFile = None, *, as_json: Json = False, quiet: Quiet = False) -> None:
    """Generate a key in a file that only you can read. The key is never printed."""
    from centgate.cli.buyer.wallet import make_wallet

    raise typer.Exit(make_wallet(path, json=as_json, quiet=quiet))


@wallet.command("show")
def show(*, path: KeyFile = None, api: Api = None, rpc: Rpc = None, as_json: Json = False) -> None:
    """Show the wallet's address, network and balance, and how to fund it."""
    from centgate.cli.buyer.wallet import show_wallet

    raise typer.Exit(show_wallet(path, api, rpc, json=as_json))


@wallet.command("receipts")
def receipts(*, as_json: Json = False) -> None:
    """Show every payment with its payee and outcome."""
    from centgate.cli.buyer.wallet import show_receipts

    raise typer.Exit(show_receipts(json=as_json))


@wallet.command("payments")
def payments(
    transaction: Transaction = None,
    *,
    body: RedeemBody = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    path: KeyFile = None,
    api: Api = None,
    as_json: Json = False,
) -> None:
    """Show the wallet's payments as the API knows them; a transaction with its answers.

    For a purchase whose payment or answer was lost. The wallet signs in with a message; nothing is paid. With
    --body, the request as it was paid for, an answer that is still owed is fetched.
    """
    from centgate.cli.buyer.payments import redeem_answer, show_payment, show_payments

    if transaction is None:
        if body is not None:
            raise typer.BadParameter("--body needs a transaction")
        raise typer.Exit(show_payments(limit, cursor, path, api, json=as_json))
    if body is not None:
        raise typer.Exit(redeem_answer(transaction, body, path, api, json=as_json))
    raise typer.Exit(show_payment(transaction, path, api, json=as_json))


@wallet.command("cap")
def cap(
    *,
    path: KeyFile = None,
    rpc: NodeToAsk = None,
    reset: Reset = False,
    as_json: Json = False,
) -> None:
    """Show the total that the wallet has signed, as counted by the ledger, and what remains of the cap."""
    from centgate.cli.buyer.total_cap import show_cap

    raise typer.Exit(show_cap(path, rpc, reset=reset, json=as_json))
