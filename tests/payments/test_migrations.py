"""The schema that the migrations build is the schema that the program uses."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from centgate.payments import migrations
from centgate.payments.migrations import HEAD, bring_up_to_date
from centgate.payments.store import sqlite_engine
from centgate.payments.tables import metadata


@pytest.fixture
def connection(tmp_path: Path) -> Generator[Connection]:
    """A connection to a database that nobody has used."""
    engine = sqlite_engine(f"sqlite:///{tmp_path / 'journal.db'}")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_the_migrated_schema_is_that_of_the_tables(connection: Connection) -> None:
    bring_up_to_date(connection)

    with connection.begin():
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_the_primary_keys_are_those_of_the_tables(connection: Connection) -> None:
    bring_up_to_date(connection)

    with connection.begin():
        for table in metadata.sorted_tables:
            found = inspect(connection).get_pk_constraint(table.name)["constrained_columns"]
            assert found == [column.name for column in table.primary_key.columns]


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))

    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_bringing_it_up_to_date_twice_changes_nothing(connection: Connection) -> None:
    bring_up_to_date(connection)
    with connection.begin():
        connection.execute(text("INSERT INTO workers (id, seen_at) VALUES ('one', 1)"))

    bring_up_to_date(connection)

    with connection.begin():
        assert connection.execute(text("SELECT id FROM workers")).scalars().all() == ["one"]


def test_it_can_be_taken_back(connection: Connection) -> None:
    from alembic import command

    bring_up_to_date(connection)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection

    with connection.begin():
        command.downgrade(config, "base")

    with connection.begin():
        assert inspect(connection).get_table_names() == ["alembic_version"]
