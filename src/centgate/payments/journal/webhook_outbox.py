"""Outbox of webhooks: statements on the events to send, and on the state of their receiver.

An event is `pending` until a receiver has accepted it (`sent`) or all attempts have failed (`failed`). Before
an attempt `next_at` is moved ahead: that is its lease, after which another process may send the event.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Float,
    Integer,
    String,
    bindparam,
    delete,
    exists,
    func,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement, and_, literal_column

from centgate.payments.database.sql import (
    ABOVE_ALL_IDS,
    AFFECTED_ROW,
    NO_OFFSET,
    BoundStatement,
    CompiledStatement,
    ResultRow,
    UnitOfWork,
    compile_statement,
    now,
)
from centgate.payments.database.tables import (
    NEW_EVENT_COLUMNS,
    UNDELIVERED,
    UNSENT,
    is_state,
    payments,
    webhook_events,
    webhook_receivers,
)
from centgate.payments.journal import pruning, queries
from centgate.payments.journal.webhook_events import EventBuilder, EventPayment

KEEP_SECONDS = 30 * 86_400
"""Seconds for which events are kept, whether they were sent or not."""
RESEND_BATCH = 1000
"""Maximum events that one statement makes due, so that the write lock is held only briefly."""
STUCK_BATCH = 100
"""Maximum stuck payments that are read at once."""
MAX_ERROR = 200
"""Maximum characters of a stored error."""

OutboxState = Literal["pending", "sent", "failed"]
OUTBOX_STATES: tuple[OutboxState, ...] = get_args(OutboxState)


class DueEvent(Struct, frozen=True):
    """An event to be sent now, by the process that claimed it."""

    id: int
    event: str
    """The id that receivers see."""
    type: str
    payload: str
    attempts: int
    """Number of attempts, with this one."""


class OutboxEntry(Struct, frozen=True):
    """An event in the outbox, for operators. Times are seconds since 1970."""

    id: int
    event: str
    type: str
    payload: str
    state: OutboxState
    occurred_at: float
    attempts: int
    next_at: float | None
    error: str | None
    """Why the last attempt failed."""
    sent_at: float | None


class ReceiverState(Struct, frozen=True):
    """State of a receiver's deliveries. Times are seconds since 1970."""

    succeeded_at: float | None = None
    """The last time that it accepted an event, to the minute."""
    failing_since: float | None = None
    disabled_at: float | None = None
    """Time at which it answered 410, None while webhooks are sent to it."""


class OutboxSummary(Struct, frozen=True):
    """Numbers of events that were not sent."""

    pending: int = 0
    oldest: float | None = None
    """Time at which the oldest pending event occurred, in seconds since 1970."""
    failed: int = 0


def _is_in(state: OutboxState) -> ColumnElement[bool]:
    """Return the condition that an event is in a state, in the form that matches the partial index."""
    return and_(UNSENT, webhook_events.c.state == literal_column(f"'{state}'"))


_IS_DUE = and_(_is_in("pending"), webhook_events.c.next_at <= bindparam("at", type_=Float))
_DUE = webhook_events.alias("due")
_CLAIM_DUE = compile_statement(
    update(webhook_events)
    .where(
        webhook_events.c.id.in_(
            select(_DUE.c.id)
            .where(
                UNSENT,
                _DUE.c.state == literal_column("'pending'"),
                _DUE.c.next_at <= bindparam("at", type_=Float),
            )
            .order_by(_DUE.c.next_at)
            .limit(bindparam("limit", type_=BigInteger))
            .offset(NO_OFFSET)
        ),
        _IS_DUE,  # another process may have claimed it since it was selected
    )
    .values(
        attempts=webhook_events.c.attempts + literal_column("1"),
        next_at=bindparam("lease_ends", type_=Float),
    )
    .returning(
        *(webhook_events.c[name] for name in ("id", "event", "type", "payload", "attempts")),
    )
)
_RECORD_SENT = compile_statement(
    update(webhook_events)
    .where(webhook_events.c.id == bindparam("event_id", type_=BigInteger))
    .values(
        state=literal_column("'sent'"),
        sent_at=bindparam("at", type_=Float),
        next_at=null(),
        error=null(),
    )
    .returning(AFFECTED_ROW)
)
_RECORD_FAILURE = compile_statement(
    update(webhook_events)
    .where(
        webhook_events.c.id == bindparam("event_id", type_=BigInteger),
        _is_in("pending"),
        webhook_events.c.attempts == bindparam("expected_attempts", type_=Integer),
    )
    .values(
        state=bindparam("new_state", type_=String),
        next_at=bindparam("new_next_at", type_=Float),
        error=bindparam("new_error", type_=String),
    )
    .returning(AFFECTED_ROW)
)
_LIMIT_WAITS = compile_statement(
    update(webhook_events)
    .where(
        _is_in("pending"),
        or_(
            webhook_events.c.next_at > bindparam("longest", type_=Float),
            # no attempt has failed: the event is new, or leased
            and_(
                webhook_events.c.error.is_(None), webhook_events.c.next_at > bindparam("lease", type_=Float)
            ),
        ),
    )
    .values(next_at=bindparam("at", type_=Float))
    .returning(AFFECTED_ROW)
)
_AGAIN: dict[str, Any] = {
    "state": literal_column("'pending'"),
    "attempts": literal_column("0"),
    "next_at": now(),
    "error": null(),
}
_RESEND = compile_statement(
    update(webhook_events)
    .where(webhook_events.c.event == bindparam("event_name", type_=String))
    .values(_AGAIN)
    .returning(AFFECTED_ROW)
)
_NEXT_UNSENT = webhook_events.alias("next_unsent")
_RESEND_UNSENT = compile_statement(
    update(webhook_events)
    .where(
        webhook_events.c.id.in_(
            select(_NEXT_UNSENT.c.id)
            .where(UNSENT, _NEXT_UNSENT.c.id > bindparam("after", type_=BigInteger))
            .order_by(_NEXT_UNSENT.c.id)
            .limit(literal_column(str(RESEND_BATCH)))
            .offset(NO_OFFSET)
        ),
        UNSENT,
    )
    .values(_AGAIN)
    .returning(webhook_events.c.id)
)
_SUMMARY = compile_statement(
    select(
        webhook_events.c.state,
        func.count().label("number"),
        func.min(webhook_events.c.occurred_at).label("oldest"),
    )
    .where(UNSENT)
    .group_by(webhook_events.c.state)
)
_ENTRY_COLUMNS = tuple(
    webhook_events.c[name]
    for name in (
        *("id", "event", "type", "payload", "state", "occurred_at"),
        *("attempts", "next_at", "error", "sent_at"),
    )
)


