"""The command `centgate site`: serve the website, or write it as static files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from centgate.cli.options import Json
from centgate.cli.server_settings import load_settings
from centgate.cli.stop_signals import exit_on_stop_signals
from centgate.cli.terminal import exit_with_error, print_message
from centgate.client.catalog import CatalogUnavailable
from centgate.log import configure_logging
from centgate.website.validation import is_site_url

app = typer.Typer(
    name="site",
    help="Serve or build the website of an API, for people and for agents.",
    invoke_without_command=True,
    no_args_is_help=False,
)

Api = Annotated[str, typer.Option(help="Address of the API that the website describes.")]
Url = Annotated[str | None, typer.Option(help="Public address of the website (default: CENTGATE_SITE_URL).")]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 selects a free one.")]
LOCAL_API = "http://127.0.0.1:8402"


@app.callback()
def serve(
    context: typer.Context, api: Api = LOCAL_API, url: Url = None, host: Host = None, port: Port = 8403
) -> None:
    """Serve the website of an API; the API is read again every 30 seconds."""
    if context.invoked_subcommand:
        return
    from centgate.website.server import run_site

    address = parse_api_address(api)
    settings = load_settings(site_url=url, host=host, port=port)
    configure_logging(settings.log_level)
    try:
        with exit_on_stop_signals():
            run_site(address, settings)
    except (CatalogUnavailable, OSError) as error:
        exit_with_error(str(error))


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    api: Api = LOCAL_API,
    url: Url = None,
    *,
    as_json: Json = False,
) -> None:
    """Write the website as static files."""
    from centgate.api import wellknown_files
    from centgate.website.api_snapshot import read_snapshot
    from centgate.website.static_build import write_site as build_files

    address = parse_api_address(api)
    settings = load_settings(site_url=url)
    try:
        deployment = read_snapshot(address, settings.site_url)
        paths = build_files(deployment, out, wellknown_files.read_wellknown_files(settings.well_known))
    except (CatalogUnavailable, OSError) as error:
        exit_with_error(str(error))
    if settings.site_url is None:
        print_message(f"--url is not set: pages use the API's address {deployment.site} as their own")
    if as_json:
        print(json.dumps({"folder": str(out), "files": [str(path) for path in paths]}))
    else:
        print(f"{len(paths)} files in {out}")


def parse_api_address(text: str) -> str:
    """Return the API address without a trailing slash; exit with an error if it is not a URL."""
    if not is_site_url(text):
        exit_with_error(f"--api {text!r} is not an API address; example: https://api.example.com", 2)
    return text.rstrip("/")
