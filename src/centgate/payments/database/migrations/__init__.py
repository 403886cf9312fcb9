"""Schema migrations of the journal."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from centgate.payments.database.tables import metadata

HEAD_REVISION = "0011"
"""Schema version that this version of Centgate needs."""

SELECT_REVISION = "SELECT version_num FROM alembic_version"
"""Statement that reads the schema version of a database that has one."""
_LOCK = 0x43656E74
"""Advisory lock that serialises concurrent migrations of one PostgreSQL database."""

_VERSION_TABLE = """CREATE TABLE IF NOT EXISTS alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"""
"""Alembic's table, as `alembic.ddl.impl.DefaultImpl.version_table_impl` creates it."""

_ALEMBIC = threading.Lock()
"""Alembic keeps the running migration in process globals, so only one may run at a time."""


class SchemaMismatch(ValueError):
    """The database's schema version differs from `HEAD_REVISION` and cannot be migrated by this version."""


def upgrade_schema(connection: Connection) -> str | None:
    """Bring the database to `HEAD_REVISION` in one transaction; fast if it is there already.

    Returns the version it had, None if it was empty. Raises SchemaMismatch for a schema of a newer version.
    """
    with connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        found = read_revision(connection)
        if found == HEAD_REVISION:
            return found
        if found is None:
            _create_schema(connection)
            return None
        require_known_revision(found)
        from alembic import command

        with _ALEMBIC:
            command.upgrade(build_alembic_config(connection), HEAD_REVISION)
        return found


def _create_schema(connection: Connection) -> None:
    """Create the tables in an empty database as they are after all migrations, and write the version down.

    Alembic and the migrations need not be loaded for it, which takes a seventh of a second. Fails if there is
    a table of one of the names.
    """
    metadata.create_all(connection, checkfirst=False)
    connection.execute(text(_VERSION_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD_REVISION})


def read_revision(connection: Connection) -> str | None:
    """Read the schema version of a database, None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text(SELECT_REVISION)).scalar()


def require_known_revision(found: str | None) -> None:
    """Raise SchemaMismatch for a version that this Centgate cannot migrate."""
    if found is None or found in _list_versions():
        return
    if not re.fullmatch(r"0\d{3}", found):
        raise SchemaMismatch(
            f"the database belongs to another program (schema {found}); use a separate database for Centgate"
        )
    raise SchemaMismatch(
        f"the database was created by a newer Centgate (schema {found}, this version knows {HEAD_REVISION})"
        ": run that version or a newer one"
    )


def require_current_revision(found: str) -> None:
    """Raise SchemaMismatch for any version but `HEAD_REVISION`."""
    require_known_revision(found)
    if found != HEAD_REVISION:
        raise SchemaMismatch(
            f"the database has schema {found}, this Centgate needs {HEAD_REVISION}: run `centgate migrate`"
        )


def _list_versions() -> set[str]:
    """Return all schema versions up to now."""
    return {path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("0*.py")}


def build_alembic_config(connection: Connection) -> Any:
    """Build Alembic's configuration for a connection inside a transaction."""
    # imported here because its import takes as long as the rest of a start and is rarely needed
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config
