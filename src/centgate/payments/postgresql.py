"""The journal in PostgreSQL, for several replicas.

Every statement is a transaction of its own, which PostgreSQL commits together with others that wait.
"""

# asyncpg is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import asyncpg
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from centgate.meter import SILENT, Meter
from centgate.payments.migrations import SchemaMismatch, bring_up_to_date, require_current, version
from centgate.payments.statements import Ask, Asking, Row
from centgate.payments.store import BadAddress, JournalUnavailable, Unit

T = TypeVar("T")

PATIENCE = 5
"""Seconds to wait for a connection, and for a statement; and for a server that restarts."""
LETTING_GO = 1
"""Seconds to wait for the server when a statement is cut off; then the connection is closed."""
READING = 300
"""Seconds that a question may take which holds up nobody."""
PAUSE = 0.1
"""Seconds between two tries to reach a server that is away."""

_PASSING = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.TransactionRollbackError,
    asyncpg.UniqueViolationError,  # what was looked for and not there has been entered since
)
"""The server is gone, or about to be, or the connection is; or two statements were in each other's way."""
_FAILED = (asyncpg.PostgresError, SQLAlchemyError, SchemaMismatch, BadAddress)
"""What will not be otherwise in a moment."""


class PostgresStore:
    """A database on a server, reached over a pool of connections."""

    def __init__(self, url: str, connections: int, *, meter: Meter = SILENT) -> None:
        self._meter = meter
        self._url = url
        self._connections = connections
        self._pool: Any = None
        self._opening: asyncio.Task[Any] | None = None

    async def run(self, unit: Unit[T]) -> T:
        """Run one unit; each of its statements is durable when it has been answered.

        While the server is away it is tried again for a while.
        """
        started = time.perf_counter()
        result = await self._patiently(unit, self._once)
        self._meter.committed(time.perf_counter() - started, 1)
        return result

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, on a connection of its own, which sees one state of the database."""
        return await self._patiently(unit, self._apart)

    async def _patiently(self, unit: Unit[T], once: Callable[[Unit[T]], Awaitable[T]]) -> T:
        give_up = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                return await once(unit)
            except TimeoutError as error:  # nobody else may wait as long for the same
                raise JournalUnavailable(error) from error
            except _PASSING as error:
                if asyncio.get_running_loop().time() > give_up:
                    raise JournalUnavailable(error) from error
            except _FAILED as error:
                raise JournalUnavailable(error) from error
            await asyncio.sleep(PAUSE)

    async def check(self) -> None:
        """Look at the schema; that of an empty database is made."""
        await self._told(_set_up)

    async def migrate(self) -> str | None:
        """Bring the schema up to date."""
        return await self._told(bring_up_to_date)

    async def close(self) -> None:
        """Let what is under way finish, and close the connections."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._pool is None:
            return
        try:
            await asyncio.wait_for(self._pool.close(), PATIENCE)
        except (TimeoutError, *_PASSING, asyncpg.PostgresError):
            self._pool.terminate()

    async def _once(self, unit: Unit[T]) -> T:
        pool = self._pool or await self._opened()
        connection = await pool.acquire(timeout=PATIENCE)
        try:
            return await _answered(unit(), connection, PATIENCE)
        finally:
            # what was cut off is also cancelled on the server, which may not answer; a TimeoutError from here
            # would take the place of the cancellation
            with suppress(TimeoutError):
                await pool.release(connection, timeout=LETTING_GO)

    async def _apart(self, unit: Unit[T]) -> T:
        if self._pool is None:
            await self._opened()
        connection = await connected(self._url)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await _answered(unit(), connection, READING)
        finally:
            connection.terminate()

    async def _opened(self) -> Any:
        """The pool; all who want it while it is being opened wait for the same attempt."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._tried)
        return await asyncio.wait_for(asyncio.shield(self._opening), PATIENCE)

    def _tried(self, attempt: asyncio.Task[Any]) -> None:
        self._opening = None
        if not attempt.cancelled():
            attempt.exception()  # seen here, in case nobody waits for it any more

    async def _open(self) -> Any:
        await self._with_schema(_set_up)
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=self._connections,
            timeout=PATIENCE,
            init=_make_durable,
            reset=_leave_as_it_is,
        )
        return self._pool

    async def _told(self, work: Callable[[Connection], T]) -> T:
        try:
            return await self._with_schema(work)
        except (SQLAlchemyError, asyncpg.PostgresError, *_PASSING) as error:
            raise JournalUnavailable(error) from error

    async def _with_schema(self, work: Callable[[Connection], T]) -> T:
        """Run migrations' work on a connection of SQLAlchemy's."""
        engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=partial(connected, self._url), poolclass=NullPool
        )
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()


async def connected(url: str) -> Any:
    """A connection; BadAddress for an address that cannot be one, in words that hold nothing of it."""
    try:
        return await asyncpg.connect(url, timeout=PATIENCE)
    except asyncpg.ClientConfigurationError as error:
        raise BadAddress(str(error).replace("\n", " ")) from error
    except asyncpg.UndefinedObjectError as error:  # what is not known to the driver is asked of the server
        raise BadAddress(f"{error}; leave it out") from error
    except (ValueError, OverflowError):
        raise BadAddress(
            "cannot be read; it is postgresql://user:password@host:5432/database, and what is neither letter "
            "nor digit in a user, a password or a name is written as %XX"
        ) from None


async def _make_durable(connection: Any) -> None:
    """Wait for the disk with every commit, whatever the server does unless told."""
    await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )


async def _leave_as_it_is(_connection: Any) -> None:
    """Between two units: no unit changes anything about its connection, so nothing need be undone."""


_NUMBER_ON = text(
    "SELECT setval(numbers, highest) FROM (SELECT max(id) AS highest,"
    " CAST(pg_get_serial_sequence('payments', 'id') AS regclass) AS numbers FROM payments) AS there"
    " WHERE highest > coalesce(pg_sequence_last_value(numbers), 0)"
)
"""Numbers go on after those of rows that were copied here: the same again would look like a known payment."""


def _set_up(connection: Connection) -> None:
    """Make the tables of an empty database; an older one may be in use by others, and is left as it is."""
    with connection.begin():
        found = version(connection)
    if found is None:
        bring_up_to_date(connection)
    else:
        require_current(found)
        with connection.begin():
            connection.execute(_NUMBER_ON)


async def _answered(asking: Asking[T], connection: Any, seconds: float) -> T:
    """What comes of a conversation."""
    try:
        ask = next(asking)
        while True:
            ask = asking.send(await _rows(ask, connection, seconds))
    except StopIteration as end:
        return cast(T, end.value)


async def _rows(ask: Ask, connection: Any, seconds: float) -> list[Row]:
    values = [ask.parameters[name] for name in ask.statement.names]
    return await connection.fetch(ask.statement.postgresql, *values, timeout=seconds)
