"""Opening the store of a database URL: SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from centgate.instrumentation import NULL_METER, Meter

if TYPE_CHECKING:
    from centgate.payments.database.store import Store


def open_store(
    url: str,
    *,
    connections: int = 10,
    meter: Meter = NULL_METER,
    prepared_statements: bool | None = None,
) -> Store:
    """Create the store of a database URL; it is opened, and its schema checked, at first use.

    `connections`: maximum size of the pool, for PostgreSQL. `prepared_statements`: False to prepare none
    there, True also behind a pooler; None: not behind one. Raises InvalidDatabaseUrl.
    """
    if url.startswith("sqlite:"):
        from centgate.payments.database.sqlite import SqliteStore

        return SqliteStore(url, meter)
    from centgate.payments.database.postgresql import PostgresStore

    return PostgresStore(url, connections, meter=meter, prepared_statements=prepared_statements)
