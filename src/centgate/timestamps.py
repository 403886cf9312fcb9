"""Times as responses and logs show them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


def format_timestamp(moment: datetime | None = None) -> str:
    """Format a time, now by default, as ISO 8601 in UTC to the second, the year always with four digits."""
    if moment is None:
        return _format_second(int(time.time()))
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_unix_time(seconds: float) -> str:
    """Format seconds since 1970 as `format_timestamp` does."""
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))


@lru_cache(maxsize=1)
def _format_second(seconds: int) -> str:
    """Format a whole second: an answer names the present one dozens of times."""
    return format_unix_time(seconds)
