"""Render payments for operators: tables, and one payment in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from centgate.cli.buyer.console import escape_controls, render_status
from centgate.cli.payments.serializers import ViewSettings, daily_entry, format_dollars_cell, format_money
from centgate.payments.daily_totals import TOTAL_NAMES, DailyTotals
from centgate.payments.read_model import PaymentRecord
from centgate.payments.sql import ResultRow
from centgate.payments.time_format import format_age, format_iso

if TYPE_CHECKING:
    from centgate.payments.reconciler import ReconcileResult

FULL_NAME_WIDTH = 190
"""Terminal width in characters from which addresses and transactions are not shortened."""
_PAYER_MIN_WIDTH = 96
_MIN_WIDTHS = {"payer": _PAYER_MIN_WIDTH, "service": 64, "dollars": 60, "time": 48}
"""Minimum terminal widths for these columns."""
_FULL_PAYER_MIN_WIDTH = 80
_NO_WRAP = ("time", "day", "dollars", "state", "payer", "id", "transaction")
"""Columns that are never wrapped."""
_ALL_FIGURES_MIN_WIDTH = 120
"""Minimum terminal width for columns that are usually 0."""
_LABEL_WIDTH = 26


def payments_table(records: Iterable[PaymentRecord], view: ViewSettings, width: int) -> Table:
    """Render a line for each payment, with the columns that fit the terminal's width."""
    names = ["time", "service", "state", "dollars", "payer", "id"]
    table = _create_table([name for name in names if width >= _MIN_WIDTHS.get(name, 0)])
    for record in records:
        cells = {
            "time": _format_second(record.created_at),
            "service": escape_controls(record.service),
            "state": render_status(status_label(record, view)),
            "dollars": format_dollars_cell(record.amount, record.key.network),
            "payer": shorten_name(record.key.payer, width),
            "id": shorten_name(record.transaction or record.key.nonce, width),
        }
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    return table


def refunds_table(records: Iterable[PaymentRecord], view: ViewSettings, width: int) -> Table:
    """Render a line for each payment to refund; the payer's address is complete."""
    room = {"transaction": _FULL_PAYER_MIN_WIDTH, "state": _PAYER_MIN_WIDTH}
    names = ["payer", "dollars", "age", "state", "transaction"]
    names = [name for name in names if width >= room.get(name, 0)]
    table = _create_table(names)
    for record in records:
        cells = {
            "payer": escape_controls(record.key.payer)
            if width >= _FULL_PAYER_MIN_WIDTH
            else shorten_name(record.key.payer, width),
            "dollars": format_dollars_cell(record.amount, record.key.network),
            "age": format_age(view.now - (record.settled_at or record.updated_at)),
            "state": render_status(status_label(record, view)),
            "transaction": shorten_name(record.transaction or "", width),
        }
        table.add_row(*(cells[name] for name in names))
    return table


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
    table = _create_table(names)
    for each, line in zip(entries, (*lines, *sums), strict=True):
        asset = shorten_name(str(each["asset"]), width)
        cell = format_dollars_cell(line.figures.amount, line.network)
        cells = {**each, "day": each["day"] or "all", "asset": asset, "dollars": cell}
        table.add_row(*(escape_controls(cells[name]) for name in names))
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


def status_label(record: PaymentRecord, view: ViewSettings) -> str:
    """Return the status of a payment as one word."""
    return record.follow_up_status(view.redemption_cutoff) or record.state


def shorten_name(name: str, width: int) -> str:
    """Shorten a long name for narrow terminals; `payments show` accepts the short form."""
    name = escape_controls(name)
    return name if width >= FULL_NAME_WIDTH or len(name) <= 16 else f"{name[:8]}…{name[-4:]}"


def payment_reference(record: PaymentRecord) -> str:
    """Return the unique reference of a payment."""
    return f"{record.key.payer}:{record.key.nonce}"


def list_events(record: PaymentRecord, history: Sequence[ResultRow] = ()) -> list[tuple[float, str]]:
    """Return the events of a payment in order: a time in seconds since 1970, and a sentence.

    `history` are rows of `payment_events`, which hold what the payment's own row does not.
    """
    money = format_money(record.amount, record.key.network)
    price = f"{money} ({record.amount} base units of {record.key.asset})"
    result = [
        (
            record.created_at,
            f"{record.key.payer} presented it for {record.service}: {price} on {record.key.network} "
            f"to {record.pay_to}",
        )
    ]
    if record.settled_at is not None:
        result.append((record.settled_at, f"It settled in {record.transaction}: the buyer was charged."))
    in_history = {(row["event"], row["at"]) for row in history}
    if record.state == "refused" and ("refused", record.updated_at) not in in_history:
        result.append((record.updated_at, f"It was refused ({record.reason}): no money moved."))
    if record.state == "unused":
        result.append((record.updated_at, f"It was not sent to the facilitator ({record.reason})."))
    if record.state == "delivered":
        result.append(
            (
                record.updated_at,
                f"Its answer was delivered: HTTP {record.status}, request {record.request_id}.",
            )
        )
    if record.refunded_at is not None and ("refunded", record.refunded_at) not in in_history:
        result.append((record.refunded_at, f"Its refund in {record.refund} was recorded."))
    return sorted([*result, *((row["at"], _describe_event(row)) for row in history)], key=itemgetter(0))


