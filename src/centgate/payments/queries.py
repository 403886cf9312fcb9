"""The handful of questions the journal asks, each one statement that happens as a whole or not at all.

Nothing relies on two of them happening together: what is changed is named with what was seen of it before.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    Float,
    String,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement, and_

from centgate.payments.authorization import PaymentKey
from centgate.payments.statements import (
    HIT,
    Ask,
    Asking,
    Row,
    Statement,
    ago,
    change_then_insert,
    now,
    statement,
)
from centgate.payments.tables import (
    KEY,
    UNDELIVERED,
    answers,
    audits,
    duties,
    payment_events,
    payments,
    refunds,
    workers,
)

FORGET_AT_ONCE = 100
"""Old answers that are removed in one go, so that nobody waits long for the writer."""
FIRST_RETRY = 10
"""Seconds after which an open payment's outcome is asked for without its buyer for the first time."""


_AT = and_(*(column == bindparam(f"at_{column.name}") for column in KEY))
"""The payment that `_key` names."""


def _key(key: PaymentKey) -> dict[str, Any]:
    return {"at_network": key.network, "at_asset": key.asset, "at_payer": key.payer, "at_nonce": key.nonce}


def key_of(row: Row) -> PaymentKey:
    """Which payment a row is of."""
    return PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])


_INSERT_PAYMENT = statement(
    insert(payments)
    .values({column.name: bindparam(column.name) for column in payments.c if not column.primary_key})
    .on_conflict_do_nothing()
    .returning(HIT)
)
_ROW = select(
    payments,
    exists().where(refunds.c.payment == payments.c.id).label("refunded"),
)
_FIND = statement(_ROW.where(_AT))
_FIND_BY_IDENTIFIER = statement(
    _ROW.where(payments.c.payer == bindparam("of"), payments.c.identifier == bindparam("identified"))
)
_HELD = payments.c.owner.is_not_distinct_from(bindparam("held_by"))
_AS_SEEN = and_(
    _HELD, payments.c.state == bindparam("in_state"), payments.c.updated_at == bindparam("last_changed")
)
_ENTER_REFUND = change_then_insert(
    update(payments).where(_AT, _AS_SEEN).values(owner=bindparam("to_owner")),
    _AT,
    refunds,
    ("transaction", "at"),
)
_DELIVER = change_then_insert(
    update(payments)
    .where(_AT, _HELD)
    .values(
        state=literal_column("'delivered'"),
        owner=null(),
        updated_at=bindparam("stored_at", type_=Float),
        status=bindparam("status"),
        request_id=bindparam("request_id"),
    ),
    _AT,
    answers,
    ("status", "request_id", "receipt", "body", "stored_at"),
)
_FIND_ANSWER = statement(select(answers).join(payments, answers.c.payment == payments.c.id).where(_AT))
_OLD = answers.alias("old")
_FORGET = statement(
    delete(answers)
    .where(
        answers.c.payment.in_(
            select(_OLD.c.payment)
            .where(_OLD.c.stored_at < ago("keep"))
            .order_by(_OLD.c.stored_at)
            .limit(literal_column(str(FORGET_AT_ONCE)))
            .offset(literal_column("0"))
        ),
    )
    .returning(HIT)
)


def _is_process_of(worker: ColumnElement[str]) -> ColumnElement[bool]:
    """That a row of `workers` is the process that a worker's name begins with."""
    process = workers.c.id + literal_column("'/'")
    start = func.substr(worker + literal_column("'/'"), literal_column("1"), func.length(process))
    return start == process


