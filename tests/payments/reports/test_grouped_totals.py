"""Totals by payer, service, day and network match the rows, on both databases, also after pruning."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from journal_rows import NOW, REDEEM_CUTOFF, TOKENS, Row, insert_rows, make_random_rows, payment_row
from msgspec.structs import asdict
from payments_shell import run_payments_command

from centgate.cli.payments.export_columns import totals_columns
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal import pruning
from centgate.payments.journal.read_model import PaymentFilter
from centgate.payments.reports.grouped_totals import GroupTotals, read_grouped_totals, sum_groups
from centgate.payments.reports.totals_group import TOTALS_GROUPS, TotalsGroup
from centgate.payments.time_format import format_iso

NAMES: dict[TotalsGroup, Callable[[Row], str]] = {
    "payer": lambda row: row["payer"],
    "service": lambda row: row["service"],
    "day": lambda row: format_iso(row["created_at"])[:10],
    "network": lambda row: row["network"],
}
SERVICES = ("phishing-check", "token-risk", "pool-snapshot")


def make_rows(seed: int, count: int = 150) -> tuple[list[Row], list[Row], list[Row]]:
    """Return random rows of several services and prices."""
    rows, refunds, workers = make_random_rows(seed, count)
    dice = random.Random(seed)
    for row in rows:
        row["service"], row["amount"] = dice.choice(SERVICES), str(dice.choice([10_000, 35_000, 1]))
    return rows, refunds, workers


def count_rows(
    by: TotalsGroup, rows: list[Row], refunds: list[Row]
) -> dict[tuple[str, str, str], Counter[str]]:
    """Calculate the totals from the rows."""
    refunded = {each["payment"] for each in refunds}
    figures: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        group = figures.setdefault((NAMES[by](row), row["network"], row["asset"]), Counter())
        group["payments"] += 1
        if row["state"] not in ("settled", "delivered"):
            group[row["state"]] += 1
            continue
        group["settled"] += 1
        group["amount"] += int(row["amount"])
        if row["state"] == "delivered":
            group["delivered"] += 1
            group["late"] += row["updated_at"] - row["settled_at"] >= 60
        elif row["id"] in refunded:
            group["refunded"] += 1
        else:
            group["refundable" if row["updated_at"] < REDEEM_CUTOFF else "redeemable"] += 1
    return figures


def as_counts(groups: list[GroupTotals]) -> dict[tuple[str, str, str], dict[str, int]]:
    return {
        (each.name, each.network, each.asset): {name: n for name, n in asdict(each.figures).items() if n}
        for each in groups
    }


def drop_zeros(
    figures: dict[tuple[str, str, str], Counter[str]],
) -> dict[tuple[str, str, str], dict[str, int]]:
    return {group: {name: n for name, n in counted.items() if n} for group, counted in figures.items()}


async def read_groups(url: str, by: TotalsGroup, wanted: PaymentFilter | None = None) -> list[GroupTotals]:
    store = open_store(url, connections=2)
    try:
        return await store.read(partial(read_grouped_totals, by, wanted or PaymentFilter(), REDEEM_CUTOFF))
    finally:
        await store.close()


@pytest.mark.extended
@pytest.mark.parametrize("by", TOTALS_GROUPS)
async def test_totals_match_rows(database_url: str, by: TotalsGroup) -> None:
    rows, refunds, workers = make_rows(7)
    await insert_rows(database_url, payments=rows, refunds=refunds, workers=workers)
    since, until = NOW - 4 * 86_400, NOW - 86_400

    everything = await read_groups(database_url, by)
    part = await read_groups(database_url, by, PaymentFilter(since=since, until=until, service="token-risk"))

    assert as_counts(everything) == drop_zeros(count_rows(by, rows, refunds))
    chosen = [row for row in rows if since <= row["created_at"] < until and row["service"] == "token-risk"]
    assert chosen
    assert as_counts(part) == drop_zeros(count_rows(by, chosen, refunds))
    assert sum(each.figures.amount for each in sum_groups(everything)) == sum(
        int(row["amount"]) for row in rows if row["state"] in ("settled", "delivered")
    )


async def test_payers_and_services_are_sorted_by_charged_amount(database_url: str) -> None:
    rows, refunds, workers = make_rows(8)
    await insert_rows(database_url, payments=rows, refunds=refunds, workers=workers)

    payers, days = await read_groups(database_url, "payer"), await read_groups(database_url, "day")

    amounts = [each.figures.amount for each in payers]
    assert amounts == sorted(amounts, reverse=True)
    assert [each.name for each in days] == sorted(each.name for each in days)


async def test_pruning_keeps_charged_totals(database_url: str) -> None:
    rows, refunds, workers = make_rows(9)
    for row in rows:  # long ago, so that everything that may be pruned is pruned
        row["valid_before"] = 1
    await insert_rows(database_url, payments=rows, refunds=refunds, workers=workers)
    before = {by: as_counts(await read_groups(database_url, by)) for by in TOTALS_GROUPS}

    store = open_store(database_url, connections=2)
    try:
        removed = 0
        while count := await store.run(partial(pruning.prune_unused)):
            removed += count
    finally:
        await store.close()

    after = {by: as_counts(await read_groups(database_url, by)) for by in TOTALS_GROUPS}
    charged = ("settled", "delivered", "late", "redeemable", "refundable", "refunded", "amount")
    assert removed == sum(row["state"] == "unused" for row in rows)
    for by in TOTALS_GROUPS:
        for group, figures in before[by].items():
            kept = after[by].get(group, {})
            assert {name: figures.get(name) for name in charged} == {name: kept.get(name) for name in charged}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A journal with payments of three payers, two services, real and test money."""
    url = f"sqlite:///{tmp_path_factory.mktemp('totals') / 'journal.db'}"
    rows = [
        payment_row(1, amount="10000", payer="0x" + "01" * 20),
        payment_row(2, amount="30000", payer="0x" + "02" * 20, service="token-risk"),
        payment_row(3, "settled", amount="30000", payer="0x" + "02" * 20),
        payment_row(4, "refused", payer="0x" + "03" * 20),
        payment_row(5, amount="70000", payer="0x" + "01" * 20, network=TOKENS[2][0], asset=TOKENS[2][1]),
    ]
    asyncio.run(insert_rows(url, payments=rows))
    return url


