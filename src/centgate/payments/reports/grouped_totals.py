"""Figures of the journal by payer, service, day or network, for operators.

Charged payments are never pruned, so their figures are complete for all time. Refused and unused payments
are pruned after a while, and missing then.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Float, bindparam, select
from sqlalchemy.sql.elements import ColumnElement

from centgate.payments.database.sql import BoundStatement, CompiledStatement, UnitOfWork, compile_statement
from centgate.payments.database.tables import payments
from centgate.payments.journal.read_model import FOREVER, PaymentFilter
from centgate.payments.reports.daily_totals import (
    DAY_SECONDS,
    FIGURE_COLUMNS,
    PAYMENTS_WITH_REFUNDS,
    DailyTotals,
    PaymentTotals,
    parse_figures,
    presented_day,
    sum_totals,
)
from centgate.payments.reports.totals_group import TotalsGroup
from centgate.payments.time_format import format_iso

_TOKEN = (payments.c.network, payments.c.asset)


class GroupTotals(Struct, frozen=True):
    """Figures of one payer, service, day or network, in one token: amounts of two tokens are never added."""

    name: str
    """The payer's address, the service's slug, the UTC day as a date, or the network."""
    network: str
    asset: str
    figures: PaymentTotals


def read_grouped_totals(
    by: TotalsGroup, payment_filter: PaymentFilter, redeem_cutoff: float
) -> UnitOfWork[list[GroupTotals]]:
    """Return the figures of all groups with a payment that matches time, service and payer of the filter.

    Days and networks are in ascending order; payers and services by charged amount, the largest first.
    """
    values: dict[str, Any] = {
        "service": payment_filter.service,
        "payer": payment_filter.payer,
        "since": payment_filter.since or None,
        "until": payment_filter.until if payment_filter.until < FOREVER else None,
    }
    given = {name: value for name, value in values.items() if value is not None}
    statement = _compile_totals(by, tuple(given))
    rows = yield BoundStatement(statement, {**given, "lapsed": redeem_cutoff})
    groups = [
        GroupTotals(_parse_name(by, row["name"]), row["network"], row["asset"], parse_figures(row))
        for row in rows
    ]
    groups.sort(key=lambda each: (each.name, each.network, each.asset))
    if by in ("payer", "service"):
        groups.sort(key=lambda each: (each.figures.amount, each.figures.payments), reverse=True)
    return groups


def sum_groups(groups: Iterable[GroupTotals]) -> list[DailyTotals]:
    """Return the sum of all groups for each network and asset."""
    return sum_totals(DailyTotals(None, each.network, each.asset, each.figures) for each in groups)


def _parse_name(by: TotalsGroup, name: Any) -> str:
    return format_iso(int(name) * DAY_SECONDS)[:10] if by == "day" else str(name)


@cache
def _compile_totals(by: TotalsGroup, filters: tuple[str, ...]) -> CompiledStatement:
    """Compile the query with these filters only.

    If all rows met a condition on the time, SQLite would still read them by the index of times, in another
    order than that of the table.
    """
    groups: dict[TotalsGroup, ColumnElement[Any]] = {
        "payer": payments.c.payer,
        "service": payments.c.service,
        "day": presented_day(),
        "network": payments.c.network,
    }
    group, at = groups[by], payments.c.created_at
    conditions: dict[str, ColumnElement[bool]] = {
        "service": payments.c.service == bindparam("service"),
        "payer": payments.c.payer == bindparam("payer"),
        "since": at >= bindparam("since", type_=Float),
        "until": at < bindparam("until", type_=Float),
    }
    return compile_statement(
        select(group.label("name"), *_TOKEN, *FIGURE_COLUMNS)
        .select_from(PAYMENTS_WITH_REFUNDS)
        .where(*(conditions[name] for name in filters))
        .group_by(group, *_TOKEN)
    )
