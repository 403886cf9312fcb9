"""Figures of test networks are kept apart from dollars in all output for operators."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from journal_rows import TOKENS, insert_rows, payment_row
from typer.testing import CliRunner

from centgate.cli.main import app

DAY = 86_400.0
MAIN, _, TEST = TOKENS


def refundable_row(number: int, token: tuple[str, str], amount: int) -> Any:
    """Return the row of a payment that has to be refunded."""
    at = time.time() - 3 * DAY
    return payment_row(number, "settled", created_at=at, network=token[0], asset=token[1], amount=str(amount))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A journal with a payment of a main network and one of a test network."""
    folder: Path = tmp_path_factory.mktemp("mixed")
    url = f"sqlite:///{folder / 'journal.db'}"
    asyncio.run(insert_rows(url, payments=[refundable_row(1, MAIN, 10_000), refundable_row(2, TEST, 20_000)]))
    return url


def run_payments(url: str, *arguments: str) -> str:
    """Return the output of `centgate payments …` on a wide terminal."""
    env = {"COLUMNS": "200", "CENTGATE_DATABASE_URL": url}
    result = CliRunner().invoke(app, ["payments", *arguments], env=env)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("command", ["list", "summary", "refund-list"])
def test_tables_mark_test_money(url: str, command: str) -> None:
    result = run_payments(url, command)

    assert "0.020000 test" in result
    assert "0.010000" in result
    assert "0.010000 test" not in result
    assert "0.030000" not in result


def test_refund_list_totals_test_dollars_separately(url: str) -> None:
    result = run_payments(url, "refund-list")

    assert "Payments: 1, 0.010000 dollars in all" in result
    assert "Payments: 1, 0.020000 test dollars in all" in result


def test_show_names_test_dollars(url: str) -> None:
    result = run_payments(url, "show", refundable_row(2, TEST, 0)["nonce"])

    assert "0.020000 test dollars" in result
    assert "0.020000 dollars" not in result


def test_show_marks_test_payment_as_unredeemable_on_main_network(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    young = payment_row(3, "settled", created_at=time.time(), network=TEST[0], asset=TEST[1])
    asyncio.run(insert_rows(url, payments=[young]))

    (payment,) = json.loads(run_payments(url, "show", young["nonce"], "--json"))["payments"]

    assert f"from a deployment with payments on {TEST[0]}" in payment["owed"]


@pytest.mark.parametrize(
    ("command", "member"),
    [("list", "payments"), ("summary", "days"), ("summary", "totals"), ("refund-list", "totals")],
)
def test_json_marks_figures_of_test_networks(url: str, command: str, member: str) -> None:
    rows = json.loads(run_payments(url, command, "--json"))[member]

    assert {each["network"]: each["testNetwork"] for each in rows} == {MAIN[0]: False, TEST[0]: True}


@pytest.mark.parametrize("daily", [[], ["--daily"]], ids=["payments", "days"])
def test_csv_marks_figures_of_test_networks(url: str, daily: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(run_payments(url, "export", "--format", "csv", *daily))))

    assert {each["network"]: each["testNetwork"] for each in rows} == {MAIN[0]: "false", TEST[0]: "true"}
