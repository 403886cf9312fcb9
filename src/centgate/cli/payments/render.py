"""Render payments for operators: tables, and one payment in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from centgate.cli.payments.serializers import daily_entry, format_dollars_cell, sum_entry, totals_entry
from centgate.cli.terminal import escape_controls, render_status
from centgate.payments.database.sql import ResultRow
from centgate.payments.journal.descriptions import (
    ViewSettings,
    describe_next_step,
    describe_owed,
    list_events,
    payment_reference,
    status_label,
)
from centgate.payments.journal.read_model import PaymentRecord
from centgate.payments.journal.webhook_outbox import OutboxEntry
from centgate.payments.reports.daily_totals import TOTAL_NAMES, DailyTotals
from centgate.payments.reports.grouped_totals import GroupTotals
from centgate.payments.reports.totals_group import TotalsGroup
from centgate.payments.time_format import format_age, format_iso
from centgate.timestamps import format_unix_time

if TYPE_CHECKING:
    from centgate.payments.reconciler import ReconcileResult

FULL_NAME_WIDTH = 190
"""Terminal width in characters from which addresses and transactions are not shortened."""
_PAYER_MIN_WIDTH = 96
_MIN_WIDTHS = {"payer": _PAYER_MIN_WIDTH, "service": 64, "dollars": 60, "time": 48}
"""Minimum terminal widths for these columns."""
_MIN_WIDTHS_WITH_NETWORK = {"payer": 110, "service": 94, "dollars": 78, "time": 64}
"""The same in a table of payments on several networks."""
_FULL_PAYER_MIN_WIDTH = 80
_TRANSACTION_MIN_WIDTH = 56
NETWORK_WIDTH = 14
"""Characters of the column of networks."""
_NO_WRAP = ("time", "day", "attempts", "dollars", "state", "network", "payer", "id", "transaction")
"""Columns that are never wrapped."""
_ALL_FIGURES_MIN_WIDTH = 120
"""Minimum terminal width for columns that are usually 0."""
_COLUMN_GAP = 2
_LABEL_WIDTH = 26


def payments_table(records: Iterable[PaymentRecord], view: ViewSettings, width: int) -> Table:
    """Render a line for each payment, with the columns that fit the terminal's width."""
    shown = list(records)
    names = ["time", "service", "state", "dollars", *_network_column(shown), "payer", "id"]
    min_widths = _MIN_WIDTHS_WITH_NETWORK if "network" in names else _MIN_WIDTHS
    table = _create_table([name for name in names if width >= min_widths.get(name, 0)])
    for record in shown:
        cells = {
            "time": format_unix_time(record.created_at),
            "service": escape_controls(record.service),
            "state": render_status(status_label(record, view)),
            "dollars": format_dollars_cell(record.amount, record.key.network),
            "network": record.key.network,
            "payer": shorten_name(record.key.payer, width),
            "id": shorten_name(record.transaction or record.key.nonce, width),
        }
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    return table


