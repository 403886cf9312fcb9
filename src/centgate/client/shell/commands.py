"""`centgate call`, `centgate services` and `centgate wallet`: buying from a terminal.

What the commands do stands in modules of their own, loaded when one runs: help comes without them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()
wallet = typer.Typer(
    name="wallet", help="The key that pays, what it holds, and what was paid with it.", no_args_is_help=True
)
app.add_typer(wallet)

_EXITS = """\b
Exit codes:
0  an answer
1  it failed: nothing was signed, or the API says that no money moved
2  wrong input or usage
3  nothing is known of it: an answer too, and paid for
4  refused by a cap, the terms, the wallet or the balance: nothing was signed,
   or the API says that no money moved
5  paid and not delivered yet, or not known whether it was paid: run the same
   command again, it sends the same payment
130  stopped before anything was signed
"""


def _offered_slugs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from centgate.client.shell.completion import api_of, slugs

    return slugs(api_of(context.params.get("api")), incomplete)


def _offered_pairs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from centgate.client.shell.completion import api_of, pairs

    given = context.params
    return pairs(
        api_of(given.get("api")), given.get("slug") or "", list(given.get("pairs") or ()), incomplete
    )


Api = Annotated[str | None, typer.Option(help="The API's address; CENTGATE_API_URL unless given.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, and nothing else on standard output.")]
Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The service.", autocompletion=_offered_slugs)]
OneSlug = Annotated[
    str | None,
    typer.Argument(metavar="SLUG", help="One service, to be told in full.", autocompletion=_offered_slugs),
]
Pairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Its input. A list is given with commas, as JSON, or by giving its key again.",
        autocompletion=_offered_pairs,
    ),
]
Body = Annotated[str | None, typer.Option(help="The input as a JSON object; - reads it from standard input.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the terms; sign nothing. Needs no wallet.")]
MaxPrice = Annotated[
    str | None,
    typer.Option(metavar="USD", help="What the call may cost; CENTGATE_CAP_PER_CALL (0.02) unless given."),
]
Networks = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NETWORK",
        help="A network that may be paid on, such as eip155:8453; may be given again. CENTGATE_NETWORKS "
        "unless given, and else test networks alone.",
    ),
]
KeyFile = Annotated[Path | None, typer.Option(help="The key file; CENTGATE_WALLET unless given.")]
Rpc = Annotated[str | None, typer.Option(help="An Ethereum node that is asked for the balance.")]
NodeToAsk = Annotated[
    str | None,
    typer.Option(
        "--rpc",
        help="An Ethereum node of yours. Payments whose nonce it shows unused, ten minutes after their "
        "window, no longer count.",
    ),
]
Reset = Annotated[bool, typer.Option("--reset", help="Begin a new count: what was signed before is dropped.")]


@app.command(epilog=_EXITS)
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
) -> None:
    """Buy an answer of a service: ask, pay from the wallet under the caps, and show it.

    A payment that an earlier run left open is sent again for the same input, never a second one.
    """
    from centgate.client.shell.calling import Question, buy, show_terms

    question = Question(
        slug, tuple(pairs or ()), body, api=api, max_price=max_price, networks=tuple(network or ())
    )
    raise typer.Exit((show_terms if dry_run else buy)(question, json=as_json))


@app.command()
def services(slug: OneSlug = None, *, api: Api = None, as_json: Json = False) -> None:
    """Show what an API sells, or one of its services with all that it takes and gives."""
    from centgate.client.shell.calling import show_service, show_services

    raise typer.Exit(show_service(slug, api, json=as_json) if slug else show_services(api, json=as_json))


@wallet.command("new")
def new(path: KeyFile = None) -> None:
    """Make a key that pays, in a file that only you can read. The key is never shown."""
    from centgate.client.shell.holding import make_wallet

    raise typer.Exit(make_wallet(path))


@wallet.command("show")
def show(*, path: KeyFile = None, api: Api = None, rpc: Rpc = None) -> None:
    """Show the wallet's address, its network, what it holds, and how to fund it."""
    from centgate.client.shell.holding import show_wallet

    raise typer.Exit(show_wallet(path, api, rpc))


@wallet.command("receipts")
def receipts(*, as_json: Json = False) -> None:
    """Show what was paid, to whom, and what came of it."""
    from centgate.client.shell.holding import show_receipts

    raise typer.Exit(show_receipts(json=as_json))


@wallet.command("cap")
def cap(
    *,
    path: KeyFile = None,
    rpc: NodeToAsk = None,
    reset: Reset = False,
    as_json: Json = False,
) -> None:
    """Show what the wallet has signed for in all, as the ledger counts, and what its cap leaves."""
    from centgate.client.shell.total_cap import show_cap

    raise typer.Exit(show_cap(path, rpc, reset=reset, json=as_json))
