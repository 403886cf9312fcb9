"""Journal store in PostgreSQL, for several replicas.

Every statement is its own transaction, or shares one with equal statements that wait at the same time. Behind
a pooler no statement is prepared by name, unless the operator says that the pooler keeps such statements.
Another connection to the server may not know the name; or it knows the name from another client, and would
execute another statement.
"""

# asyncpg is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

import asyncpg
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from centgate.instrumentation import NULL_METER, Meter
from centgate.payments.database.migrations import (
    SchemaMismatch,
    read_revision,
    require_current_revision,
    upgrade_schema,
)
from centgate.payments.database.sql import BoundStatement, ResultRow, UnitOfWork
from centgate.payments.database.statement_groups import GroupFailed, StatementGroups
from centgate.payments.database.store import InvalidDatabaseUrl, JournalUnavailable, UnitFactory

T = TypeVar("T")

TIMEOUT = 5
"""Timeout in seconds for a connection, for a statement, and for a server that restarts."""
TRANSACTION_SECONDS = 2 * TIMEOUT
"""Seconds after which the server ends a transaction, as of a host that froze while it sent a group."""
RELEASE_TIMEOUT = 1
"""Seconds to wait for the server when a statement is cancelled; then the connection is closed."""
CACHED_STATEMENTS = 100
"""Prepared statements of a connection. With 0, asyncpg parses and executes each in one transaction."""
READ_TIMEOUT = 300
"""Timeout in seconds of a read that blocks no payment."""
RETRY_INTERVAL = 0.1
"""Seconds between two attempts to reach an unavailable server."""

_TRANSIENT_ERRORS = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, until a connection reaches the new primary
    asyncpg.TransactionRollbackError,
    asyncpg.UniqueViolationError,  # another process inserted the row after it was looked for
)
"""The server or the connection is lost or about to be, or two statements conflicted."""
_PERMANENT_ERRORS = (asyncpg.PostgresError, SQLAlchemyError, SchemaMismatch, InvalidDatabaseUrl)
"""Errors that a retry does not fix."""


