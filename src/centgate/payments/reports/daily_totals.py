"""Figures of the journal: numbers of payments and their states, by UTC day, network and asset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import fields
from sqlalchemy import Float, Integer, Numeric, and_, bindparam, cast, func, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement, literal_column
from sqlalchemy.sql.expression import FunctionElement

from centgate.payments.database.sql import BoundStatement, ResultRow, UnitOfWork, compile_statement
from centgate.payments.database.tables import is_state, payments, refunds
from centgate.payments.journal.read_model import STATE_CONDITIONS

DAY_SECONDS = 86_400
LATE_SECONDS = 60
"""Seconds after the settlement from which a delivery counts as late: redeemed by a later request."""


class PaymentTotals(Struct, frozen=True):
    """Numbers of payments, and the settled amount.

    `payments` is `settling` + `refused` + `unused` + `settled`; `settled` is `delivered` + `redeemable` +
    `refundable` + `refunded`; `late` is a part of `delivered`.
    """

    payments: int = 0
    settling: int = 0
    refused: int = 0
    unused: int = 0
    """Never sent to the facilitator."""
    settled: int = 0
    """Charged."""
    delivered: int = 0
    late: int = 0
    """Delivered a minute or more after they were settled."""
    redeemable: int = 0
    refundable: int = 0
    refunded: int = 0
    amount: int = 0
    """Settled amount in base units."""

    def __add__(self, other: PaymentTotals) -> PaymentTotals:
        return PaymentTotals(*(getattr(self, each) + getattr(other, each) for each in TOTAL_NAMES))


TOTAL_NAMES = tuple(field.name for field in fields(PaymentTotals))


class DailyTotals(Struct, frozen=True):
    """Figures of one token on one network, of one day or of all days."""

    day: int | None
    """Whole days since 1970; None for all days."""
    network: str
    asset: str
    figures: PaymentTotals


def read_daily_totals(since: float, until: float, cutoff: float) -> UnitOfWork[list[DailyTotals]]:
    """Return the figures of each day on which payments were presented, oldest first.

    A payment belongs to the day it was presented on; payments settled before `cutoff` cannot be redeemed.
    """
    rows = yield BoundStatement(_DAILY, {"since": since, "until": until, "lapsed": cutoff})
    return [
        DailyTotals(
            int(row["day"]),
            row["network"],
            row["asset"],
            parse_figures(row),
        )
        for row in rows
    ]


def parse_figures(row: ResultRow) -> PaymentTotals:
    """Return the figures in a row with `FIGURE_COLUMNS`."""
    return PaymentTotals(*(int(row[f"n_{name}"] or 0) for name in TOTAL_NAMES))


def sum_totals(lines: Iterable[DailyTotals]) -> list[DailyTotals]:
    """Return the totals of all days, for each network and asset."""
    sums: dict[tuple[str, str], PaymentTotals] = {}
    for line in lines:
        token = (line.network, line.asset)
        sums[token] = sums.get(token, PaymentTotals()) + line.figures
    return [DailyTotals(None, *token, figures) for token, figures in sorted(sums.items())]


class _day(FunctionElement[int]):  # noqa: N801 - named like an SQL function
    """SQL function: whole days since 1970 of a time in seconds; the databases round differently."""

    type = Integer()
    inherit_cache = True


@compiles(_day, "sqlite")
def _compile_sqlite_day(element: Any, compiler: Any, **options: Any) -> str:  # pyright: ignore[reportUnusedFunction]
    return f"CAST({compiler.process(element.clauses, **options)} / {DAY_SECONDS}.0 AS INTEGER)"


@compiles(_day, "postgresql")
def _compile_postgresql_day(element: Any, compiler: Any, **options: Any) -> str:  # pyright: ignore[reportUnusedFunction]
    return f"CAST(floor({compiler.process(element.clauses, **options)} / {DAY_SECONDS}.0) AS INTEGER)"


def presented_day() -> ColumnElement[int]:
    """Return the expression for the day (UTC) on which a payment was presented, in days since 1970."""
    return _day(payments.c.created_at)


IS_CHARGED = or_(is_state("settled"), is_state("delivered"))
"""Condition for payments whose money was received."""
_CONDITIONS: dict[str, ColumnElement[bool]] = {
    "settling": is_state("settling"),
    "refused": is_state("refused"),
    "unused": is_state("unused"),
    "settled": IS_CHARGED,
    "delivered": is_state("delivered"),
    "late": and_(
        is_state("delivered"),
        payments.c.updated_at - payments.c.settled_at >= literal_column(f"{LATE_SECONDS}.0"),
    ),
    **{name: STATE_CONDITIONS[name] for name in ("redeemable", "refundable", "refunded")},
}
CHARGED_AMOUNT = func.sum(cast(payments.c.amount, Numeric)).filter(IS_CHARGED)
"""Sum of the amounts of charged payments, in base units."""
FIGURE_COLUMNS: tuple[ColumnElement[Any], ...] = (
    func.count().label("n_payments"),
    *(func.count().filter(condition).label(f"n_{name}") for name, condition in _CONDITIONS.items()),
    CHARGED_AMOUNT.label("n_amount"),
)
"""The figures of a group of payments, to be selected from `PAYMENTS_WITH_REFUNDS`."""
PAYMENTS_WITH_REFUNDS = payments.outerjoin(refunds, refunds.c.payment == payments.c.id)
_PRESENTED_DAY = presented_day()
_DAILY = compile_statement(
    select(
        _PRESENTED_DAY.label("day"),
        payments.c.network,
        payments.c.asset,
        *FIGURE_COLUMNS,
    )
    .select_from(PAYMENTS_WITH_REFUNDS)
    .where(
        payments.c.created_at >= bindparam("since", type_=Float),
        payments.c.created_at < bindparam("until", type_=Float),
    )
    .group_by(_PRESENTED_DAY, payments.c.network, payments.c.asset)
    .order_by(_PRESENTED_DAY, payments.c.network, payments.c.asset)
)