def _compile_page(*conditions: ColumnElement[bool]) -> CompiledStatement:
    return compile_statement(
        select(*_ENTRY_COLUMNS)
        .where(webhook_events.c.id < bindparam("before", type_=BigInteger), *conditions)
        .order_by(webhook_events.c.id.desc())
        .limit(bindparam("limit", type_=BigInteger))
        .offset(NO_OFFSET)
    )


_PAGES: dict[OutboxState | None, CompiledStatement] = {
    None: _compile_page(),
    "pending": _compile_page(_is_in("pending")),
    "failed": _compile_page(_is_in("failed")),
    "sent": _compile_page(webhook_events.c.state == literal_column("'sent'")),
}
_OLDEST = (
    select(webhook_events.c.id, webhook_events.c.occurred_at)
    .order_by(webhook_events.c.id)
    .limit(literal_column(str(pruning.PRUNE_BATCH)))
    .offset(NO_OFFSET)
    .subquery()
)
_PRUNE = compile_statement(
    delete(webhook_events)
    .where(
        webhook_events.c.id.in_(
            select(_OLDEST.c.id).where(_OLDEST.c.occurred_at < now() - literal_column(str(KEEP_SECONDS)))
        )
    )
    .returning(AFFECTED_ROW)
)
_STUCK_PAYMENTS = compile_statement(
    select(payments)
    .where(UNDELIVERED, is_state("settling"), payments.c.created_at < bindparam("before", type_=Float))
    # presented long ago and unused then, it may have been presented again a moment ago, and nobody looked yet
    .where(
        or_(
            payments.c.updated_at < bindparam("before", type_=Float),
            payments.c.attempts > literal_column("0"),
        )
    )
    .where(
        ~exists().where(
            webhook_events.c.payment == payments.c.id,
            webhook_events.c.type == literal_column("'payment.stuck'"),
            webhook_events.c.presented_at == payments.c.created_at,
        )
    )
    .order_by(payments.c.created_at)
    .limit(literal_column(str(STUCK_BATCH)))
    .offset(NO_OFFSET)
)
_INSERT_STUCK = compile_statement(
    insert(webhook_events)
    .from_select(
        ["payment", *NEW_EVENT_COLUMNS],
        select(
            payments.c.id,
            *(bindparam(name, type_=webhook_events.c[name].type) for name in NEW_EVENT_COLUMNS),
        ).where(
            queries.HAS_KEY,
            is_state("settling"),
            payments.c.created_at == bindparam("presented_at", type_=Float),
        ),
    )
    .on_conflict_do_nothing()
    .returning(AFFECTED_ROW)
)
_FIND_RECEIVER = compile_statement(
    select(webhook_receivers).where(webhook_receivers.c.digest == bindparam("digest", type_=String))
)
_RECEIVER_COLUMNS = ("succeeded_at", "failing_since", "disabled_at")
_SAVE_RECEIVER = compile_statement(
    insert(webhook_receivers)
    .values({name: bindparam(name) for name in ("digest", *_RECEIVER_COLUMNS)})
    .on_conflict_do_update(
        index_elements=[webhook_receivers.c.digest],
        set_={name: bindparam(name) for name in _RECEIVER_COLUMNS},
    )
    .returning(AFFECTED_ROW)
)


