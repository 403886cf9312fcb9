"""Times as operators write them, and as they are shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import floor

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,6})([mhdw])")


def moment(text: str, now: float) -> float:
    """A date, a time, or how long ago, as seconds since 1970; ValueError with what is taken.

    A time without a zone is UTC, a date is its first moment.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        given = datetime.fromisoformat(text.strip())
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is no time: write a date (2026-11-21), a UTC time (2026-11-21T09:00:00Z) or how "
            "long ago (30m, 24h, 7d, 2w)"
        ) from error


def iso(seconds: float) -> str:
    """A moment as ISO 8601 in UTC to the millisecond."""
    whole = datetime.fromtimestamp(floor(seconds * 1000) / 1000, UTC)
    return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(seconds: float) -> str:
    """A time span in its two largest units."""
    minutes = max(0, int(seconds)) // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days}d {hours}h"
    return f"{hours}h {minutes % 60}m" if hours else f"{minutes}m"
