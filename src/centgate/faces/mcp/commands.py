"""`centgate mcp`: the services as tools for an agent on this machine."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from centgate.client.shell.telling import BadSettings, ExitCode, say, settings_given, told

app = typer.Typer()


@app.command()
def mcp(
    api: Annotated[
        str | None, typer.Option(help="The address of the API; CENTGATE_API_URL unless given.")
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="A network that may be paid on, such as eip155:8453; may be given again. CENTGATE_NETWORKS "
            "unless given, and else test networks alone.",
        ),
    ] = None,
) -> None:
    """Offer an API's services to an agent as MCP tools over stdio, and pay its calls under your caps."""
    raise typer.Exit(_serve(api, tuple(network or ()) or None))


@told
def _serve(api: str | None, networks: tuple[str, ...] | None) -> ExitCode:
    import anyio

    from centgate.client import AsyncCentgate
    from centgate.faces.mcp.over_stdio import serve_stdio

    settings = settings_given(api_url=api, networks=networks)
    if settings.open_wallet() is None:
        say("there is no wallet: tools are listed, and a call says how to make one (`centgate wallet new`)")
    try:
        client = AsyncCentgate.from_settings(settings, watch=say)
    except ValueError as error:
        raise BadSettings([str(error)]) from error
    with suppress(KeyboardInterrupt):
        anyio.run(serve_stdio, client, settings)
    return 0