class PostgresStore:
    """Store on a PostgreSQL server, over a connection pool."""

    def __init__(
        self,
        url: str,
        connections: int,
        *,
        meter: Meter = NULL_METER,
        prepared_statements: bool | None = None,
    ) -> None:
        """`prepared_statements`: False to prepare none, True also behind a pooler; None: not behind one."""
        self._meter = meter
        self._url = url
        self._connections = connections
        self._prepared_statements = prepared_statements
        self._pool: Any = None
        self._groups = StatementGroups(self._lend_connection, meter)
        self._opening: asyncio.Task[Any] | None = None

    async def run(self, unit: UnitFactory[T]) -> T:
        """Run one unit; each of its statements is durable once it has returned.

        Retries for a few seconds while the server is unavailable.
        """
        return await self._run_with_retry(unit, self._run_grouped)

    async def run_serializable(self, unit: UnitFactory[T]) -> T:
        """Run one unit in a transaction, once more if it conflicts with another of this kind."""
        return await self._run_with_retry(unit, self._run_transaction)

    async def read(self, unit: UnitFactory[T]) -> T:
        """Run a read-only unit on a separate connection, in one snapshot of the database."""
        return await self._run_with_retry(unit, self._run_snapshot)

    async def _run_with_retry(
        self, unit: UnitFactory[T], run_once: Callable[[UnitFactory[T]], Awaitable[T]]
    ) -> T:
        give_up = asyncio.get_running_loop().time() + TIMEOUT
        while True:
            try:
                return await run_once(unit)
            except GroupFailed:
                run_once = self._run_alone
                continue
            except TimeoutError as error:  # a retry would only wait as long once more
                raise JournalUnavailable(error) from error
            except _TRANSIENT_ERRORS as error:
                if asyncio.get_running_loop().time() > give_up:
                    raise JournalUnavailable(error) from error
            except _PERMANENT_ERRORS as error:
                raise JournalUnavailable(error) from error
            await asyncio.sleep(RETRY_INTERVAL)

    async def check(self) -> None:
        """Check the schema; in an empty database it is created."""
        await self._run_migration(_set_up_schema)

    async def migrate(self) -> str | None:
        """Bring the schema up to date."""
        return await self._run_migration(upgrade_schema)

    async def close(self) -> None:
        """Wait for running work, and close the connections."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._pool is None:
            return
        try:
            await asyncio.wait_for(self._pool.close(), TIMEOUT)
        except (TimeoutError, *_TRANSIENT_ERRORS, asyncpg.PostgresError):
            self._pool.terminate()

    async def _run_grouped(self, unit: UnitFactory[T]) -> T:
        """Run a unit whose statements may share a transaction with those of others. Raises GroupFailed."""
        return await _run_unit(unit(), self._fetch_grouped)

    async def _run_alone(self, unit: UnitFactory[T]) -> T:
        return await _run_unit(unit(), self._fetch_alone)

    async def _run_transaction(self, unit: UnitFactory[T]) -> T:
        async with (
            self._lend_connection(max_wait=TIMEOUT) as connection,
            connection.transaction(isolation="serializable"),
        ):
            fetch = partial(_fetch_rows, connection=connection, statement_timeout=TIMEOUT)
            return await _run_unit(unit(), fetch)

    async def _fetch_grouped(self, bound: BoundStatement) -> list[ResultRow]:
        if bound.lock_order and self._pool is not None:
            return await self._groups.fetch_rows(bound)
        return await self._fetch_alone(bound)

    async def _fetch_alone(self, bound: BoundStatement) -> list[ResultRow]:
        started = time.perf_counter()
        async with self._lend_connection(max_wait=TIMEOUT) as connection:
            rows = await _fetch_rows(bound, connection, TIMEOUT)
        self._meter.record_commit(time.perf_counter() - started, 1)
        return rows

    @asynccontextmanager
    async def _lend_connection(self, *, max_wait: float) -> AsyncGenerator[Any]:
        """Lend a connection of the pool, which is waited for; a pool that is not open yet is opened."""
        pool = self._pool or await self._get_pool()
        connection = await pool.acquire(timeout=max_wait)
        try:
            yield connection
        except asyncpg.ReadOnlySQLTransactionError:
            # a session stays with its server, and with the defaults that it began with
            await pool.expire_connections()
            raise
        finally:
            # a cancelled statement is also cancelled on the server, which may not respond; a TimeoutError
            # from here would replace the cancellation
            with suppress(TimeoutError):
                await pool.release(connection, timeout=RELEASE_TIMEOUT)

    async def _run_snapshot(self, unit: UnitFactory[T]) -> T:
        if self._pool is None:
            await self._get_pool()
        connection = await connect(self._url)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                fetch = partial(_fetch_rows, connection=connection, statement_timeout=READ_TIMEOUT)
                return await _run_unit(unit(), fetch)
        finally:
            connection.terminate()

    async def _get_pool(self) -> Any:
        """Return the pool; concurrent callers wait for the same attempt to open it."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_pool())
            self._opening.add_done_callback(self._on_opening_done)
        return await asyncio.wait_for(asyncio.shield(self._opening), TIMEOUT)

    def _on_opening_done(self, attempt: asyncio.Task[Any]) -> None:
        self._opening = None
        if not attempt.cancelled():
            attempt.exception()  # retrieved here, in case no caller waits for it any more

    async def _open_pool(self) -> Any:
        is_pooled = await self._with_schema(_set_up_schema)
        prepares = not is_pooled if self._prepared_statements is None else self._prepared_statements
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=self._connections,
            timeout=TIMEOUT,
            init=_make_durable if is_pooled else _set_up_session,
            reset=_skip_reset,
            statement_cache_size=CACHED_STATEMENTS if prepares else 0,
        )
        return self._pool

    async def _run_migration(self, work: Callable[[Connection], T]) -> T:
        try:
            return await self._with_schema(work)
        except (SQLAlchemyError, asyncpg.PostgresError, *_TRANSIENT_ERRORS) as error:
            raise JournalUnavailable(error) from error

    async def _with_schema(self, work: Callable[[Connection], T]) -> T:
        """Run migration work on a SQLAlchemy connection."""
        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=partial(connect, self._url),
            connect_args={"prepared_statement_cache_size": 0, "prepared_statement_name_func": lambda: ""},
            poolclass=NullPool,
        )
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()


