"""Charts of the status page as SVG without styles of its own: bars for the days, a line for the latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from centgate.client.status_report import ServiceStatus, StatusDay

STEP = 6
"""Width of a day in the drawing."""
BAR_HEIGHT = 28
LINE_HEIGHT = 36
_STATES = {"operational": "up", "degraded": "degraded", "outage": "down", None: "none", "unknown": "none"}
_NAMES = {"up": "operational", "degraded": "degraded", "down": "outage", "none": "not measured"}


def draw_days(status: ServiceStatus) -> Markup:
    """Return bars of the daily states: shorter ones are worse, so that colour is not the only sign."""
    label = f"{status.title}, state by day: {describe_days(status.days)}"
    bars = "".join(
        f'<path class="{name}" d="{"".join(_bar(at, name) for at in places)}"/>'
        for name, places in _group_days(status.days).items()
    )
    return _svg("days", label, len(status.days), BAR_HEIGHT, bars)


def draw_latency(status: ServiceStatus) -> Markup:
    """Return the line of the daily p95 latency, interrupted where nothing was measured; "" without any."""
    values = [day.p95_ms for day in status.days]
    known = [value for value in values if value is not None]
    if not known:
        return Markup()
    top = max(known) or 1
    label = f"{status.title}, 95th percentile of the latency by day: {min(known)} to {max(known)} ms"
    line = "".join(_line_parts(values, top))
    return _svg("latency", label, len(values), LINE_HEIGHT, f'<path d="{line}"/>')


def describe_days(days: Sequence[StatusDay]) -> str:
    """Count the days by state in words: `88 not measured, 2 operational`."""
    grouped = _group_days(days)
    return ", ".join(f"{len(places)} {_NAMES[name]}" for name, places in grouped.items())


def _group_days(days: Sequence[StatusDay]) -> dict[str, list[int]]:
    """Return the positions of the days by the class of their state."""
    grouped: dict[str, list[int]] = {}
    for at, day in enumerate(days):
        grouped.setdefault(_STATES[day.state], []).append(at)
    return {name: grouped[name] for name in _NAMES if name in grouped}


def _bar(at: int, name: str) -> str:
    height = {"up": BAR_HEIGHT, "degraded": BAR_HEIGHT * 2 // 3, "down": BAR_HEIGHT // 3, "none": 3}[name]
    return f"M{at * STEP} {BAR_HEIGHT}v-{height}h{STEP - 2}v{height}z"


def _line_parts(values: Sequence[int | None], top: int) -> Iterator[str]:
    """Yield one polyline for each run of measured days; a single day is a short dash."""
    for is_known, run in groupby(enumerate(values), key=lambda each: each[1] is not None):
        if not is_known:
            continue
        points = [
            (at * STEP, round(LINE_HEIGHT - 2 - (LINE_HEIGHT - 4) * (value or 0) / top)) for at, value in run
        ]
        yield "M" + "L".join(f"{x} {y}" for x, y in points) + f"h{STEP - 2}"


def _svg(kind: str, label: str, days: int, height: int, content: str) -> Markup:
    return Markup(
        f'<svg class="chart {kind}" role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {days * STEP} {height}" preserveAspectRatio="none">{content}</svg>'
    )
