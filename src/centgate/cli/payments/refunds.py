"""The commands `centgate payments refund-list` and `refunded`. They move no money."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from centgate.cli.payments import render
from centgate.cli.payments.context import (
    CommandContext,
    ExitCode,
    InvalidArgument,
    OutputFormat,
    print_renderable,
)
from centgate.cli.payments.export_columns import REFUND_COLUMNS
from centgate.cli.payments.serializers import EntryWriter, refund_entry
from centgate.cli.terminal import create_console, print_json, print_message, text_line
from centgate.payments.audit.refund_check import (
    RefundRecorder,
    describe_recorded_refund,
    find_hash_problem,
)
from centgate.payments.journal.descriptions import (
    describe_matches,
    describe_refund,
    format_dollars,
    format_money,
    payment_reference,
)
from centgate.payments.journal.read_model import (
    PaymentFilter,
    PaymentRecord,
    find_by_reference,
)
from centgate.signing.assets import is_test_network

UNCHECKED = "to record it without this check, add --unchecked"


async def show_refund_list(
    context: CommandContext, *, include_redeemable: bool, output_format: OutputFormat
) -> ExitCode:
    """Show settled payments that were not delivered and can only be refunded."""
    if output_format in ("csv", "jsonl"):
        writer = EntryWriter(sys.stdout, output_format, tuple(REFUND_COLUMNS))
        async for record in _iterate_owed(context, include_redeemable=include_redeemable):
            writer.write_entry(refund_entry(record, context.view))
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
        print_renderable(text_line(f"\n{describe_refund()}"))
    else:
        print_message("no payment is to be refunded")
    return 0


async def mark_refunded(context: CommandContext, name: str, transaction: str, *, unchecked: bool) -> ExitCode:
    """Record the refund of a payment, which removes it from the list; `unchecked` skips the chain lookup."""
    if problem := find_hash_problem(transaction):
        raise InvalidArgument(f"--in {problem}")
    record = await _find_single(context, name)
    if record is None:
        return 1
    recorder = RefundRecorder(context.settings, context.store, context.view)
    problem = await recorder.enter_refund(record, transaction, unchecked=unchecked)
    result = problem.message if problem else describe_recorded_refund(transaction, unchecked=unchecked)
    await context.record_action("refund", result, subject=payment_reference(record))
    if problem:
        print_message(problem.message + ("; " + UNCHECKED if problem.can_be_unchecked else ""))
        return 1
    amount = format_money(record.amount, record.key.network)
    print_renderable(text_line(f"{payment_reference(record)}: {amount} refunded in {transaction.lower()}"))
    return 0


async def _iterate_owed(
    context: CommandContext, *, include_redeemable: bool
) -> AsyncGenerator[PaymentRecord]:
    for state in ("refundable", "redeemable") if include_redeemable else ("refundable",):
        async for record in context.iterate_payments(PaymentFilter(state)):
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
        print_message(describe_matches(name, records))
    else:
        print_message(f"no payment found for {name!r}: give its transaction or payer:nonce")
    return None
