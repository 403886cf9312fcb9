"""`centgate payments backup`: a copy taken under load redeems and replays the payments made before it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from buyer import ApiFactory, Buyer, encode_header, pay, sign_payload, sign_payment
from databases import Postgres
from facilitators import StubFacilitator
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from journal_rows import insert_rows, payment_row
from typer.testing import CliRunner, Result

from centgate.cli.main import app
from centgate.errors import ProviderError
from centgate.settings import Settings

down = partial(ProviderError, "oracle", "the oracle is down")
Restore = Callable[[str], str]


@pytest.fixture
def failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service."""
    with install_failing_service() as installed:
        yield installed


def back_up(url: str, file: Path) -> Result:
    """Run the command that writes a backup."""
    return CliRunner().invoke(app, ["payments", "backup", str(file)], env={"CENTGATE_DATABASE_URL": url})


@pytest.fixture
def restore(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Restore:
    """Return a function that backs a journal up and returns the URL of a journal restored from the copy."""
    if database_url.startswith("sqlite:"):
        return partial(_restore_sqlite, tmp_path)
    return partial(_restore_postgres, request.getfixturevalue("postgres"), tmp_path)


def _restore_sqlite(folder: Path, url: str) -> str:
    copy = folder / "backup.db"
    result = back_up(url, copy)
    assert result.exit_code == 0, result.output
    return f"sqlite:///{copy}"


def _restore_postgres(postgres: Postgres, folder: Path, url: str) -> str:
    file, target = folder / "backup.dump", postgres.new_database()
    dump = [postgres.programs / "pg_dump", "--format=custom", f"--file={file}", url]
    subprocess.run(dump, check=True, capture_output=True)
    load = [postgres.programs / "pg_restore", "--exit-on-error", "--no-owner", f"--dbname={target}", file]
    subprocess.run(load, check=True, capture_output=True)
    return target


@pytest.mark.extended
def test_payments_before_backup_redeem_and_replay(
    api: ApiFactory,
    settings: Settings,
    database_url: str,
    facilitator: StubFacilitator,
    buyer: Buyer,
    failures: ServiceFailures,
    restore: Restore,
) -> None:
    client = api(settings.model_copy(update={"database_url": database_url}))
    delivered = sign_payment(client, buyer)
    answer = pay(client, delivered)
    owed = encode_header(sign_payload(client, buyer, FAILING_SERVICE))
    failures.raise_next(down)
    assert pay(client, owed, FAILING_SERVICE, FAILING_QUERY).status_code == 502
    with buy_meanwhile(client, buyer) as bought:
        assert bought.wait(20)
        restored_url = restore(database_url)
    client.close()
    calls = facilitator.settle_calls

    restored = api(settings.model_copy(update={"database_url": restored_url}))
    replay = pay(restored, delivered)
    redeemed = pay(restored, owed, FAILING_SERVICE, FAILING_QUERY)

    assert (answer.status_code, replay.content) == (200, answer.content)
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert (redeemed.status_code, facilitator.settle_calls) == (200, calls)


@contextmanager
def buy_meanwhile(client: httpx.Client, buyer: Buyer) -> Generator[threading.Event]:
    """Buy answers one by one in a thread; the event is set after the first."""
    first, end = threading.Event(), threading.Event()

    def buy() -> None:
        while not end.is_set():
            assert pay(client, sign_payment(client, buyer)).status_code == 200
            first.set()

    thread = threading.Thread(target=buy, daemon=True)
    thread.start()
    try:
        yield first
    finally:
        end.set()
        thread.join(30)


async def test_backup_is_one_private_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    await insert_rows(url, payments=[payment_row(number) for number in range(3)])
    copy = tmp_path / "copies" / "journal.db"
    copy.parent.mkdir()

    result = back_up(url, copy)

    assert (result.exit_code, [each.name for each in copy.parent.iterdir()]) == (0, ["journal.db"])
    assert "3 payments" in result.output
    assert copy.stat().st_mode & 0o077 == 0


def test_failed_backup_is_explained(tmp_path: Path) -> None:
    missing = back_up(f"sqlite:///{tmp_path / 'nowhere.db'}", tmp_path / "copy.db")
    (tmp_path / "there.db").touch()
    exists = back_up(f"sqlite:///{tmp_path / 'there.db'}", tmp_path / "there.db")
    elsewhere = back_up(f"sqlite:///{tmp_path / 'there.db'}", tmp_path / "nowhere" / "copy.db")
    postgres = back_up("postgresql://centgate@127.0.0.1/centgate", tmp_path / "copy.db")

    assert (missing.exit_code, exists.exit_code, postgres.exit_code) == (1, 1, 2)
    assert "there is no journal at" in missing.output
    assert "exists already" in exists.output
    assert elsewhere.exit_code == 1
    assert f"{tmp_path / 'nowhere' / 'copy.db'} cannot be written: No such file" in elsewhere.output
    assert "pg_dump" in postgres.output
    assert not (tmp_path / "copy.db").exists()