async def connect(url: str) -> Any:
    """Open a connection on which no statement gets a name.

    Raises InvalidDatabaseUrl for an invalid URL; the message does not quote it.
    """
    try:
        return await asyncpg.connect(url, timeout=TIMEOUT, statement_cache_size=0)
    except asyncpg.ClientConfigurationError as error:
        raise InvalidDatabaseUrl(str(error).replace("\n", " ")) from error
    except asyncpg.UndefinedObjectError as error:  # parameters unknown to the driver are sent to the server
        raise InvalidDatabaseUrl(f"{error}; remove it") from error
    except (ValueError, OverflowError):
        raise InvalidDatabaseUrl(
            "invalid URL; the format is postgresql://user:password@host:5432/database, with every character "
            "except letters and digits in user, password or database name written as %XX"
        ) from None


async def _set_up_session(connection: Any) -> None:
    """Make commits durable, and let locks end with a host that is gone (from PostgreSQL 17 on).

    A pooler would give such a session to others, whose transactions may take longer.
    """
    await _make_durable(connection)
    await connection.execute(
        f"SELECT set_config(name, '{TRANSACTION_SECONDS}s', false) FROM pg_settings"
        " WHERE name = 'transaction_timeout' AND setting = '0'"
    )


async def _make_durable(connection: Any) -> None:
    """Make every commit wait for the disk, whatever the server's default is."""
    await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )


async def _skip_reset(_connection: Any) -> None:
    """Do nothing between two units: no unit changes the state of its connection."""


_DESCRIBE_SESSION = text(
    "SELECT pg_backend_pid() AS process, reset_val AS synchronous_commit"
    " FROM pg_settings WHERE name = 'synchronous_commit'"
)
_ADVANCE_SEQUENCE = text(
    "SELECT setval(numbers, highest) FROM (SELECT max(id) AS highest,"
    " CAST(pg_get_serial_sequence('payments', 'id') AS regclass) AS numbers FROM payments) AS there"
    " WHERE highest > coalesce(pg_sequence_last_value(numbers), 0)"
)
"""Advance the id sequence past rows that were copied here: a reused id would look like a known payment."""


def _set_up_schema(connection: Connection) -> bool:
    """Create the tables of an empty database; an older schema may be in use by others and is not changed.

    Returns True if there is a pooler in between.
    """
    with connection.begin():
        found = read_revision(connection)
    if found is None:
        upgrade_schema(connection)
    else:
        require_current_revision(found)
        with connection.begin():
            connection.execute(_ADVANCE_SEQUENCE)
    return _is_pooled(connection)


def _is_pooled(connection: Connection) -> bool:
    """Return True if there is a pooler in between: it greets clients with a process number of its own.

    Raises InvalidDatabaseUrl if commits behind it are not durable, since `_make_durable` changes only one of
    its connections.
    """
    with connection.begin():
        session = connection.execute(_DESCRIBE_SESSION).one()
        driver: Any = connection.connection.driver_connection
    is_pooled = driver.get_server_pid() != session.process
    if is_pooled and session.synchronous_commit == "off":
        raise InvalidDatabaseUrl(
            "its server confirms commits before they are on the disk, and is behind a pooler, through which "
            "this cannot be changed: ALTER DATABASE … SET synchronous_commit = on"
        )
    return is_pooled


async def _run_unit(
    unit: UnitOfWork[T], fetch_rows: Callable[[BoundStatement], Awaitable[list[ResultRow]]]
) -> T:
    """Run a unit of work to completion and return its result."""
    try:
        statement = next(unit)
        while True:
            statement = unit.send(await fetch_rows(statement))
    except StopIteration as end:
        return cast(T, end.value)


async def _fetch_rows(bound: BoundStatement, connection: Any, statement_timeout: float) -> list[ResultRow]:
    return await connection.fetch(bound.statement.postgresql, *bound.list_values(), timeout=statement_timeout)
