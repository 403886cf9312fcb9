"""What the journal says of payments, for those who look after them: some of them, one, or all in order.

All of it is for `Store.read`: nothing here changes a row or holds up a payment.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from functools import cache, partial
from math import nextafter
from typing import Any, Literal, Protocol, TypeVar, get_args

from sqlalchemy import Column, Float, Integer, and_, bindparam, exists, func, not_, or_, select, tuple_
from sqlalchemy.sql.elements import ColumnElement, literal_column

from centgate.payments.authorization import PaymentKey
from centgate.payments.claiming import LEASE, State
from centgate.payments.queries import key_of
from centgate.payments.statements import HIT, Ask, Asking, Row, Statement, now, statement
from centgate.payments.store import Unit
from centgate.payments.tables import KEY, UNDELIVERED, payments, refunds, workers

T = TypeVar("T")

PAGE = 1000
"""Rows that are read in one go when all are read."""
MOST_FOUND = 20
"""Payments that are shown of those one word fits."""
FOREVER = 2.0**53

Standing = Literal["open", "redeemable", "refundable", "refunded"]
"""`open`: settling, and not by the request that first presented it; `redeemable`: settled, and its answer can
still be fetched; `refundable`: settled, too late for that, and not paid back; `refunded`: paid back."""
STATES: tuple[str, ...] = get_args(State) + get_args(Standing)
"""Every word that payments can be asked for by."""

Place = tuple[float, str, str, str, str]
"""Where a payment stands in the order of time: when it was presented, then its key."""


class Reader(Protocol):
    """What units that only read are run by."""

    async def read(self, unit: Unit[T]) -> T:
        """What comes of a unit; JournalUnavailable when the database fails."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """A payment, without what could move money: its signature. Times are seconds since 1970."""

    key: PaymentKey
    state: State
    service: str
    amount: int
    """In the token's base units."""
    pay_to: str
    identifier: str | None
    """The buyer's idempotency key."""
    created_at: float
    """When it was presented; again, if it was refused before."""
    updated_at: float
    """When its state last changed."""
    valid_before: int
    """When its authorization ends."""
    transaction: str | None
    """Where it settled; while it is settling, where it may have."""
    reason: str | None
    """Why it was refused."""
    attempts: int
    """Tries to find out what became of it."""
    retry_at: float | None
    settled_at: float | None
    request_id: str | None
    status: int | None
    """HTTP's, of the answer that was delivered."""
    busy: bool
    """Whether a process that lives is at work on it."""
    refund: str | None
    """The transaction that paid it back."""
    refunded_at: float | None

    @property
    def place(self) -> Place:
        """Where it stands in the order of time."""
        key = self.key
        return self.created_at, key.network, key.asset, key.payer, key.nonce

    @property
    def delivered_at(self) -> float | None:
        """When its answer was delivered."""
        return self.updated_at if self.state == "delivered" else None

    def standing(self, lapsed: float) -> Standing | None:
        """What is left to do about it; what was settled before `lapsed` can no longer be redeemed."""
        if self.state == "settling":
            return None if self.busy and not self.attempts else "open"
        if self.state != "settled":
            return None
        if self.refund:
            return "refunded"
        return "refundable" if self.updated_at < lapsed else "redeemable"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which payments are asked for: those that fit all that is said."""

    state: str | None = None
    """One of STATES."""
    service: str | None = None
    payer: str | None = None
    transaction: str | None = None
    """Both in lower case."""
    since: float = 0.0
    until: float = FOREVER
    """When they were presented: from `since` on, before `until`."""


def newest(wanted: Wanted, lapsed: float, *, limit: int, past: Place | None = None) -> Asking[list[Record]]:
    """The newest of those wanted, or the next ones past a place."""
    start = past or (wanted.until, "", "", "", "")
    return (yield from _some(wanted, lapsed, start, limit, order="newest first"))


async def every(
    reader: Reader, wanted: Wanted, lapsed: float, *, page_size: int = PAGE
) -> AsyncGenerator[Record]:
    """All of those wanted, oldest first, in memory a page at a time.

    None comes twice, even if it is presented again meanwhile: what is newer than the newest at the start
    is left to the next reading.
    """
    newest_at = await reader.read(_newest_at)
    within = replace(wanted, until=min(wanted.until, nextafter(newest_at, FOREVER)))
    place: Place = (wanted.since, "", "", "", "")
    while True:
        page = await reader.read(partial(_some, within, lapsed, place, page_size, order="oldest first"))
        for record in page:
            yield record
        if len(page) < page_size:
            return
        place = page[-1].place


def named(name: str) -> Asking[list[Record]]:
    """The payments that a transaction, a nonce, a request id or `payer:nonce` names.

    Each can be shortened in the middle, as `0x1234…abcd`. Several payments can share a transaction. A whole
    `payer:nonce` is found at once; for everything else the journal is read through.
    """
    payer, _, rest = name.strip().lower().rpartition(":")
    if _HEX.fullmatch(payer) and _HEX.fullmatch(rest):
        rows = yield from _exactly(payer, rest)
    elif payer:
        rows = yield Ask(_OF_PAYER, {"payer": _pattern(payer), "nonce": _pattern(rest)})
    else:
        rows = yield Ask(_NAMED, {"name": _pattern(rest)})
    return [_record(row) for row in rows]


_TIME_AND_KEY: tuple[Column[Any], ...] = (payments.c.created_at, *KEY)


def _starts(name: ColumnElement[Any], start: ColumnElement[Any]) -> ColumnElement[bool]:
    return func.substr(name, literal_column("1"), func.length(start)) == start


_SHOWN = tuple(
    column for column in payments.c if column.name not in ("id", "binding", "proof", "signed", "owner")
)
_BUSY = and_(
    payments.c.owner.is_not(None),
    exists(
        select(HIT).where(
            workers.c.seen_at >= now() - literal_column(str(LEASE)),
            or_(
                payments.c.owner == workers.c.id,
                _starts(payments.c.owner, workers.c.id + literal_column("'/'")),
            ),
        )
    ),
)
_ALL = select(
    *_SHOWN,
    _BUSY.label("busy"),
    refunds.c.transaction.label("refund"),
    refunds.c.at.label("refunded_at"),
).select_from(payments.outerjoin(refunds, refunds.c.payment == payments.c.id))


def is_state(state: State) -> ColumnElement[bool]:
    """That a payment is in a state, in words that a partial index is found by."""
    return payments.c.state == literal_column(f"'{state}'")


_LAPSED = payments.c.updated_at < bindparam("lapsed", type_=Float)
STANDS: dict[str, ColumnElement[bool]] = {
    "settling": and_(is_state("settling"), UNDELIVERED),
    "settled": and_(is_state("settled"), UNDELIVERED),
    "delivered": is_state("delivered"),
    "refused": is_state("refused"),
    "unused": and_(is_state("unused"), UNDELIVERED),
    "open": and_(
        is_state("settling"),
        UNDELIVERED,
        or_(payments.c.attempts > literal_column("0"), not_(_BUSY)),
    ),
    "redeemable": and_(is_state("settled"), UNDELIVERED, refunds.c.at.is_(None), not_(_LAPSED)),
    "refundable": and_(is_state("settled"), UNDELIVERED, refunds.c.at.is_(None), _LAPSED),
    "refunded": and_(is_state("settled"), UNDELIVERED, refunds.c.at.is_not(None)),
}
"""The condition that each of STATES is."""

_ASKED: dict[str, ColumnElement[Any]] = {
    "service": payments.c.service,
    "payer": payments.c.payer,
    "transaction": func.lower(payments.c.transaction),  # as the facilitator spelled it
}

_HEX = re.compile("0x[0-9a-f]+")
_TOKEN = (payments.c.network, payments.c.asset)
_NEXT_TOKEN = statement(
    select(*_TOKEN)
    .where(tuple_(*_TOKEN) > tuple_(*(bindparam(f"past_{each.name}", type_=each.type) for each in _TOKEN)))
    .order_by(*_TOKEN)
    .limit(literal_column("1"))
    .offset(literal_column("0"))
)
_ONE = statement(_ALL.where(*(column == bindparam(f"at_{column.name}") for column in KEY)))

_NEWEST = statement(select(func.max(payments.c.created_at).label("at")))


def _newest_at() -> Asking[float]:
    rows = yield Ask(_NEWEST, {})
    return rows[0]["at"] or 0.0 if rows else 0.0


def _some(
    wanted: Wanted,
    lapsed: float,
    past: Place,
    limit: int,
    *,
    order: Literal["newest first", "oldest first"],
) -> Asking[list[Record]]:
    """The first of those wanted that stand past a place."""
    asked = {name: getattr(wanted, name) for name in _ASKED}
    given = {name: value for name, value in asked.items() if value is not None}
    parameters = {
        **given,
        **{f"past_{column.name}": value for column, value in zip(_TIME_AND_KEY, past, strict=True)},
        **({"lapsed": lapsed} if wanted.state in ("redeemable", "refundable") else {}),
        **({"since": wanted.since} if order == "newest first" else {"until": wanted.until}),
        "most": limit,
    }
    rows = yield Ask(_page(wanted.state, tuple(given), order == "newest first"), parameters)
    return [_record(row) for row in rows]


@cache
def _page(state: str | None, given: tuple[str, ...], descending: bool) -> Statement:  # noqa: FBT001 - two words for an order
    place, at = tuple_(*_TIME_AND_KEY), payments.c.created_at
    past = tuple_(*(bindparam(f"past_{column.name}", type_=column.type) for column in _TIME_AND_KEY))
    # the place's time is named by itself too: SQLite does not find where to begin by all of it together
    reached = bindparam("past_created_at", type_=Float)
    conditions = [
        at <= reached if descending else at < bindparam("until", type_=Float),
        at >= bindparam("since", type_=Float) if descending else at >= reached,
        place < past if descending else place > past,
        *(_ASKED[name] == bindparam(name) for name in given),
    ]
    if state:
        conditions.append(STANDS[state])
    order = [column.desc() if descending else column for column in _TIME_AND_KEY]
    page = _ALL.where(*conditions).order_by(*order)
    return statement(page.limit(bindparam("most", type_=Integer)).offset(literal_column("0")))


def _exactly(payer: str, nonce: str) -> Asking[list[Row]]:
    """The rows of a payer's nonce, from one token to the next."""
    found: list[Row] = []
    network = asset = ""
    while tokens := (yield Ask(_NEXT_TOKEN, {"past_network": network, "past_asset": asset})):
        network, asset = tokens[0]["network"], tokens[0]["asset"]
        key = {"at_network": network, "at_asset": asset, "at_payer": payer, "at_nonce": nonce}
        found += yield Ask(_ONE, key)
    return found


