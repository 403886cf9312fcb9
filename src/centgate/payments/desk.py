"""Shared context, exit codes and output of the `payments` commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import RenderableType
from rich.table import Table

from centgate.client.shell.printing import as_json, console, line, write_nowhere
from centgate.dollars import is_test_network
from centgate.log import set_up_logs
from centgate.payments.entries import Outlook
from centgate.payments.looking import Books, open_books, reason
from centgate.payments.migrations import SchemaMismatch
from centgate.payments.queries import read_time
from centgate.payments.store import BadAddress, JournalUnavailable
from centgate.settings import Settings
from centgate.terminal import say, settings_given

ExitCode = Literal[0, 1, 2, 130]
Shape = Literal["table", "json", "csv", "jsonl"]


class BadArgument(Exception):
    """An invalid argument; the message says what is valid."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Context of a command: settings, open journal, and display settings."""

    settings: Settings
    books: Books
    outlook: Outlook

    def none(self, sentence: str) -> None:
        """Print that there is no result, or that there is no journal."""
        say(self.books.missing or sentence)


def perform(work: Callable[[Desk], Awaitable[ExitCode]]) -> ExitCode:
    """Run a command, and print a message for each expected error; return the exit code."""
    settings = settings_given()
    set_up_logs("error")
    try:
        return asyncio.run(_run_in_context(settings, work))
    except (BadArgument, BadAddress) as error:
        say(str(error))
        return 2
    except SchemaMismatch as error:
        say(str(error))
    except JournalUnavailable as error:
        say(
            f"the payment journal cannot be read: {reason(error)}. Check that the database runs and that "
            "CENTGATE_DATABASE_URL is correct"
        )
    except BrokenPipeError:  # the reader closed the pipe
        write_nowhere()
        return 0
    except OSError as error:
        say(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return 1


def show(content: RenderableType) -> None:
    """Print a table in the terminal's width, or a line without wrapping."""
    console().print(content, soft_wrap=not isinstance(content, Table))


def print_json(content: Any) -> None:
    """Print JSON to standard output."""
    console().print(line(as_json(content)), soft_wrap=True)


async def _run_in_context(settings: Settings, work: Callable[[Desk], Awaitable[ExitCode]]) -> ExitCode:
    async with _open_context(settings) as desk:
        return await work(desk)


@asynccontextmanager
async def _open_context(settings: Settings) -> AsyncGenerator[Desk]:
    from centgate.catalog import all_services

    routes = {service.slug: service.path for service in all_services()}
    async with open_books(settings.database_url) as books:
        now = await books.reader.read(read_time) or time.time()  # without a journal there are no rows
        test_money = is_test_network(settings.network)
        yield Desk(settings, books, Outlook(now, settings.redeem_hours * 3600, routes, test_money))
