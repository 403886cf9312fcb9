"""Read-only queries over the journal for operators: a page of payments, one, or all in order.

All units are for `Store.read`: nothing here changes a row or blocks a payment.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from functools import cache, partial
from math import nextafter
from typing import Any, Literal, Protocol, TypeVar, get_args

import orjson
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Column, Float, Integer, and_, bindparam, func, not_, or_, select, tuple_
from sqlalchemy.sql.elements import ColumnElement, literal_column

from centgate.payments.database.sql import (
    NO_OFFSET,
    BoundStatement,
    CompiledStatement,
    ResultRow,
    UnitOfWork,
    compile_statement,
)
from centgate.payments.database.store import UnitFactory
from centgate.payments.database.tables import (
    KEY,
    UNDELIVERED,
    OpenCause,
    RowState,
    is_state,
    payments,
    refunds,
)
from centgate.payments.journal.queries import HAS_KEY, HAS_LIVE_OWNER, key_of, key_parameters
from centgate.payments.payment_key import PaymentKey
from centgate.signing.assets import NETWORK_ID

T = TypeVar("T")

PAGE_SIZE = 1000
"""Rows per page when all payments are read."""
MAX_MATCHES = 20
"""Maximum number of payments that match one reference."""
FOREVER = 2.0**53

PaymentStatus = Literal["open", "redeemable", "refundable", "refunded"]
"""`open`: settling, and no longer by its first request; `redeemable`: settled, and its answer can still be
fetched; `refundable`: settled, too late for that, and not refunded; `refunded`: paid back."""
FILTER_STATES: tuple[str, ...] = get_args(RowState) + get_args(PaymentStatus)
"""Every state that payments can be filtered by."""

SortKey = tuple[float, str, str, str, str]
"""Sort key of a payment: time of submission, then its key."""


class JournalReader(Protocol):
    """Runner of read-only units."""

    async def read(self, unit: UnitFactory[T]) -> T:
        """Run a unit and return its result. Raises JournalUnavailable if the database fails."""
        ...


class LimitedReader:
    """Reader that runs a few units at once, while others wait: each read opens a connection of its own."""

    def __init__(self, reader: JournalReader, limit: int) -> None:
        self._reader = reader
        self._slots = asyncio.Semaphore(limit)

    async def read(self, unit: UnitFactory[T]) -> T:
        """Run a unit and return its result. Raises JournalUnavailable if the database fails."""
        async with self._slots:
            return await self._reader.read(unit)


class PaymentRecord(Struct, frozen=True):
    """A payment without its signature, which could move money. Times are seconds since 1970."""

    key: PaymentKey
    state: RowState
    service: str
    amount: int
    """In the token's base units."""
    pay_to: str
    identifier: str | None
    """The buyer's idempotency key."""
    created_at: float
    """Time of submission; of the latest one, if it was refused before."""
    updated_at: float
    """Time of the last change of its state."""
    valid_before: int
    """End of its authorization."""
    transaction: str | None
    """The transaction that settled it; while it is settling, one that may have."""
    reason: str | None
    """Reason of the refusal."""
    attempts: int
    """Attempts to reconcile it."""
    retry_at: float | None
    settled_at: float | None
    facilitator: str | None
    """Name of the facilitator that may have it; None: the first, or none if it was not sent."""
    open_cause: OpenCause | None
    """Why the last attempt to reconcile it left it open."""
    request_id: str | None
    status: int | None
    """HTTP status of the delivered answer."""
    is_claimed: bool
    """True if a live process works on it."""
    refund: str | None
    """The transaction that refunded it."""
    refunded_at: float | None

    @property
    def sort_key(self) -> SortKey:
        """Sort key in the order of submission."""
        key = self.key
        return self.created_at, key.network, key.asset, key.payer, key.nonce

    @property
    def delivered_at(self) -> float | None:
        """Time of delivery, None if not delivered."""
        return self.updated_at if self.state == "delivered" else None

    def follow_up_status(self, redeem_cutoff: float) -> PaymentStatus | None:
        """Return the status for operators; payments settled before the cutoff can no longer be redeemed."""
        if self.state == "settling":
            return None if self.is_claimed and not self.attempts else "open"
        if self.state != "settled":
            return None
        if self.refund:
            return "refunded"
        return "refundable" if self.updated_at < redeem_cutoff else "redeemable"


class PaymentFilter(Struct, frozen=True):
    """Filter for payments; all given conditions must match."""

    state: str | None = None
    """One of FILTER_STATES."""
    service: str | None = None
    payer: str | None = None
    transaction: str | None = None
    """Payer and transaction are in lower case."""
    since: float = 0.0
    until: float = FOREVER
    """Time of submission: from `since` on, before `until`."""


def encode_cursor(place: tuple[float | str, ...]) -> str:
    """Encode the place of a page's last payment in an order as a cursor for the next page."""
    return urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def read_cursor(cursor: str) -> list[Any]:
    """Return the values in a cursor, unchecked. Raises ValueError or TypeError if there are none."""
    return [*orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))]


