"""The commands `centgate payments list`, `show`, `export`, `summary` and `totals`."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from centgate.cli.payments import render
from centgate.cli.payments.context import (
    CommandContext,
    ExitCode,
    InvalidArgument,
    OutputFormat,
    print_renderable,
)
from centgate.cli.payments.export_columns import DAILY_COLUMNS, PAYMENT_COLUMNS, totals_columns
from centgate.cli.payments.serializers import (
    EntryWriter,
    ExportEntry,
    ExportFormat,
    daily_entry,
    format_from_suffix,
    open_output,
    payment_entry,
    sum_entry,
    totals_entry,
)
from centgate.cli.terminal import create_console, print_json, print_message, text_line
from centgate.payments.database.sql import ResultRow
from centgate.payments.database.store import sqlite_path
from centgate.payments.journal.descriptions import describe_next_step, describe_owed, list_events
from centgate.payments.journal.queries import find_answer, find_events
from centgate.payments.journal.read_model import (
    FILTER_STATES,
    FOREVER,
    PaymentFilter,
    PaymentRecord,
    SortKey,
    decode_cursor,
    encode_cursor,
    find_by_reference,
    list_newest,
)
from centgate.payments.reports.daily_totals import read_daily_totals, sum_totals
from centgate.payments.reports.grouped_totals import read_grouped_totals, sum_groups
from centgate.payments.reports.totals_group import TotalsGroup
from centgate.payments.time_format import format_iso, parse_time
from centgate.settings import Settings

_ADDRESS = re.compile("0[xX][0-9a-fA-F]{40}")
TABLE_GROUPS = 50
"""Groups in a table, unless --limit says otherwise; other formats have all."""


class PaymentFilterOptions(Struct, frozen=True):
    """Filter options of a command, as entered."""

    state: str | None = None
    service: str | None = None
    payer: str | None = None
    transaction: str | None = None
    since: str | None = None
    until: str | None = None

    def to_filter(self, now: float) -> PaymentFilter:
        """Convert the options to a filter for the journal. Raises InvalidArgument."""
        if self.state and self.state not in FILTER_STATES:
            raise InvalidArgument(f"--state is one of {', '.join(FILTER_STATES)}, not {self.state!r}")
        try:
            since = 0.0 if self.since is None else parse_time(self.since, now)
            until = FOREVER if self.until is None else parse_time(self.until, now)
        except ValueError as error:
            raise InvalidArgument(str(error)) from error
        if self.payer is not None and not _ADDRESS.fullmatch(self.payer):
            raise InvalidArgument(
                f"--payer is an address of 0x and 40 hexadecimal digits, not {self.payer!r}"
            )
        payer, transaction = (text.lower() if text else None for text in (self.payer, self.transaction))
        return PaymentFilter(self.state, self.service, payer, transaction, since, until)


async def list_payments(
    context: CommandContext,
    options: PaymentFilterOptions,
    limit: int,
    *,
    after: str | None,
    output_format: OutputFormat,
) -> ExitCode:
    """Show a page of the newest payments that match."""
    wanted, place = options.to_filter(context.view.now), _parse_after(after)
    unit = partial(list_newest, wanted, context.view.redemption_cutoff, limit=limit + 1, after=place)
    rows = await context.journal.reader.read(unit)
    records, has_more = rows[:limit], len(rows) > limit
    next_cursor = encode_cursor(records[-1].sort_key) if has_more else None
    if output_format == "json":
        print_json({"payments": [payment_entry(each, context.view) for each in records], "next": next_cursor})
    elif records:
        print_renderable(render.payments_table(records, context.view, create_console().width))
        if next_cursor:
            print_renderable(text_line(f"\nNext page: --after {next_cursor}"))
    else:
        print_message(_explain_no_match(options, context))
    return 0


async def show_payment(
    context: CommandContext, name: str, *, include_body: bool, output_format: OutputFormat
) -> ExitCode:
    """Show all details of the payments with a name."""
    records = await context.journal.reader.read(partial(find_by_reference, name))
    if not records:
        print_message(
            f"no payment found for {name!r}: give a transaction (its own or its refund's), a nonce, "
            "a request id or payer:nonce"
        )
        return 1
    answers = [await context.journal.reader.read(partial(find_answer, each.key)) for each in records]
    histories = [await context.journal.reader.read(partial(find_events, each.key)) for each in records]
    details = list(zip(records, answers, histories, strict=True))
    if output_format == "json":
        rows = [
            _payment_details(each, context, answer, history, body=include_body)
            for each, answer, history in details
        ]
        print_json({"payments": rows})
        return 0
    for record, answer, history in details:
        stored_answer = _answer_entry(answer, body=False) if answer else None
        print_renderable(
            render.render_payment(record, context.view, stored_answer, create_console().width, history)
        )
        if include_body and answer:
            print_renderable(text_line(_decode_body(answer)))
    return 0


async def export_payments(
    context: CommandContext,
    options: PaymentFilterOptions,
    *,
    out: str,
    file_format: ExportFormat | None,
    days: bool = False,
) -> ExitCode:
    """Write all payments that match, or the figures per day, one by one."""
    wanted = options.to_filter(context.view.now)
    chosen = file_format or format_from_suffix(out)
    if chosen is None:
        raise InvalidArgument(
            "add --format csv or --format jsonl, or use a file name for --out that ends in one of them"
        )
    _check_not_journal(context.settings, out)
    if context.journal.missing_message:  # perhaps a misspelt database, and a file of an earlier export
        print_message(f"{context.journal.missing_message}; nothing was written")
        return 1
    written = 0
    with open_output(out) as stream:
        writer = EntryWriter(stream, chosen, tuple(DAILY_COLUMNS if days else PAYMENT_COLUMNS))
        async for row in _iterate_days(context, wanted) if days else _iterate_entries(context, wanted):
            writer.write_entry(row)
            written += 1
    noun = f"{'line' if days else 'payment'}{'' if written == 1 else 's'}"
    print_message(f"{written} {noun} written{'' if out == '-' else f' to {out}'}")
    return 0


async def show_summary(
    context: CommandContext, options: PaymentFilterOptions, *, output_format: OutputFormat
) -> ExitCode:
    """Show the figures per day, and their totals."""
    wanted = options.to_filter(context.view.now)
    lines = await context.journal.reader.read(
        partial(read_daily_totals, wanted.since, wanted.until, context.view.redemption_cutoff)
    )
    sums = sum_totals(lines)
    if output_format == "json":
        print_json({"days": list(map(daily_entry, lines)), "totals": list(map(daily_entry, sums))})
    elif output_format in ("csv", "jsonl"):
        EntryWriter(sys.stdout, output_format, tuple(DAILY_COLUMNS)).write_entries(map(daily_entry, lines))
    elif lines:
        print_renderable(render.summary_table(lines, sums, create_console().width))
    else:
        print_message("no payment was presented in that time")
    return 0


async def show_totals(
    context: CommandContext,
    options: PaymentFilterOptions,
    *,
    by: TotalsGroup,
    limit: int | None,
    output_format: OutputFormat,
) -> ExitCode:
    """Show the figures of each payer, service, day or network, and their sums."""
    wanted = options.to_filter(context.view.now)
    unit = partial(read_grouped_totals, by, wanted, context.view.redemption_cutoff)
    groups = await context.journal.reader.read(unit)
    if limit is None and output_format == "table":
        limit = TABLE_GROUPS
    lines, sums = groups[:limit], sum_groups(groups)
    entries = [totals_entry(by, each) for each in lines]
    if output_format == "json":
        print_json({"groups": entries, "totals": [sum_entry(by, each) for each in sums]})
    elif output_format in ("csv", "jsonl"):
        EntryWriter(sys.stdout, output_format, tuple(totals_columns(by))).write_entries(entries)
    elif lines:
        print_renderable(render.totals_table(by, lines, sums, create_console().width))
        if len(groups) > len(lines):
            print_renderable(
                text_line(f"\nThe first {len(lines)} of {len(groups)}: add --limit {len(groups)}")
            )
    else:
        print_message(_explain_no_match(options, context))
    return 0


def _explain_no_match(options: PaymentFilterOptions, context: CommandContext) -> str:
    """Return the message for an empty result; a service that is not known may be misspelt."""
    if options == PaymentFilterOptions():
        return "no payment was presented yet"
    if options.service is not None and options.service not in context.view.routes:
        return f"no payment matches, and no service is called {options.service!r}"
    return "no payment matches"


async def _iterate_entries(context: CommandContext, wanted: PaymentFilter) -> AsyncGenerator[ExportEntry]:
    async for record in context.iterate_payments(wanted):
        yield payment_entry(record, context.view)


async def _iterate_days(context: CommandContext, wanted: PaymentFilter) -> AsyncGenerator[dict[str, Any]]:
    unit = partial(read_daily_totals, wanted.since, wanted.until, context.view.redemption_cutoff)
    for each in await context.journal.reader.read(unit):
        yield daily_entry(each)


def _payment_details(
    record: PaymentRecord,
    context: CommandContext,
    answer: ResultRow | None,
    history: Sequence[ResultRow],
    *,
    body: bool,
) -> dict[str, Any]:
    """Return a payment as JSON with its events, what is owed and what to do."""
    return {
        **payment_entry(record, context.view),
        "validBefore": record.valid_before,
        "paymentIdentifier": record.identifier,
        "attempts": record.attempts,
        "retryAt": None if record.retry_at is None else format_iso(record.retry_at),
        "events": [{"at": format_iso(at), "what": what} for at, what in list_events(record, history)],
        "owed": describe_owed(record, context.view),
        "toDo": describe_next_step(record, context.view),
        "answer": _answer_entry(answer, body=body) if answer else None,
    }


def _answer_entry(answer: ResultRow, *, body: bool) -> dict[str, Any]:
    summary = {
        "status": answer["status"],
        "bytes": len(answer["body"]),
        "storedAt": format_iso(answer["stored_at"]),
    }
    return {**summary, "body": _decode_body(answer)} if body else summary


def _decode_body(answer: ResultRow) -> str:
    return bytes(answer["body"]).decode("utf-8", "backslashreplace")


def _parse_after(cursor: str | None) -> SortKey | None:
    """Parse the cursor of the previous page. Raises InvalidArgument."""
    try:
        return None if cursor is None else decode_cursor(cursor)
    except ValueError as error:
        raise InvalidArgument("--after must be the value of `next` from the previous page") from error


def _check_not_journal(settings: Settings, out: str) -> None:
    url = settings.database_url
    if out != "-" and url.startswith("sqlite:") and Path(out).absolute() == sqlite_path(url).absolute():
        raise InvalidArgument("--out must not be the journal itself")
