"""Lines and bars as inline SVG: coordinates here, drawn by a template beside a table of the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

WIDTH, HEIGHT = 640, 160
"""Size of a drawing in its own units; it is scaled to the page."""
TOP, BOTTOM = 8, 8


class ChartBar(Struct, frozen=True):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    """CSS class that colours it."""
    title: str


class Chart(Struct, frozen=True):
    """A drawing with its description; either a line or bars."""

    title: str
    summary: str
    """Description in words, for those who do not see it."""
    start: str
    end: str
    highest: str
    """Label of the scale's end."""
    line: str = ""
    """Points of a line, as `points` of a polyline."""
    area: str = ""
    """Points of the area below it."""
    bars: Sequence[ChartBar] = ()
    width: int = WIDTH
    height: int = HEIGHT


def draw_line(title: str, points: Sequence[tuple[str, int]], format_value: Callable[[int], str]) -> Chart:
    """Draw values by day as a line with the area below it."""
    highest = max(value for _, value in points)
    step = WIDTH / max(1, len(points) - 1)
    places = [(index * step, _y(value, highest)) for index, (_, value) in enumerate(points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    base = HEIGHT - BOTTOM
    return Chart(
        title,
        f"{title}: between {points[0][0]} and {points[-1][0]}, at most {format_value(highest)} a day.",
        points[0][0],
        points[-1][0],
        format_value(highest),
        line=line,
        area=f"0,{base} {line} {WIDTH},{base}",
    )


def draw_bars(title: str, points: Sequence[tuple[str, int, int]]) -> Chart:
    """Draw two counts by day as stacked bars: answers, and refusals above them."""
    highest = max(good + bad for _, good, bad in points)
    step = WIDTH / max(1, len(points))
    bars: list[ChartBar] = []
    for index, (day, good, bad) in enumerate(points):
        x, width = index * step + 1, max(1.0, step - 2)
        total_y, good_y = _y(good + bad, highest), _y(good, highest)
        words = f"{day}: {good} answers, {bad} refusals"
        if good:
            bars.append(ChartBar(x, good_y, width, HEIGHT - BOTTOM - good_y, "good", words))
        if bad:
            bars.append(ChartBar(x, total_y, width, good_y - total_y, "bad", words))
    return Chart(
        title,
        f"{title}: between {points[0][0]} and {points[-1][0]}, at most {highest} a day.",
        points[0][0],
        points[-1][0],
        str(highest),
        bars=bars,
    )


def _y(value: int, highest: int) -> float:
    """Return the vertical place of a value."""
    room = HEIGHT - TOP - BOTTOM
    return HEIGHT - BOTTOM - (room * value / highest if highest else 0)
