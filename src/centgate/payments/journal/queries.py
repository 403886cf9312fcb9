"""SQL statements of the journal, each of them atomic.

Nothing relies on two of them being executed together: each update names the state that it expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Float,
    String,
    bindparam,
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

from centgate.payments.database.sql import (
    AFFECTED_ROW,
    NO_OFFSET,
    BoundStatement,
    LinkedRow,
    ResultRow,
    UnitOfWork,
    compile_statement,
    compile_update_then_insert,
    now,
)
from centgate.payments.database.tables import (
    KEY,
    NEW_EVENT_COLUMNS,
    UNDELIVERED,
    OpenCause,
    answers,
    is_state,
    payment_events,
    payments,
    refunds,
    webhook_events,
    workers,
)
from centgate.payments.journal.process_queries import is_process_of
from centgate.payments.payment_key import PaymentKey
from centgate.payments.worker_id import LEASE_SECONDS

FIRST_RETRY = 10
"""Seconds from the last change of an open payment's row until it is due for the first time.

It is never due while a live process holds it.
"""
MAX_RETRY = 1000
"""Seconds until the next attempt, at most: a later one was set before the database's clock was set back."""


class CheckedPayments(Struct, frozen=True):
    """Numbers of payments that were still open after the last attempt to reconcile them."""

    by_cause: Mapping[OpenCause, int]
    """For every cause."""
    by_facilitator: Mapping[str, int]
    """By the name of the facilitator that may have them, without those from before names were stored."""

    @property
    def waiting_for_node(self) -> int:
        """Number that stays open until a node answers."""
        return self.by_cause["no_node"] + self.by_cause["no_answer"]


HAS_KEY = and_(*(column == bindparam(f"at_{column.name}") for column in KEY))
"""Condition for the payment that `key_parameters` names."""


def key_parameters(key: PaymentKey) -> dict[str, Any]:
    """Return the parameters of `HAS_KEY`."""
    return {"at_network": key.network, "at_asset": key.asset, "at_payer": key.payer, "at_nonce": key.nonce}


def key_of(row: ResultRow) -> PaymentKey:
    """Return the key of the payment in a row."""
    return PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])


def _lock_order(key: PaymentKey) -> tuple[str, ...]:
    return (key.nonce, key.payer, key.network, key.asset)


def may_be_sent(row: ResultRow) -> bool:
    """Return True for an unused payment that one of two facilitators may have sent all the same."""
    return row["state"] == "unused" and row["presentations"] > 1


_UNSET_WHEN_NEW = frozenset(
    {"transaction", "reason", "attempts", "retry_at", "settled_at", "request_id", "status", "open_cause"}
)
"""Columns left to their defaults when a payment is inserted: `sqlite3` looks for an adapter of each null."""
_INSERT_PAYMENT = compile_statement(
    insert(payments)
    .values(
        {
            column.name: bindparam(column.name)
            for column in payments.c
            if not column.primary_key and column.name not in _UNSET_WHEN_NEW
        }
    )
    .on_conflict_do_nothing()
    .returning(AFFECTED_ROW)
)
_ROW = select(
    payments,
    exists().where(refunds.c.payment == payments.c.id).label("refunded"),
)
_FIND = compile_statement(_ROW.where(HAS_KEY))
_FIND_BY_IDENTIFIER = compile_statement(
    _ROW.where(payments.c.payer == bindparam("payer"), payments.c.identifier == bindparam("identifier"))
)
_OWNER_MATCHES = payments.c.owner.is_not_distinct_from(bindparam("expected_owner"))
_IS_UNCHANGED = and_(
    _OWNER_MATCHES,
    payments.c.state == bindparam("expected_state"),
    payments.c.updated_at == bindparam("expected_updated_at"),
)
_WEBHOOK_ROW = LinkedRow(webhook_events, NEW_EVENT_COLUMNS, unique="event")
"""A webhook's row in the outbox, written in the statement of the change that it reports, or not at all."""
_REFUND = (
    update(payments).where(HAS_KEY, _IS_UNCHANGED).values(owner=bindparam("new_owner")),
    HAS_KEY,
    refunds,
    ("transaction", "at"),
)
_ENTER_REFUND = compile_update_then_insert(*_REFUND)
_ENTER_REFUND_WITH_WEBHOOK = compile_update_then_insert(*_REFUND, _WEBHOOK_ROW)
_DELIVERY = (
    update(payments)
    .where(HAS_KEY, _OWNER_MATCHES)
    .values(
        state=literal_column("'delivered'"),
        owner=null(),
        reason=null(),
        signed=null(),
        transaction=bindparam("transaction"),
        settled_at=func.coalesce(payments.c.settled_at, bindparam("settled_at", type_=Float)),
        updated_at=bindparam("stored_at", type_=Float),
        status=bindparam("status"),
        request_id=bindparam("request_id"),
    ),
    HAS_KEY,
    answers,
    ("status", "request_id", "receipt", "body", "stored_at"),
)
_DELIVER = compile_update_then_insert(*_DELIVERY)
_DELIVER_WITH_WEBHOOK = compile_update_then_insert(*_DELIVERY, _WEBHOOK_ROW)
_FIND_ANSWER = compile_statement(
    select(answers).join(payments, answers.c.payment == payments.c.id).where(HAS_KEY)
)


