"""The command `centgate mcp`: an MCP server over stdio for an agent on this machine."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from centgate.cli.buyer.exit_codes import (
    ExitCode,
    InvalidSettings,
    print_message,
    read_buyer_settings,
    reports_errors,
)

app = typer.Typer()


@app.command()
def mcp(
    api: Annotated[str | None, typer.Option(help="Address of the API (default: CENTGATE_API_URL).")] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="Network on which payments are allowed, such as eip155:8453; repeatable. Default: "
            "CENTGATE_NETWORKS, or only test networks if that is not set.",
        ),
    ] = None,
) -> None:
    """Serve an API's services to an agent as MCP tools over stdio, and pay for its calls within your caps."""
    raise typer.Exit(_run_server(api, tuple(network or ()) or None))


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
    with suppress(KeyboardInterrupt):
        anyio.run(serve_stdio, client, settings)
    return 0
