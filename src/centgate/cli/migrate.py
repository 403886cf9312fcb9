"""The command `centgate migrate`, which updates the schema of the journal's database."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import typer

from centgate.cli.options import Json
from centgate.cli.server_settings import load_settings
from centgate.cli.terminal import exit_with_error, print_message

if TYPE_CHECKING:
    from pathlib import Path

    from centgate.settings import Settings

app = typer.Typer()


@app.command()
def migrate(
    *,
    as_json: Json = False,
) -> None:
    """Update the schema of the database of CENTGATE_DATABASE_URL.

    docs/operating.md says which servers may run meanwhile."""
    from centgate.payments.database.migrations import HEAD_REVISION
    from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable

    settings = load_settings()
    try:
        previous = asyncio.run(_run_migration(settings))
    except InvalidDatabaseUrl as error:
        exit_with_error(str(error), 2)
    except JournalUnavailable as error:
        exit_with_error(f"the database is not available: {error.detail}")
    except ValueError as error:
        exit_with_error(str(error))
    if as_json:
        print(json.dumps({"previous": previous, "schema": HEAD_REVISION}))
    elif previous is None:
        print(f"the database was empty: created schema {HEAD_REVISION}")
    elif previous == HEAD_REVISION:
        print(f"the database is up to date: schema {HEAD_REVISION}")
    else:
        print(f"the database is updated from schema {previous} to {HEAD_REVISION}")


def check_database(settings: Settings) -> None:
    """Check the database before the start, and print a message if it is not available yet.

    Raises ValueError for permanent problems: a schema of another version, an invalid URL, a file that this
    user may not write.
    """
    from centgate.payments.database.store import JournalUnavailable

    try:
        asyncio.run(_check_schema(settings))
    except JournalUnavailable as error:
        print_message(
            f"the database of CENTGATE_DATABASE_URL is not available yet ({error.detail}): "
            "no payments are accepted until it is"
        )


async def _run_migration(settings: Settings) -> str | None:
    from centgate.payments.database.store_factory import open_store

    store = open_store(settings.database_url)
    try:
        return await store.migrate()
    finally:
        await store.close()


async def _check_schema(settings: Settings) -> None:
    from centgate.payments.database.store import sqlite_path
    from centgate.payments.database.store_factory import open_store

    url = settings.database_url
    if url.startswith("sqlite:"):
        _check_file(sqlite_path(url).resolve())
    store = open_store(url)
    try:
        await store.check()
    finally:
        await store.close()


def _check_file(path: Path) -> None:
    """Raise ValueError if the file of a SQLite journal can be neither opened nor made.

    A server would start, and refuse every payment until the folder is changed. Links must be resolved before:
    SQLite follows them, and makes its log beside the file to which they lead.
    """
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"the folder {folder} does not exist: create it, or change CENTGATE_DATABASE_URL")
    # the folder first: without the right to search it, not even the kind of the file can be read
    _check_rights(folder, os.W_OK | os.X_OK)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file of it in CENTGATE_DATABASE_URL")
    if path.exists():
        _check_rights(path, os.R_OK | os.W_OK)


def _check_rights(needed: Path, rights: int) -> None:
    if not os.access(needed, rights):
        raise ValueError(
            f"this user has no right to write {needed}: change its owner, or CENTGATE_DATABASE_URL"
        )