# must match the text of the partial index over open payments, or it is not used
_UNRESOLVED = and_(UNDELIVERED, is_state("settling"))
_DUE_AT = func.coalesce(payments.c.retry_at, payments.c.updated_at + literal_column(str(FIRST_RETRY)))
HAS_LIVE_OWNER = and_(
    payments.c.owner.is_not(None),
    exists().where(
        is_process_of(payments.c.owner),
        workers.c.seen_at >= now() - literal_column(str(LEASE_SECONDS)),
    ),
)
"""Condition that a process without a lapsed lease works on a payment."""
_OPEN_PAYMENTS = compile_statement(
    select(*KEY)
    .where(
        _UNRESOLVED,
        or_(
            bindparam("due_at", type_=Float) >= _DUE_AT,
            bindparam("due_at", type_=Float) + literal_column(str(MAX_RETRY)) < _DUE_AT,
        ),
    )
    .where(~HAS_LIVE_OWNER)
    .order_by(_DUE_AT)
    .limit(bindparam("limit", type_=BigInteger))
    .offset(NO_OFFSET)
)
_COUNT_UNRESOLVED = compile_statement(
    select(func.count().label("count"), func.min(payments.c.created_at).label("oldest")).where(
        _UNRESOLVED, payments.c.created_at < bindparam("before", type_=Float)
    )
)
_COUNT_CHECKED = compile_statement(
    select(payments.c.open_cause, payments.c.facilitator, func.count().label("count"))
    .where(_UNRESOLVED, payments.c.open_cause.is_not(None))
    .group_by(payments.c.open_cause, payments.c.facilitator)
)
_COUNT_SETTLEABLE = compile_statement(
    select(func.count().label("count")).select_from(
        select(AFFECTED_ROW)
        .where(_UNRESOLVED, payments.c.valid_before > now())
        .limit(bindparam("limit", type_=BigInteger))
        .offset(NO_OFFSET)
        .subquery()
    )
)
_HISTORY = compile_statement(
    select(payment_events)
    .join(payments, payment_events.c.payment == payments.c.id)
    .where(HAS_KEY)
    .order_by(payment_events.c.id)
)
_WAS_REFUNDED = exists().where(
    payment_events.c.payment == payments.c.id, payment_events.c.event == literal_column("'refunded'")
)
_APPEND_REFUND_ENTRY = compile_statement(
    insert(payment_events)
    .from_select(
        ["payment", "event", "at", "reason", "transaction"],
        select(
            payments.c.id,
            literal_column("'refunded'", String),
            bindparam("at", type_=Float),
            bindparam("reason", type_=String),
            bindparam("transaction", type_=String),
        ).where(HAS_KEY, ~_WAS_REFUNDED),
    )
    .returning(AFFECTED_ROW)
)
_REFUNDED_AMOUNTS = compile_statement(
    select(payments.c.amount)
    .join(refunds, refunds.c.payment == payments.c.id)
    .where(
        refunds.c.transaction == bindparam("transaction"),
        *(column == bindparam(f"at_{column.name}") for column in KEY[:3]),
    )
)