def _describe_event(row: ResultRow) -> str:
    """Describe an event of a payment."""
    reason, transaction = row["reason"], row["transaction"]
    because = f" ({reason})" if reason else ""
    match row["event"]:
        case "refused":
            named = (
                f", and {transaction}, which the facilitator had reported, did not pay" if transaction else ""
            )
            return f"It was refused{because}: no money moved{named}."
        case "in_doubt":
            named = f": the facilitator reported {transaction}" if transaction else ""
            return f"Its outcome was unknown{because}{named}."
        case "refunded":
            unchecked = " It was not checked on the chain." if reason == "unchecked" else ""
            return f"Its refund in {transaction} was recorded.{unchecked}"
        case event:
            named = f" in {transaction}" if transaction else ""
            return f"It was {event.replace('_', ' ')}{named}{because}."


def describe_owed(record: PaymentRecord, view: ViewSettings) -> str:
    """Describe what is owed to the buyer."""
    match status_label(record, view):
        case "settling":
            return "Not known yet: a server is settling it now."
        case "open":
            return f"Not known: the settlement's outcome is unknown. {_describe_attempts(record, view)}"
        case "redeemable":
            until = format_iso(record.updated_at + view.redeem_seconds)
            if not view.accepts_network(record.key.network):
                return (
                    f"An answer, until {until}, from a deployment with payments on {record.key.network}: "
                    "test money is not accepted for real money, nor the reverse."
                )
            return f"An answer, until {until}: the buyer gets it with the same payment and the same request."
        case "refundable":
            return f"{format_money(record.amount, record.key.network)}: the answer can no longer be fetched."
        case _:
            return "Nothing."


def describe_next_step(record: PaymentRecord, view: ViewSettings) -> str:
    """Describe what the operator can do."""
    match status_label(record, view):
        case "settling":
            return "Check again in a minute."
        case "open":
            return (
                "Servers keep checking; `centgate payments reconcile` checks now. A node of the "
                f"network ({_rpc_setting(record)}, or --rpc) has what a facilitator does not report."
            )
        case "redeemable":
            return "Nothing: the buyer can fetch the answer. Check the log if the service fails for all."
        case "refundable":
            return describe_refund(record)
        case "unused":
            return f"Nothing: the buyer can send it again until {_format_end(record)}; then it is removed."
        case _:
            return "Nothing."


def describe_refund(record: PaymentRecord | None = None) -> str:
    """Describe how to refund a payment; this program cannot do it, since it holds no key."""
    name = payment_reference(record) if record else "PAYER:NONCE"
    amount = (
        f"{format_money(record.amount, record.key.network)} of {record.key.asset}"
        if record
        else "the amount in the same token"
    )
    recipient = f"{record.key.payer} on {record.key.network}" if record else "the payer on the same network"
    return (
        f"Centgate moves no money. To refund, send {amount} to {recipient} by a plain transfer from your own "
        f"wallet, then record it: centgate payments refunded {name} --in TRANSACTION"
    )


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


def _describe_attempts(record: PaymentRecord, view: ViewSettings) -> str:
    verb = "expired" if record.valid_before < view.now else "expires"
    ends = f"its authorization {verb} {_format_end(record)}"
    if not record.attempts:
        return f"Not checked since; {ends}."
    next_check = f", next {format_iso(record.retry_at)}" if record.retry_at else ""
    return f"Checked {record.attempts} times{next_check}; {ends}."


def _format_end(record: PaymentRecord) -> str:
    """Format the end of the authorization; a buyer can set any number there."""
    return format_iso(record.valid_before) if record.valid_before < 253_402_300_800 else "never"


def _rpc_setting(record: PaymentRecord) -> str:
    return f"CENTGATE_RPC_{record.key.network.removeprefix('eip155:')}_URL"


def _format_second(seconds: float) -> str:
    return format_iso(seconds)[:19] + "Z"


def _create_table(names: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    numbers = {"dollars", *TOTAL_NAMES}
    for name in names:
        table.add_column(
            name,
            overflow="fold",
            justify="right" if name in numbers else "left",
            no_wrap=name in _NO_WRAP,
        )
    return table
