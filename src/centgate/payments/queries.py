"""The handful of queries the journal asks, each on a connection inside a transaction.

Statements are built once. The three that every payment runs are compiled to text once as well and handed to
the driver as they are: SQLAlchemy's own way to run a statement costs more than SQLite's work on it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, bindparam, delete, insert, select, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.dml import Insert, Update
from sqlalchemy.sql.elements import ColumnElement, and_

from centgate.payments.authorization import PaymentKey
from centgate.payments.tables import answers, payments, workers

FORGET_AT_ONCE = 500
"""Old answers that are removed in one go, so that nobody waits long for the writer."""


def _at(table: Table) -> ColumnElement[bool]:
    """The row of the payment that `_key` names."""
    columns = (table.c.network, table.c.asset, table.c.payer, table.c.nonce)
    return and_(*(column == bindparam(f"at_{column.name}") for column in columns))


def _key(key: PaymentKey) -> dict[str, str]:
    return {"at_network": key.network, "at_asset": key.asset, "at_payer": key.payer, "at_nonce": key.nonce}


def _compiled(statement: Insert | Update) -> str:
    """The statement as text, with named parameters, for SQLite's driver."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))


_INSERT_PAYMENT = _compiled(sqlite.insert(payments).on_conflict_do_nothing())
_FIND = select(payments).where(_at(payments))
_FIND_BY_IDENTIFIER = select(payments).where(
    payments.c.payer == bindparam("of"), payments.c.identifier == bindparam("identified")
)
_INSERT_ANSWER = _compiled(insert(answers))
_FIND_ANSWER = select(answers).where(_at(answers))
_FORGET = delete(answers).where(
    answers.c.stored_at < bindparam("before"),
    answers.c.nonce.in_(
        select(answers.c.nonce).where(answers.c.stored_at < bindparam("before")).limit(FORGET_AT_ONCE)
    ),
)
_SEEN = select(workers.c.seen_at).where(workers.c.id == bindparam("worker"))
_INSERT_WORKER = sqlite.insert(workers)
_BEAT = _INSERT_WORKER.on_conflict_do_update(
    index_elements=[workers.c.id], set_={"seen_at": _INSERT_WORKER.excluded.seen_at}
)
_LEAVE = delete(workers).where(workers.c.id == bindparam("worker"))
_FORGET_WORKERS = delete(workers).where(workers.c.seen_at < bindparam("before"))


@cache
def _change(columns: tuple[str, ...]) -> str:
    held = payments.c.owner.is_not_distinct_from(bindparam("held_by"))
    values: dict[str, Any] = {column: bindparam(f"to_{column}") for column in columns}
    return _compiled(update(payments).where(_at(payments), held).values(values))


def insert_payment(connection: Connection, key: PaymentKey, values: dict[str, Any]) -> bool:
    """Enter a payment; False when its key, or its payer's idempotency key, is there already."""
    row = {"network": key.network, "asset": key.asset, "payer": key.payer, "nonce": key.nonce, **values}
    return connection.exec_driver_sql(_INSERT_PAYMENT, row).rowcount == 1


def find(connection: Connection, key: PaymentKey) -> RowMapping | None:
    """The row of a payment."""
    return connection.execute(_FIND, _key(key)).mappings().first()


def find_by_identifier(connection: Connection, payer: str, identifier: str) -> RowMapping | None:
    """The row of the payment that the payer made under this idempotency key."""
    return connection.execute(_FIND_BY_IDENTIFIER, {"of": payer, "identified": identifier}).mappings().first()


def change(connection: Connection, key: PaymentKey, held_by: str | None, values: dict[str, Any]) -> bool:
    """Change a payment's row if `held_by` still holds it."""
    parameters = {f"to_{column}": value for column, value in values.items()}
    everything = {**_key(key), "held_by": held_by, **parameters}
    return connection.exec_driver_sql(_change(tuple(values)), everything).rowcount == 1


def insert_answer(connection: Connection, key: PaymentKey, values: dict[str, Any]) -> None:
    """Keep what was delivered for a payment."""
    row = {"network": key.network, "asset": key.asset, "payer": key.payer, "nonce": key.nonce, **values}
    connection.exec_driver_sql(_INSERT_ANSWER, row)


def find_answer(connection: Connection, key: PaymentKey) -> RowMapping | None:
    """What was delivered for a payment, while it is kept."""
    return connection.execute(_FIND_ANSWER, _key(key)).mappings().first()


def forget_answers(connection: Connection, before: float) -> None:
    """Remove some of the answers that are older than they need be kept."""
    connection.execute(_FORGET, {"before": before})


def seen(connection: Connection, worker: str) -> float | None:
    """When a process last said that it lives."""
    return connection.execute(_SEEN, {"worker": worker}).scalar()


def beat(connection: Connection, worker: str, now: float) -> None:
    """Say that a process lives."""
    connection.execute(_BEAT, {"id": worker, "seen_at": now})


def leave(connection: Connection, worker: str) -> None:
    """Say that a process has ended."""
    connection.execute(_LEAVE, {"worker": worker})


def forget_workers(connection: Connection, before: float) -> None:
    """Remove processes that died long ago."""
    connection.execute(_FORGET_WORKERS, {"before": before})
