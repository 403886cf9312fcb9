"""SQL statements that remove what is no longer needed: answers, and payments without effect."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    Float,
    String,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.sql.elements import and_

from centgate.payments.database.sql import (
    AFFECTED_ROW,
    NO_OFFSET,
    BoundStatement,
    CompiledStatement,
    UnitOfWork,
    compile_statement,
    now,
    seconds_ago,
)
from centgate.payments.database.tables import (
    UNDELIVERED,
    answers,
    audits,
    payment_events,
    payments,
    refunds,
)

PRUNE_BATCH = 100
"""Maximum rows removed by one statement, so that the write lock is held only briefly."""
_OLD = answers.alias("old")
_FORGET_ANSWERS = compile_statement(
    delete(answers)
    .where(
        answers.c.payment.in_(
            select(_OLD.c.payment)
            .where(_OLD.c.stored_at < seconds_ago("keep"))
            .order_by(_OLD.c.stored_at)
            .limit(literal_column(str(PRUNE_BATCH)))
            .offset(NO_OFFSET)
        ),
    )
    .returning(AFFECTED_ROW)
)
_OLD_PAYMENTS = payments.alias("old_payments")
_COMMA = literal_column("','", String)
_AUDITED_NETWORKS = bindparam("audited_networks", type_=String)
_IS_AUDITED = exists().where(
    audits.c.network == _OLD_PAYMENTS.c.network,
    audits.c.asset == _OLD_PAYMENTS.c.asset,
    audits.c.pay_to == _OLD_PAYMENTS.c.pay_to,
    audits.c.position_at >= _OLD_PAYMENTS.c.valid_before,
)
_MAY_BE_PRUNED = or_(
    func.replace(_AUDITED_NETWORKS, _COMMA + _OLD_PAYMENTS.c.network + _COMMA, literal_column("''"))
    == _AUDITED_NETWORKS,
    _IS_AUDITED,
    _OLD_PAYMENTS.c.updated_at < now() - bindparam("unaudited", type_=Float),
)
_PRUNABLE = (
    select(_OLD_PAYMENTS.c.id)
    .where(_OLD_PAYMENTS.c.updated_at < seconds_ago("keep"))
    .where(_OLD_PAYMENTS.c.valid_before < now())
    .where(~exists().where(refunds.c.payment == _OLD_PAYMENTS.c.id))
    .order_by(_OLD_PAYMENTS.c.updated_at)
    .limit(literal_column(str(PRUNE_BATCH)))
    .offset(NO_OFFSET)
)
_IS_REFUSED = _OLD_PAYMENTS.c.state == literal_column("'refused'")
_IS_UNUSED = _OLD_PAYMENTS.c.state == literal_column("'unused'")
_IS_DOUBTED = _OLD_PAYMENTS.c.presentations > literal_column("1")
"""A facilitator may have sent an unused payment: it is kept as long as a refused one, for the audit."""
_PRUNE_REFUSED, _PRUNE_UNUSED = (
    compile_statement(delete(payments).where(payments.c.id.in_(prunable)).returning(payments.c.id))
    for prunable in (
        _PRUNABLE.where(UNDELIVERED, or_(_IS_REFUSED, and_(_IS_UNUSED, _IS_DOUBTED)), _MAY_BE_PRUNED),
        _PRUNABLE.where(UNDELIVERED, _IS_UNUSED, ~_IS_DOUBTED),
    )
)
_FORGET_HISTORY = compile_statement(
    delete(payment_events).where(payment_events.c.payment == bindparam("payment")).returning(AFFECTED_ROW)
)


def prune_refused(keep: float, unaudited: float, audited_networks: Collection[str]) -> UnitOfWork[int]:
    """Remove some payments that were refused more than `keep` seconds ago; return the number.

    So are unused ones that a facilitator may have sent. Those of audited networks stay until they were
    audited, for at most `unaudited` seconds.
    """
    networks = ",".join(["", *audited_networks, ""])
    parameters = {"keep": keep, "unaudited": unaudited, "audited_networks": networks}
    return (yield from _prune_payments(_PRUNE_REFUSED, parameters))


def prune_unused() -> UnitOfWork[int]:
    """Remove some payments that no facilitator took and that have expired; return the number."""
    return (yield from _prune_payments(_PRUNE_UNUSED, {"keep": 0.0}))


def _prune_payments(pruning: CompiledStatement, parameters: dict[str, Any]) -> UnitOfWork[int]:
    """Remove payments, then their history: SQLite reuses the id of a removed row."""
    rows = yield BoundStatement(pruning, parameters)
    for row in rows:
        yield BoundStatement(_FORGET_HISTORY, {"payment": row["id"]})
    return len(rows)


def prune_answers(keep: float) -> UnitOfWork[int]:
    """Remove some answers that were stored more than `keep` seconds ago; return the number."""
    return len((yield BoundStatement(_FORGET_ANSWERS, {"keep": keep})))
