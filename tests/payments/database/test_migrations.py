"""Migrations: they build the schema that the program uses, on both databases."""

# alembic's comparison is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from centgate_process import run_centgate
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from typer.testing import CliRunner

from centgate.cli.main import app
from centgate.payments.database import migrations
from centgate.payments.database.migrations import (
    HEAD_REVISION,
    SchemaMismatch,
    build_alembic_config,
    read_revision,
    upgrade_schema,
)
from centgate.payments.database.sqlite import create_sqlite_engine
from centgate.payments.database.store_factory import open_store
from centgate.payments.database.tables import metadata
from centgate.payments.journal.webhook_outbox import summarize_outbox

Run = Callable[[Callable[[Connection], Any]], Any]

KEY = "'eip155:84532', '0xa', '0xb', '0xc'"
DELIVERED = f"""INSERT INTO payments (network, asset, payer, nonce, state, binding, service, proof,
    signer_known, amount, pay_to, valid_before, created_at, updated_at)
    VALUES ({KEY}, 'delivered', 'b', 's', 'p', 1, '10000', '0xd', 2000000000, 1.5, 2.25)"""
ANSWER = f"INSERT INTO answers VALUES ({KEY}, 200, 'req_1', 'receipt', :body, 2.25)"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'journal.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def run(database_url: str) -> Run:
    """Function that runs another one with a connection to an unused database."""

    async def on_postgresql(work: Callable[[Connection], Any]) -> Any:
        engine = create_async_engine(database_url.replace("postgresql:", "postgresql+asyncpg:"))
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    def run(work: Callable[[Connection], Any]) -> Any:
        if database_url.startswith("postgresql:"):
            return asyncio.run(on_postgresql(work))
        engine = create_sqlite_engine(Path(database_url.removeprefix("sqlite:///")))
        try:
            with engine.connect() as connection:
                return work(connection)
        finally:
            engine.dispose()

    return run


def migrate_to(revision: str) -> Callable[[Connection], None]:
    """Return a function that migrates a database to a version, up or down."""

    def move(connection: Connection) -> None:
        with connection.begin():
            down = revision == "base" or (read_revision(connection) or "") > revision
            step = command.downgrade if down else command.upgrade
            step(build_alembic_config(connection), revision)

    return move


def execute_statement(statement: str, **values: Any) -> Callable[[Connection], Any]:
    """Return a function that executes a statement and returns its rows."""

    def execute(connection: Connection) -> Any:
        with connection.begin():
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else None

    return execute


def compare_schema(connection: Connection) -> Any:
    """Return the differences between the schema and the tables."""
    with connection.begin():
        return compare_metadata(MigrationContext.configure(connection), metadata)


def read_primary_keys(connection: Connection) -> dict[str, list[str]]:
    with connection.begin():
        inspector = inspect(connection)
        return {
            table.name: inspector.get_pk_constraint(table.name)["constrained_columns"]
            for table in metadata.sorted_tables
        }


def describe_schema(connection: Connection) -> dict[str, Any]:
    """Return the schema of each table, regardless of the order of columns."""
    with connection.begin():
        inspector = inspect(connection)
        return {
            name: {
                "columns": sorted(map(repr, inspector.get_columns(name))),
                "key": inspector.get_pk_constraint(name),
                "unique": inspector.get_unique_constraints(name),
                "indexes": sorted(map(_describe_index, inspector.get_indexes(name))),
                "foreign keys": inspector.get_foreign_keys(name),
                "checks": inspector.get_check_constraints(name),
            }
            for name in inspector.get_table_names()
        }


def _describe_index(index: Any) -> str:
    options = {option: str(value) for option, value in index.get("dialect_options", {}).items()}
    return repr({**index, "dialect_options": options})


def list_tables(connection: Connection) -> list[str]:
    with connection.begin():
        return inspect(connection).get_table_names()


def test_migrated_schema_matches_tables(run: Run) -> None:
    run(upgrade_schema)

    assert run(compare_schema) == []
    assert run(read_primary_keys) == {
        table.name: [column.name for column in table.primary_key.columns] for table in metadata.sorted_tables
    }


@pytest.mark.extended
def test_created_schema_matches_migrated_one(run: Run) -> None:
    run(upgrade_schema)
    created = run(describe_schema)

    run(migrate_to("base"))
    run(migrate_to(HEAD_REVISION))

    assert run(describe_schema) == created


def test_foreign_tables_are_kept(run: Run) -> None:
    run(execute_statement("CREATE TABLE payments (invoice INTEGER)"))

    with pytest.raises(DBAPIError, match="already exists"):
        run(upgrade_schema)

    assert run(list_tables) == ["payments"]


def test_head_is_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))

    assert ScriptDirectory.from_config(config).get_heads() == [HEAD_REVISION]


