"""Shared context, exit codes and output of the `payments` commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rich.console import RenderableType
from rich.table import Table

from centgate.cli.server_settings import load_settings
from centgate.cli.terminal import create_console, discard_stdout, print_message
from centgate.log import configure_logging
from centgate.payments.database.migrations import SchemaMismatch
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable, Store, UnitFactory
from centgate.payments.journal.descriptions import ViewSettings, create_view
from centgate.payments.journal.process_queries import read_time
from centgate.payments.journal.read_model import PaymentFilter, PaymentRecord, iterate_payments
from centgate.payments.journal.readonly import ReadOnlyJournal, describe_error, open_readonly
from centgate.payments.reports.console_actions import ConsoleActionName, record_console_action
from centgate.settings import Settings

T = TypeVar("T")
ExitCode = Literal[0, 1, 2, 130]
OutputFormat = Literal["table", "json", "csv", "jsonl"]


COMMAND_LINE = "command line"
"""The log's name for where an action came from, in place of a browser's address."""


class InvalidArgument(Exception):
    """An invalid argument; the message says what is valid."""


class JournalMissing(Exception):
    """There is no journal, perhaps since its database is misspelt; the message says where it would be."""


class CommandContext(Struct, frozen=True):
    """Context of a command: settings, open journal, and display settings."""

    settings: Settings
    journal: ReadOnlyJournal
    view: ViewSettings

    def iterate_payments(self, payment_filter: PaymentFilter) -> AsyncGenerator[PaymentRecord]:
        """Yield all matching payments, oldest first. Raises JournalUnavailable."""
        return iterate_payments(self.journal.reader, payment_filter, self.view.redemption_cutoff)

    async def record_action(
        self, action: ConsoleActionName, result: str, *, subject: str | None = None
    ) -> None:
        """Append what this command did to the operators' log, which the console shows.

        Does nothing without a journal. Raises JournalUnavailable.
        """
        if self.journal.store is not None:
            unit = partial(record_console_action, action, COMMAND_LINE, result, subject=subject)
            await self.journal.store.run(unit)

    @property
    def store(self) -> Store:
        """Store for the commands that write. Raises JournalMissing."""
        if self.journal.store is None:
            raise JournalMissing(self.journal.missing_message)
        return self.journal.store


def run_command(work: Callable[[CommandContext], Awaitable[ExitCode]]) -> ExitCode:
    """Run a command, and print a message for each expected error; return the exit code."""
    settings = load_settings()
    configure_logging("error")
    try:
        return asyncio.run(_run_in_context(settings, work))
    except (InvalidArgument, InvalidDatabaseUrl) as error:
        print_message(str(error))
        return 2
    except (JournalMissing, SchemaMismatch) as error:
        print_message(str(error))
    except JournalUnavailable as error:
        print_message(
            f"the payment journal cannot be read: {describe_error(error)}. Check that the database runs and "
            "that CENTGATE_DATABASE_URL is correct"
        )
    except BrokenPipeError:  # the reader closed the pipe
        discard_stdout()
        return 0
    except OSError as error:
        print_message(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")
    except KeyboardInterrupt:
        print_message("stopped")
        return 130
    return 1


def print_renderable(content: RenderableType) -> None:
    """Print a table in the terminal's width if it fits, or a line without wrapping."""
    create_console().print(content, soft_wrap=not isinstance(content, Table), crop=False)


async def _run_in_context(
    settings: Settings, work: Callable[[CommandContext], Awaitable[ExitCode]]
) -> ExitCode:
    async with _open_context(settings) as context:
        return await work(context)


class _MissingReader:
    """Reader of a missing journal: a command that gets to reading ends with its message."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def read(self, _unit: UnitFactory[T]) -> T:
        raise JournalMissing(self._message)


class _Routes(Mapping[str, str]):
    """Paths by service slug; the services, with all that they import, are loaded when one is needed."""

    @cached_property
    def _paths(self) -> dict[str, str]:
        from centgate.catalog import all_services

        return {service.slug: service.path for service in all_services()}

    def __getitem__(self, slug: str) -> str:
        return self._paths[slug]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@asynccontextmanager
async def _open_context(settings: Settings) -> AsyncGenerator[CommandContext]:
    async with open_readonly(settings.database_url) as journal:
        now = await journal.reader.read(read_time) or time.time()  # without a journal there are no rows
        if journal.missing_message is not None:
            journal = replace(journal, reader=_MissingReader(journal.missing_message))
        yield CommandContext(settings, journal, create_view(settings, now, _Routes()))