def decode_cursor(cursor: str) -> SortKey:
    """Decode the cursor of the previous page. Raises ValueError if it is not one."""
    try:
        at, *key = read_cursor(cursor)
        network, asset, payer, nonce = map(_require_string, key)
        return float(at), network, asset, payer, nonce
    except (ValueError, TypeError) as error:
        raise ValueError("not a cursor") from error


def _require_string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def list_newest(
    payment_filter: PaymentFilter, redeem_cutoff: float, *, limit: int, after: SortKey | None = None
) -> UnitOfWork[list[PaymentRecord]]:
    """Return the newest matching payments, or the next ones after a sort key."""
    start = after or (payment_filter.until, "", "", "", "")
    return (yield from _read_page(payment_filter, redeem_cutoff, start, limit, order="newest first"))


async def iterate_payments(
    reader: JournalReader, payment_filter: PaymentFilter, redeem_cutoff: float, *, page_size: int = PAGE_SIZE
) -> AsyncGenerator[PaymentRecord]:
    """Yield all matching payments, oldest first, with one page in memory at a time.

    No payment is returned twice, even if it is submitted again meanwhile: payments that are newer than the
    newest at the start are skipped.
    """
    newest_at = await reader.read(_newest_time)
    within = replace(payment_filter, until=min(payment_filter.until, nextafter(newest_at, FOREVER)))
    place: SortKey = (payment_filter.since, "", "", "", "")
    while True:
        page = await reader.read(
            partial(_read_page, within, redeem_cutoff, place, page_size, order="oldest first")
        )
        for record in page:
            yield record
        if len(page) < page_size:
            return
        place = page[-1].sort_key


def find_by_reference(reference: str) -> UnitOfWork[list[PaymentRecord]]:
    """Return the payments that a transaction, also of a refund, a nonce, a request id or `payer:nonce` names.

    Each can be shortened in the middle, as `0x1234…abcd`, and can have a network before it, such as
    `eip155:8453:0x…`: a payer can use a nonce on several networks. Several payments can share a transaction.
    A complete `payer:nonce` uses the index; everything else scans the journal.
    """
    network, text = _split_network(reference.strip().lower())
    payer, _, rest = text.rpartition(":")
    if _HEX.fullmatch(payer) and _HEX.fullmatch(rest):
        rows = yield from _find_exact(payer, rest)
    elif payer:
        rows = yield BoundStatement(_BY_PAYER, {"payer": _like_pattern(payer), "nonce": _like_pattern(rest)})
    else:
        rows = yield BoundStatement(_BY_REFERENCE, {"name": _like_pattern(rest)})
    records = [parse_record(row) for row in rows]
    return [each for each in records if network in (None, each.key.network)]


def _split_network(reference: str) -> tuple[str | None, str]:
    """Split `eip155:8453:…` into network and rest; without a network the first is None."""
    found = re.fullmatch(rf"({NETWORK_ID}):(.+)", reference)
    return (found[1], found[2]) if found else (None, reference)


_TIME_AND_KEY: tuple[Column[Any], ...] = (payments.c.created_at, *KEY)


_VISIBLE_COLUMNS = tuple(
    column for column in payments.c if column.name not in ("id", "binding", "proof", "signed", "owner")
)
ALL_PAYMENTS = select(
    *_VISIBLE_COLUMNS,
    HAS_LIVE_OWNER.label("busy"),
    refunds.c.transaction.label("refund"),
    refunds.c.at.label("refunded_at"),
).select_from(payments.outerjoin(refunds, refunds.c.payment == payments.c.id))


_IS_LAPSED = payments.c.updated_at < bindparam("lapsed", type_=Float)
STATE_CONDITIONS: dict[str, ColumnElement[bool]] = {
    "settling": and_(is_state("settling"), UNDELIVERED),
    "settled": and_(is_state("settled"), UNDELIVERED),
    "delivered": is_state("delivered"),
    "refused": is_state("refused"),
    "unused": and_(is_state("unused"), UNDELIVERED),
    "open": and_(
        is_state("settling"),
        UNDELIVERED,
        or_(payments.c.attempts > literal_column("0"), not_(HAS_LIVE_OWNER)),
    ),
    "redeemable": and_(is_state("settled"), UNDELIVERED, refunds.c.at.is_(None), not_(_IS_LAPSED)),
    "refundable": and_(is_state("settled"), UNDELIVERED, refunds.c.at.is_(None), _IS_LAPSED),
    "refunded": and_(is_state("settled"), UNDELIVERED, refunds.c.at.is_not(None)),
}
"""Condition for each of FILTER_STATES."""

_FILTER_COLUMNS: dict[str, ColumnElement[Any]] = {
    "service": payments.c.service,
    "payer": payments.c.payer,
    "transaction": func.lower(payments.c.transaction),  # as the facilitator spelled it
}

_HEX = re.compile("0x[0-9a-f]+")
_NEXT_NETWORK = compile_statement(
    select(func.min(payments.c.network).label("next")).where(payments.c.network > bindparam("network"))
)
_NEXT_ASSET = compile_statement(
    select(func.min(payments.c.asset).label("next")).where(
        payments.c.network == bindparam("network"), payments.c.asset > bindparam("asset")
    )
)
_ONE = compile_statement(ALL_PAYMENTS.where(HAS_KEY))