def run_totals(url: str, *arguments: str) -> Any:
    result = run_payments_command("totals", *arguments, url=url)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_command_prints_json(url: str) -> None:
    output = json.loads(run_totals(url, "--by", "payer", "--json"))

    found = [(each["payer"][:4], each["testNetwork"], each["dollars"]) for each in output["groups"]]
    assert found == [
        ("0x01", True, "0.070000"),
        ("0x02", False, "0.060000"),
        ("0x01", False, "0.010000"),
        ("0x03", False, "0.000000"),
    ]
    assert [(each["payer"], each["amount"]) for each in output["totals"]] == [
        (None, "70000"),
        (None, "70000"),
    ]


def test_totals_include_groups_beyond_limit(url: str) -> None:
    output = json.loads(run_totals(url, "--by", "payer", "--limit", "1", "--json"))

    assert len(output["groups"]) == 1
    assert sum(int(each["amount"]) for each in output["totals"]) == 140_000


@pytest.mark.parametrize("by", TOTALS_GROUPS)
def test_csv_has_documented_columns(url: str, by: TotalsGroup) -> None:
    lines = list(csv.DictReader(io.StringIO(run_totals(url, "--by", by, "--format", "csv"))))

    assert list(lines[0]) == list(totals_columns(by))
    assert sum(int(line["amount"]) for line in lines) == 140_000


def test_one_payer_can_be_chosen(url: str) -> None:
    output = json.loads(run_totals(url, "--by", "service", "--payer", "0x" + "02" * 20, "--json"))

    assert {each["service"]: each["dollars"] for each in output["groups"]} == {
        "token-risk": "0.030000",
        "phishing-check": "0.030000",
    }


def test_table_marks_test_money_and_omitted_rows(url: str) -> None:
    result = run_totals(url, "--by", "payer", "--limit", "2")

    assert "0.070000 test" in result
    assert "The first 2 of 4: add --limit 4" in result
    assert "0.140000" not in result


def test_missing_journal_is_an_error(tmp_path: Path) -> None:
    result = run_payments_command("totals", url=f"sqlite:///{tmp_path / 'none.db'}")

    assert result.exit_code == 1
    assert "there is no journal yet" in result.stderr
