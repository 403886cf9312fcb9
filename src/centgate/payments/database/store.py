"""Storage interface of the journal, implemented by SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from centgate.errors import InternalError
from centgate.payments.database.sql import UnitOfWork

T = TypeVar("T")
UnitFactory = Callable[[], UnitOfWork[T]]
"""Factory of a unit of work; it may be called again when the database fails in between.

Each of its statements is atomic and durable when the unit has ended; other work may run between two of them.
"""

RETRY_AFTER = 5
"""Seconds after which a failed database may be available again."""


class JournalUnavailable(InternalError):
    """The journal cannot be read or written; the unit may have been executed, and may be retried."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("the payment journal cannot be read or written", retry_after=RETRY_AFTER)
        self.__cause__ = cause
        message = str(getattr(cause, "orig", cause)) or "no response in time"
        self.detail = message.splitlines()[0]
        """The cause, for the operator."""


class InvalidDatabaseUrl(ValueError):
    """`CENTGATE_DATABASE_URL` is invalid, so that a retry does not help."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"CENTGATE_DATABASE_URL: {detail}")


def sqlite_path(url: str) -> Path:
    """Return the path of the file in a SQLite URL."""
    return Path(url.removeprefix("sqlite:///"))


class Store(Protocol):
    """A database that runs units of work."""

    async def run(self, unit: UnitFactory[T]) -> T:
        """Run one unit, durable when this returns. Raises JournalUnavailable if the database fails."""
        ...

    async def run_serializable(self, unit: UnitFactory[T]) -> T:
        """Run one unit as a whole: no other work of this kind runs between its statements, or it is undone.

        For units that compare what they read in several rows with what they write.
        """
        ...

    async def read(self, unit: UnitFactory[T]) -> T:
        """Run a read-only unit, which may take long, without blocking writers."""
        ...

    async def check(self) -> None:
        """Check that the database can be used by this version; an empty one may be set up.

        Raises SchemaMismatch or InvalidDatabaseUrl if it cannot be used as it is, JournalUnavailable if it is
        down.
        """
        ...

    async def migrate(self) -> str | None:
        """Bring the schema up to date; returns the version it had, None for an empty database.

        Raises SchemaMismatch for a schema that is newer than this program, InvalidDatabaseUrl, and
        JournalUnavailable.
        """
        ...

    async def close(self) -> None:
        """Finish waiting work and close the connections."""
        ...
