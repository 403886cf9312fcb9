"""Entry point of the `centgate` command."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOSPC
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from centgate.cli.buyer import commands as buying
from centgate.cli.stop_signals import end_on_interrupt, exit_on_stop_signals

if TYPE_CHECKING:
    from centgate.devchain.environment import DevEnvironment
    from centgate.settings import Settings

BUYERS, OPERATORS, DEVELOPERS = "For buyers", "For operators", "For developers"
"""Headings of the help, in this order."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Command that is the `app` of another module, which is imported only when the command runs."""

    module: str
    summary: str
    """One line for the list of commands."""
    section: str = OPERATORS


LAZY_COMMANDS: Mapping[str, LazyCommand] = {
    "receipt": LazyCommand(
        "centgate.cli.buyer.receipt", "Verify the signed receipt of a paid answer.", BUYERS
    ),
    "mcp": LazyCommand(
        "centgate.cli.mcp", "Serve an API's services to an agent as MCP tools over stdio.", BUYERS
    ),
    "doctor": LazyCommand(
        "centgate.cli.doctor.commands", "Check this deployment's settings against its environment."
    ),
    "payments": LazyCommand(
        "centgate.cli.payments.commands", "Manage payments: list, show, export, refund, reconcile and audit."
    ),
    "migrate": LazyCommand(
        "centgate.cli.migrate", "Update the schema of the database of CENTGATE_DATABASE_URL."
    ),
    "index": LazyCommand("centgate.cli.index", "Keep a search index of sites of your choosing."),
    "phishing-list": LazyCommand(
        "centgate.cli.phishing_list", "Build, update and show the list that phishing-check uses."
    ),
    "site": LazyCommand("centgate.cli.website", "Serve or build the website of an API."),
    "console": LazyCommand(
        "centgate.cli.console",
        "Serve the operator's console: revenue, payments, providers, checks and settings.",
    ),
}
"""Commands declared in other modules."""
_EXTRAS: Mapping[str, str] = {"dev": "dev", "demo": "dev", "mcp": "mcp"}
"""Optional dependencies by command; other commands that are not for buyers need `server`."""


_VALUE_NAMES: Mapping[object, str] = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}
"""Words for values of these types in the help."""


