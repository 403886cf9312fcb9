"""Times as responses and logs show them, and as HTTP headers give them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache


def format_timestamp(moment: datetime | None = None) -> str:
    """Format a time, now by default, as ISO 8601 in UTC to the second, the year always with four digits."""
    if moment is None:
        return _format_second(int(time.time()))
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_unix_time(seconds: float) -> str:
    """Format seconds since 1970 as `format_timestamp` does."""
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))


def parse_retry_after(text: str | None) -> float:
    """Parse `Retry-After`, seconds or a date (RFC 9110 section 10.2.3), into seconds from now.

    Returns 0 if it is missing, invalid or past.
    """
    if text is None:
        return 0.0
    try:
        return max(0.0, float(text) if text.strip().isdecimal() else _seconds_until(text))
    except (ValueError, OverflowError):
        return 0.0


def _seconds_until(date: str) -> float:
    """Return the seconds until an HTTP date. Raises ValueError."""
    moment = parsedate_to_datetime(date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time()


@lru_cache(maxsize=1)
def _format_second(seconds: int) -> str:
    """Format a whole second: an answer names the present one dozens of times."""
    return format_unix_time(seconds)
