"""Where the journal is kept: SQLite or PostgreSQL, behind one small interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from centgate.errors import InternalError
from centgate.meter import SILENT, Meter
from centgate.payments.statements import Asking

T = TypeVar("T")
Unit = Callable[[], Asking[T]]
"""A piece of work, begun by calling it; it may be begun anew when the database fails on the way.

Each statement it asks is durable as a whole when the unit has ended; other work may come between two of them.
"""

RETRY_AFTER = 5
"""Seconds after which a database that failed may be back."""


class JournalUnavailable(InternalError):
    """The journal cannot be read or written; what was asked may have happened, and may be asked again."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("the payment journal cannot be read or written", retry_after=RETRY_AFTER)
        self.__cause__ = cause
        told = str(getattr(cause, "orig", cause)) or "no answer in time"
        self.why = told.splitlines()[0]
        """What went wrong, for the operator."""


class BadAddress(ValueError):
    """`CENTGATE_DATABASE_URL` names no database that could be there at another time."""

    def __init__(self, why: str) -> None:
        super().__init__(f"CENTGATE_DATABASE_URL: {why}")


class Store(Protocol):
    """A database that runs units of work."""

    async def run(self, unit: Unit[T]) -> T:
        """Run one unit, durable when this returns; JournalUnavailable when the database fails."""
        ...

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, and may take long, without holding up those that write."""
        ...

    async def check(self) -> None:
        """See whether the database can be used by this program; an empty one may be set up.

        Raises SchemaMismatch or BadAddress when it never can as it is, JournalUnavailable when it cannot now.
        """
        ...

    async def migrate(self) -> str | None:
        """Bring the schema up to date; the version it had, None for an empty database.

        Raises SchemaMismatch for a schema that is newer than this program, BadAddress, JournalUnavailable.
        """
        ...

    async def close(self) -> None:
        """Finish what waits and let go."""
        ...


def open_store(url: str, *, connections: int = 10, meter: Meter = SILENT) -> Store:
    """The store a database URL names; it is opened, and its schema looked at, when first used. BadAddress.

    `connections`: how many are open at once at most, where there are such things.
    """
    if url.startswith("sqlite:"):
        from centgate.payments.sqlite import SqliteStore

        return SqliteStore(url, meter)
    from centgate.payments.postgresql import PostgresStore

    return PostgresStore(url, connections, meter=meter)
