"""The commands `centgate payments refund-list` and `refunded`. They move no money."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from centgate.cli.buyer.console import create_console, text_line
from centgate.cli.payments import render
from centgate.cli.payments.context import (
    CommandContext,
    ExitCode,
    InvalidArgument,
    OutputFormat,
    print_json,
    print_renderable,
)
from centgate.cli.payments.export_columns import REFUND_COLUMNS
from centgate.cli.payments.refund_check import find_refund_problem, was_received
from centgate.cli.payments.serializers import (
    EntryWriter,
    ViewSettings,
    format_dollars,
    format_money,
    refund_entry,
)
from centgate.cli.terminal import print_message
from centgate.payments.read_model import PaymentFilter, PaymentRecord, find_by_reference, iterate_payments
from centgate.payments.refunds import Refund, record_refund
from centgate.payments.store import Store
from centgate.payments.time_format import format_iso
from centgate.signing.assets import is_test_network


async def show_refund_list(
    context: CommandContext, *, include_redeemable: bool, output_format: OutputFormat
) -> ExitCode:
    """Show settled payments that were not delivered and can only be refunded."""
    if output_format in ("csv", "jsonl"):
        sheet = EntryWriter(sys.stdout, output_format, tuple(REFUND_COLUMNS))
        async for record in _iterate_owed(context, include_redeemable=include_redeemable):
            sheet.write_entry(refund_entry(record, context.view))
        return 0
    records = [record async for record in _iterate_owed(context, include_redeemable=include_redeemable)]
    if output_format == "json":
        rows = [refund_entry(each, context.view) for each in records]
        print_json({"payments": rows, "totals": _owed_totals(records)})
    elif records:
        print_renderable(render.refunds_table(records, context.view, create_console().width))
        for each in _owed_totals(records):
            count, asset, network = (each[name] for name in ("payments", "asset", "network"))
            total = format_money(int(each["amount"]), network)
            print_renderable(text_line(f"\nPayments: {count}, {total} in all ({asset} on {network})"))
        print_renderable(text_line(f"\n{render.describe_refund()}"))
    else:
        context.print_empty("no payment is to be refunded")
    return 0


async def mark_refunded(context: CommandContext, name: str, transaction: str, *, unchecked: bool) -> ExitCode:
    """Record the refund of a payment, which removes it from the list; `unchecked` skips the chain lookup."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{64}", transaction):
        raise InvalidArgument(
            f"--in must be the refund's transaction, 0x and 64 hexadecimal characters, not {transaction!r}"
        )
    if not int(transaction, 16):
        raise InvalidArgument("--in must be the refund's transaction; a hash of zeros is not one")
    record = await _find_single(context, name)
    store = context.journal.store
    if record is None or store is None:
        return 1
    refund = Refund(transaction.lower(), context.view.now, "unchecked" if unchecked else None)
    was_settled = (
        record.state in ("refused", "unused") and not record.refund and await was_received(context, record)
    )
    objection = None if was_settled else _refund_objection(record, context.view, refund.transaction)
    if not objection and not record.refund and not unchecked:
        objection = await find_refund_problem(context, record, refund.transaction)
    if objection:
        print_message(objection)
        return 1
    if not record.refund and not await _record_refund(
        store, context.view, record, refund, was_settled=was_settled
    ):
        print_message(
            "the payment changed in the meantime, and nothing was recorded: check it with `payments show`"
        )
        return 1
    amount = format_money(record.amount, record.key.network)
    print_renderable(
        text_line(f"{render.payment_reference(record)}: {amount} refunded in {transaction.lower()}")
    )
    return 0


async def _record_refund(
    store: Store, view: ViewSettings, record: PaymentRecord, refund: Refund, *, was_settled: bool
) -> bool:
    return await record_refund(
        store, record.key, refund, redeem_cutoff=view.redemption_cutoff, was_received=was_settled
    )


async def _iterate_owed(
    context: CommandContext, *, include_redeemable: bool
) -> AsyncGenerator[PaymentRecord]:
    for state in ("refundable", "redeemable") if include_redeemable else ("refundable",):
        async for record in iterate_payments(
            context.journal.reader, PaymentFilter(state), context.view.redemption_cutoff
        ):
            yield record


def _owed_totals(records: list[PaymentRecord]) -> list[dict[str, Any]]:
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
            "dollars": format_dollars(sum(amounts)),
            "testNetwork": is_test_network(network),
        }
        for (network, asset), amounts in sorted(sums.items())
    ]


async def _find_single(context: CommandContext, name: str) -> PaymentRecord | None:
    """Return the one payment with a name; otherwise print the reason and return None."""
    records = await context.journal.reader.read(partial(find_by_reference, name))
    if len(records) == 1:
        return records[0]
    if records:
        references = ", ".join(map(render.payment_reference, records))
        print_message(f"{name!r} matches several payments; use payer:nonce: {references}")
    else:
        context.print_empty(f"no payment found for {name!r}: give its transaction or payer:nonce")
    return None


def _refund_objection(record: PaymentRecord, view: ViewSettings, transaction: str) -> str | None:
    """Return the reason why a transaction cannot be recorded as a payment's refund; None if it can."""
    match "refunded" if record.refund else render.status_label(record, view):
        case "refundable":
            return None
        case "refunded":
            return (
                None if record.refund == transaction else f"its refund in {record.refund} is already recorded"
            )
        case "redeemable":
            until = format_iso(record.updated_at + view.redeem_seconds)
            return (
                f"its answer can be redeemed until {until}: after an earlier refund the buyer could get both"
            )
        case word:
            return f"no refund is due: the payment is {word}. {render.describe_owed(record, view)}"