_NEWEST = compile_statement(select(func.max(payments.c.created_at).label("at")))


def _newest_time() -> UnitOfWork[float]:
    rows = yield BoundStatement(_NEWEST, {})
    return rows[0]["at"] or 0.0 if rows else 0.0


def _read_page(
    payment_filter: PaymentFilter,
    redeem_cutoff: float,
    after: SortKey,
    limit: int,
    *,
    order: Literal["newest first", "oldest first"],
) -> UnitOfWork[list[PaymentRecord]]:
    """Return the first matching payments after a sort key."""
    filters = {name: getattr(payment_filter, name) for name in _FILTER_COLUMNS}
    values = {name: value for name, value in filters.items() if value is not None}
    parameters = {
        **values,
        **{f"past_{column.name}": value for column, value in zip(_TIME_AND_KEY, after, strict=True)},
        **({"lapsed": redeem_cutoff} if payment_filter.state in ("redeemable", "refundable") else {}),
        **({"since": payment_filter.since} if order == "newest first" else {"until": payment_filter.until}),
        "limit": limit,
    }
    rows = yield BoundStatement(
        _page_statement(payment_filter.state, tuple(values), order == "newest first"), parameters
    )
    return [parse_record(row) for row in rows]


@cache
def _page_statement(state: str | None, names: tuple[str, ...], descending: bool) -> CompiledStatement:  # noqa: FBT001 - positional for the cache
    sort_key, at = tuple_(*_TIME_AND_KEY), payments.c.created_at
    past = tuple_(*(bindparam(f"past_{column.name}", type_=column.type) for column in _TIME_AND_KEY))
    # the time is also compared by itself: SQLite cannot find the start in the index by the tuple comparison
    start_time = bindparam("past_created_at", type_=Float)
    conditions = [
        at <= start_time if descending else at < bindparam("until", type_=Float),
        at >= bindparam("since", type_=Float) if descending else at >= start_time,
        sort_key < past if descending else sort_key > past,
        *(_FILTER_COLUMNS[name] == bindparam(name) for name in names),
    ]
    if state:
        conditions.append(STATE_CONDITIONS[state])
    order = [column.desc() if descending else column for column in _TIME_AND_KEY]
    page = ALL_PAYMENTS.where(*conditions).order_by(*order)
    return compile_statement(page.limit(bindparam("limit", type_=Integer)).offset(NO_OFFSET))


def _list_tokens() -> UnitOfWork[list[tuple[str, str]]]:
    """Return network and asset of every token that was paid with, with one index lookup for each."""
    found: list[tuple[str, str]] = []
    network = ""
    while network := (yield BoundStatement(_NEXT_NETWORK, {"network": network}))[0]["next"]:
        asset = ""
        while asset := (yield BoundStatement(_NEXT_ASSET, {"network": network, "asset": asset}))[0]["next"]:
            found.append((network, asset))
    return found


def _find_exact(payer: str, nonce: str) -> UnitOfWork[list[ResultRow]]:
    """Return the rows of a payer's nonce, with one index lookup per token."""
    rows: list[ResultRow] = []
    for network, asset in (yield from _list_tokens()):
        rows += yield BoundStatement(_ONE, key_parameters(PaymentKey(network, asset, payer, nonce)))
    return rows


def _matches_pattern(column: ColumnElement[Any], parameter: str) -> ColumnElement[bool]:
    return func.lower(column).like(bindparam(parameter), escape="\\")


def _search_statement(*conditions: ColumnElement[bool]) -> CompiledStatement:
    query = ALL_PAYMENTS.where(*conditions).order_by(*_TIME_AND_KEY).limit(literal_column(str(MAX_MATCHES)))
    return compile_statement(query.offset(NO_OFFSET))


_BY_REFERENCE = _search_statement(
    or_(
        *(
            _matches_pattern(column, "name")
            for column in (
                payments.c.transaction,
                refunds.c.transaction,
                payments.c.nonce,
                payments.c.request_id,
            )
        )
    )
)
_BY_PAYER = _search_statement(
    _matches_pattern(payments.c.payer, "payer"), _matches_pattern(payments.c.nonce, "nonce")
)


def _like_pattern(name: str) -> str:
    """Convert a reference to a LIKE pattern; a shortened one matches its beginning and its end."""
    parts = re.split(r"…|\.{2,3}", name.strip().lower(), maxsplit=1)
    return "%".join(re.sub(r"([\\%_])", r"\\\1", part) for part in parts)


def parse_record(row: ResultRow) -> PaymentRecord:
    """Parse a row of `ALL_PAYMENTS`."""
    return PaymentRecord(
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
        facilitator=row["facilitator"],
        open_cause=row["open_cause"],
        request_id=row["request_id"],
        status=row["status"],
        is_claimed=bool(row["busy"]),
        refund=row["refund"],
        refunded_at=row["refunded_at"],
    )
