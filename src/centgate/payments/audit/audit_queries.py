"""SQL statements of the audit: recipients in the journal, payments to compare, and stored positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import orjson
from msgspec import Struct
from sqlalchemy import BigInteger, Float, String, bindparam, func, null, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from centgate.payments.database.sql import (
    AFFECTED_ROW,
    BoundStatement,
    ResultRow,
    UnitOfWork,
    compile_statement,
    now,
)
from centgate.payments.database.tables import audits, is_state, payment_events, payments
from centgate.payments.journal import queries
from centgate.payments.journal.queries import key_of
from centgate.payments.payment_key import PaymentKey


class Recipient(Struct, frozen=True, order=True):
    """Recipient of payments in a token of a network (CAIP-2); addresses are in lower case."""

    network: str
    asset: str
    pay_to: str


class AuditPosition(Struct, frozen=True):
    """Position of the audit for one recipient, and the findings of the last daily audit."""

    recipient: Recipient
    block: int | None
    """Block up to which the audit is without gaps."""
    block_time: float | None
    completed_at: float | None
    """End of the last daily audit; None if this recipient was not part of it."""
    findings: Mapping[str, int]
    """Number of its findings by kind."""


class LastAudit(Struct, frozen=True):
    """The last daily audit over all recipients."""

    completed_at: float
    findings: Mapping[str, int]
    """Number of findings by kind."""


_RECIPIENT = (payments.c.network, payments.c.asset, payments.c.pay_to)
_IN_PERIOD = (
    payments.c.created_at >= bindparam("since", type_=Float),
    payments.c.created_at < bindparam("until", type_=Float),
)
_RECIPIENTS = compile_statement(select(*_RECIPIENT).where(*_IN_PERIOD).distinct().order_by(*_RECIPIENT))
_SETTLED_PAYMENTS = compile_statement(
    select(payments)
    .where(*_IN_PERIOD, *(column == bindparam(column.name) for column in _RECIPIENT))
    .where(or_(is_state("settled"), is_state("delivered")))
    .order_by(payments.c.created_at)
)
_FIRST_EVENT = compile_statement(
    select(func.min(payment_events.c.at).label("at")).where(payment_events.c.payment == bindparam("payment"))
)
_POSITIONS = compile_statement(select(audits).order_by(audits.c.network, audits.c.asset, audits.c.pay_to))
_KEYS = {name: bindparam(name, type_=String) for name in ("network", "asset", "pay_to")}
_NEW_POSITION = insert(audits).from_select(
    ["network", "asset", "pay_to", "position", "position_at"],
    select(*_KEYS.values(), bindparam("block", type_=BigInteger), bindparam("block_time", type_=Float)).where(
        AFFECTED_ROW == AFFECTED_ROW
    ),
)
_STORE_POSITION = compile_statement(
    _NEW_POSITION.on_conflict_do_update(
        index_elements=[audits.c.network, audits.c.asset, audits.c.pay_to],
        set_={"position": _NEW_POSITION.excluded.position, "position_at": _NEW_POSITION.excluded.position_at},
        where=or_(audits.c.position.is_(None), audits.c.position < _NEW_POSITION.excluded.position),
    ).returning(AFFECTED_ROW)
)
_NEW_RESULT = insert(audits).from_select(
    ["network", "asset", "pay_to", "completed_at", "findings"],
    select(*_KEYS.values(), now(), bindparam("findings", type_=String)).where(AFFECTED_ROW == AFFECTED_ROW),
)
_STORE_RESULT = compile_statement(
    _NEW_RESULT.on_conflict_do_update(
        index_elements=[audits.c.network, audits.c.asset, audits.c.pay_to],
        set_={"completed_at": _NEW_RESULT.excluded.completed_at, "findings": _NEW_RESULT.excluded.findings},
    ).returning(AFFECTED_ROW)
)
_CLEAR_RESULTS = compile_statement(
    update(audits)
    .where(audits.c.completed_at.is_not(None))
    .values(completed_at=null(), findings=null())
    .returning(AFFECTED_ROW)
)


def list_recipients(since: float, until: float) -> UnitOfWork[list[Recipient]]:
    """Return the recipients of payments that were submitted in a period."""
    rows = yield BoundStatement(_RECIPIENTS, {"since": since, "until": until})
    return [_parse_recipient(row) for row in rows]


def list_settled_payments(recipient: Recipient, since: float, until: float) -> UnitOfWork[list[ResultRow]]:
    """Return the settled or delivered payments of a recipient that were submitted in a period."""
    return (
        yield BoundStatement(
            _SETTLED_PAYMENTS, {**_recipient_parameters(recipient), "since": since, "until": until}
        )
    )


def find_payments(keys: Sequence[PaymentKey]) -> UnitOfWork[dict[PaymentKey, ResultRow]]:
    """Return the rows of payments by key; payments that are not in the journal are missing."""
    rows: list[ResultRow | None] = []
    for key in keys:
        rows.append((yield from queries.find_payment(key)))  # noqa: PERF401 - one statement after the other
    return {key_of(row): row for row in rows if row is not None}


def find_first_event_time(row: ResultRow) -> UnitOfWork[float | None]:
    """Return the time of a payment's first event, None without events."""
    return (yield BoundStatement(_FIRST_EVENT, {"payment": row["id"]}))[0]["at"]


def list_positions() -> UnitOfWork[list[AuditPosition]]:
    """Return the position of the audit for each recipient."""
    rows = yield BoundStatement(_POSITIONS, {})
    return [
        AuditPosition(
            _parse_recipient(row),
            row["position"],
            row["position_at"],
            row["completed_at"],
            orjson.loads(row["findings"] or "{}"),
        )
        for row in rows
    ]


def find_last_audit() -> UnitOfWork[LastAudit | None]:
    """Return the last daily audit over all recipients, None if there was none."""
    positions_found = yield from list_positions()
    times = [each.completed_at for each in positions_found if each.completed_at is not None]
    if not times:
        return None
    counted = sum((Counter(each.findings) for each in positions_found), Counter[str]())
    return LastAudit(min(times), dict(counted))


def record_position(recipient: Recipient, block: int, block_time: float) -> UnitOfWork[None]:
    """Store the block up to which a recipient was audited, unless a later one is stored."""
    yield BoundStatement(
        _STORE_POSITION, {**_recipient_parameters(recipient), "block": block, "block_time": block_time}
    )


def record_results(results: Mapping[Recipient, Mapping[str, int]]) -> UnitOfWork[None]:
    """Store the findings of a daily audit, replacing those of the previous one."""
    yield BoundStatement(_CLEAR_RESULTS, {})
    for recipient, findings in results.items():
        yield BoundStatement(
            _STORE_RESULT, {**_recipient_parameters(recipient), "findings": orjson.dumps(findings).decode()}
        )


def _recipient_parameters(recipient: Recipient) -> dict[str, str]:
    return {"network": recipient.network, "asset": recipient.asset, "pay_to": recipient.pay_to}


def _parse_recipient(row: ResultRow) -> Recipient:
    return Recipient(row["network"], row["asset"], row["pay_to"])
