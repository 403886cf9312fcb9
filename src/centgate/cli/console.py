"""The command `centgate console`: serve the operator's console, or make the hash of its password."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Annotated

import typer

from centgate.cli.server_settings import load_settings
from centgate.cli.stop_signals import exit_on_stop_signals
from centgate.cli.terminal import exit_with_error, print_message

if TYPE_CHECKING:
    from centgate.findings import CheckResult
    from centgate.settings import Settings

app = typer.Typer(
    name="console",
    help="Serve the operator's console: revenue, payments, providers, checks and settings.",
    invoke_without_command=True,
    no_args_is_help=False,
)
STOP_SECONDS = 5
NICENESS = 10
"""Niceness of the console's process: where processors are short, paid requests come first."""


@app.callback()
def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 selects a free one.")] = None,
) -> None:
    """Serve the console by itself, beside servers that run already."""
    if context.invoked_subcommand:
        return
    from centgate.cli.migrate import check_database
    from centgate.console.server import open_console_listener, run_console
    from centgate.log import configure_logging
    from centgate.payments.database.store import InvalidDatabaseUrl

    settings = load_settings(console_host=host, console_port=port)
    configure_logging(settings.log_level)
    try:
        check_database(settings)
        with exit_on_stop_signals(), open_console_listener(settings) as listener:
            run_console(settings, listener, partial(run_all_checks, settings))
    except InvalidDatabaseUrl as error:
        exit_with_error(str(error), 2)
    except (ValueError, OSError) as error:
        exit_with_error(str(error))


@app.command(name="hash")
def make_hash() -> None:
    """Ask for a password and print the setting with its hash."""
    from centgate.console.passwords import hash_password

    if sys.stdin.isatty():
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    try:
        print(f"CENTGATE_CONSOLE_PASSWORD_HASH={hash_password(password)}")
    except ValueError as error:
        exit_with_error(str(error), 2)


@contextmanager
def open_console_beside(settings: Settings) -> Generator[Settings]:
    """Run the console in a process of its own while a server runs, if `CENTGATE_CONSOLE_PORT` is set.

    A process of its own takes no time from paid requests. Yields the server's settings: with metrics, which
    the console reads. Raises OSError if the port is not available.
    """
    if settings.console_port is None:
        yield settings
        return
    from centgate.console.server import open_console_listener

    with open_console_listener(settings) as listener:
        settings = _with_metrics(settings)
        process = get_context("spawn").Process(target=_run_beside, args=(settings, listener), daemon=True)
        process.start()
    try:
        yield settings
    finally:
        process.terminate()
        process.join(STOP_SECONDS)
        if process.is_alive():
            process.kill()


async def run_all_checks(settings: Settings) -> Sequence[CheckResult]:
    """Run the doctor's checks, with those of all providers."""
    from centgate.cli.doctor.check import run_checks
    from centgate.cli.doctor.context import open_context
    from centgate.cli.doctor.registry import all_checks

    async with open_context(settings) as deployment:
        return await run_checks(deployment, all_checks())


def _with_metrics(settings: Settings) -> Settings:
    """Return settings with a metrics port; several server processes read it from the environment."""
    if settings.metrics_port:
        return settings
    with socket.socket() as free:
        free.bind((settings.metrics_host, 0))
        port = free.getsockname()[1]
    os.environ["CENTGATE_METRICS_PORT"] = str(port)
    return settings.model_copy(update={"metrics_port": port})


def _run_beside(settings: Settings, listener: socket.socket) -> None:
    """Run the console in the child process; it ends with its parent, however that ends."""
    from centgate.console.server import run_console
    from centgate.log import configure_logging

    configure_logging(settings.log_level)
    os.nice(NICENESS)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):
        try:
            run_console(settings, listener, partial(run_all_checks, settings))
        except (ValueError, OSError) as error:
            print_message(f"the console stopped: {error}")


def _exit_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