@cache
def _update_statement(columns: tuple[str, ...], condition: ColumnElement[bool]) -> Any:
    values: dict[str, Any] = {column: bindparam(f"to_{column}") for column in columns}
    return compile_statement(
        update(payments).where(HAS_KEY, condition).values(values).returning(AFFECTED_ROW)
    )


@cache
def _update_with_history_statement(columns: tuple[str, ...]) -> Any:
    values: dict[str, Any] = {column: bindparam(f"to_{column}") for column in columns}
    changed = update(payments).where(HAS_KEY, _OWNER_MATCHES).values(values)
    return compile_update_then_insert(
        changed, HAS_KEY, payment_events, ("event", "at", "reason", "transaction")
    )


def insert_payment(key: PaymentKey, values: dict[str, Any]) -> UnitOfWork[bool]:
    """Insert a payment; False if its key, or its payer's idempotency key, exists already.

    Columns that only a later change sets get their defaults, whatever `values` has for them.
    """
    row = {"network": key.network, "asset": key.asset, "payer": key.payer, "nonce": key.nonce, **values}
    # idempotency keys are locked too, in another order: two groups could wait for each other
    lock_order = _lock_order(key) if values["identifier"] is None else ()
    return bool((yield BoundStatement(_INSERT_PAYMENT, row, lock_order)))


def find_payment(key: PaymentKey) -> UnitOfWork[ResultRow | None]:
    """Return the row of a payment, with the extra column `refunded`; None if not found."""
    rows = yield BoundStatement(_FIND, key_parameters(key))
    return rows[0] if rows else None


def find_by_identifier(payer: str, identifier: str) -> UnitOfWork[ResultRow | None]:
    """Return the row of the payer's payment under an idempotency key, None if not found."""
    rows = yield BoundStatement(_FIND_BY_IDENTIFIER, {"payer": payer, "identifier": identifier})
    return rows[0] if rows else None


def update_owned(
    key: PaymentKey, worker: str, values: dict[str, Any], history_entry: dict[str, Any] | None = None
) -> UnitOfWork[bool]:
    """Update a payment's row if `worker` still owns it, and append to its history.

    `history_entry` has the columns of `payment_events`.
    """
    columns = tuple(values)
    statement = (
        _update_with_history_statement(columns)
        if history_entry
        else _update_statement(columns, _OWNER_MATCHES)
    )
    parameters = {**key_parameters(key), "expected_owner": worker, **_new_value_parameters(values)}
    return bool((yield BoundStatement(statement, parameters | (history_entry or {}))))


def update_if_unchanged(seen: ResultRow, values: dict[str, Any]) -> UnitOfWork[bool]:
    """Update a payment's row if its owner, state and time of change are as in `seen`."""
    parameters = {**_seen_parameters(seen), **_new_value_parameters(values)}
    return bool((yield BoundStatement(_update_statement(tuple(values), _IS_UNCHANGED), parameters)))


def record_refund(
    seen: ResultRow, worker: str, transaction: str, at: float, *, webhook_row: dict[str, Any] | None = None
) -> UnitOfWork[bool]:
    """Record a refund if the payment's row is still as in `seen`, with its webhook.

    `webhook_row` has the columns of `webhook_events`, None without a receiver. `worker` becomes the owner:
    another worker that read the row without the refund can no longer claim it.
    """
    entry = {"new_owner": worker, "transaction": transaction, "at": at}
    statement = _ENTER_REFUND_WITH_WEBHOOK if webhook_row else _ENTER_REFUND
    return bool((yield BoundStatement(statement, {**_seen_parameters(seen), **entry, **(webhook_row or {})})))


