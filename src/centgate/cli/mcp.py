"""The command `centgate mcp`: an MCP server over stdio for an agent on this machine, and its installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from centgate.cli.buyer.exit_codes import (
    ExitCode,
    InvalidSettings,
    read_buyer_settings,
    reports_errors,
)
from centgate.cli.mcp_install import Program
from centgate.cli.stop_signals import exit_on_stop_signals
from centgate.cli.terminal import print_message

app = typer.Typer(name="mcp", invoke_without_command=True, no_args_is_help=False)

Api = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of the API (default: CENTGATE_API_URL).")
]
Networks = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NETWORK",
        help="Network on which payments are allowed, such as eip155:8453; repeatable. Default: "
        "CENTGATE_NETWORKS, or only test networks if that is not set.",
    ),
]


@app.callback()
def mcp(context: typer.Context, *, api: Api = None, network: Networks = None) -> None:
    """Serve an API's services to an agent as MCP tools over stdio, and pay for its calls within your caps."""
    if context.invoked_subcommand is None:
        raise typer.Exit(_run_server(api, tuple(network or ()) or None))
    if api or network:
        raise typer.BadParameter(f"put options after {context.invoked_subcommand!r}")


@app.command()
def install(
    program: Annotated[Program, typer.Option("--for", help="The program to add the server to.")],
    *,
    api: Api = None,
    network: Networks = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Its configuration, if it is not the user's own at its usual place."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, and nothing else on standard output; never asks.")
    ] = False,
) -> None:
    """Add the server to the configuration of Claude Code, Claude Desktop, Cursor, VS Code or Codex.

    `claude` is Claude Code; with `--file .mcp.json`, the server is for one of its projects. Shows the change
    first, and writes it once you confirm. Caps, networks, the payee, the proxy and the paths of wallet and
    ledger are taken from the environment; a key and a proxy's password never are.
    """
    from centgate.cli import mcp_install

    networks = tuple(network or ())
    code = mcp_install.install(
        program, api=api, networks=networks, file=file, yes=yes, json=as_json, confirm=typer.confirm
    )
    raise typer.Exit(code)


@reports_errors
def _run_server(api: str | None, networks: tuple[str, ...] | None) -> ExitCode:
    import anyio

    from centgate.cli.mcp_stdio import serve_stdio
    from centgate.client import AsyncCentgate

    settings = read_buyer_settings(api_url=api, networks=networks)
    if settings.open_wallet() is None:
        print_message(
            "no wallet found: tools are listed, but calls fail until you create one (`centgate wallet new`)"
        )
    try:
        client = AsyncCentgate.from_settings(settings, watch=print_message)
    except ValueError as error:
        raise InvalidSettings([str(error)]) from error
    with exit_on_stop_signals():
        anyio.run(serve_stdio, client, settings)
    return 0
