"""How payments are written down for other programs: as JSON, and as lines of CSV or JSON."""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TextIO

import orjson

from centgate.dollars import is_test_network
from centgate.payments.periods import iso
from centgate.payments.records import Record
from centgate.payments.summaries import DAY, Line

Entry = dict[str, str | int | bool | None]
Format = Literal["csv", "jsonl"]

DECIMALS = 6
"""Of every token that payments are made in."""

# what makes a spreadsheet take a text for a formula
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


@dataclass(frozen=True, slots=True)
class Outlook:
    """What today's settings and clock make of a payment."""

    now: float
    keep: float
    """Seconds for which what was settled can be redeemed."""
    routes: Mapping[str, str]
    """Each service's path."""
    asks_test_money: bool | None = None
    """True where the deployment is paid on a test network; None where that is not known."""

    @property
    def lapsed(self) -> float:
        """What was settled before this can no longer be redeemed."""
        return self.now - self.keep

    def takes(self, network: str) -> bool:
        """True if payments of a network can be redeemed: test money buys no answer for real money."""
        return self.asks_test_money in (None, is_test_network(network))


def dollars(amount: int) -> str:
    """Base units as dollars, with all decimals."""
    return f"{Decimal(amount).scaleb(-DECIMALS):.{DECIMALS}f}"


def money(amount: int, network: str) -> str:
    """Base units in words: dollars, or test dollars, which are worth nothing."""
    return f"{dollars(amount)} {'test dollars' if is_test_network(network) else 'dollars'}"


def dollars_cell(amount: int, network: str) -> str:
    """Base units for a column of dollars, which marks those of a test network."""
    return f"{dollars(amount)} test" if is_test_network(network) else dollars(amount)


def entry(record: Record, outlook: Outlook) -> Entry:
    """A payment with all of COLUMNS."""
    owed = record.state == "settled" and not record.refund
    return {
        "time": iso(record.created_at),
        "service": record.service,
        "route": outlook.routes.get(record.service, f"/services/{record.service}"),
        "state": record.state,
        "standing": record.standing(outlook.lapsed),
        "price": dollars(record.amount),
        "amount": str(record.amount),
        "asset": record.key.asset,
        "network": record.key.network,
        "payer": record.key.payer,
        "transaction": record.transaction,
        "status": record.status,
        "requestId": record.request_id,
        "settledAt": _iso(record.settled_at),
        "deliveredAt": _iso(record.delivered_at),
        "redeemableUntil": iso(record.updated_at + outlook.keep) if owed else None,
        "reason": record.reason,
        "refundTransaction": record.refund,
        "refundedAt": _iso(record.refunded_at),
        "payTo": record.pay_to,
        "nonce": record.key.nonce,
        "testNetwork": is_test_network(record.key.network),
    }


def owed_entry(record: Record, outlook: Outlook) -> Entry:
    """A payment that is owed, with all of OWED."""
    since = record.settled_at or record.updated_at
    return {**entry(record, outlook), "ageSeconds": max(0, int(outlook.now - since))}


def daily_entry(line: Line) -> Entry:
    """A line of the summary with all of DAILY; a sum over days has no day."""
    figures: dict[str, int] = asdict(line.figures)
    return {
        "day": None if line.day is None else iso(line.day * DAY)[:10],
        "network": line.network,
        "asset": line.asset,
        **figures,
        "amount": str(line.figures.amount),
        "dollars": dollars(line.figures.amount),
        "testNetwork": is_test_network(line.network),
    }


def format_of(out: str) -> Format | None:
    """The format that a file's name asks for."""
    suffix = Path(out).suffix.lower()
    return "csv" if suffix == ".csv" else "jsonl" if suffix in (".jsonl", ".ndjson") else None


class Sheet:
    """Entries written one by one, as CSV with a header or as a line of JSON each."""

    def __init__(self, stream: TextIO, form: Format, columns: Sequence[str]) -> None:
        self._stream = stream
        self._columns = columns
        self._csv = csv.writer(stream, lineterminator="\n") if form == "csv" else None
        if self._csv:
            self._csv.writerow(columns)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write an entry."""
        if self._csv:
            self._csv.writerow([_cell(row[name]) for name in self._columns])
        else:
            self._stream.write(orjson.dumps(row).decode() + "\n")

    def add_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write several."""
        for row in rows:
            self.add(row)


@contextmanager
def destination(out: str) -> Generator[TextIO]:
    """Where an export goes: standard output for `-`, else a file that is there only when it is whole."""
    if out == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    path = Path(out)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:  # of a file that nobody named
        raise OSError(error.errno, error.strerror, out) from error
    part = Path(name)
    try:
        with open(handle, "w", encoding="utf-8", newline="") as stream:  # noqa: PTH123 - it is a descriptor
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o600)  # who paid for what is nobody else's business
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)


def _cell(value: str | int | bool | None) -> str:  # noqa: FBT001 - one of the values of an entry
    """A value as a spreadsheet may read it: text of strangers is never a formula."""
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
