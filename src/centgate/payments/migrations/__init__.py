"""The journal's schema, version by version."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

HEAD = "0001"
"""The version this program works with."""


def bring_up_to_date(connection: Connection) -> None:
    """Bring the database to `HEAD`; quick when it is there already."""
    with connection.begin():
        if _version(connection) == HEAD:
            return
        # imported here because it takes as long to load as all the rest of a start, and is needed once
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