# the words of the index over open payments, or it is not used
_UNRESOLVED = and_(UNDELIVERED, payments.c.state == literal_column("'settling'"))
_DUE_AT = func.coalesce(payments.c.retry_at, payments.c.updated_at + literal_column(str(FIRST_RETRY)))
_HELD_BY_THE_LIVING = exists().where(
    _is_process_of(payments.c.owner),
    workers.c.seen_at > now() - bindparam("lease", type_=Float),
)
_OPEN_PAYMENTS = statement(
    select(*KEY)
    .where(_UNRESOLVED, bindparam("due_at", type_=Float) >= _DUE_AT)
    .where(or_(payments.c.owner.is_(None), ~_HELD_BY_THE_LIVING))
    .order_by(_DUE_AT)
    .limit(bindparam("most", type_=BigInteger))
    .offset(literal_column("0"))
)
_COUNT_UNRESOLVED = statement(
    select(func.count().label("count"), func.min(payments.c.created_at).label("oldest")).where(
        _UNRESOLVED, payments.c.created_at < bindparam("before", type_=Float)
    )
)
_OPEN_COUNT = statement(
    select(func.count().label("count")).select_from(
        select(HIT)
        .where(_UNRESOLVED, payments.c.valid_before > now())
        .limit(bindparam("most", type_=BigInteger))
        .offset(literal_column("0"))
        .subquery()
    )
)
_EVENTS = statement(
    select(payment_events)
    .join(payments, payment_events.c.payment == payments.c.id)
    .where(_AT)
    .order_by(payment_events.c.id)
)
_WAS_REFUNDED = exists().where(
    payment_events.c.payment == payments.c.id, payment_events.c.event == literal_column("'refunded'")
)
_ENTER_REFUND_EVENT = statement(
    insert(payment_events)
    .from_select(
        ["payment", "event", "at", "reason", "transaction"],
        select(
            payments.c.id,
            literal_column("'refunded'", String),
            bindparam("at", type_=Float),
            bindparam("reason", type_=String),
            bindparam("transaction", type_=String),
        ).where(_AT, ~_WAS_REFUNDED),
    )
    .returning(HIT)
)
_REFUNDED_AMOUNTS = statement(
    select(payments.c.amount)
    .join(refunds, refunds.c.payment == payments.c.id)
    .where(
        refunds.c.transaction == bindparam("transaction"),
        *(column == bindparam(f"at_{column.name}") for column in KEY[:3]),
    )
)
_OLD_PAYMENTS = payments.alias("old_payments")
_COMMA = literal_column("','", String)
_LISTED = bindparam("audited", type_=String)
_IS_AUDITED = exists().where(
    audits.c.network == _OLD_PAYMENTS.c.network,
    audits.c.asset == _OLD_PAYMENTS.c.asset,
    audits.c.pay_to == _OLD_PAYMENTS.c.pay_to,
    audits.c.position_at >= _OLD_PAYMENTS.c.valid_before,
)
_MAY_GO = or_(
    func.replace(_LISTED, _COMMA + _OLD_PAYMENTS.c.network + _COMMA, literal_column("''")) == _LISTED,
    _IS_AUDITED,
    _OLD_PAYMENTS.c.updated_at < now() - bindparam("unaudited", type_=Float),
)
_PRUNABLE = (
    select(_OLD_PAYMENTS.c.id)
    .where(_OLD_PAYMENTS.c.updated_at < ago("keep"))
    .where(_OLD_PAYMENTS.c.valid_before < now())
    .where(~exists().where(refunds.c.payment == _OLD_PAYMENTS.c.id))
    .order_by(_OLD_PAYMENTS.c.updated_at)
    .limit(literal_column(str(FORGET_AT_ONCE)))
    .offset(literal_column("0"))
)
_PRUNE_REFUSED, _PRUNE_UNUSED = (
    statement(delete(payments).where(payments.c.id.in_(prunable)).returning(payments.c.id))
    for prunable in (
        _PRUNABLE.where(UNDELIVERED, _OLD_PAYMENTS.c.state == literal_column("'refused'"), _MAY_GO),
        _PRUNABLE.where(UNDELIVERED, _OLD_PAYMENTS.c.state == literal_column("'unused'")),
    )
)
_FORGET_EVENTS = statement(
    delete(payment_events).where(payment_events.c.payment == bindparam("payment")).returning(HIT)
)
_UNSEEN_FOR = statement(
    select((now() - workers.c.seen_at).label("seconds")).where(
        _is_process_of(bindparam("worker", type_=String))
    )
)
_BEAT = statement(
    insert(workers)
    .from_select(["id", "seen_at"], select(bindparam("worker", type_=String), now()).where(HIT == HIT))
    .on_conflict_do_update(index_elements=[workers.c.id], set_={"seen_at": now()})
    .returning(now().label("now"))
)
_TIME = statement(select(now().label("now")))
_LEAVE = statement(delete(workers).where(workers.c.id == bindparam("worker")).returning(HIT))
_FORGET_WORKERS = statement(
    delete(workers).where(workers.c.seen_at < now() - bindparam("seconds", type_=Float)).returning(HIT)
)
_TAKE_DUTY = statement(
    insert(duties)
    .from_select(
        ["name", "worker", "until"],
        select(
            bindparam("duty", type_=String),
            bindparam("worker", type_=String),
            now() + bindparam("seconds", type_=Float),
        ).where(HIT == HIT),
    )
    .on_conflict_do_update(
        index_elements=[duties.c.name],
        set_={
            "worker": bindparam("worker", type_=String),
            "until": now() + bindparam("seconds", type_=Float),
        },
        where=or_(duties.c.worker == bindparam("worker"), duties.c.until < now()),
    )
    .returning(HIT)
)


