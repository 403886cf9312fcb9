"""Statements for the journal: written once in SQLAlchemy's words, kept as the text that each database takes.

A driver is handed text and parameters as they are, since SQLAlchemy's own way to run a statement costs more
than a database's work on it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Float, Table, Update, bindparam, insert, literal_column, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import ClauseElement, FunctionElement

T = TypeVar("T")

HIT: ColumnElement[Any] = literal_column("1")
"""What a change gives back for each row it hit."""


class Row(Protocol):
    """A row of an answer, its columns by name."""

    def __getitem__(self, column: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Statement:
    """One question or entry, which happens as a whole or not at all; what comes back are rows."""

    sqlite: tuple[str, ...]
    """Parameters by name. Several go together: each is run only if the one before gave rows."""
    postgresql: str
    """Parameters by number."""
    names: tuple[str, ...]
    """Those of the parameters, in the order of PostgreSQL's numbers."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A statement with its parameters."""

    statement: Statement
    parameters: Mapping[str, Any]


Asking = Generator[Ask, list[Row], T]
"""A conversation with a database, whichever it is: it yields what to ask and is sent the rows."""


def statement(what: ClauseElement) -> Statement:
    """A statement of SQLAlchemy's, as both databases take it."""
    return Statement((_named(what),), *_numbered(what))


def change_then_insert(
    change: Update, row: ColumnElement[bool], into: Table, values: tuple[str, ...]
) -> Statement:
    """A change of one row and, if it hit, a row in another table, whose `payment` is the `id` of the first.

    `row` names what was changed, before and after. `values` are the columns of the new row besides `payment`;
    parameters are called as the columns are.
    """
    columns = [into.c.payment.name, *values]
    given = [bindparam(name, type_=into.c[name].type) for name in values]
    changed = change.returning(change.table.c.id).cte("changed")
    both = insert(into).from_select(columns, select(changed.c.id, *given))
    after = insert(into).from_select(columns, select(change.table.c.id, *given).where(row))
    texts = (_named(change.returning(HIT)), _named(after.returning(HIT)))
    return Statement(texts, *_numbered(both.returning(HIT)))


def _named(what: ClauseElement) -> str:
    return str(what.compile(dialect=sqlite.dialect(paramstyle="named")))


def _numbered(what: ClauseElement) -> tuple[str, tuple[str, ...]]:
    """The text, and the names of $1, $2, … in it."""
    compiled = cast(SQLCompiler, what.compile(dialect=postgresql()))
    return str(compiled), tuple(compiled.positiontup or ())


class now(FunctionElement[float]):  # noqa: N801 - spelled as SQL's functions are
    """Seconds since 1970 by the database's own clock: that of the machines it serves may differ."""

    type = Float()
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite_now(*_: Any, **__: Any) -> str:  # pyright: ignore[reportUnusedFunction]
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgresql_now(*_: Any, **__: Any) -> str:  # pyright: ignore[reportUnusedFunction]
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


def ago(seconds: str) -> ColumnElement[float]:
    """The database's time less the parameter `seconds`.

    As a query of its own it is worked out once, and an index can be searched by it.
    """
    return select(now() - bindparam(seconds, type_=Float)).scalar_subquery()