def claim_due(at: float, limit: int, lease_seconds: float) -> UnitOfWork[list[DueEvent]]:
    """Claim events that are due at a time, longest overdue first; a lost claim ends with its lease."""
    parameters = {"at": at, "limit": limit, "lease_ends": at + lease_seconds}
    rows = yield BoundStatement(_CLAIM_DUE, parameters)
    names = ("id", "event", "type", "payload", "attempts")
    return [DueEvent(*(row[name] for name in names)) for row in rows]


def limit_waits(at: float, longest_wait: float, longest_lease: float) -> UnitOfWork[None]:
    """Make events due whose next attempt is later than any that was set at about this time or before.

    The database's clock was set back since: they would wait until it has caught up.
    """
    yield BoundStatement(_LIMIT_WAITS, {"at": at, "longest": at + longest_wait, "lease": at + longest_lease})


def record_sent(event: DueEvent, at: float) -> UnitOfWork[None]:
    """Record that the receiver accepted an event, whoever has sent it since."""
    yield BoundStatement(_RECORD_SENT, {"event_id": event.id, "at": at})


def record_failure(event: DueEvent, error: str, next_at: float | None) -> UnitOfWork[None]:
    """Record that an attempt failed, and when the next one is; None if there is none.

    Nothing is recorded if another attempt was made since.
    """
    state = "failed" if next_at is None else "pending"
    values = {"new_state": state, "new_next_at": next_at, "new_error": error[:MAX_ERROR]}
    yield BoundStatement(
        _RECORD_FAILURE, {"event_id": event.id, "expected_attempts": event.attempts, **values}
    )


def resend_event(event: str) -> UnitOfWork[bool]:
    """Make an event pending once more, with the same id and body; False if there is no such event."""
    return bool((yield BoundStatement(_RESEND, {"event_name": event})))


def resend_unsent(after: int) -> UnitOfWork[tuple[int, int]]:
    """Make some pending and failed events due now, those after an `id`.

    Returns their number, at most `RESEND_BATCH`, and the `id` of the last.
    """
    rows = yield BoundStatement(_RESEND_UNSENT, {"after": after})
    return len(rows), max((row["id"] for row in rows), default=after)


def summarize_outbox() -> UnitOfWork[OutboxSummary]:
    """Count the events that were not sent."""
    rows = yield BoundStatement(_SUMMARY, {})
    by_state = {row["state"]: row for row in rows}
    pending, failed = by_state.get("pending"), by_state.get("failed")
    return OutboxSummary(
        pending=pending["number"] if pending else 0,
        oldest=pending["oldest"] if pending else None,
        failed=failed["number"] if failed else 0,
    )


def list_events(
    limit: int, *, state: OutboxState | None = None, before: int | None = None
) -> UnitOfWork[list[OutboxEntry]]:
    """Return the newest events, or the next ones before an `id`; of one state, or of all."""
    rows = yield BoundStatement(_PAGES[state], {"before": before or ABOVE_ALL_IDS, "limit": limit})
    return [_parse_entry(row) for row in rows]


def prune_events() -> UnitOfWork[int]:
    """Remove some events that occurred long ago; return the number."""
    return len((yield BoundStatement(_PRUNE, {})))


def list_stuck_payments(before: float) -> UnitOfWork[list[ResultRow]]:
    """Return unresolved payments that were presented before a time, without an event that says so."""
    return (yield BoundStatement(_STUCK_PAYMENTS, {"before": before}))


def record_stuck(rows: list[ResultRow], events: EventBuilder, at: float) -> UnitOfWork[None]:
    """Write events for payments that are stuck, unless they were resolved since they were read."""
    for row in rows:
        key = queries.key_of(row)
        payment = EventPayment(
            key,
            "settling",
            service=row["service"],
            amount=int(row["amount"]),
            pay_to=row["pay_to"],
            presented_at=row["created_at"],
            transaction=row["transaction"],
        )
        event = events.build_row("payment.stuck", payment, at)
        yield BoundStatement(_INSERT_STUCK, {**event, **queries.key_parameters(key)})


def find_receiver(digest: str) -> UnitOfWork[ReceiverState]:
    """Return what is known of a receiver, by the digest of its URL."""
    rows = yield BoundStatement(_FIND_RECEIVER, {"digest": digest})
    return ReceiverState(*(rows[0][name] for name in _RECEIVER_COLUMNS)) if rows else ReceiverState()


def save_receiver(digest: str, state: ReceiverState) -> UnitOfWork[None]:
    """Store what is known of a receiver."""
    values = {name: getattr(state, name) for name in _RECEIVER_COLUMNS}
    yield BoundStatement(_SAVE_RECEIVER, {"digest": digest, **values})


def _parse_entry(row: ResultRow) -> OutboxEntry:
    return OutboxEntry(*(row[column.name] for column in _ENTRY_COLUMNS))