def append_refund_entry(key: PaymentKey, transaction: str, at: float, reason: str | None) -> UnitOfWork[None]:
    """Append a refund to the payment's history, unless it is there already."""
    history_entry = {"transaction": transaction, "at": at, "reason": reason}
    yield BoundStatement(_APPEND_REFUND_ENTRY, {**key_parameters(key), **history_entry})


def sum_refunds(key: PaymentKey, transaction: str) -> UnitOfWork[int]:
    """Return the amount recorded as refunded to a payer in a transaction, in base units."""
    parameters = {**key_parameters(key), "transaction": transaction}
    del parameters["at_nonce"]
    rows = yield BoundStatement(_REFUNDED_AMOUNTS, parameters)
    return sum(int(row["amount"]) for row in rows)


def _seen_parameters(seen: ResultRow) -> dict[str, Any]:
    return {
        **key_parameters(key_of(seen)),
        "expected_owner": seen["owner"],
        "expected_state": seen["state"],
        "expected_updated_at": seen["updated_at"],
    }


def _new_value_parameters(values: dict[str, Any]) -> dict[str, Any]:
    return {f"to_{column}": value for column, value in values.items()}


def find_events(key: PaymentKey) -> UnitOfWork[list[ResultRow]]:
    """Return the history of a payment, rows of `payment_events`, oldest first."""
    return (yield BoundStatement(_HISTORY, key_parameters(key)))


def count_settleable(limit: int) -> UnitOfWork[int]:
    """Count unresolved payments that can still be settled, up to a limit."""
    return (yield BoundStatement(_COUNT_SETTLEABLE, {"limit": limit}))[0]["count"]


def record_answer(
    key: PaymentKey,
    worker: str,
    answer: dict[str, Any],
    settlement: dict[str, Any],
    webhook_row: dict[str, Any] | None = None,
) -> UnitOfWork[bool]:
    """Store an answer if `worker` still owns the payment, together with its settlement.

    `answer` has the columns of `answers`. `settlement` has `transaction` and `settled_at`, which the row may
    have already. `webhook_row` has the columns of `webhook_events`, if there is a receiver.
    """
    parameters = {
        **key_parameters(key),
        "expected_owner": worker,
        **answer,
        **settlement,
        **(webhook_row or {}),
    }
    statement = _DELIVER_WITH_WEBHOOK if webhook_row else _DELIVER
    return bool((yield BoundStatement(statement, parameters, _lock_order(key))))


def find_answer(key: PaymentKey) -> UnitOfWork[ResultRow | None]:
    """Return the stored answer of a payment, None if not stored or already pruned."""
    rows = yield BoundStatement(_FIND_ANSWER, key_parameters(key))
    return rows[0] if rows else None


def list_open_payments(due_at: float, limit: int) -> UnitOfWork[list[PaymentKey]]:
    """Return payments with an unknown outcome, due until `due_at` and not owned by a live process."""
    rows = yield BoundStatement(_OPEN_PAYMENTS, {"due_at": due_at, "limit": limit})
    return [key_of(row) for row in rows]


def count_unresolved(before: float) -> UnitOfWork[tuple[int, float]]:
    """Count unresolved payments submitted before a time; returns the count and the oldest time."""
    rows = yield BoundStatement(_COUNT_UNRESOLVED, {"before": before})
    return rows[0]["count"], rows[0]["oldest"] or before


def count_checked_payments() -> UnitOfWork[CheckedPayments]:
    """Count the payments that were still open after the last attempt to reconcile them."""
    rows = yield BoundStatement(_COUNT_CHECKED, {})
    by_cause: dict[OpenCause, int] = dict.fromkeys(get_args(OpenCause), 0)
    by_facilitator: dict[str, int] = {}
    for row in rows:
        by_cause[row["open_cause"]] += row["count"]
        if name := row["facilitator"]:
            by_facilitator[name] = by_facilitator.get(name, 0) + row["count"]
    return CheckedPayments(by_cause, by_facilitator)
