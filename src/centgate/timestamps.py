"""Times as responses and logs show them."""

from __future__ import annotations

from datetime import UTC, datetime


def format_timestamp(moment: datetime | None = None) -> str:
    """Format a time, now by default, as ISO 8601 in UTC to the second, the year always with four digits."""
    in_utc = (moment or datetime.now(UTC)).astimezone(UTC)
    return in_utc.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_unix_time(seconds: float) -> str:
    """Format seconds since 1970 as `format_timestamp` does."""
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))
