"""Totals page: figures of each payer, service, day or network in a period."""

from __future__ import annotations

import asyncio
from functools import partial
from urllib.parse import urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from centgate.console.console import Console
from centgate.console.pages import parse_period, render
from centgate.console.sessions import ConsoleSession
from centgate.payments.journal.read_model import PaymentFilter
from centgate.payments.reports.daily_totals import DailyTotals
from centgate.payments.reports.grouped_totals import GroupTotals, read_grouped_totals, sum_groups
from centgate.payments.reports.totals_group import TOTALS_GROUPS, TotalsGroup
from centgate.signing.assets import TEST_NETWORKS

DEFAULT_SINCE = "30d"
"""Period of the page unless another is asked for: the whole journal may take long to read."""
SHOWN_GROUPS = 200
"""Groups on the page; `centgate payments totals` has all."""
MAX_INPUT = 40
_CACHE_TTL = 30.0
"""Seconds for which the last figures are kept, for a page that is loaded again."""


class TotalsRow(Struct, frozen=True):
    """A group with the path of its payments; None if there is no such page."""

    group: GroupTotals
    path: str | None


class TotalsCache:
    """The last figures; one reader at a time, so that many open pages do not load the database."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._last: tuple[float, object, list[GroupTotals]] | None = None

    async def read(
        self, console: Console, by: TotalsGroup, inputs: tuple[str, str], cutoff: float, period: PaymentFilter
    ) -> list[GroupTotals]:
        """Return the figures of a period; `inputs` are its start and end as entered."""
        key = (by, inputs)
        async with self._lock:
            if self._last is None or self._last[0] < console.clock() or self._last[1] != key:
                groups = await console.read(partial(read_grouped_totals, by, period, cutoff))
                self._last = (console.clock() + _CACHE_TTL, key, groups)
            return self._last[2]


async def show_totals(
    cache: TotalsCache, console: Console, request: Request, session: ConsoleSession
) -> Response:
    """Show the totals."""
    view = await console.open_view()
    query = request.query_params
    by = query.get("by", "payer")
    inputs = {
        "since": query.get("since", DEFAULT_SINCE).strip()[:MAX_INPUT],
        "until": query.get("until", "").strip()[:MAX_INPUT],
    }
    problem, groups = None, list[GroupTotals]()
    try:
        if by not in TOTALS_GROUPS:
            raise ValueError(f"{by[:MAX_INPUT]!r} is no grouping: choose {', '.join(TOTALS_GROUPS)}")
        period = parse_period(inputs, view.now)
        given = (inputs["since"], inputs["until"])
        groups = await cache.read(console, by, given, view.redemption_cutoff, period)
    except ValueError as error:
        problem = str(error)
    return render(
        console,
        request,
        session,
        "totals.html.j2",
        status=400 if problem else 200,
        by=by,
        choices=TOTALS_GROUPS,
        inputs=inputs,
        rows=[TotalsRow(each, _payments_path(by, each, inputs)) for each in groups[:SHOWN_GROUPS]],
        sums=list[DailyTotals](sum_groups(groups)),
        group_count=len(groups),
        test_networks=TEST_NETWORKS,
        problem=problem,
    )


def _payments_path(by: str, group: GroupTotals, inputs: dict[str, str]) -> str | None:
    """Return the path of the list of a payer's or a service's payments in the period."""
    parameter = {"payer": "q", "service": "service"}.get(by)
    if parameter is None:
        return None
    given = {parameter: group.name, **{name: value for name, value in inputs.items() if value}}
    return f"/payments?{urlencode(given)}"
