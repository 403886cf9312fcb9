"""The schema that the migrations build is the schema that the program uses, on both databases."""

# alembic's comparison is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
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
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from typer.testing import CliRunner

from centgate.cli.main import app
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.payments import migrations
from centgate.payments.migrations import (
    HEAD_REVISION,
    SchemaMismatch,
    build_alembic_config,
    read_revision,
    upgrade_schema,
)
from centgate.payments.sqlite import create_sqlite_engine
from centgate.payments.store_factory import open_store
from centgate.payments.tables import metadata
from centgate.payments.webhook_outbox import summarize_outbox

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
    """Runs a function with a connection to an unused database."""

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


def at(revision: str) -> Callable[[Connection], None]:
    """Brings a database to a version, up or down."""

    def move(connection: Connection) -> None:
        with connection.begin():
            down = revision == "base" or (read_revision(connection) or "") > revision
            step = command.downgrade if down else command.upgrade
            step(build_alembic_config(connection), revision)

    return move


def executed(statement: str, **values: Any) -> Callable[[Connection], Any]:
    """Execute a statement and return its result."""

    def execute(connection: Connection) -> Any:
        with connection.begin():
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else None

    return execute


def differences(connection: Connection) -> Any:
    """Between the schema and the tables."""
    with connection.begin():
        return compare_metadata(MigrationContext.configure(connection), metadata)


def primary_keys(connection: Connection) -> dict[str, list[str]]:
    with connection.begin():
        inspector = inspect(connection)
        return {
            table.name: inspector.get_pk_constraint(table.name)["constrained_columns"]
            for table in metadata.sorted_tables
        }


def describe_schema(connection: Connection) -> dict[str, Any]:
    """Return everything that the database tells of each table, regardless of the order of columns."""
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


def tables(connection: Connection) -> list[str]:
    with connection.begin():
        return inspect(connection).get_table_names()


def test_the_migrated_schema_is_that_of_the_tables(run: Run) -> None:
    run(upgrade_schema)

    assert run(differences) == []
    assert run(primary_keys) == {
        table.name: [column.name for column in table.primary_key.columns] for table in metadata.sorted_tables
    }


def test_created_schema_is_that_of_all_migrations(run: Run) -> None:
    run(upgrade_schema)
    created = run(describe_schema)

    run(at("base"))
    run(at(HEAD_REVISION))

    assert run(describe_schema) == created


def test_tables_of_another_program_are_left_alone(run: Run) -> None:
    run(executed("CREATE TABLE payments (invoice INTEGER)"))

    with pytest.raises(DBAPIError, match="already exists"):
        run(upgrade_schema)

    assert run(tables) == ["payments"]


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))

    assert ScriptDirectory.from_config(config).get_heads() == [HEAD_REVISION]


def test_what_the_first_version_wrote_down_is_there_after_all_others(run: Run) -> None:
    run(at("0001"))
    run(executed(DELIVERED))
    run(executed(ANSWER, body=b"\0{}"))

    found = run(upgrade_schema)

    assert found == "0001"
    assert run(differences) == []
    assert run(executed("SELECT state, updated_at, settled_at, attempts FROM payments")) == [
        ("delivered", 2.25, 2.25, 0)
    ]
    assert [bytes(body) for (body,) in run(executed("SELECT body FROM answers"))] == [b"\0{}"]

    run(at("0001"))

    assert run(executed("SELECT nonce, request_id, stored_at FROM answers")) == [("0xc", "req_1", 2.25)]


def test_it_can_be_taken_back_to_the_first_version_and_forward_again(run: Run) -> None:
    run(upgrade_schema)
    run(executed(DELIVERED))

    run(at("0001"))
    kept = run(executed("SELECT state, amount FROM payments"))
    run(upgrade_schema)

    assert kept == [("delivered", "10000")]
    assert run(differences) == []


def test_it_can_be_taken_back_to_nothing(run: Run) -> None:
    run(upgrade_schema)

    run(at("base"))

    assert run(tables) == ["alembic_version"]


