"""The journal's schema, version by version."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

HEAD = "0006"
"""The version this program works with."""

_LOCK = 0x43656E74
"""What several processes that migrate one PostgreSQL at once wait for."""

_ALEMBIC = threading.Lock()
"""Alembic keeps the migration that runs in globals of the process."""


class SchemaMismatch(ValueError):
    """The database is not at the version this program works with, and is not to be brought there by it."""


def bring_up_to_date(connection: Connection) -> str | None:
    """Bring the database to `HEAD` in one transaction; quick when it is there already.

    Gives the version it had, None if it was empty. SchemaMismatch when a newer program made it.
    """
    with connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        found = version(connection)
        if found == HEAD:
            return found
        require_known(found)
        from alembic import command

        with _ALEMBIC:
            command.upgrade(config(connection), HEAD)
        return found


def version(connection: Connection) -> str | None:
    """The version a database is at, None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def require_known(found: str | None) -> None:
    """SchemaMismatch for a version that this program cannot bring up to date."""
    if found is None or found in _known():
        return
    if not re.fullmatch(r"0\d{3}", found):
        raise SchemaMismatch(f"the database is another program's (schema {found}); give Centgate its own")
    raise SchemaMismatch(
        f"the database was made by a newer Centgate (schema {found}, this one knows {HEAD})"
        ": run that one, or a newer one still"
    )


def require_current(found: str) -> None:
    """SchemaMismatch for any version but the one this program works with."""
    require_known(found)
    if found != HEAD:
        raise SchemaMismatch(
            f"the database has schema {found}, this Centgate needs {HEAD}: run `centgate migrate`"
        )


def _known() -> set[str]:
    """Every version there has been."""
    return {path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("0*.py")}


def config(connection: Connection) -> Any:
    """What alembic works with, on a connection inside a transaction."""
    # imported here because it takes as long to load as all the rest of a start, and is needed once
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config
