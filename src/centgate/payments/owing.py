"""What is owed: `centgate payments refund-list` and `refunded`. No money is moved here."""

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
    """What was taken and not delivered, and can only be paid back."""
    if shape in ("csv", "jsonl"):
        sheet = Sheet(sys.stdout, shape, tuple(OWED))
        async for record in _unpaid(desk, redeemable_too=redeemable_too):
            sheet.add(owed_entry(record, desk.outlook))
        return 0
    records = [record async for record in _unpaid(desk, redeemable_too=redeemable_too)]
    if shape == "json":
        rows = [owed_entry(each, desk.outlook) for each in records]
        print_json({"payments": rows, "totals": _owed_in_all(records)})
    elif records:
        show(telling.refunds_table(records, desk.outlook, console().width))
        for each in _owed_in_all(records):
            count, asset, network = (each[name] for name in ("payments", "asset", "network"))
            sum_ = money(int(each["amount"]), network)
            show(line(f"\nPayments: {count}, {sum_} in all ({asset} on {network})"))
        show(line(f"\n{telling.how_to_refund()}"))
    else:
        desk.none("nothing is to be paid back")
    return 0


async def enter(desk: Desk, name: str, transaction: str, *, unchecked: bool) -> ExitCode:
    """Enter that a payment was paid back, so that it leaves the list; `unchecked` without a look at it."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{64}", transaction):
        raise BadArgument(
            f"--in is the refund's transaction, 0x and 64 hexadecimal characters, not {transaction!r}"
        )
    if not int(transaction, 16):
        raise BadArgument("--in is the refund's transaction, and none has a hash of zeros")
    record = await _the_one(desk, name)
    store = desk.books.store
    if record is None or store is None:
        return 1
    refund = Refund(transaction.lower(), desk.outlook.now, "unchecked" if unchecked else None)
    taken = record.state in ("refused", "unused") and not record.refund and await was_taken(desk, record)
    objection = None if taken else _no_refund(record, desk.outlook, refund.transaction)
    if not objection and not record.refund and not unchecked:
        objection = await refund_problem(desk, record, refund.transaction)
    if objection:
        say(objection)
        return 1
    if not record.refund and not await _entered(store, desk.outlook, record, refund, taken=taken):
        say("the payment has changed just now, and nothing was entered: look at it with `payments show`")
        return 1
    paid = money(record.amount, record.key.network)
    show(line(f"{telling.handle(record)}: {paid} paid back in {transaction.lower()}"))
    return 0


async def _entered(store: Store, outlook: Outlook, record: Record, refund: Refund, *, taken: bool) -> bool:
    return await enter_refund(store, record.key, refund, lapsed=outlook.lapsed, was_taken=taken)


async def _unpaid(desk: Desk, *, redeemable_too: bool) -> AsyncGenerator[Record]:
    for state in ("refundable", "redeemable") if redeemable_too else ("refundable",):
        async for record in every(desk.books.reader, Wanted(state), desk.outlook.lapsed):
            yield record


def _owed_in_all(records: list[Record]) -> list[dict[str, Any]]:
    """What is owed of each token."""
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


async def _the_one(desk: Desk, name: str) -> Record | None:
    """The one payment that a name names; else it is said why not."""
    records = await desk.books.reader.read(partial(named, name))
    if len(records) == 1:
        return records[0]
    if records:
        some = ", ".join(map(telling.handle, records))
        say(f"{name!r} names several payments; name one as payer:nonce: {some}")
    else:
        desk.none(f"no payment is known by {name!r}: give its transaction or payer:nonce")
    return None


def _no_refund(record: Record, outlook: Outlook, transaction: str) -> str | None:
    """Why a payment cannot be entered as paid back in a transaction."""
    match "refunded" if record.refund else telling.word(record, outlook):
        case "refundable":
            return None
        case "refunded":
            return (
                None
                if record.refund == transaction
                else f"it is entered as paid back in {record.refund} already"
            )
        case "redeemable":
            until = iso(record.updated_at + outlook.keep)
            return f"its answer can be redeemed until {until}: what is paid back before could be had twice"
        case word:
            return f"nothing is to be paid back: the payment is {word}. {telling.owed(record, outlook)}"
