"""Open the journal read-only: never creates, migrates or locks it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct

from centgate.payments.database.migrations import SELECT_REVISION, require_current_revision
from centgate.payments.database.sql import UnitOfWork
from centgate.payments.database.store import JournalUnavailable, Store, UnitFactory, sqlite_path
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal.read_model import JournalReader

T = TypeVar("T")

DATABASE_TIMEOUT = 10
"""Timeout of the database in seconds."""


class ReadOnlyJournal(Struct, frozen=True):
    """A journal opened for reading."""

    reader: JournalReader
    store: Store | None
    """Store for the commands that write; None if there is no journal."""
    missing_message: str | None
    """Message if there is no journal yet; all queries then return no rows. None otherwise."""


@asynccontextmanager
async def open_readonly(url: str) -> AsyncGenerator[ReadOnlyJournal]:
    """Open the journal at a database URL. Raises JournalUnavailable, SchemaMismatch or InvalidDatabaseUrl."""
    version = await read_schema_version(url)
    if version is None:
        yield ReadOnlyJournal(_EmptyReader(), None, f"there is no journal yet: {_describe_location(url)}")
        return
    require_current_revision(version)
    store = open_store(url, connections=1)
    try:
        yield ReadOnlyJournal(store, store, None)
    finally:
        await store.close()


async def read_schema_version(url: str) -> str | None:
    """Return the version of a journal's schema; None if the database is missing or empty."""
    if url.startswith("sqlite:"):
        return await asyncio.to_thread(_read_sqlite_schema, sqlite_path(url).absolute())
    return await _read_postgresql_schema(url)


def describe_error(error: BaseException) -> str:
    """Return the database's message for an unreadable journal."""
    cause = error.__cause__ or error
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__


class _EmptyReader:
    """Reader of a missing journal: every query returns no rows."""

    async def read(self, unit: UnitFactory[T]) -> T:
        running: UnitOfWork[T] = unit()
        try:
            next(running)
            while True:
                running.send([])
        except StopIteration as end:
            return cast(T, end.value)


def _describe_location(url: str) -> str:
    if url.startswith("sqlite:"):
        return f"{sqlite_path(url).absolute()} does not exist or is empty (set by CENTGATE_DATABASE_URL)"
    return "the database of CENTGATE_DATABASE_URL has no Centgate tables"


def _read_sqlite_schema(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=DATABASE_TIMEOUT)
        try:
            rows = connection.execute(SELECT_REVISION).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return None
        raise JournalUnavailable(error) from error
    return rows[0][0] if rows else None


async def _read_postgresql_schema(url: str) -> str | None:
    import asyncpg

    from centgate.payments.database.postgresql import connect

    try:
        connection = await connect(url)
        try:
            return await connection.fetchval(SELECT_REVISION, timeout=DATABASE_TIMEOUT)
        finally:
            await connection.close()
    except asyncpg.UndefinedTableError:
        return None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise JournalUnavailable(error) from error
