"""What the commands about payments share: what is open while one runs, how it ends, how it shows things."""

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
    """What was typed cannot be meant; says what can."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What every command works with."""

    settings: Settings
    books: Books
    outlook: Outlook

    def none(self, sentence: str) -> None:
        """Say that there is nothing, and where there is no journal at all, that."""
        say(self.books.missing or sentence)


def perform(work: Callable[[Desk], Awaitable[ExitCode]]) -> ExitCode:
    """Run a command's work; whatever goes wrong ends in a sentence."""
    settings = settings_given()
    set_up_logs("error")
    try:
        return asyncio.run(_at_desk(settings, work))
    except (BadArgument, BadAddress) as error:
        say(str(error))
        return 2
    except SchemaMismatch as error:
        say(str(error))
    except JournalUnavailable as error:
        say(
            f"the payment journal cannot be read: {reason(error)}. See that the database runs, and that "
            "CENTGATE_DATABASE_URL names it"
        )
    except BrokenPipeError:  # who reads has seen enough
        write_nowhere()
        return 0
    except OSError as error:
        say(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return 1


def show(content: RenderableType) -> None:
    """Show a table as wide as there is room, or a line whole."""
    console().print(content, soft_wrap=not isinstance(content, Table))


def print_json(content: Any) -> None:
    """Write JSON to standard output."""
    console().print(line(as_json(content)), soft_wrap=True)


async def _at_desk(settings: Settings, work: Callable[[Desk], Awaitable[ExitCode]]) -> ExitCode:
    async with _desk(settings) as desk:
        return await work(desk)


@asynccontextmanager
async def _desk(settings: Settings) -> AsyncGenerator[Desk]:
    from centgate.catalog import all_services

    routes = {service.slug: service.path for service in all_services()}
    async with open_books(settings.database_url) as books:
        now = await books.reader.read(read_time) or time.time()  # without a journal there is nothing to date
        test_money = is_test_network(settings.network)
        yield Desk(settings, books, Outlook(now, settings.redeem_hours * 3600, routes, test_money))
