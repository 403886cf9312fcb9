"""Statements of the journal: written once in SQLAlchemy, compiled to the SQL text of each database.

The drivers get text and parameters directly: executing through SQLAlchemy costs more time than the database's
work on a statement.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

from msgspec import Struct
from sqlalchemy import Float, FromClause, Integer, Table, Update, bindparam, literal_column, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningInsert
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import ClauseElement, FunctionElement

T = TypeVar("T")

AFFECTED_ROW: ColumnElement[Any] = literal_column("1")
"""Constant that a change returns for each affected row."""
_RETURNING = "RETURNING 1"
NO_OFFSET: ColumnElement[int] = literal_column("0", Integer)
"""Offset of every query with a limit: SQLAlchemy else adds a parameter for it to SQLite's SQL."""
ABOVE_ALL_IDS = 1 << 62
"""Bound for reading a table by descending id from its start."""


class ResultRow(Protocol):
    """A result row, with its columns by name."""

    def __getitem__(self, column: str, /) -> Any: ...


class CompiledStatement:
    """One atomic query or change, compiled for a database when it is first used there; it returns rows.

    Compiling all statements for both databases takes a tenth of a server's start.
    """

    def __init__(self, for_sqlite: Sequence[ClauseElement], for_postgresql: ClauseElement) -> None:
        """`for_sqlite`: statements of which each is run only if the one before returned rows."""
        self._for_sqlite, self._for_postgresql = for_sqlite, for_postgresql

    @cached_property
    def sqlite(self) -> tuple[tuple[str, Sequence[str]], ...]:
        """SQL with question marks, and the parameter names in their order.

        A change does not return AFFECTED_ROW: the driver counts its rows. SQLite puts returned rows into a
        table of their own, a third of the time of a payment's statements. The driver also takes parameters
        by name, but releases the interpreter's lock for each of them.
        """
        dialect = sqlite.dialect(paramstyle="qmark")
        compiled = [cast(SQLCompiler, clause.compile(dialect=dialect)) for clause in self._for_sqlite]
        return tuple((str(each).removesuffix(f" {_RETURNING}"), each.positiontup or ()) for each in compiled)

    @cached_property
    def postgresql(self) -> str:
        """SQL with numbered parameters."""
        return str(self._compiled)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameter names in the order of PostgreSQL's numbers."""
        return tuple(self._compiled.positiontup or ())

    @cached_property
    def postgresql_numbered(self) -> str:
        """The same SQL with one more parameter, a number that is returned for each affected row."""
        text, _, rest = self.postgresql.rpartition(_RETURNING)
        assert text, "only a statement that returns AFFECTED_ROW"
        assert not rest, "only a statement that returns AFFECTED_ROW"
        return f"{text}RETURNING ${len(self.names) + 1}::integer"

    @cached_property
    def _compiled(self) -> SQLCompiler:
        return cast(SQLCompiler, self._for_postgresql.compile(dialect=postgresql()))


class BoundStatement(Struct, frozen=True):
    """A statement with its parameters."""

    statement: CompiledStatement
    parameters: Mapping[str, Any]
    lock_order: tuple[str, ...] = ()
    """If set, it may be executed in one transaction with others like it, in this order.

    So no two transactions wait for each other's rows. It returns AFFECTED_ROW, and does no harm if it is
    executed once more, even later.
    """

    def list_values(self) -> list[Any]:
        """Return the parameters in the order of PostgreSQL's numbers."""
        return [self.parameters[name] for name in self.statement.names]


UnitOfWork = Generator[BoundStatement, list[ResultRow], T]
"""A database-independent unit of work: a generator that yields statements and receives their rows."""


def compile_statement(clause: ClauseElement) -> CompiledStatement:
    """Compile a SQLAlchemy statement for both databases."""
    return CompiledStatement([clause], clause)


class LinkedRow(Struct, frozen=True):
    """A row to insert whose `payment` is the `id` of a payment; parameters have the names of the columns."""

    into: Table
    values: tuple[str, ...]
    """Its columns besides `payment`."""
    unique: str | None = None
    """A column: if a row with its value exists already, that row is kept."""

    def compile_insert(self, of: FromClause, row: ColumnElement[bool] | None = None) -> ReturningInsert[Any]:
        """Return the insert for the payment in `of`, at the condition `row`; it returns the affected row."""
        parameters = (bindparam(name, type_=self.into.c[name].type) for name in self.values)
        source = select(of.c.id, *parameters)
        statement = insert(self.into).from_select(
            [self.into.c.payment.name, *self.values], source if row is None else source.where(row)
        )
        if self.unique:  # an update that changes nothing: unlike `DO NOTHING` it returns the row
            kept = {self.unique: statement.excluded[self.unique]}
            statement = statement.on_conflict_do_update(index_elements=[self.unique], set_=kept)
        return statement.returning(AFFECTED_ROW)


def compile_update_then_insert(
    change: Update, row: ColumnElement[bool], into: Table, values: tuple[str, ...], *more: LinkedRow
) -> CompiledStatement:
    """Compile an update of one row and, if it affected one, an insert whose `payment` is the row's `id`.

    `row` is a condition for the changed row that holds before and after. `values` are the columns of the new
    row besides `payment`; parameters have the names of the columns. `more` rows are inserted with it.
    """
    table, inserted = change.table, LinkedRow(into, values)
    changed_row = change.returning(table.c.id).cte("changed")
    all_at_once = inserted.compile_insert(changed_row)
    for number, each in enumerate(more):
        all_at_once = all_at_once.add_cte(each.compile_insert(changed_row).cte(f"more_{number}"))
    one_by_one = [
        change.returning(AFFECTED_ROW),
        *(each.compile_insert(table, row) for each in (*more, inserted)),
    ]
    return CompiledStatement(one_by_one, all_at_once)


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