def _like(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    return func.lower(column).like(bindparam(parameter), escape="\\")


def _found(*conditions: ColumnElement[bool]) -> Statement:
    some = _ALL.where(*conditions).order_by(*_TIME_AND_KEY).limit(literal_column(str(MOST_FOUND)))
    return statement(some.offset(literal_column("0")))


_NAMED = _found(
    or_(
        *(
            _like(column, "name")
            for column in (payments.c.transaction, payments.c.nonce, payments.c.request_id)
        )
    )
)
_OF_PAYER = _found(_like(payments.c.payer, "payer"), _like(payments.c.nonce, "nonce"))


def _pattern(name: str) -> str:
    """What a name is looked for by: itself, or its beginning and its end."""
    parts = re.split(r"…|\.{2,3}", name.strip().lower(), maxsplit=1)
    return "%".join(re.sub(r"([\\%_])", r"\\\1", part) for part in parts)


def _record(row: Row) -> Record:
    return Record(
        key=key_of(row),
        state=row["state"],
        service=row["service"],
        amount=int(row["amount"]),
        pay_to=row["pay_to"],
        identifier=row["identifier"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        valid_before=row["valid_before"],
        transaction=row["transaction"],
        reason=row["reason"],
        attempts=row["attempts"],
        retry_at=row["retry_at"],
        settled_at=row["settled_at"],
        request_id=row["request_id"],
        status=row["status"],
        busy=bool(row["busy"]),
        refund=row["refund"],
        refunded_at=row["refunded_at"],
    )
