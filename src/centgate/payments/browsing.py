"""Looking at payments: `centgate payments list`, `show`, `export` and `summary`."""

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
    """Which payments a command was asked for, as it was typed."""

    state: str | None = None
    service: str | None = None
    payer: str | None = None
    transaction: str | None = None
    since: str | None = None
    until: str | None = None

    def wanted(self, now: float) -> Wanted:
        """The same for the journal; BadArgument."""
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
    """The newest payments that fit, a page at a time."""
    wanted, place = question.wanted(desk.outlook.now), _place(past)
    unit = partial(newest, wanted, desk.outlook.lapsed, limit=limit + 1, past=place)
    found = await desk.books.reader.read(unit)
    records, more = found[:limit], len(found) > limit
    then = _cursor(records[-1].place) if more else None
    if shape == "json":
        print_json({"payments": [entry(each, desk.outlook) for each in records], "next": then})
    elif records:
        show(telling.payments_table(records, desk.outlook, console().width))
        if then:
            show(line(f"\nThere are more: --after {then}"))
    else:
        desk.none("no payment fits" if question != Question() else "no payment was presented yet")
    return 0


async def show_one(desk: Desk, name: str, *, body: bool, shape: Shape) -> ExitCode:
    """Everything known of what a name names."""
    records = await desk.books.reader.read(partial(named, name))
    if not records:
        desk.none(
            f"no payment is known by {name!r}: give a transaction, a nonce, a request id or payer:nonce"
        )
        return 1
    kept = [await desk.books.reader.read(partial(find_answer, each.key)) for each in records]
    histories = [await desk.books.reader.read(partial(find_events, each.key)) for each in records]
    known = list(zip(records, kept, histories, strict=True))
    if shape == "json":
        stories = [_story(each, desk, answer, history, body=body) for each, answer, history in known]
        print_json({"payments": stories})
        return 0
    for record, answer, history in known:
        kept_answer = _answer(answer, body=False) if answer else None
        show(telling.page_of(record, desk.outlook, kept_answer, console().width, history))
        if body and answer:
            show(line(_text(answer)))
    return 0


async def export(
    desk: Desk, question: Question, *, out: str, form: Format | None, days: bool = False
) -> ExitCode:
    """All payments that fit, or the days' figures, written one by one."""
    wanted = question.wanted(desk.outlook.now)
    chosen = form or format_of(out)
    if chosen is None:
        raise BadArgument("say --format csv or --format jsonl, or name --out so that it ends in one of them")
    _spare_the_journal(desk.settings, out)
    written = 0
    with destination(out) as stream:
        sheet = Sheet(stream, chosen, tuple(DAILY if days else COLUMNS))
        async for row in _days(desk, wanted) if days else _entries(desk, wanted):
            sheet.add(row)
            written += 1
    if desk.books.missing:
        say(desk.books.missing)
    what = f"{'line' if days else 'payment'}{'' if written == 1 else 's'}"
    say(f"{written} {what} written{'' if out == '-' else f' to {out}'}")
    return 0


async def summarise(desk: Desk, question: Question, *, shape: Shape) -> ExitCode:
    """The figures of each day, and of all."""
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


async def _entries(desk: Desk, wanted: Wanted) -> AsyncGenerator[Entry]:
    async for record in every(desk.books.reader, wanted, desk.outlook.lapsed):
        yield entry(record, desk.outlook)


async def _days(desk: Desk, wanted: Wanted) -> AsyncGenerator[dict[str, Any]]:
    unit = partial(daily, wanted.since, wanted.until, desk.outlook.lapsed)
    for each in await desk.books.reader.read(unit):
        yield daily_entry(each)


def _story(
    record: Record, desk: Desk, answer: Row | None, history: Sequence[Row], *, body: bool
) -> dict[str, Any]:
    """A payment with what happened, what is owed and what to do."""
    return {
        **entry(record, desk.outlook),
        "validBefore": record.valid_before,
        "paymentIdentifier": record.identifier,
        "attempts": record.attempts,
        "retryAt": None if record.retry_at is None else iso(record.retry_at),
        "events": [{"at": iso(at), "what": what} for at, what in telling.events(record, history)],
        "owed": telling.owed(record, desk.outlook),
        "toDo": telling.advice(record, desk.outlook),
        "answer": _answer(answer, body=body) if answer else None,
    }


def _answer(answer: Row, *, body: bool) -> dict[str, Any]:
    told = {"status": answer["status"], "bytes": len(answer["body"]), "storedAt": iso(answer["stored_at"])}
    return {**told, "body": _text(answer)} if body else told


def _text(answer: Row) -> str:
    return bytes(answer["body"]).decode("utf-8", "backslashreplace")


def _cursor(place: Place) -> str:
    return urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def _place(cursor: str | None) -> Place | None:
    """Where the page before ended; BadArgument."""
    if cursor is None:
        return None
    try:
        at, *key = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        network, asset, payer, nonce = map(_string, key)
        return float(at), network, asset, payer, nonce
    except (ValueError, TypeError) as error:
        raise BadArgument("--after is what `next` said of the page before") from error


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _spare_the_journal(settings: Settings, out: str) -> None:
    url = settings.database_url
    if out != "-" and url.startswith("sqlite:") and Path(out).absolute() == file_of(url):
        raise BadArgument("--out is the journal itself")
