"""Log of what operators did in the console and by commands: append-only rows in the journal's database."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from sqlalchemy import BigInteger, Integer, String, bindparam, insert, select

from centgate.payments.database.sql import (
    ABOVE_ALL_IDS,
    AFFECTED_ROW,
    NO_OFFSET,
    BoundStatement,
    UnitOfWork,
    compile_statement,
    now,
)
from centgate.payments.database.tables import console_actions

ConsoleActionName = Literal[
    "login", "login refused", "logout", "refund", "reconcile", "checks", "resend", "ping", "enable webhooks"
]
MAX_TEXT = 500
"""Maximum characters of a stored subject or result."""


class ConsoleAction(Struct, frozen=True):
    """One action of an operator."""

    id: int
    at: float
    """Time by the database's clock, in seconds since 1970."""
    action: str
    client: str
    """Address that it came from, or `command line`."""
    subject: str | None
    """Reference of the payment, for example; None if the action has no object."""
    result: str


_RECORD = compile_statement(
    insert(console_actions)
    .from_select(
        ["at", "action", "client", "subject", "result"],
        select(
            now(),
            *(bindparam(name, type_=String) for name in ("action", "client", "subject", "result")),
        ).where(AFFECTED_ROW == AFFECTED_ROW),
    )
    .returning(AFFECTED_ROW)
)
_PAGE = compile_statement(
    select(console_actions)
    .where(console_actions.c.id < bindparam("before", type_=BigInteger))
    .order_by(console_actions.c.id.desc())
    .limit(bindparam("limit", type_=Integer))
    .offset(NO_OFFSET)
)


def record_console_action(
    action: ConsoleActionName, client: str, result: str, *, subject: str | None = None
) -> UnitOfWork[None]:
    """Append an action to the log."""
    values = {"action": action, "client": client, "result": result[:MAX_TEXT]}
    yield BoundStatement(_RECORD, {**values, "subject": subject[:MAX_TEXT] if subject else None})


def list_console_actions(limit: int, before: int | None = None) -> UnitOfWork[list[ConsoleAction]]:
    """Return the newest actions, or the next ones before an id."""
    rows = yield BoundStatement(_PAGE, {"before": before or ABOVE_ALL_IDS, "limit": limit})
    names = ("id", "at", "action", "client", "subject", "result")
    return [ConsoleAction(*(row[name] for name in names)) for row in rows]
