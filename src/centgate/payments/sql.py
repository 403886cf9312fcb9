"""Statements of the journal: written once in SQLAlchemy, compiled to the SQL text of each database.

The drivers get text and parameters directly: executing through SQLAlchemy costs more time than the database's
work on a statement.
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

AFFECTED_ROW: ColumnElement[Any] = literal_column("1")
"""Constant that a change returns for each affected row."""


class ResultRow(Protocol):
    """A result row, with its columns by name."""

    def __getitem__(self, column: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """One atomic query or change, compiled for both databases; it returns rows."""

    sqlite: tuple[str, ...]
    """SQL with named parameters. Of several, each is run only if the one before returned rows."""
    postgresql: str
    """SQL with numbered parameters."""
    names: tuple[str, ...]
    """Parameter names in the order of PostgreSQL's numbers."""


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement with its parameters."""

    statement: CompiledStatement
    parameters: Mapping[str, Any]


UnitOfWork = Generator[BoundStatement, list[ResultRow], T]
"""A database-independent unit of work: a generator that yields statements and receives their rows."""


def compile_statement(clause: ClauseElement) -> CompiledStatement:
    """Compile a SQLAlchemy statement for both databases."""
    return CompiledStatement((_compile_sqlite(clause),), *_compile_postgresql(clause))


def compile_update_then_insert(
    change: Update, row: ColumnElement[bool], into: Table, values: tuple[str, ...]
) -> CompiledStatement:
    """Compile an update of one row and, if it affected one, an insert whose `payment` is the row's `id`.

    `row` is a condition for the changed row that holds before and after. `values` are the columns of the new
    row besides `payment`; parameters have the names of the columns.
    """
    columns = [into.c.payment.name, *values]
    parameters = [bindparam(name, type_=into.c[name].type) for name in values]
    changed_row = change.returning(change.table.c.id).cte("changed")
    both = insert(into).from_select(columns, select(changed_row.c.id, *parameters))
    after = insert(into).from_select(columns, select(change.table.c.id, *parameters).where(row))
    sqlite_texts = (
        _compile_sqlite(change.returning(AFFECTED_ROW)),
        _compile_sqlite(after.returning(AFFECTED_ROW)),
    )
    return CompiledStatement(sqlite_texts, *_compile_postgresql(both.returning(AFFECTED_ROW)))


def _compile_sqlite(clause: ClauseElement) -> str:
    return str(clause.compile(dialect=sqlite.dialect(paramstyle="named")))


def _compile_postgresql(clause: ClauseElement) -> tuple[str, tuple[str, ...]]:
    """Return the text, and the parameter names of $1, $2, … in it."""
    compiled = cast(SQLCompiler, clause.compile(dialect=postgresql()))
    return str(compiled), tuple(compiled.positiontup or ())


class now(FunctionElement[float]):  # noqa: N801 - spelled as SQL's functions are
    """Seconds since 1970 by the database's clock: those of its clients may differ."""

    type = Float()
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite_now(*_: Any, **__: Any) -> str:  # pyright: ignore[reportUnusedFunction]
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgresql_now(*_: Any, **__: Any) -> str:  # pyright: ignore[reportUnusedFunction]
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


def seconds_ago(seconds: str) -> ColumnElement[float]:
    """Return an expression for the database's time minus a parameter in seconds.

    A scalar subquery is evaluated once, and an index can be searched by it.
    """
    return select(now() - bindparam(seconds, type_=Float)).scalar_subquery()
