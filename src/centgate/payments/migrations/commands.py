"""`centgate migrate`: the journal's database made as this program needs it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from centgate.terminal import fail, say, settings_given

if TYPE_CHECKING:
    from centgate.settings import Settings

app = typer.Typer()


@app.command()
def migrate() -> None:
    """Bring the database of CENTGATE_DATABASE_URL up to date; servers may be running on it."""
    from centgate.payments.migrations import HEAD
    from centgate.payments.store import JournalUnavailable

    settings = settings_given()
    try:
        found = asyncio.run(_migrated(settings))
    except JournalUnavailable as error:
        fail(f"the database cannot be used: {error.why}")
    except ValueError as error:
        fail(str(error))
    if found is None:
        print(f"the database was empty: made with schema {HEAD}")
    elif found == HEAD:
        print(f"the database is up to date: schema {HEAD}")
    else:
        print(f"the database had schema {found}, and has {HEAD} now")


def require_schema(settings: Settings) -> None:
    """Look at the database before a start, and say so if it cannot be used yet.

    Raises ValueError when it never can as it is: a schema of another version, an address that is none.
    """
    from centgate.payments.store import JournalUnavailable

    try:
        asyncio.run(_checked(settings))
    except JournalUnavailable as error:
        say(f"the database cannot be used yet ({error.why}): no payment is taken until it can")


async def _migrated(settings: Settings) -> str | None:
    from centgate.payments.store import open_store

    store = open_store(settings.database_url)
    try:
        return await store.migrate()
    finally:
        await store.close()


async def _checked(settings: Settings) -> None:
    from centgate.payments.store import open_store

    store = open_store(settings.database_url)
    try:
        await store.check()
    finally:
        await store.close()
