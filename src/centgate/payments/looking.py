"""Opening a journal to look at it: nothing is made, migrated or held up by that."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from centgate.payments.migrations import require_current
from centgate.payments.records import Reader
from centgate.payments.statements import Asking
from centgate.payments.store import JournalUnavailable, Store, Unit, open_store

T = TypeVar("T")

_VERSION = "SELECT version_num FROM alembic_version"
PATIENCE = 10
"""Seconds to wait for a database."""


@dataclass(frozen=True, slots=True)
class Books:
    """A journal open for looking."""

    reader: Reader
    store: Store | None
    """Where something can be entered; None where there is no journal."""
    missing: str | None
    """What to say where there is no journal yet; then every question has no answer."""


@asynccontextmanager
async def open_books(url: str) -> AsyncGenerator[Books]:
    """The journal at a database URL; JournalUnavailable, SchemaMismatch or BadAddress."""
    found = await schema_of(url)
    if found is None:
        yield Books(_Nothing(), None, f"there is no journal yet: {_place(url)}")
        return
    require_current(found)
    store = open_store(url, connections=1)
    try:
        yield Books(store, store, None)
    finally:
        await store.close()


async def schema_of(url: str) -> str | None:
    """The version of a journal's schema; None where nothing has been entered yet."""
    if url.startswith("sqlite:"):
        return await asyncio.to_thread(_schema_of_file, file_of(url))
    return await _schema_on_server(url)


def file_of(url: str) -> Path:
    """The file that a SQLite URL names."""
    return Path(url.removeprefix("sqlite:///")).absolute()


def reason(error: BaseException) -> str:
    """Why a journal could not be read, in the database's words."""
    cause = error.__cause__ or error
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__


class _Nothing:
    """A journal without a row."""

    async def read(self, unit: Unit[T]) -> T:
        asking: Asking[T] = unit()
        try:
            next(asking)
            while True:
                asking.send([])
        except StopIteration as end:
            return cast(T, end.value)


def _place(url: str) -> str:
    if url.startswith("sqlite:"):
        return f"{file_of(url)} is not there, or empty (CENTGATE_DATABASE_URL names it)"
    return "the database that CENTGATE_DATABASE_URL names has no tables of Centgate's"


def _schema_of_file(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)
        try:
            rows = connection.execute(_VERSION).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return None
        raise JournalUnavailable(error) from error
    return rows[0][0] if rows else None


async def _schema_on_server(url: str) -> str | None:
    import asyncpg

    from centgate.payments.postgresql import connected

    try:
        connection = await connected(url)
        try:
            return await connection.fetchval(_VERSION, timeout=PATIENCE)
        finally:
            await connection.close()
    except asyncpg.UndefinedTableError:
        return None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise JournalUnavailable(error) from error
