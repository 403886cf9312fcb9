"""The commands `centgate payments refund-list` and `refunded`. They move no money."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from centgate.client.shell.printing import console, line
from centgate.dollars import is_test_network
from centgate.payments import telling
from centgate.payments.columns import OWED
from centgate.payments.desk import BadArgument, Desk, ExitCode, Shape, print_json, show
from centgate.payments.entries import Outlook, Sheet, dollars, money, owed_entry
from centgate.payments.periods import iso
from centgate.payments.records import Record, Wanted, every, named
from centgate.payments.refund_check import refund_problem, was_taken
from centgate.payments.refunds import Refund, enter_refund
from centgate.payments.store import Store
from centgate.terminal import say


async def list_refunds(desk: Desk, *, redeemable_too: bool, shape: Shape) -> ExitCode:
    """Show settled payments that were not delivered and can only be refunded."""
    if shape in ("csv", "jsonl"):
        sheet = Sheet(sys.stdout, shape, tuple(OWED))
        async for record in _iterate_owed(desk, redeemable_too=redeemable_too):
            sheet.add(owed_entry(record, desk.outlook))
        return 0
    records = [record async for record in _iterate_owed(desk, redeemable_too=redeemable_too)]
    if shape == "json":
        rows = [owed_entry(each, desk.outlook) for each in records]
        print_json({"payments": rows, "totals": _owed_totals(records)})
    elif records:
        show(telling.refunds_table(records, desk.outlook, console().width))
        for each in _owed_totals(records):
            count, asset, network = (each[name] for name in ("payments", "asset", "network"))
            total = money(int(each["amount"]), network)
            show(line(f"\nPayments: {count}, {total} in all ({asset} on {network})"))
        show(line(f"\n{telling.how_to_refund()}"))
    else:
        desk.none("no payment is to be refunded")
    return 0


async def enter(desk: Desk, name: str, transaction: str, *, unchecked: bool) -> ExitCode:
    """Record the refund of a payment, which removes it from the list; `unchecked` skips the chain lookup."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{64}", transaction):
        raise BadArgument(
            f"--in must be the refund's transaction, 0x and 64 hexadecimal characters, not {transaction!r}"
        )
    if not int(transaction, 16):
        raise BadArgument("--in must be the refund's transaction; a hash of zeros is not one")
    record = await _find_single(desk, name)
    store = desk.books.store
    if record is None or store is None:
        return 1
    refund = Refund(transaction.lower(), desk.outlook.now, "unchecked" if unchecked else None)
    was_settled = (
        record.state in ("refused", "unused") and not record.refund and await was_taken(desk, record)
    )
    objection = None if was_settled else _refund_objection(record, desk.outlook, refund.transaction)
    if not objection and not record.refund and not unchecked:
        objection = await refund_problem(desk, record, refund.transaction)
    if objection:
        say(objection)
        return 1
    if not record.refund and not await _record_refund(
        store, desk.outlook, record, refund, was_settled=was_settled
    ):
        say("the payment changed in the meantime, and nothing was recorded: check it with `payments show`")
        return 1
    amount = money(record.amount, record.key.network)
    show(line(f"{telling.handle(record)}: {amount} refunded in {transaction.lower()}"))
    return 0


async def _record_refund(
    store: Store, outlook: Outlook, record: Record, refund: Refund, *, was_settled: bool
) -> bool:
    return await enter_refund(store, record.key, refund, lapsed=outlook.lapsed, was_taken=was_settled)


async def _iterate_owed(desk: Desk, *, redeemable_too: bool) -> AsyncGenerator[Record]:
    for state in ("refundable", "redeemable") if redeemable_too else ("refundable",):
        async for record in every(desk.books.reader, Wanted(state), desk.outlook.lapsed):
            yield record


def _owed_totals(records: list[Record]) -> list[dict[str, Any]]:
    """Return the sum of the owed payments for each token."""
    sums: dict[tuple[str, str], list[int]] = {}
    for each in records:
        sums.setdefault((each.key.network, each.key.asset), []).append(each.amount)
    return [
        {
            "network": network,
            "asset": asset,
            "payments": len(amounts),
            "amount": str(sum(amounts)),
            "dollars": dollars(sum(amounts)),
            "testNetwork": is_test_network(network),
        }
        for (network, asset), amounts in sorted(sums.items())
    ]


async def _find_single(desk: Desk, name: str) -> Record | None:
    """Return the one payment with a name; otherwise print the reason and return None."""
    records = await desk.books.reader.read(partial(named, name))
    if len(records) == 1:
        return records[0]
    if records:
        references = ", ".join(map(telling.handle, records))
        say(f"{name!r} matches several payments; use payer:nonce: {references}")
    else:
        desk.none(f"no payment found for {name!r}: give its transaction or payer:nonce")
    return None


def _refund_objection(record: Record, outlook: Outlook, transaction: str) -> str | None:
    """Return the reason why a transaction cannot be recorded as a payment's refund; None if it can."""
    match "refunded" if record.refund else telling.word(record, outlook):
        case "refundable":
            return None
        case "refunded":
            return (
                None if record.refund == transaction else f"its refund in {record.refund} is already recorded"
            )
        case "redeemable":
            until = iso(record.updated_at + outlook.keep)
            return (
                f"its answer can be redeemed until {until}: after an earlier refund the buyer could get both"
            )
        case word:
            return f"no refund is due: the payment is {word}. {telling.owed(record, outlook)}"
