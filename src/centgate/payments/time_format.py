"""Parse times that operators enter, and format times and ages."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import floor

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,6})([mhdw])")


def parse_time(text: str, now: float) -> float:
    """Parse a date, a time or an age such as 24h into seconds since 1970. Raises ValueError.

    A time without a time zone is UTC; a date is its start.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is not a time: use a date (2026-11-21), a UTC time (2026-11-21T09:00:00Z) or an "
            "age (30m, 24h, 7d, 2w)"
        ) from error


def format_iso(seconds: float) -> str:
    """Format a time as ISO 8601 in UTC to the millisecond."""
    whole = datetime.fromtimestamp(floor(seconds * 1000) / 1000, UTC)
    return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_age(seconds: float) -> str:
    """Format a duration in its two largest units."""
    minutes = max(0, int(seconds)) // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days}d {hours}h"
    return f"{hours}h {minutes % 60}m" if hours else f"{minutes}m"