def test_rows_of_first_version_survive_all_migrations(run: Run) -> None:
    run(migrate_to("0001"))
    run(execute_statement(DELIVERED))
    run(execute_statement(ANSWER, body=b"\0{}"))

    found = run(upgrade_schema)

    assert found == "0001"
    assert run(compare_schema) == []
    assert run(execute_statement("SELECT state, updated_at, settled_at, attempts FROM payments")) == [
        ("delivered", 2.25, 2.25, 0)
    ]
    assert [bytes(body) for (body,) in run(execute_statement("SELECT body FROM answers"))] == [b"\0{}"]

    run(migrate_to("0001"))

    assert run(execute_statement("SELECT nonce, request_id, stored_at FROM answers")) == [
        ("0xc", "req_1", 2.25)
    ]


@pytest.mark.extended
def test_downgrade_to_first_version_and_back(run: Run) -> None:
    run(upgrade_schema)
    run(execute_statement(DELIVERED))

    run(migrate_to("0001"))
    rows = run(execute_statement("SELECT state, amount FROM payments"))
    run(upgrade_schema)

    assert rows == [("delivered", "10000")]
    assert run(compare_schema) == []


def test_downgrade_to_empty_database(run: Run) -> None:
    run(upgrade_schema)

    run(migrate_to("base"))

    assert run(list_tables) == ["alembic_version"]


def test_second_upgrade_changes_nothing(run: Run) -> None:
    run(upgrade_schema)
    run(execute_statement(DELIVERED))

    assert run(upgrade_schema) == HEAD_REVISION
    assert run(execute_statement("SELECT state FROM payments")) == [("delivered",)]


@pytest.mark.parametrize(
    ("found", "message"), [("0999", "newer Centgate"), ("ae1027a6acf", "another program")]
)
def test_unknown_schema_is_kept(run: Run, found: str, message: str) -> None:
    run(upgrade_schema)
    run(execute_statement(f"UPDATE alembic_version SET version_num = '{found}'"))

    with pytest.raises(SchemaMismatch, match=message):
        run(upgrade_schema)

    assert run(execute_statement("SELECT version_num FROM alembic_version")) == [(found,)]


def run_migrate_command(url: str) -> tuple[int, str]:
    """Run `centgate migrate`; return its exit code and output."""
    done = CliRunner().invoke(app, ["migrate"], env={"CENTGATE_DATABASE_URL": url})
    return done.exit_code, done.output.strip()


@pytest.mark.extended
def test_command_reports_migration(database_url: str, run: Run) -> None:
    first, second = run_migrate_command(database_url), run_migrate_command(database_url)
    run(migrate_to("0001"))
    third = run_migrate_command(database_url)

    assert first == (0, f"the database was empty: created schema {HEAD_REVISION}")
    assert second == (0, f"the database is up to date: schema {HEAD_REVISION}")
    assert third == (0, f"the database is updated from schema 0001 to {HEAD_REVISION}")
    assert run(compare_schema) == []


def test_command_refuses_newer_schema(database_url: str, run: Run) -> None:
    run(upgrade_schema)
    run(execute_statement("UPDATE alembic_version SET version_num = '0999'"))

    code, output = run_migrate_command(database_url)

    assert (code, "newer Centgate (schema 0999" in output) == (1, True)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///nowhere/journal.db", 1),
        ("sqlite:///:memory:", 2),  # the setting is wrong, whatever is on the machine
        ("postgresql://x:secret@127.0.0.1:1/x", 1),
    ],
)
def test_command_reports_database_errors(url: str, expected: int) -> None:
    code, output = run_migrate_command(url)

    assert code == expected
    assert output.startswith("centgate: ")
    assert "secret" not in output


def run_refused_serve(url: str) -> tuple[int, str]:
    """Run `centgate serve`, which must not start; return its exit code and output."""
    environment = {**os.environ, "CENTGATE_DATABASE_URL": url, "CENTGATE_PAY_TO": "0x" + "11" * 20}
    done = run_centgate(["serve", "--port", "0"], env=environment)
    assert done.stdout == ""
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.extended
def test_server_refuses_newer_schema(database_url: str, run: Run) -> None:
    run(upgrade_schema)
    run(execute_statement("UPDATE alembic_version SET version_num = '0999'"))

    code, output = run_refused_serve(database_url)

    assert code == 1
    assert "created by a newer Centgate" in output


@pytest.mark.extended
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_server_refuses_older_shared_schema(database_url: str, run: Run) -> None:
    run(migrate_to("0001"))

    code, output = run_refused_serve(database_url)

    assert (code, "run `centgate migrate`" in output) == (1, True)


async def test_migrate_brings_older_file_up_to_date(tmp_path: Path) -> None:
    engine = create_sqlite_engine(tmp_path / "journal.db")
    with engine.connect() as connection:
        migrate_to("0001")(connection)
    store = open_store(f"sqlite:///{tmp_path / 'journal.db'}")

    await store.check()
    found = await store.migrate()
    await store.close()

    assert found == "0001"


@pytest.mark.extended
@pytest.mark.parametrize("use", ["read", "run"])
async def test_older_file_is_migrated_by_read_or_write(tmp_path: Path, use: str) -> None:
    file = tmp_path / "journal.db"
    with create_sqlite_engine(file).connect() as connection:
        migrate_to("0001")(connection)
    store = open_store(f"sqlite:///{file}")

    await getattr(store, use)(summarize_outbox)
    await store.close()

    with closing(sqlite3.connect(file)) as journal:
        assert journal.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD_REVISION,)]