def refunds_table(records: Iterable[PaymentRecord], view: ViewSettings, width: int) -> Table:
    """Render a line for each payment to refund; the payer's address is complete if there is room.

    `payments refunded` takes the transaction as it is shown.
    """
    shown = list(records)
    network = _network_column(shown)
    room = width - NETWORK_WIDTH * len(network)
    min_rooms = {"transaction": 0 if network else _TRANSACTION_MIN_WIDTH, "state": _PAYER_MIN_WIDTH}
    names = ["payer", "dollars", *network, "age", "state", "transaction"]
    names = [name for name in names if room >= min_rooms.get(name, 0)]
    table = _create_table(names)
    for record in shown:
        cells = {
            "payer": escape_controls(record.key.payer)
            if room >= _FULL_PAYER_MIN_WIDTH
            else shorten_name(record.key.payer, width),
            "dollars": format_dollars_cell(record.amount, record.key.network),
            "network": record.key.network,
            "age": format_age(view.now - (record.settled_at or record.updated_at)),
            "state": render_status(status_label(record, view)),
            "transaction": shorten_name(record.transaction or "", width),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def _network_column(records: Sequence[PaymentRecord]) -> list[str]:
    """Return the column of the network if the payments are on several, else no column."""
    return ["network"] if len({each.key.network for each in records}) > 1 else []


def summary_table(lines: Sequence[DailyTotals], sums: Sequence[DailyTotals], width: int) -> Table:
    """Render a line for each day and token; on a narrow terminal without columns that are all 0."""
    entries = [daily_entry(line) for line in (*lines, *sums)]
    names = ["day", "network", *(name for name in TOTAL_NAMES if name != "amount"), "dollars"]
    if len({line.network for line in sums}) == 1:
        names.remove("network")
    if len({(line.network, line.asset) for line in sums}) > len({line.network for line in sums}):
        names.insert(1, "asset")
    if width < _ALL_FIGURES_MIN_WIDTH:
        names = [name for name in names if name in ("day", "dollars") or any(each[name] for each in entries)]
    rows: list[dict[str, Any]] = []
    for each, line in zip(entries, (*lines, *sums), strict=True):
        asset = shorten_name(str(each["asset"]), width)
        cell = format_dollars_cell(line.figures.amount, line.network)
        rows.append({**each, "day": each["day"] or "all", "asset": asset, "dollars": cell})
    return _figures_table(names, rows, width)


def totals_table(
    by: TotalsGroup, lines: Sequence[GroupTotals], sums: Sequence[DailyTotals], width: int
) -> Table:
    """Render a line for each group and token; on a narrow terminal without columns that are all 0.

    Groups by network have no sums below them, which would be the same lines once more.
    """
    entries = [totals_entry(by, line) for line in lines]
    entries += [sum_entry(by, line) for line in sums if by != "network"]
    tokens = [(line.network, line.asset) for line in sums]
    names = ["network", *(name for name in TOTAL_NAMES if name != "amount"), "dollars"]
    if by != "network":
        names = [by, *(names if len({network for network, _ in tokens}) > 1 else names[1:])]
    if len(tokens) > len({network for network, _ in tokens}):
        names.insert(1, "asset")
    if width < _ALL_FIGURES_MIN_WIDTH:
        names = [name for name in names if name in (by, "dollars") or any(each[name] for each in entries)]
    rows: list[dict[str, Any]] = []
    for each in entries:
        shown = {by: "all", **{name: value for name, value in each.items() if value is not None}}
        shown |= {name: shorten_name(str(shown[name]), width) for name in ("asset", "payer") if name in shown}
        shown["dollars"] = format_dollars_cell(int(str(each["amount"])), str(each["network"]))
        rows.append(shown)
    return _figures_table(names, rows, width)


def _figures_table(names: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int) -> Table:
    """Render figures, whose headings alone are folded on a narrow terminal: half a number is another one.

    What does not fit even so makes lines that are longer than the terminal's.
    """
    table = _create_table(names)
    for row in rows:
        table.add_row(*(escape_controls(row[name]) for name in names))
    for column, name in zip(table.columns, names, strict=True):
        column.no_wrap = name not in TOTAL_NAMES
        column.min_width = max((len(str(cell)) for cell in column.cells), default=0)
    needed = sum((column.min_width or 0) + _COLUMN_GAP for column in table.columns)
    if needed > width:
        table.width = needed
    return table


def resolutions_table(rows: Iterable[ReconcileResult], width: int) -> Table:
    """Render the new state of each open payment, and the reason."""
    table = _create_table(["payment", "is now", "why"])
    for row in rows:
        payment = f"{shorten_name(row.key.payer, width)}:{shorten_name(row.key.nonce, width)}"
        why = row.reason or (f"in {shorten_name(row.transaction, width)}" if row.transaction else "")
        table.add_row(
            payment,
            render_status("open" if row.state_after == "settling" else row.state_after),
            escape_controls(why),
        )
    return table


def webhooks_table(entries: Iterable[OutboxEntry]) -> Table:
    """Render a line for each event of the outbox; ids are complete, so that they can be copied."""
    table = _create_table(["id", "time", "type", "state", "attempts", "error"])
    for each in entries:
        cells = (each.type, each.state, str(each.attempts), escape_controls(each.error or ""))
        table.add_row(each.event, format_unix_time(each.occurred_at), *cells)
    return table


def shorten_name(name: str, width: int) -> str:
    """Shorten a long name for narrow terminals; `payments show` accepts the short form."""
    name = escape_controls(name)
    return name if width >= FULL_NAME_WIDTH or len(name) <= 16 else f"{name[:8]}…{name[-4:]}"


def render_payment(
    record: PaymentRecord,
    view: ViewSettings,
    answer: dict[str, Any] | None,
    width: int,
    history: Sequence[ResultRow] = (),
) -> Text:
    """Render one payment in sentences; hashes are never wrapped, so that they can be copied."""
    name = status_label(record, view)
    rows = [
        ("payment", payment_reference(record)),
        ("state", name if name == record.state else f"{name} ({record.state})"),
        *((format_iso(at), sentence) for at, sentence in list_events(record, history)),
        *([("facilitator", record.facilitator)] if record.facilitator else []),
        *([("idempotency key", record.identifier)] if record.identifier else []),
        *([("answer", _describe_answer(answer))] if record.state == "delivered" else []),
        ("owed", describe_owed(record, view)),
        ("to do", describe_next_step(record, view)),
    ]
    return Text("\n").join(_render_paragraph(label, sentence, width) for label, sentence in rows)


def _describe_answer(answer: dict[str, Any] | None) -> str:
    if answer is None:
        return "no longer stored"
    return f"stored since {answer['storedAt']}: HTTP {answer['status']}, {answer['bytes']} bytes"


def _render_paragraph(label: str, sentence: str, width: int) -> Text:
    room = max(width - _LABEL_WIDTH, 24)
    lines = wrap(escape_controls(sentence), room, break_long_words=False, break_on_hyphens=False)
    return Text.assemble((f"{label:<{_LABEL_WIDTH}}", "cyan"), f"\n{' ' * _LABEL_WIDTH}".join(lines))


def _create_table(names: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, _COLUMN_GAP, 0, 0), header_style="cyan")
    numbers = {"dollars", "attempts", *TOTAL_NAMES}
    for name in names:
        table.add_column(
            name,
            overflow="fold",
            justify="right" if name in numbers else "left",
            no_wrap=name in _NO_WRAP,
        )
    return table