@cache
def _change(columns: tuple[str, ...], condition: ColumnElement[bool]) -> Any:
    values: dict[str, Any] = {column: bindparam(f"to_{column}") for column in columns}
    return statement(update(payments).where(_AT, condition).values(values).returning(HIT))


@cache
def _change_with_event(columns: tuple[str, ...]) -> Any:
    values: dict[str, Any] = {column: bindparam(f"to_{column}") for column in columns}
    changed = update(payments).where(_AT, _HELD).values(values)
    return change_then_insert(changed, _AT, payment_events, ("event", "at", "reason", "transaction"))


def insert_payment(key: PaymentKey, values: dict[str, Any]) -> Asking[bool]:
    """Enter a payment; False when its key, or its payer's idempotency key, is there already."""
    row = {"network": key.network, "asset": key.asset, "payer": key.payer, "nonce": key.nonce, **values}
    return bool((yield Ask(_INSERT_PAYMENT, row)))


def find(key: PaymentKey) -> Asking[Row | None]:
    """The row of a payment; `refunded` is beside its columns."""
    rows = yield Ask(_FIND, _key(key))
    return rows[0] if rows else None


def find_by_identifier(payer: str, identifier: str) -> Asking[Row | None]:
    """The row of the payment that the payer made under this idempotency key."""
    rows = yield Ask(_FIND_BY_IDENTIFIER, {"of": payer, "identified": identifier})
    return rows[0] if rows else None


def change(key: PaymentKey, worker: str, values: dict[str, Any]) -> Asking[bool]:
    """Change a payment's row if `worker` still holds it."""
    parameters = {**_key(key), "held_by": worker, **_changed(values)}
    return bool((yield Ask(_change(tuple(values), _HELD), parameters)))


def change_seen(seen: Row, values: dict[str, Any]) -> Asking[bool]:
    """Change a payment's row if it still is as it was seen."""
    parameters = {**_as_seen(seen), **_changed(values)}
    return bool((yield Ask(_change(tuple(values), _AS_SEEN), parameters)))


def enter_refund(seen: Row, worker: str, transaction: str, at: float) -> Asking[bool]:
    """Enter that a payment was paid back if its row still is as it was seen.

    The row stays with `worker`: whoever has seen it without the refund cannot take it any more.
    """
    entry = {"to_owner": worker, "transaction": transaction, "at": at}
    return bool((yield Ask(_ENTER_REFUND, {**_as_seen(seen), **entry})))


def enter_refund_event(key: PaymentKey, transaction: str, at: float, reason: str | None) -> Asking[None]:
    """Append the event of a refund, unless it is there already."""
    event = {"transaction": transaction, "at": at, "reason": reason}
    yield Ask(_ENTER_REFUND_EVENT, {**_key(key), **event})


def refunded_amount(key: PaymentKey, transaction: str) -> Asking[int]:
    """Return how much of a token is entered as paid back to a payer in a transaction."""
    parameters = {**_key(key), "transaction": transaction}
    del parameters["at_nonce"]
    rows = yield Ask(_REFUNDED_AMOUNTS, parameters)
    return sum(int(row["amount"]) for row in rows)


def _as_seen(seen: Row) -> dict[str, Any]:
    return {
        **_key(key_of(seen)),
        "held_by": seen["owner"],
        "in_state": seen["state"],
        "last_changed": seen["updated_at"],
    }


def _changed(values: dict[str, Any]) -> dict[str, Any]:
    return {f"to_{column}": value for column, value in values.items()}


