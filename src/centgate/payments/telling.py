"""What operators are told of payments: in tables, and of one payment in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from centgate.client.shell.printing import plain, styled
from centgate.payments.entries import Outlook, daily_entry, dollars_cell, money
from centgate.payments.periods import age, iso
from centgate.payments.records import Record
from centgate.payments.statements import Row
from centgate.payments.summaries import FIGURES, Line

if TYPE_CHECKING:
    from centgate.payments.upkeep import Resolution

WIDE = 190
"""Characters of a line from which addresses and transactions are shown whole."""
_PAYER = 96
_ROOM = {"payer": _PAYER, "service": 64, "dollars": 60, "time": 48}
"""Widths from which there is room for these columns."""
_WHOLE_PAYER = 80
_WHOLE = ("time", "day", "dollars", "state", "payer", "id", "transaction")
"""Columns that are never broken over lines."""
_ALL_FIGURES = 120
"""The width from which there is room for those that are usually 0."""
_LABEL = 26


def payments_table(records: Iterable[Record], outlook: Outlook, width: int) -> Table:
    """A line for each payment, as far as the terminal has room for it."""
    names = ["time", "service", "state", "dollars", "payer", "id"]
    table = _table([name for name in names if width >= _ROOM.get(name, 0)])
    for record in records:
        cells = {
            "time": _second(record.created_at),
            "service": plain(record.service),
            "state": styled(word(record, outlook)),
            "dollars": dollars_cell(record.amount, record.key.network),
            "payer": short(record.key.payer, width),
            "id": short(record.transaction or record.key.nonce, width),
        }
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    return table


def refunds_table(records: Iterable[Record], outlook: Outlook, width: int) -> Table:
    """A line for each payment that is owed; the payer's address is whole, since money is sent there."""
    room = {"transaction": _WHOLE_PAYER, "state": _PAYER}
    names = ["payer", "dollars", "age", "state", "transaction"]
    names = [name for name in names if width >= room.get(name, 0)]
    table = _table(names)
    for record in records:
        cells = {
            "payer": plain(record.key.payer) if width >= _WHOLE_PAYER else short(record.key.payer, width),
            "dollars": dollars_cell(record.amount, record.key.network),
            "age": age(outlook.now - (record.settled_at or record.updated_at)),
            "state": styled(word(record, outlook)),
            "transaction": short(record.transaction or "", width),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def summary_table(lines: Sequence[Line], sums: Sequence[Line], width: int) -> Table:
    """A line for each day and token; on a narrow terminal without what is usually nothing."""
    entries = [daily_entry(line) for line in (*lines, *sums)]
    names = ["day", "network", *(name for name in FIGURES if name != "amount"), "dollars"]
    if len({line.network for line in sums}) == 1:
        names.remove("network")
    if len({(line.network, line.asset) for line in sums}) > len({line.network for line in sums}):
        names.insert(1, "asset")
    if width < _ALL_FIGURES:
        names = [name for name in names if name in ("day", "dollars") or any(each[name] for each in entries)]
    table = _table(names)
    for each, line in zip(entries, (*lines, *sums), strict=True):
        asset = short(str(each["asset"]), width)
        cell = dollars_cell(line.figures.amount, line.network)
        cells = {**each, "day": each["day"] or "all", "asset": asset, "dollars": cell}
        table.add_row(*(plain(cells[name]) for name in names))
    return table


def resolutions_table(rows: Iterable[Resolution], width: int) -> Table:
    """What became of each open payment, and why."""
    table = _table(["payment", "is now", "why"])
    for row in rows:
        payment = f"{short(row.key.payer, width)}:{short(row.key.nonce, width)}"
        why = row.reason or (f"in {short(row.transaction, width)}" if row.transaction else "")
        table.add_row(payment, styled("open" if row.after == "settling" else row.after), plain(why))
    return table


def word(record: Record, outlook: Outlook) -> str:
    """The one word for how a payment stands."""
    return record.standing(outlook.lapsed) or record.state


def short(name: str, width: int) -> str:
    """A long name as it is written where there is little room; `payments show` takes it so."""
    name = plain(name)
    return name if width >= WIDE or len(name) <= 16 else f"{name[:8]}…{name[-4:]}"


def handle(record: Record) -> str:
    """What names a payment and no other."""
    return f"{record.key.payer}:{record.key.nonce}"


def events(record: Record, history: Sequence[Row] = ()) -> list[tuple[float, str]]:
    """What happened, first to last: a time in seconds since 1970, and a sentence.

    `history` are rows of `payment_events`: what the payment's own row does not keep.
    """
    price = f"{money(record.amount, record.key.network)} ({record.amount} base units of {record.key.asset})"
    told = [
        (
            record.created_at,
            f"{record.key.payer} presented it for {record.service}: {price} on {record.key.network} "
            f"to {record.pay_to}",
        )
    ]
    if record.settled_at is not None:
        told.append((record.settled_at, f"It settled in {record.transaction}: the money was taken."))
    known = {(row["event"], row["at"]) for row in history}
    if record.state == "refused" and ("refused", record.updated_at) not in known:
        told.append((record.updated_at, f"It was refused ({record.reason}): no money moved."))
    if record.state == "unused":
        told.append((record.updated_at, f"It was not sent to the facilitator ({record.reason})."))
    if record.state == "delivered":
        told.append(
            (
                record.updated_at,
                f"Its answer was delivered: HTTP {record.status}, request {record.request_id}.",
            )
        )
    if record.refunded_at is not None and ("refunded", record.refunded_at) not in known:
        told.append((record.refunded_at, f"It was entered as paid back in {record.refund}."))
    return sorted([*told, *((row["at"], _event(row)) for row in history)], key=itemgetter(0))


def _event(row: Row) -> str:
    """Describe an event of a payment."""
    reason, transaction = row["reason"], row["transaction"]
    because = f" ({reason})" if reason else ""
    match row["event"]:
        case "refused":
            named = (
                f", and {transaction}, which the facilitator had named, did not pay" if transaction else ""
            )
            return f"It was refused{because}: no money moved{named}."
        case "in_doubt":
            named = f": the facilitator named {transaction}" if transaction else ""
            return f"Its outcome was left open{because}{named}."
        case "refunded":
            unchecked = " It was not looked up on the chain." if reason == "unchecked" else ""
            return f"It was entered as paid back in {transaction}.{unchecked}"
        case event:
            named = f" in {transaction}" if transaction else ""
            return f"It was {event.replace('_', ' ')}{named}{because}."


def owed(record: Record, outlook: Outlook) -> str:
    """What is owed to the buyer."""
    match word(record, outlook):
        case "settling":
            return "Not known yet: a server is settling it right now."
        case "open":
            return f"Not known: whether the money moved is open. {_tries(record, outlook)}"
        case "redeemable":
            until = iso(record.updated_at + outlook.keep)
            if not outlook.takes(record.key.network):
                return (
                    f"An answer, until {until}, from a deployment that is paid on {record.key.network}: "
                    "where test money is asked for real money buys none, nor the reverse."
                )
            return f"An answer, until {until}: the same payment, sent again with the same request, gets it."
        case "refundable":
            return f"{money(record.amount, record.key.network)}: the answer can no longer be fetched."
        case _:
            return "Nothing."


def advice(record: Record, outlook: Outlook) -> str:
    """What the operator can do."""
    match word(record, outlook):
        case "settling":
            return "Look again in a minute."
        case "open":
            return (
                "Servers go on asking by themselves; `centgate payments reconcile` asks now. A node of the "
                f"network ({_rpc(record)}, or --rpc) knows what a facilitator does not say."
            )
        case "redeemable":
            return "Nothing: it is the buyer's turn. Look at the log if the service fails for all."
        case "refundable":
            return how_to_refund(record)
        case "unused":
            return f"Nothing: its buyer can send it again until {_end(record)}, and after that it is removed."
        case _:
            return "Nothing."


def how_to_refund(record: Record | None = None) -> str:
    """How money is given back, which this program cannot do: it holds no key."""
    name = handle(record) if record else "PAYER:NONCE"
    what = (
        f"{money(record.amount, record.key.network)} of {record.key.asset}"
        if record
        else "the amount in the same token"
    )
    whom = f"{record.key.payer} on {record.key.network}" if record else "the payer on the same network"
    return (
        f"Centgate moves no money. To pay back, send {what} to {whom} by a plain transfer from a wallet of "
        f"yours, then enter it: centgate payments refunded {name} --in TRANSACTION"
    )


def page_of(
    record: Record,
    outlook: Outlook,
    answer: dict[str, Any] | None,
    width: int,
    history: Sequence[Row] = (),
) -> Text:
    """One payment in words; hashes are never broken, so that they can be copied."""
    name = word(record, outlook)
    rows = [
        ("payment", handle(record)),
        ("state", name if name == record.state else f"{name} ({record.state})"),
        *((iso(at), sentence) for at, sentence in events(record, history)),
        *([("idempotency key", record.identifier)] if record.identifier else []),
        *([("answer", _kept(answer))] if record.state == "delivered" else []),
        ("owed", owed(record, outlook)),
        ("to do", advice(record, outlook)),
    ]
    return Text("\n").join(_paragraph(label, sentence, width) for label, sentence in rows)


def _kept(answer: dict[str, Any] | None) -> str:
    if answer is None:
        return "no longer kept"
    return f"kept since {answer['storedAt']}: HTTP {answer['status']}, {answer['bytes']} bytes"


def _paragraph(label: str, sentence: str, width: int) -> Text:
    room = max(width - _LABEL, 24)
    lines = wrap(plain(sentence), room, break_long_words=False, break_on_hyphens=False)
    return Text.assemble((f"{label:<{_LABEL}}", "cyan"), f"\n{' ' * _LABEL}".join(lines))


def _tries(record: Record, outlook: Outlook) -> str:
    ends = f"its authorization {'ended' if record.valid_before < outlook.now else 'ends'} {_end(record)}"
    if not record.attempts:
        return f"Nobody has asked since; {ends}."
    then = f", next {iso(record.retry_at)}" if record.retry_at else ""
    return f"Asked {record.attempts} times{then}; {ends}."


def _end(record: Record) -> str:
    """When its authorization ends; a buyer can write any number there."""
    return iso(record.valid_before) if record.valid_before < 253_402_300_800 else "never"


def _rpc(record: Record) -> str:
    return f"CENTGATE_RPC_{record.key.network.removeprefix('eip155:')}_URL"


def _second(seconds: float) -> str:
    return iso(seconds)[:19] + "Z"


def _table(names: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    numbers = {"dollars", *FIGURES}
    for name in names:
        table.add_column(
            name,
            overflow="fold",
            justify="right" if name in numbers else "left",
            no_wrap=name in _WHOLE,
        )
    return table
