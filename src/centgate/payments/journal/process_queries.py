"""SQL statements about the processes that share a journal: heartbeats, leadership, the database's time."""

from __future__ import annotations

from typing import cast

from sqlalchemy import (
    Float,
    String,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from centgate.payments.database.sql import (
    AFFECTED_ROW,
    BoundStatement,
    UnitOfWork,
    compile_statement,
    now,
)
from centgate.payments.database.tables import (
    duties,
    workers,
)

MAX_LEADERSHIP = 120.0
"""Seconds that a lease of a background job never lasts; one that ends later is not respected."""


def is_process_of(worker: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a row of `workers` is the process of a worker."""
    process = workers.c.id + literal_column("'/'")
    start = func.substr(worker + literal_column("'/'"), literal_column("1"), func.length(process))
    return start == process


_SECONDS_SINCE_HEARTBEAT = compile_statement(
    select((now() - workers.c.seen_at).label("seconds")).where(
        is_process_of(bindparam("worker", type_=String))
    )
)
_RECORD_HEARTBEAT = compile_statement(
    insert(workers)
    .from_select(
        ["id", "seen_at"],
        select(bindparam("worker", type_=String), now()).where(AFFECTED_ROW == AFFECTED_ROW),
    )
    .on_conflict_do_update(index_elements=[workers.c.id], set_={"seen_at": now()})
    .returning(now().label("now"))
)
_TIME = compile_statement(select(now().label("now")))
_REMOVE_WORKER = compile_statement(
    delete(workers).where(workers.c.id == bindparam("worker")).returning(AFFECTED_ROW)
)
_FORGET_WORKERS = compile_statement(
    delete(workers)
    .where(workers.c.seen_at < now() - bindparam("seconds", type_=Float))
    .returning(AFFECTED_ROW)
)
_CORRECT_HEARTBEATS = compile_statement(
    update(workers)
    .where(workers.c.seen_at > now() + bindparam("seconds", type_=Float))
    .values(seen_at=now())
    .returning(AFFECTED_ROW)
)
_ACQUIRE_LEADERSHIP = compile_statement(
    insert(duties)
    .from_select(
        ["name", "worker", "until"],
        select(
            bindparam("duty", type_=String),
            bindparam("worker", type_=String),
            now() + bindparam("seconds", type_=Float),
        ).where(AFFECTED_ROW == AFFECTED_ROW),
    )
    .on_conflict_do_update(
        index_elements=[duties.c.name],
        set_={
            "worker": bindparam("worker", type_=String),
            "until": now() + bindparam("seconds", type_=Float),
        },
        where=or_(
            duties.c.worker == bindparam("worker"),
            duties.c.until < now(),
            # acquired before the database's clock was set back: a living leader renews it
            duties.c.until > now() + literal_column(str(MAX_LEADERSHIP)),
        ),
    )
    .returning(AFFECTED_ROW)
)


def seconds_since_heartbeat(worker: str) -> UnitOfWork[float | None]:
    """Return the seconds since the last heartbeat of a worker's process; None for an unknown one."""
    rows = yield BoundStatement(_SECONDS_SINCE_HEARTBEAT, {"worker": worker})
    return cast(float, rows[0]["seconds"]) if rows else None


def record_heartbeat(worker: str) -> UnitOfWork[float]:
    """Record a heartbeat of a process; returns the database's time."""
    rows = yield BoundStatement(_RECORD_HEARTBEAT, {"worker": worker})
    return cast(float, rows[0]["now"])


def read_time() -> UnitOfWork[float | None]:
    """Return the database's time, in seconds since 1970; None without a database."""
    rows = yield BoundStatement(_TIME, {})
    return cast(float, rows[0]["now"]) if rows else None


def remove_worker(worker: str) -> UnitOfWork[None]:
    """Remove a process that has ended."""
    yield BoundStatement(_REMOVE_WORKER, {"worker": worker})


def correct_heartbeats(seconds: float) -> UnitOfWork[None]:
    """Replace heartbeats that are more than some seconds in the future by the present."""
    yield BoundStatement(_CORRECT_HEARTBEATS, {"seconds": seconds})


def prune_workers(seconds: float) -> UnitOfWork[None]:
    """Remove processes without a heartbeat for some seconds."""
    yield BoundStatement(_FORGET_WORKERS, {"seconds": seconds})


def acquire_leadership(name: str, worker: str, seconds: float) -> UnitOfWork[bool]:
    """Acquire or renew leadership of a background job; False while another worker has it.

    `seconds` is less than `MAX_LEADERSHIP`, and negative to release it.
    """
    return bool(
        (yield BoundStatement(_ACQUIRE_LEADERSHIP, {"duty": name, "worker": worker, "seconds": seconds}))
    )