def change_with_event(
    key: PaymentKey, worker: str, values: dict[str, Any], event: dict[str, Any]
) -> Asking[bool]:
    """Change a payment's row if `worker` still holds it, and append an event (columns of
    `payment_events`)."""
    parameters = {**_key(key), "held_by": worker, **_changed(values), **event}
    return bool((yield Ask(_change_with_event(tuple(values)), parameters)))


def find_events(key: PaymentKey) -> Asking[list[Row]]:
    """The events of a payment, oldest first."""
    return (yield Ask(_EVENTS, _key(key)))


def count_open(most: int) -> Asking[int]:
    """Count payments whose outcome is unknown and that can still be settled, up to `most`."""
    return (yield Ask(_OPEN_COUNT, {"most": most}))[0]["count"]


def prune_refused(keep: float, unaudited: float, audited_networks: Collection[str]) -> Asking[int]:
    """Remove some payments that were refused more than `keep` seconds ago; return how many.

    Those of audited networks stay until they were audited, for `unaudited` seconds at most.
    """
    listed = ",".join(["", *audited_networks, ""])
    parameters = {"keep": keep, "unaudited": unaudited, "audited": listed}
    return (yield from _prune(_PRUNE_REFUSED, parameters))


def prune_unused() -> Asking[int]:
    """Remove some payments that never reached the facilitator and have ended; return how many."""
    return (yield from _prune(_PRUNE_UNUSED, {"keep": 0.0}))


def _prune(pruning: Statement, parameters: dict[str, Any]) -> Asking[int]:
    """Remove payments, and then their events: SQLite gives the number of a removed row to another."""
    rows = yield Ask(pruning, parameters)
    for row in rows:
        yield Ask(_FORGET_EVENTS, {"payment": row["id"]})
    return len(rows)


def deliver(key: PaymentKey, worker: str, answer: dict[str, Any]) -> Asking[bool]:
    """Enter what was delivered, if `worker` still holds it; `answer` has the columns of `answers`."""
    return bool((yield Ask(_DELIVER, {**_key(key), "held_by": worker, **answer})))


def find_answer(key: PaymentKey) -> Asking[Row | None]:
    """What was delivered for a payment, while it is kept."""
    rows = yield Ask(_FIND_ANSWER, _key(key))
    return rows[0] if rows else None


def forget_answers(keep: float) -> Asking[int]:
    """Remove some of the answers that were stored more than `keep` seconds ago; how many."""
    return len((yield Ask(_FORGET, {"keep": keep})))


def open_payments(due_at: float, lease: float, most: int) -> Asking[list[PaymentKey]]:
    """Payments whose outcome is unknown, to be asked about until `due_at`, and held by no living process."""
    rows = yield Ask(_OPEN_PAYMENTS, {"due_at": due_at, "lease": lease, "most": most})
    return [key_of(row) for row in rows]


def unresolved(before: float) -> Asking[tuple[int, float]]:
    """How many of those that were presented before a time there are, and when the oldest was."""
    rows = yield Ask(_COUNT_UNRESOLVED, {"before": before})
    return rows[0]["count"], rows[0]["oldest"] or before


def unseen_for(worker: str) -> Asking[float | None]:
    """Seconds since the process of a worker last said that it lives; None when it is not known."""
    rows = yield Ask(_UNSEEN_FOR, {"worker": worker})
    return cast(float, rows[0]["seconds"]) if rows else None


def beat(worker: str) -> Asking[float]:
    """Say that a process lives; returns the database's time."""
    rows = yield Ask(_BEAT, {"worker": worker})
    return cast(float, rows[0]["now"])


def read_time() -> Asking[float | None]:
    """Return the database's time, in seconds since 1970; None where there is no database."""
    rows = yield Ask(_TIME, {})
    return cast(float, rows[0]["now"]) if rows else None


def leave(worker: str) -> Asking[None]:
    """Say that a process has ended."""
    yield Ask(_LEAVE, {"worker": worker})


def forget_workers(seconds: float) -> Asking[None]:
    """Remove processes that were not seen for so long."""
    yield Ask(_FORGET_WORKERS, {"seconds": seconds})


def take_duty(name: str, worker: str, seconds: float) -> Asking[bool]:
    """Take, or keep, what one process does for all; False while another has it."""
    return bool((yield Ask(_TAKE_DUTY, {"duty": name, "worker": worker, "seconds": seconds})))
