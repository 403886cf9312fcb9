"""Read model: queries for operators match the content of the journal, on both databases."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from journal_rows import (
    LIVE_PROCESS,
    NOW,
    REDEEM_CUTOFF,
    RETENTION,
    Row,
    insert_rows,
    make_random_rows,
    payment_row,
    refund_row,
)
from msgspec.structs import asdict

from centgate.cli.payments.serializers import daily_entry, payment_entry
from centgate.payments.database.store import Store
from centgate.payments.database.store_factory import open_store
from centgate.payments.heartbeat import keep_alive
from centgate.payments.journal.descriptions import ViewSettings
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.read_model import (
    FILTER_STATES,
    PaymentFilter,
    PaymentRecord,
    find_by_reference,
    iterate_payments,
    list_newest,
)
from centgate.payments.reports.daily_totals import DAY_SECONDS, read_daily_totals, sum_totals
from centgate.payments.time_format import format_age, format_iso, parse_time
from centgate.payments.worker_id import Worker

OUTLOOK = ViewSettings(NOW, RETENTION, {})
EVERYTHING = PaymentFilter()


@asynccontextmanager
async def open_test_store(url: str) -> AsyncGenerator[Store]:
    store = open_store(url, connections=2)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def keep_process_alive(store: Store) -> AsyncGenerator[None]:
    """Send the heartbeats of LIVE_PROCESS."""
    journal = Journal(store, keep_seconds=RETENTION, worker=Worker(LIVE_PROCESS, LIVE_PROCESS))
    await journal.heartbeat()
    async with keep_alive(journal):
        yield


async def read_all(store: Store, wanted: PaymentFilter = EVERYTHING, page: int = 7) -> list[PaymentRecord]:
    return [record async for record in iterate_payments(store, wanted, REDEEM_CUTOFF, page_size=page)]


def expected_filters(record: PaymentRecord) -> set[str]:
    """Return the filter words that match a payment, by the rules of the documentation."""
    words: set[str] = {record.state}
    if record.state == "settled":
        late = "refundable" if record.updated_at < REDEEM_CUTOFF else "redeemable"
        words.add("refunded" if record.refund else late)
    if record.state == "settling" and (record.attempts or not record.is_claimed):
        words.add("open")
    return words


def count_totals(records: list[PaymentRecord]) -> dict[tuple[str, str, str], Counter[str]]:
    """Return the daily totals, counted from the rows."""
    figures: dict[tuple[str, str, str], Counter[str]] = {}
    for record in records:
        day = figures.setdefault(
            (format_iso(record.created_at)[:10], record.key.network, record.key.asset), Counter()
        )
        day.update({"payments", *expected_filters(record)} - {"open"})
        if record.state == "delivered":
            assert record.settled_at is not None
            day["settled"] += 1
            day["late"] += record.updated_at - record.settled_at >= 60
        if record.settled_at is not None:
            day["amount"] += record.amount
    return figures


@pytest.mark.extended
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_pages_filters_and_totals_match_rows(database_url: str, seed: int) -> None:
    rows, refunds, workers = make_random_rows(seed, 150)
    await insert_rows(database_url, payments=rows, refunds=refunds, workers=workers)
    async with open_test_store(database_url) as store, keep_process_alive(store):
        records = await read_all(store)
        found = {word: await read_all(store, PaymentFilter(word)) for word in FILTER_STATES}
        pages = await read_pages(store, PaymentFilter(), 11)
        lines = await store.read(partial(read_daily_totals, 0, 9e9, REDEEM_CUTOFF))

    assert sorted(map(get_nonce, rows)) == sorted(record.key.nonce for record in records)
    assert [record.sort_key for record in records] == sorted(record.sort_key for record in records)
    assert pages == records[::-1]
    assert any(record.is_claimed for record in records)
    for word in FILTER_STATES:
        assert found[word] == [record for record in records if word in expected_filters(record)], word
    counted = {
        (format_iso(each.day * DAY_SECONDS)[:10], each.network, each.asset): each.figures
        for each in lines
        if each.day
    }
    expected = count_totals(records)
    assert {token: {name: n for name, n in asdict(sums).items() if n} for token, sums in counted.items()} == {
        token: {name: n for name, n in sums.items() if n} for token, sums in expected.items()
    }
    assert sum(each.figures.amount for each in sum_totals(lines)) == sum(
        record.amount for record in records if record.state in ("settled", "delivered")
    )


def get_nonce(paid: Row) -> str:
    return paid["nonce"]


async def read_pages(store: Store, wanted: PaymentFilter, limit: int) -> list[PaymentRecord]:
    """Read the newest payments page by page to the end."""
    found = await store.read(partial(list_newest, wanted, REDEEM_CUTOFF, limit=limit))
    pages = list(found)
    while found:
        found = await store.read(
            partial(list_newest, wanted, REDEEM_CUTOFF, limit=limit, after=found[-1].sort_key)
        )
        pages += found
    return pages


async def test_period_includes_start_and_excludes_end(database_url: str) -> None:
    await insert_rows(database_url, payments=[payment_row(each, created_at=NOW + each) for each in range(5)])
    period = PaymentFilter(since=NOW + 1, until=NOW + 4)
    async with open_test_store(database_url) as store:
        forwards, backwards = await read_all(store, period), await read_pages(store, period, 2)
        lines = await store.read(partial(read_daily_totals, NOW + 1, NOW + 4, REDEEM_CUTOFF))

    assert [record.created_at - NOW for record in forwards] == [1, 2, 3]
    assert backwards == forwards[::-1]
    assert sum(each.figures.payments for each in lines) == 3


@pytest.mark.extended
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (PaymentFilter(service="neuralweb-search"), {1}),
        (PaymentFilter(payer=f"0x{2:040x}"), {2}),
        (PaymentFilter(transaction=f"0x{3 + (1 << 200):064x}"), {3}),
        (PaymentFilter(state="delivered", payer=f"0x{4:040x}"), set[int]()),
    ],
    ids=["service", "payer", "transaction", "two at once"],
)
async def test_filters_are_combined(database_url: str, wanted: PaymentFilter, expected: set[int]) -> None:
    rows = [
        payment_row(1, service="neuralweb-search"),
        payment_row(2),
        payment_row(3),
        payment_row(4, "settled"),
    ]
    rows[2]["transaction"] = rows[2]["transaction"].replace("0x", "0X")  # as a facilitator may spell it
    await insert_rows(database_url, payments=rows)
    async with open_test_store(database_url) as store:
        found = await read_all(store, wanted)

    assert {int(record.key.nonce, 16) for record in found} == expected


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"0x{7:064x}", 1),
        (f"0x{7:040x}".replace("7", "2") + f":0x{7:064x}", 1),
        (f"0X{7 + (1 << 200):064X}", 2),
        (refund_row(payment_row(9))["transaction"], 1),
        (f"req_{7:024x}", 1),
        (f"0x{7 + (1 << 200):064x}"[:8] + "…" + f"{7:04x}", 2),
        ("0x0000…0002:0x0000...0007", 1),
        ("req%", 0),
        ("0x_", 0),
        ("", 0),
    ],
    ids=[
        "nonce",
        "payer and nonce",
        "transaction",
        "refund",
        "request id",
        "short",
        "both short",
        "%",
        "_",
        "nothing",
    ],
)
async def test_payment_is_found_by_each_reference(database_url: str, name: str, expected: int) -> None:
    shared = payment_row(7)["transaction"]  # one transaction can settle several payments
    rows = [payment_row(7), payment_row(8, "settled", transaction=shared), payment_row(9)]
    await insert_rows(database_url, payments=rows, refunds=[refund_row(rows[2])])
    async with open_test_store(database_url) as store:
        assert len(await store.read(partial(find_by_reference, name))) == expected


@pytest.mark.extended
async def test_rows_added_during_iteration_are_left_out(database_url: str) -> None:
    await insert_rows(
        database_url, payments=[payment_row(each, "refused", created_at=NOW + each) for each in range(6)]
    )
    values: list[str] = []
    async with open_test_store(database_url) as store:
        async for record in iterate_payments(store, PaymentFilter(), REDEEM_CUTOFF, page_size=2):
            values.append(record.key.nonce)
            if len(values) == 1:
                await insert_rows(database_url, payments=[payment_row(99, created_at=NOW + 99)])

    assert values == [f"0x{each:064x}" for each in range(6)]


@pytest.mark.extended
async def test_iteration_blocks_no_payment(database_url: str) -> None:
    await insert_rows(database_url, payments=[payment_row(each, created_at=NOW + each) for each in range(20)])
    async with open_test_store(database_url) as reader:
        reading = iterate_payments(reader, PaymentFilter(), REDEEM_CUTOFF, page_size=3)
        first = await anext(reading)
        await asyncio.wait_for(insert_rows(database_url, payments=[payment_row(50, created_at=NOW + 50)]), 20)
        rest = [record async for record in reading]

    assert [first, *rest] == sorted([first, *rest], key=lambda record: record.sort_key)
    assert len(rest) == 19


def test_entry_has_every_column_and_no_secret() -> None:
    from centgate.cli.payments.export_columns import DAILY_COLUMNS, PAYMENT_COLUMNS
    from centgate.payments.reports.daily_totals import DailyTotals, PaymentTotals

    line = DailyTotals(
        20_000, "eip155:1", "0xa", PaymentTotals(payments=1, settled=1, delivered=1, amount=10_000)
    )

    assert list(daily_entry(line)) == list(DAILY_COLUMNS)
    assert daily_entry(line)["dollars"] == "0.010000"
    assert not {"signed", "proof", "binding"} & set(PAYMENT_COLUMNS)


@pytest.mark.extended
async def test_entry_has_exact_money_and_utc_times(database_url: str) -> None:
    await insert_rows(
        database_url, payments=[payment_row(1, "settled", amount="1234567", created_at=NOW + 0.25)]
    )
    async with open_test_store(database_url) as store:
        [record] = await read_all(store)
    entry: dict[str, Any] = payment_entry(record, OUTLOOK)

    assert (entry["price"], entry["amount"]) == ("1.234567", "1234567")
    assert entry["time"] == "2026-11-18T11:06:40.250Z"
    assert entry["redeemableUntil"] == "2026-11-19T11:06:41.250Z"
    assert (entry["state"], entry["standing"]) == ("settled", "redeemable")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24h", NOW - 86_400),
        ("7d", NOW - 7 * 86_400),
        ("90m", NOW - 5400),
        ("2w", NOW - 14 * 86_400),
        ("2026-11-18", 1_794_960_000),
        ("2026-11-18T11:06:40", NOW),
        ("2026-11-18T11:06:40Z", NOW),
        ("2026-11-18T13:06:40+02:00", NOW),
    ],
)
def test_times_are_parsed_in_several_formats(text: str, expected: float) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7y", "2026-13-01", "d7"])
def test_invalid_time_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text, NOW)


def test_age_has_two_largest_units() -> None:
    assert [format_age(each) for each in (-5, 59, 3661, 90_061)] == ["0m", "0m", "1h 1m", "1d 1h"]
