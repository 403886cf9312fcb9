"""Overview page: revenue, calls and refusals of today and this month, and money that is not final."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from centgate.console.charts import Chart, draw_bars, draw_line
from centgate.console.console import Console
from centgate.console.formats import format_cents, format_day
from centgate.console.pages import render
from centgate.console.sessions import ConsoleSession
from centgate.payments.journal.queries import CheckedPayments, count_checked_payments
from centgate.payments.reports.daily_totals import DAY_SECONDS
from centgate.payments.reports.revenue import (
    ServiceDay,
    UnfinalMoney,
    read_service_days,
    read_unfinal_money,
)
from centgate.signing.assets import is_test_network

CHART_DAYS = 30
PAST_DAYS_TTL = 600.0
"""Seconds for which the figures of past days are kept: only late deliveries change them."""
TODAY_TTL = 5.0
"""Seconds for which today's figures are kept, whatever the number of open pages."""
UNFINAL_KINDS = ("open", "redeemable", "refundable")


class PeriodFigures(Struct, frozen=True):
    """Sums of a period."""

    revenue: int = 0
    """Settled amount in base units."""
    presented: int = 0
    delivered: int = 0
    refused: int = 0
    refunded: int = 0
    """Part of the revenue that was paid back later, in base units."""

    def __add__(self, other: PeriodFigures) -> PeriodFigures:
        return PeriodFigures(
            self.revenue + other.revenue,
            self.presented + other.presented,
            self.delivered + other.delivered,
            self.refused + other.refused,
            self.refunded + other.refunded,
        )


class ServiceFigures(Struct, frozen=True):
    """Figures of one service."""

    service: str
    today: PeriodFigures
    month: PeriodFigures


class UnfinalTotal(Struct, frozen=True):
    """Number and amount of payments of one kind whose money is not final."""

    kind: str
    number: int
    amount: int


class MoneyOverview(Struct, frozen=True):
    """Figures of all payments with real money, or of all with test money."""

    is_test: bool
    today: PeriodFigures
    month: PeriodFigures
    services: Sequence[ServiceFigures]
    unfinal: Sequence[UnfinalTotal]
    days: Sequence[tuple[int, PeriodFigures]]
    """The last days, oldest first, each with its figures."""

    @property
    def revenue_chart(self) -> Chart:
        """Line of the revenue by day."""
        points = [(format_day(day), figures.revenue) for day, figures in self.days]
        return draw_line("Revenue by day", points, format_cents)

    @property
    def calls_chart(self) -> Chart:
        """Bars of delivered answers and refused payments by day."""
        points = [(format_day(day), figures.delivered, figures.refused) for day, figures in self.days]
        return draw_bars("Answers and refusals by day", points)


class FigureCache:
    """Figures of past days and of today, each read at most once in its time, by one reader at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._past: tuple[float, tuple[float, float], list[ServiceDay]] | None = None
        self._today: tuple[float, float, list[ServiceDay], list[UnfinalMoney]] | None = None
        self._checked: CheckedPayments | None = None

    async def read(
        self, console: Console, *, since: float, today: float, cutoff: float
    ) -> tuple[list[ServiceDay], list[UnfinalMoney], CheckedPayments | None]:
        """Return the figures of all days since a time, the money that is not final, and open payments."""
        async with self._lock:
            past = await self._read_past(console, since, today)
            current, unfinal = await self._read_today(console, today, cutoff)
        return past + current, unfinal, self._checked

    async def _read_past(self, console: Console, since: float, today: float) -> list[ServiceDay]:
        now, found = console.clock(), self._past
        if found is None or found[0] < now or found[1] != (since, today):
            days = await console.read(partial(read_service_days, since, today))
            found = self._past = (now + PAST_DAYS_TTL, (since, today), days)
        return found[2]

    async def _read_today(
        self, console: Console, today: float, cutoff: float
    ) -> tuple[list[ServiceDay], list[UnfinalMoney]]:
        now, found = console.clock(), self._today
        if found is None or found[0] < now or found[1] != today:
            days = await console.read(partial(read_service_days, today, today + DAY_SECONDS))
            unfinal = await console.read(partial(read_unfinal_money, cutoff))
            self._checked = await console.read(count_checked_payments)
            found = self._today = (now + TODAY_TTL, today, days, unfinal)
        return found[2], found[3]


async def show_overview(
    cache: FigureCache, console: Console, request: Request, session: ConsoleSession
) -> Response:
    """Show the overview."""
    view = await console.open_view()
    today = int(view.now // DAY_SECONDS)
    month = _first_day_of_month(view.now)
    first = min(month, today - CHART_DAYS + 1)
    days, unfinal, checked = await cache.read(
        console,
        since=float(first * DAY_SECONDS),
        today=float(today * DAY_SECONDS),
        cutoff=view.redemption_cutoff,
    )
    own_is_test = is_test_network(console.settings.network)
    overviews = [
        build_overview(days, unfinal, today=today, month=month, is_test=is_test)
        for is_test in (own_is_test, not own_is_test)
    ]
    shown = [each for each in overviews if each.is_test == own_is_test or each.services]
    return render(
        console,
        request,
        session,
        "overview.html.j2",
        refreshes=True,
        overviews=shown,
        now=view.now,
        waiting_for_node=checked.waiting_for_node if checked else 0,
    )


def build_overview(
    days: Iterable[ServiceDay], unfinal: Iterable[UnfinalMoney], *, today: int, month: int, is_test: bool
) -> MoneyOverview:
    """Sum the figures of payments with real money, or of those with test money."""
    rows = [each for each in days if is_test_network(each.network) == is_test]
    money = [each for each in unfinal if is_test_network(each.network) == is_test]
    services = sorted({each.service for each in rows})
    by_service = [
        ServiceFigures(
            service,
            _sum_rows(rows, lambda each, name=service: each.service == name and each.day == today),
            _sum_rows(rows, lambda each, name=service: each.service == name and each.day >= month),
        )
        for service in services
    ]
    return MoneyOverview(
        is_test=is_test,
        today=_sum_rows(rows, lambda each: each.day == today),
        month=_sum_rows(rows, lambda each: each.day >= month),
        services=sorted(by_service, key=lambda each: (-each.month.revenue, each.service)),
        unfinal=[_sum_unfinal(money, kind) for kind in UNFINAL_KINDS],
        days=[
            (day, _sum_rows(rows, lambda each, at=day: each.day == at))
            for day in range(today - CHART_DAYS + 1, today + 1)
        ],
    )


def _sum_rows(rows: Iterable[ServiceDay], is_included: Callable[[ServiceDay], bool]) -> PeriodFigures:
    total = PeriodFigures()
    for each in rows:
        if is_included(each):
            total += PeriodFigures(each.amount, each.presented, each.delivered, each.refused, each.refunded)
    return total


def _sum_unfinal(money: Sequence[UnfinalMoney], kind: str) -> UnfinalTotal:
    chosen = [each for each in money if each.kind == kind]
    return UnfinalTotal(kind, sum(each.number for each in chosen), sum(each.amount for each in chosen))


def _first_day_of_month(now: float) -> int:
    start = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(start.timestamp()) // DAY_SECONDS
