"""The commands `centgate payments list`, `show`, `export` and `summary`."""

from __future__ import annotations

import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from centgate.client.shell.printing import console, line
from centgate.payments import telling
from centgate.payments.columns import COLUMNS, DAILY
from centgate.payments.desk import BadArgument, Desk, ExitCode, Shape, print_json, show
from centgate.payments.entries import (
    Entry,
    Format,
    Sheet,
    daily_entry,
    destination,
    entry,
    format_of,
)
from centgate.payments.looking import file_of
from centgate.payments.periods import iso, moment
from centgate.payments.queries import find_answer, find_events
from centgate.payments.records import FOREVER, STATES, Place, Record, Wanted, every, named, newest
from centgate.payments.statements import Row
from centgate.payments.summaries import daily, totals
from centgate.settings import Settings
from centgate.terminal import say


@dataclass(frozen=True, slots=True)
class Question:
    """Filter options of a command, as entered."""

    state: str | None = None
    service: str | None = None
    payer: str | None = None
    transaction: str | None = None
    since: str | None = None
    until: str | None = None

    def wanted(self, now: float) -> Wanted:
        """Convert the options to a filter for the journal. Raises BadArgument."""
        if self.state and self.state not in STATES:
            raise BadArgument(f"--state is one of {', '.join(STATES)}, not {self.state!r}")
        try:
            since = moment(self.since, now) if self.since else 0.0
            until = moment(self.until, now) if self.until else FOREVER
        except ValueError as error:
            raise BadArgument(str(error)) from error
        payer, transaction = (text.lower() if text else None for text in (self.payer, self.transaction))
        return Wanted(self.state, self.service, payer, transaction, since, until)


async def show_list(
    desk: Desk, question: Question, limit: int, *, past: str | None, shape: Shape
) -> ExitCode:
    """Show a page of the newest payments that match."""
    wanted, place = question.wanted(desk.outlook.now), _decode_cursor(past)
    unit = partial(newest, wanted, desk.outlook.lapsed, limit=limit + 1, past=place)
    rows = await desk.books.reader.read(unit)
    records, has_more = rows[:limit], len(rows) > limit
    next_cursor = _encode_cursor(records[-1].place) if has_more else None
    if shape == "json":
        print_json({"payments": [entry(each, desk.outlook) for each in records], "next": next_cursor})
    elif records:
        show(telling.payments_table(records, desk.outlook, console().width))
        if next_cursor:
            show(line(f"\nNext page: --after {next_cursor}"))
    else:
        desk.none("no payment matches" if question != Question() else "no payment was presented yet")
    return 0


async def show_one(desk: Desk, name: str, *, body: bool, shape: Shape) -> ExitCode:
    """Show all details of the payments with a name."""
    records = await desk.books.reader.read(partial(named, name))
    if not records:
        desk.none(f"no payment found for {name!r}: give a transaction, a nonce, a request id or payer:nonce")
        return 1
    answers = [await desk.books.reader.read(partial(find_answer, each.key)) for each in records]
    histories = [await desk.books.reader.read(partial(find_events, each.key)) for each in records]
    details = list(zip(records, answers, histories, strict=True))
    if shape == "json":
        rows = [_payment_details(each, desk, answer, history, body=body) for each, answer, history in details]
        print_json({"payments": rows})
        return 0
    for record, answer, history in details:
        stored_answer = _answer_entry(answer, body=False) if answer else None
        show(telling.page_of(record, desk.outlook, stored_answer, console().width, history))
        if body and answer:
            show(line(_decode_body(answer)))
    return 0


async def export(
    desk: Desk, question: Question, *, out: str, form: Format | None, days: bool = False
) -> ExitCode:
    """Write all payments that match, or the figures per day, one by one."""
    wanted = question.wanted(desk.outlook.now)
    chosen = form or format_of(out)
    if chosen is None:
        raise BadArgument(
            "add --format csv or --format jsonl, or use a file name for --out that ends in one of them"
        )
    _check_not_journal(desk.settings, out)
    written = 0
    with destination(out) as stream:
        sheet = Sheet(stream, chosen, tuple(DAILY if days else COLUMNS))
        async for row in _iterate_days(desk, wanted) if days else _iterate_entries(desk, wanted):
            sheet.add(row)
            written += 1
    if desk.books.missing:
        say(desk.books.missing)
    noun = f"{'line' if days else 'payment'}{'' if written == 1 else 's'}"
    say(f"{written} {noun} written{'' if out == '-' else f' to {out}'}")
    return 0


async def summarise(desk: Desk, question: Question, *, shape: Shape) -> ExitCode:
    """Show the figures per day, and their totals."""
    wanted = question.wanted(desk.outlook.now)
    lines = await desk.books.reader.read(partial(daily, wanted.since, wanted.until, desk.outlook.lapsed))
    sums = totals(lines)
    if shape == "json":
        print_json({"days": list(map(daily_entry, lines)), "totals": list(map(daily_entry, sums))})
    elif shape in ("csv", "jsonl"):
        Sheet(sys.stdout, shape, tuple(DAILY)).add_all(map(daily_entry, lines))
    elif lines:
        show(telling.summary_table(lines, sums, console().width))
    else:
        desk.none("no payment was presented in that time")
    return 0


async def _iterate_entries(desk: Desk, wanted: Wanted) -> AsyncGenerator[Entry]:
    async for record in every(desk.books.reader, wanted, desk.outlook.lapsed):
        yield entry(record, desk.outlook)


async def _iterate_days(desk: Desk, wanted: Wanted) -> AsyncGenerator[dict[str, Any]]:
    unit = partial(daily, wanted.since, wanted.until, desk.outlook.lapsed)
    for each in await desk.books.reader.read(unit):
        yield daily_entry(each)


def _payment_details(
    record: Record, desk: Desk, answer: Row | None, history: Sequence[Row], *, body: bool
) -> dict[str, Any]:
    """Return a payment as JSON with its events, what is owed and what to do."""
    return {
        **entry(record, desk.outlook),
        "validBefore": record.valid_before,
        "paymentIdentifier": record.identifier,
        "attempts": record.attempts,
        "retryAt": None if record.retry_at is None else iso(record.retry_at),
        "events": [{"at": iso(at), "what": what} for at, what in telling.events(record, history)],
        "owed": telling.owed(record, desk.outlook),
        "toDo": telling.advice(record, desk.outlook),
        "answer": _answer_entry(answer, body=body) if answer else None,
    }


def _answer_entry(answer: Row, *, body: bool) -> dict[str, Any]:
    summary = {"status": answer["status"], "bytes": len(answer["body"]), "storedAt": iso(answer["stored_at"])}
    return {**summary, "body": _decode_body(answer)} if body else summary


def _decode_body(answer: Row) -> str:
    return bytes(answer["body"]).decode("utf-8", "backslashreplace")


def _encode_cursor(place: Place) -> str:
    return urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def _decode_cursor(cursor: str | None) -> Place | None:
    """Parse the cursor of the previous page. Raises BadArgument."""
    if cursor is None:
        return None
    try:
        at, *key = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        network, asset, payer, nonce = map(_require_string, key)
        return float(at), network, asset, payer, nonce
    except (ValueError, TypeError) as error:
        raise BadArgument("--after must be the value of `next` from the previous page") from error


def _require_string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _check_not_journal(settings: Settings, out: str) -> None:
    url = settings.database_url
    if out != "-" and url.startswith("sqlite:") and Path(out).absolute() == file_of(url):
        raise BadArgument("--out must not be the journal itself")
