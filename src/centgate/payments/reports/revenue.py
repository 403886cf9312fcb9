"""Figures for an operator's overview: revenue and states by day and service, and money that is not final.

Both are reads: the first of an index range of the given days, the second of the partial index over
payments without an answer.
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Float, Numeric, String, and_, bindparam, case, cast, func, or_, select
from sqlalchemy.sql.elements import literal_column

from centgate.payments.database.sql import BoundStatement, UnitOfWork, compile_statement
from centgate.payments.database.tables import UNDELIVERED, is_state, payments
from centgate.payments.journal.read_model import STATE_CONDITIONS
from centgate.payments.reports.daily_totals import CHARGED_AMOUNT, PAYMENTS_WITH_REFUNDS, presented_day


class ServiceDay(Struct, frozen=True):
    """Figures of one service on one day (UTC) and network."""

    day: int
    """Whole days since 1970."""
    service: str
    network: str
    presented: int
    """Payments that were presented."""
    delivered: int
    refused: int
    amount: int
    """Settled amount in base units."""
    refunded: int
    """Part of it that was paid back later, in base units."""


class UnfinalMoney(Struct, frozen=True):
    """Payments of one kind whose money is not final, on one network."""

    kind: str
    """`open`: the outcome is unknown; `redeemable`: settled, the answer can be fetched; `refundable`: settled
    too long ago for that."""
    service: str
    network: str
    number: int
    amount: int
    """In base units."""


def read_service_days(since: float, until: float) -> UnitOfWork[list[ServiceDay]]:
    """Return the figures of each service for the days from `since` (inclusive) to `until` (exclusive)."""
    rows = yield BoundStatement(_SERVICE_DAYS, {"since": since, "until": until})
    counts = ("presented", "delivered", "refused", "amount", "refunded")
    return [
        ServiceDay(
            int(row["day"]), row["service"], row["network"], *(int(row[f"n_{each}"] or 0) for each in counts)
        )
        for row in rows
    ]


def read_unfinal_money(redeem_cutoff: float) -> UnitOfWork[list[UnfinalMoney]]:
    """Return number and amount of open, redeemable and refundable payments, by service and network."""
    rows = yield BoundStatement(_UNFINAL, {"lapsed": redeem_cutoff})
    return [
        UnfinalMoney(row["kind"], row["service"], row["network"], int(row["number"]), int(row["amount"] or 0))
        for row in rows
        if row["kind"] is not None
    ]


_DAY = presented_day()
_SERVICE_DAYS = compile_statement(
    select(
        _DAY.label("day"),
        payments.c.service,
        payments.c.network,
        func.count().label("n_presented"),
        func.count().filter(is_state("delivered")).label("n_delivered"),
        func.count().filter(is_state("refused")).label("n_refused"),
        CHARGED_AMOUNT.label("n_amount"),
        func.sum(cast(payments.c.amount, Numeric)).filter(STATE_CONDITIONS["refunded"]).label("n_refunded"),
    )
    .select_from(PAYMENTS_WITH_REFUNDS)
    .where(
        payments.c.created_at >= bindparam("since", type_=Float),
        payments.c.created_at < bindparam("until", type_=Float),
    )
    .group_by(_DAY, payments.c.service, payments.c.network)
    .order_by(_DAY, payments.c.service, payments.c.network)
)
_KIND = case(
    *(
        (STATE_CONDITIONS[kind], literal_column(f"'{kind}'", String))
        for kind in ("open", "redeemable", "refundable")
    )
)
_UNFINAL_ROWS = (
    select(
        _KIND.label("kind"),
        payments.c.service,
        payments.c.network,
        cast(payments.c.amount, Numeric).label("value"),
    )
    .select_from(PAYMENTS_WITH_REFUNDS)
    .where(and_(UNDELIVERED, or_(is_state("settling"), is_state("settled"))))
    .subquery()
)
_UNFINAL = compile_statement(
    select(
        _UNFINAL_ROWS.c.kind,
        _UNFINAL_ROWS.c.service,
        _UNFINAL_ROWS.c.network,
        func.count().label("number"),
        func.sum(_UNFINAL_ROWS.c.value).label("amount"),
    )
    .group_by(_UNFINAL_ROWS.c.kind, _UNFINAL_ROWS.c.service, _UNFINAL_ROWS.c.network)
    .order_by(_UNFINAL_ROWS.c.kind, _UNFINAL_ROWS.c.service, _UNFINAL_ROWS.c.network)
)