def test_bringing_it_up_to_date_twice_changes_nothing(run: Run) -> None:
    run(upgrade_schema)
    run(executed(DELIVERED))

    assert run(upgrade_schema) == HEAD_REVISION
    assert run(executed("SELECT state FROM payments")) == [("delivered",)]


@pytest.mark.parametrize(("found", "told"), [("0999", "newer Centgate"), ("ae1027a6acf", "another program")])
def test_a_schema_that_is_not_known_is_left_alone(run: Run, found: str, told: str) -> None:
    run(upgrade_schema)
    run(executed(f"UPDATE alembic_version SET version_num = '{found}'"))

    with pytest.raises(SchemaMismatch, match=told):
        run(upgrade_schema)

    assert run(executed("SELECT version_num FROM alembic_version")) == [(found,)]


def migrated(url: str) -> tuple[int, str]:
    """Run `centgate migrate`; return its exit code and output."""
    done = CliRunner().invoke(app, ["migrate"], env={"CENTGATE_DATABASE_URL": url})
    return done.exit_code, done.output.strip()


def test_the_command_says_what_it_did(database_url: str, run: Run) -> None:
    first, second = migrated(database_url), migrated(database_url)
    run(at("0001"))
    third = migrated(database_url)

    assert first == (0, f"the database was empty: created schema {HEAD_REVISION}")
    assert second == (0, f"the database is up to date: schema {HEAD_REVISION}")
    assert third == (0, f"the database is updated from schema 0001 to {HEAD_REVISION}")
    assert run(differences) == []


def test_the_command_refuses_a_newer_schema(database_url: str, run: Run) -> None:
    run(upgrade_schema)
    run(executed("UPDATE alembic_version SET version_num = '0999'"))

    code, told = migrated(database_url)

    assert (code, "newer Centgate (schema 0999" in told) == (1, True)


@pytest.mark.parametrize(
    "url", ["sqlite:///nowhere/journal.db", "sqlite:///:memory:", "postgresql://x:secret@127.0.0.1:1/x"]
)
def test_the_command_says_what_is_wrong_with_the_database(url: str) -> None:
    code, told = migrated(url)

    assert code == 1
    assert told.startswith("centgate: ")
    assert "secret" not in told


def refused(url: str) -> tuple[int, str]:
    """Run `centgate serve`, which must not start; return its exit code and output."""
    done = subprocess.run(
        [sys.executable, "-m", "centgate", "serve", "--port", "0"],
        env={**os.environ, "CENTGATE_DATABASE_URL": url, "CENTGATE_PAY_TO": DEFAULT_PAYEE},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.extended
def test_a_server_does_not_start_on_a_newer_schema(database_url: str, run: Run) -> None:
    run(upgrade_schema)
    run(executed("UPDATE alembic_version SET version_num = '0999'"))

    code, told = refused(database_url)

    assert code == 1
    assert "created by a newer Centgate" in told


@pytest.mark.extended
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_server_does_not_start_on_an_older_schema_that_others_may_use(database_url: str, run: Run) -> None:
    run(at("0001"))

    code, told = refused(database_url)

    assert (code, "run `centgate migrate`" in told) == (1, True)


async def test_migrate_brings_an_older_file_up_to_date(tmp_path: Path) -> None:
    engine = create_sqlite_engine(tmp_path / "journal.db")
    with engine.connect() as connection:
        at("0001")(connection)
    store = open_store(f"sqlite:///{tmp_path / 'journal.db'}")

    await store.check()
    found = await store.migrate()
    await store.close()

    assert found == "0001"


@pytest.mark.parametrize("use", ["read", "run"])
async def test_an_older_file_has_this_schema_when_it_is_read_or_written(tmp_path: Path, use: str) -> None:
    file = tmp_path / "journal.db"
    with create_sqlite_engine(file).connect() as connection:
        at("0001")(connection)
    store = open_store(f"sqlite:///{file}")

    await getattr(store, use)(summarize_outbox)
    await store.close()

    with closing(sqlite3.connect(file)) as journal:
        assert journal.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD_REVISION,)]
