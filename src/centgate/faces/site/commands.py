"""`centgate site`: the website, served or written as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from centgate.client.catalog import CatalogUnread
from centgate.faces.site.admission import is_address
from centgate.log import set_up_logs
from centgate.terminal import fail, say, settings_given

app = typer.Typer(
    name="site",
    help="The website of an API: for people to read, for agents to find.",
    invoke_without_command=True,
    no_args_is_help=False,
)

Api = Annotated[str, typer.Option(help="The address of the API it tells of.")]
Url = Annotated[str | None, typer.Option(help="The website's own address; CENTGATE_SITE_URL unless given.")]
Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.")]
HERE = "http://127.0.0.1:8402"


@app.callback()
def serve(
    context: typer.Context, api: Api = HERE, url: Url = None, host: Host = None, port: Port = 8403
) -> None:
    """Serve the website of an API; it is read again every half minute."""
    if context.invoked_subcommand:
        return
    from centgate.faces.site.serving import run_site

    address = address_given(api)
    settings = settings_given(site_url=url, host=host, port=port)
    set_up_logs(settings.log_level)
    try:
        run_site(address, settings)
    except (CatalogUnread, OSError) as error:
        fail(str(error))


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="The folder to write to.")], api: Api = HERE, url: Url = None
) -> None:
    """Write the website as static files."""
    from centgate.faces import verification
    from centgate.faces.site.building import build as build_files
    from centgate.faces.site.deployment import read_deployment

    address = address_given(api)
    settings = settings_given(site_url=url)
    try:
        deployment = read_deployment(address, settings.site_url)
        written = build_files(deployment, out, verification.files(settings.well_known))
    except (CatalogUnread, OSError) as error:
        fail(str(error))
    if settings.site_url is None:
        say(f"no --url is given, so the pages say that they are at {deployment.site}, the API's address")
    print(f"{len(written)} files in {out}")


def address_given(text: str) -> str:
    """The address of an API as it is called, without a slash at its end; what is none ends the command."""
    if not is_address(text):
        fail(f"--api {text!r} is no address of an API: one looks like https://api.example.com", 2)
    return text.rstrip("/")