class LazyCommandGroup(TyperGroup):
    """Lazy command group: imports a command's module only when it runs, for fast help and completion."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, loaded or not."""
        return [*super().list_commands(ctx), *(name for name in LAZY_COMMANDS if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name, or None."""
        if cmd_name in LAZY_COMMANDS and cmd_name not in self.commands:
            group = typer.Typer(rich_markup_mode=None)
            group.add_typer(import_module(LAZY_COMMANDS[cmd_name].module).app)
            self.commands.update(get_group(group).commands)
        return _polish_help(super().get_command(ctx, cmd_name))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by audience, without loading them."""
        commands = list(self._iterate_summaries(ctx))
        for section in dict.fromkeys((BUYERS, OPERATORS, DEVELOPERS, *(each[0] for each in commands))):
            if rows := [(name, summary) for heading, name, summary in commands if heading == section]:
                with formatter.section(section):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a command's name without loading any."""
        if incomplete and not incomplete[0].isalnum():
            return super().shell_complete(ctx, incomplete)
        names: Any = {
            name: TyperCommand(name, short_help=text) for _, name, text in self._iterate_summaries(ctx)
        }
        group: Any = TyperGroup(name=self.name, commands=names)
        return group.shell_complete(typer.Context(group), incomplete)

    def _iterate_summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:
        """Yield the section, name and summary of every command."""
        for name in self.list_commands(ctx):
            if name in LAZY_COMMANDS:
                yield LAZY_COMMANDS[name].section, name, LAZY_COMMANDS[name].summary
            elif not (command := self.commands[name]).hidden:
                section = getattr(command, "rich_help_panel", None)
                text = _polish_help(command).get_short_help_str(200)
                yield section if isinstance(section, str) else BUYERS, name, text


app = typer.Typer(
    name="centgate",
    cls=LazyCommandGroup,
    help="Facts for software agents, paid per call in USDC by x402.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its modules take longer to import than all others
)
app.add_typer(buying.app)

Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on; 0 takes a free one.")]


def _print_version(requested: bool) -> None:  # noqa: FBT001 - click's signature of a callback
    if requested:
        from importlib import metadata

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


def _prepare_start() -> None:
    """Shorten the start of a server: pause garbage collection, and import aiohttp in a thread.

    That import reads the certificates of authorities, in 40 ms that do not need the interpreter's lock.
    """
    from centgate.garbage_collection import pause_garbage_collection

    pause_garbage_collection()
    Thread(target=_import_early, args=("aiohttp",)).start()


def _import_early(name: str) -> None:
    with suppress(ImportError):  # the import that needs it says which package is missing
        import_module(name)


@app.command(rich_help_panel=OPERATORS)
def serve(
    host: Host = None,
    port: Port = None,
    workers: Annotated[int | None, typer.Option(help="Server processes.")] = None,
) -> None:
    """Serve the API for real payments, configured by CENTGATE_* and .env.

    \b
    Exit codes:
    0  stopped by SIGTERM or SIGINT
    1  it cannot start: a port is in use, or the database is of another version
    2  wrong input or settings
    3  its processes ended while they started
    """
    end_on_interrupt()
    _prepare_start()
    from centgate import server
    from centgate.api import wellknown_files
    from centgate.cli.console import open_console_beside
    from centgate.cli.migrate import check_database
    from centgate.cli.server_settings import load_settings
    from centgate.cli.terminal import exit_with_error, print_message
    from centgate.log import configure_logging
    from centgate.payments.chain.token_decimals import check_decimals
    from centgate.payments.database.store import InvalidDatabaseUrl
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
    except (ValueError, OSError) as error:
        exit_with_error(str(error), 2)
    try:
        check_database(settings)
        with exit_on_stop_signals(), open_console_beside(settings) as settings:
            server.run_server(settings)
    except InvalidDatabaseUrl as error:
        exit_with_error(str(error), 2)
    except (ValueError, OSError) as error:
        exit_with_error(str(error))


@app.command(rich_help_panel=DEVELOPERS)
def dev(host: Host = None, port: Port = None) -> None:
    """Serve the API on a local development chain: ten payers with test money; needs no key and no account.

    With CENTGATE_CONSOLE_PORT the operator's console is opened beside it.
    """
    end_on_interrupt()
    _prepare_start()
    from centgate import server
    from centgate.cli.console import open_console_beside
    from centgate.cli.server_settings import load_settings
    from centgate.cli.terminal import exit_with_error
    from centgate.devchain.environment import open_dev_environment
    from centgate.log import configure_logging

    settings = load_settings(host=host, port=port)
    configure_logging(settings.log_level)
    try:
        with exit_on_stop_signals(), open_dev_environment(settings) as environment:
            listener, listening = server.open_listener(environment.settings)
            with listener:
                _print_dev_environment(environment, server.local_url(listening))
                with open_console_beside(listening) as served:
                    server.serve_listener(listener, served)
    except (OSError, RuntimeError) as error:
        exit_with_error(str(error))


def _print_dev_environment(environment: DevEnvironment, url: str) -> None:
    """Print what `centgate dev` serves, and the settings by which other commands find it."""
    chain = environment.chain
    print(f"chain        {chain.rpc_url}  ({chain.kind}, id {chain.chain_id})")
    print(f"facilitator  {chain.facilitator_url}")
    print(f"token        {chain.token}  (USDC, 6 decimals)")
    print(f"paid to      {environment.settings.pay_to}")
    print("payers, 1,000 test USDC each (address, private key; these keys are public):")
    for account in chain.accounts:
        print(f"  {account.address}  {account.private_key}")
    print("for `centgate call` and `wallet` in another shell, with the first payer:")
    print(f"  {environment.buyer_settings(url)}")
    print("for `centgate payments`, `console` and `doctor` in another shell:")
    print(f"  {environment.shell_settings}")
    if environment.settings.console_port is None:
        print("console      none; CENTGATE_CONSOLE_PORT=8404 opens the operator's console")
    sys.stdout.flush()


@app.command(rich_help_panel=DEVELOPERS)
def demo(
    *,
    crypto: Annotated[
        bool, typer.Option("--crypto", help="Show the crypto services without any third-party source.")
    ] = False,
) -> None:
    """Run a buyer on a development chain: request, pay, get the answer, check that nothing is paid twice."""
    from centgate.cli.server_settings import load_settings
    from centgate.cli.terminal import exit_with_error
    from centgate.log import configure_logging

    configure_logging("error")
    settings = load_settings(port=0)
    try:
        from centgate.cli.demo.crypto import run_crypto_demo
        from centgate.cli.demo.scenario import run_demo

        with exit_on_stop_signals():
            (run_crypto_demo if crypto else run_demo)(settings)
    except (OSError, RuntimeError) as error:
        exit_with_error(str(error))


@app.command(rich_help_panel=OPERATORS)
def settings(
    *,
    env: Annotated[bool, typer.Option("--env", help="As a .env file to fill in.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON list.")] = False,
) -> None:
    """Show all settings."""
    from centgate.cli.settings_docs import render_env_example, render_json, render_markdown

    render = render_json if as_json else render_env_example if env else render_markdown
    print(render(), end="")


def _polish_help(command: Any) -> Any:
    """Join the lines of each help paragraph, so that it fills the terminal, and name values in words.

    Typer keeps the line breaks, and shows Python's types.
    """
    if command is not None and command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        joined = (text if text.startswith("\b") else text.replace("\n", " ") for text in paragraphs)
        command.help = "\n\n".join(joined)
    for parameter in getattr(command, "params", ()):
        _name_value(parameter)
    for part in getattr(command, "commands", {}).values():
        _polish_help(part)
    return command


def _show_no_type(**_: object) -> None:
    """Replace the type of an argument, whose name says more."""


def _name_value(parameter: Any) -> None:
    """Show a word for a parameter's value in the help, unless it has one."""
    if parameter.param_type_name == "argument":
        parameter.display_type_rich = _show_no_type
        return
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    kind = next(iter(get_args(annotation)), None) if get_origin(annotation) is list else annotation
    if parameter.metavar is None and not parameter.is_flag and kind in _VALUE_NAMES:
        parameter.metavar = _VALUE_NAMES[kind]


def _missing_extra_message(error: ModuleNotFoundError, command: str) -> str:
    extra = _EXTRAS.get(command, "server")
    return (
        f"`centgate {command}` needs packages that are not installed ({error.name}): "
        f"pip install 'centgate[{extra}]'"
    )


def _print_warnings(settings: Settings) -> None:
    """Print warnings about settings that are probably mistakes."""
    from centgate.catalog import all_providers, all_services
    from centgate.cli.terminal import print_message
    from centgate.settings import find_unknown_variables

    if settings.pay_to is None:
        print_message("CENTGATE_PAY_TO is not set: every paid route answers 402 payment_not_configured")
    for account in settings.facilitators if settings.pay_to else ():
        if account.lacks_key:
            print_message(
                f"{account.url} needs {account.cdp_setting}_API_KEY_ID and _SECRET: payments will fail"
            )
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

    from centgate.environment import node_variable
    from centgate.payments.chain.nodes import select_nodes

    log = structlog.get_logger()
    for network in dict.fromkeys(each.network for each in settings.accepted_tokens):
        nodes = select_nodes(settings, network)
        if nodes.urls:
            log.info("unknown outcomes are resolved on the chain", nodes=nodes.description)
        else:
            log.warning(
                "unknown outcomes are left to the facilitator alone",
                nodes=nodes.description,
                next_step=f"set {node_variable(network)}",
            )


def main() -> None:
    """Run the command under one fixed program name, since shell completion depends on it."""
    _make_streams_safe()
    try:
        app(prog_name="centgate")
    except ModuleNotFoundError as error:
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        if not _may_lack_extra(command) or (error.name or "").startswith("centgate"):
            raise
        sys.exit(f"centgate: {_missing_extra_message(error, command)}")
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        # what is left of the output would fail again at the interpreter's end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"centgate: the output cannot be written: {error.strerror}")


def _may_lack_extra(command: str) -> bool:
    """Return True if a command needs more than the dependencies of the buyer's client."""
    return command in _EXTRAS or command in {"serve", "settings"} | LAZY_COMMANDS.keys() - {"receipt"}


def _make_streams_safe() -> None:
    """Replace closed standard streams by /dev/null, and escape characters that the encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: object = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the process lives
        elif isinstance(stream, TextIOWrapper) and mode == "w":
            stream.reconfigure(errors="backslashreplace")
