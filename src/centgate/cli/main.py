"""Entry point of the `centgate` command."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from centgate.cli.buyer import commands as buying

if TYPE_CHECKING:
    from centgate.settings import Settings

LAZY_COMMANDS: Mapping[str, str] = {
    "doctor": "centgate.cli.doctor.commands",
    "mcp": "centgate.cli.mcp",
    "migrate": "centgate.cli.migrate",
    "payments": "centgate.cli.payments.commands",
    "phishing-list": "centgate.cli.phishing_list",
    "receipt": "centgate.cli.buyer.receipt",
    "site": "centgate.cli.website",
}
"""LazyCommandGroup declared in other modules: the command's name, and the module that defines its `app`."""


class LazyCommandGroup(TyperGroup):
    """Lazy command group: imports a command's module only when it runs, so that buyer commands start fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, loaded or not."""
        return [*super().list_commands(ctx), *(name for name in LAZY_COMMANDS if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name, or None."""
        if cmd_name in LAZY_COMMANDS and cmd_name not in self.commands:
            group = typer.Typer()
            group.add_typer(import_module(LAZY_COMMANDS[cmd_name]).app)
            self.commands.update(get_group(group).commands)
        return _unwrap_help(super().get_command(ctx, cmd_name))


app = typer.Typer(
    name="centgate",
    cls=LazyCommandGroup,
    help="Facts for software agents at one cent a call, paid per request in USDC by x402.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(buying.app)

Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on; 0 takes a free one.")]


def _print_version(requested: bool) -> None:  # noqa: FBT001 - click's signature of a callback
    if requested:
        print(f"centgate {metadata.version('centgate')}")
        raise typer.Exit


@app.callback()
def centgate(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Options of the command without a subcommand."""


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    workers: Annotated[int | None, typer.Option(help="Server processes.")] = None,
) -> None:
    """Serve the API for real payments, configured by CENTGATE_* and .env."""
    from centgate import server
    from centgate.api import wellknown_files
    from centgate.cli.migrate import check_database
    from centgate.cli.terminal import exit_with_error, load_settings, print_message
    from centgate.log import configure_logging
    from centgate.payments.token_decimals import check_decimals
    from centgate.runtime import validate_startup

    settings = load_settings(host=host, port=port, workers=workers).with_fetched_lists()
    configure_logging(settings.log_level)
    _print_warnings(settings)
    _log_nodes(settings)
    try:
        validate_startup(settings)
        _log_terms(settings)
        wellknown_files.read_wellknown_files(settings.well_known)
        if warning := check_decimals(settings):
            print_message(warning)
        check_database(settings)
        server.run_server(settings)
    except (ValueError, OSError) as error:
        exit_with_error(str(error))


@app.command()
def dev(host: Host = None, port: Port = None) -> None:
    """Serve the API on a local development chain: ten payers with test money; needs no key and no account."""
    from centgate import server
    from centgate.cli.terminal import exit_with_error, load_settings
    from centgate.devchain.environment import open_dev_environment
    from centgate.log import configure_logging

    settings = load_settings(host=host, port=port)
    configure_logging(settings.log_level)
    try:
        with open_dev_environment(settings) as environment:
            chain = environment.chain
            print(f"chain        {chain.rpc_url}  ({chain.kind}, id {chain.chain_id})")
            print(f"facilitator  {chain.facilitator_url}")
            print(f"token        {chain.token}  (USDC, 6 decimals)")
            print(f"paid to      {environment.settings.pay_to}")
            print("payers, 1,000 test USDC each (address, private key; these keys are public):")
            for account in chain.accounts:
                print(f"  {account.address}  {account.private_key}")
            sys.stdout.flush()
            server.run_server(environment.settings)
    except ModuleNotFoundError as error:
        exit_with_error(_missing_extra_message(error))
    except (OSError, RuntimeError) as error:
        exit_with_error(str(error))


@app.command()
def demo(
    *,
    crypto: Annotated[
        bool, typer.Option("--crypto", help="Show the crypto services without any third-party source.")
    ] = False,
) -> None:
    """Run a buyer on a development chain: request, pay, get the answer, check that nothing is paid twice."""
    from centgate.cli.terminal import exit_with_error, load_settings
    from centgate.log import configure_logging

    configure_logging("error")
    settings = load_settings(port=0)
    try:
        from centgate.cli.demo.crypto import run_crypto_demo
        from centgate.cli.demo.scenario import run_demo

        (run_crypto_demo if crypto else run_demo)(settings)
    except ModuleNotFoundError as error:
        exit_with_error(_missing_extra_message(error))
    except (OSError, RuntimeError) as error:
        exit_with_error(str(error))


@app.command()
def settings(
    *,
    env: Annotated[bool, typer.Option("--env", help="As a .env file to fill in.")] = False,
) -> None:
    """Show all settings."""
    from centgate.cli.settings_docs import render_env_example, render_markdown

    print(render_env_example() if env else render_markdown(), end="")


def _unwrap_help(command: Any) -> Any:
    """Join the lines of each help paragraph, so that it fills the terminal; typer keeps the line breaks."""
    if command is not None and command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        joined = (text if text.startswith("\b") else text.replace("\n", " ") for text in paragraphs)
        command.help = "\n\n".join(joined)
    for part in getattr(command, "commands", {}).values():
        _unwrap_help(part)
    return command


def _missing_extra_message(error: ModuleNotFoundError) -> str:
    return f"the development chain needs more than the server ({error.name}): pip install 'centgate[dev]'"


def _print_warnings(settings: Settings) -> None:
    """Print warnings about settings that are probably mistakes."""
    from centgate.catalog import all_providers, all_services
    from centgate.cli.terminal import print_message
    from centgate.settings import find_unknown_variables

    if settings.pay_to is None:
        print_message("CENTGATE_PAY_TO is not set: every paid route answers 402 payment_not_configured")
    if settings.lacks_cdp_key:
        print_message(f"{settings.facilitator} needs CENTGATE_CDP_API_KEY_ID and _SECRET: payments will fail")
    providers = all_providers(all_services()).values()
    for name in find_unknown_variables([name for provider in providers for name in provider.info.settings]):
        print_message(f"{name} is not a setting and has no effect; `centgate settings` lists all settings")


def _log_terms(settings: Settings) -> None:
    """Log the sources in use whose terms forbid resale. Raises ValueError or OSError for bad settings."""
    import structlog

    from centgate.catalog import sources_by_resale

    if forbidden := [about.name for about in sources_by_resale(settings)["forbidden"]]:
        structlog.get_logger().warning(
            "sources are used whose terms forbid resale without consent",
            sources=forbidden,
            leave_out="CENTGATE_RESALE_PERMITTED_ONLY=true",
        )


def _log_nodes(settings: Settings) -> None:
    """Log the chain nodes that are asked about payments whose outcome the facilitator does not report."""
    import structlog

    from centgate.payments.nodes import select_nodes

    nodes, log = select_nodes(settings, settings.network), structlog.get_logger()
    if settings.pay_to is None:
        return
    if nodes.urls:
        log.info("unknown outcomes are resolved on the chain", nodes=nodes.description)
    else:
        log.warning("unknown outcomes are left to the facilitator alone", nodes=nodes.description)


def main() -> None:
    """Run the command under one fixed program name, since shell completion depends on it."""
    _make_streams_safe()
    app(prog_name="centgate")


def _make_streams_safe() -> None:
    """Replace closed standard streams by /dev/null, and escape characters that the encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: object = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the process lives
        elif isinstance(stream, TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="backslashreplace")
