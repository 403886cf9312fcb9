"""Serialize payments for other programs: as JSON, CSV, or lines of JSON."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TextIO

import orjson
from msgspec.structs import asdict

from centgate.files import replace_file
from centgate.payments.journal.descriptions import ViewSettings, format_dollars
from centgate.payments.journal.read_model import PaymentRecord
from centgate.payments.reports.daily_totals import DAY_SECONDS, DailyTotals
from centgate.payments.reports.grouped_totals import GroupTotals
from centgate.payments.reports.totals_group import TotalsGroup
from centgate.payments.time_format import format_iso
from centgate.signing.assets import is_test_network

ExportEntry = dict[str, str | int | bool | None]
ExportFormat = Literal["csv", "jsonl"]

# first characters that make a spreadsheet treat a text as a formula
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def format_dollars_cell(amount: int, network: str) -> str:
    """Format base units for a dollar column; those of a test network are marked."""
    return f"{format_dollars(amount)} test" if is_test_network(network) else format_dollars(amount)


def payment_entry(record: PaymentRecord, view: ViewSettings) -> ExportEntry:
    """Return a payment with all PAYMENT_COLUMNS."""
    is_owed = record.state == "settled" and not record.refund
    return {
        "time": format_iso(record.created_at),
        "service": record.service,
        "route": view.routes.get(record.service, f"/services/{record.service}"),
        "state": record.state,
        "standing": record.follow_up_status(view.redemption_cutoff),
        "price": format_dollars(record.amount),
        "amount": str(record.amount),
        "asset": record.key.asset,
        "network": record.key.network,
        "payer": record.key.payer,
        "transaction": record.transaction,
        "status": record.status,
        "requestId": record.request_id,
        "facilitator": record.facilitator,
        "openCause": record.open_cause if record.state == "settling" else None,
        "settledAt": _iso_or_none(record.settled_at),
        "deliveredAt": _iso_or_none(record.delivered_at),
        "redeemableUntil": format_iso(record.updated_at + view.redeem_seconds) if is_owed else None,
        "reason": record.reason,
        "refundTransaction": record.refund,
        "refundedAt": _iso_or_none(record.refunded_at),
        "payTo": record.pay_to,
        "nonce": record.key.nonce,
        "testNetwork": is_test_network(record.key.network),
    }


def refund_entry(record: PaymentRecord, view: ViewSettings) -> ExportEntry:
    """Return a payment to be refunded with all REFUND_COLUMNS."""
    since = record.settled_at or record.updated_at
    return {**payment_entry(record, view), "ageSeconds": max(0, int(view.now - since))}


def daily_entry(line: DailyTotals) -> ExportEntry:
    """Return a line of the summary with all DAILY_COLUMNS; the day of a total is None."""
    figures: dict[str, int] = asdict(line.figures)
    return {
        "day": None if line.day is None else format_iso(line.day * DAY_SECONDS)[:10],
        "network": line.network,
        "asset": line.asset,
        **figures,
        "amount": str(line.figures.amount),
        "dollars": format_dollars(line.figures.amount),
        "testNetwork": is_test_network(line.network),
    }


def totals_entry(by: TotalsGroup, line: GroupTotals) -> ExportEntry:
    """Return the figures of a group with all columns of `totals_columns`."""
    total = DailyTotals(None, line.network, line.asset, line.figures)
    return {**sum_entry(by, total), by: line.name}


def sum_entry(by: TotalsGroup, total: DailyTotals) -> ExportEntry:
    """Return the sum of all groups in one token; the name of the group is None."""
    figures = {name: value for name, value in daily_entry(total).items() if name != "day"}
    return figures if by == "network" else {by: None, **figures}


def format_from_suffix(out: str) -> ExportFormat | None:
    """Return the format for a file's suffix; None if it is unknown."""
    suffix = Path(out).suffix.lower()
    return "csv" if suffix == ".csv" else "jsonl" if suffix in (".jsonl", ".ndjson") else None


class EntryWriter:
    """Writer of entries: CSV with a header, or one line of JSON per entry."""

    def __init__(self, stream: TextIO, file_format: ExportFormat, columns: Sequence[str]) -> None:
        self._stream = stream
        self._columns = columns
        self._csv = csv.writer(stream, lineterminator="\n") if file_format == "csv" else None
        if self._csv:
            self._csv.writerow(columns)

    def write_entry(self, row: Mapping[str, Any]) -> None:
        """Write an entry."""
        if self._csv:
            self._csv.writerow([_format_cell(row[name]) for name in self._columns])
        else:
            self._stream.write(orjson.dumps(row).decode() + "\n")

    def write_entries(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write several entries."""
        for row in rows:
            self.write_entry(row)


@contextmanager
def open_output(out: str) -> Generator[TextIO]:
    """Open the target of an export: standard output for `-`, else a file that is created atomically."""
    if out == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    # payments are private data
    with replace_file(Path(out), mode=0o600) as part, part.open("w", encoding="utf-8", newline="") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def _iso_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else format_iso(seconds)


def _format_cell(value: str | int | bool | None) -> str:  # noqa: FBT001 - one of the values of an entry
    """Format a value for a spreadsheet; untrusted text never becomes a formula, nor ends its row."""
    if isinstance(value, bool):
        return str(value).lower()
    # the writer of Python before 3.13 does not quote a carriage return
    text = "".join(each if each.isprintable() else "\ufffd" for each in str("" if value is None else value))
    return f"'{text}" if text.startswith(_FORMULA) else text
