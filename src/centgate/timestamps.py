"""Times as responses and logs show them."""

from __future__ import annotations

from datetime import UTC, datetime


def format_timestamp(moment: datetime | None = None) -> str:
    """Format a time, now by default, as ISO 8601 in UTC to the second."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_unix_time(seconds: float) -> str:
    """Format seconds since 1970 as `format_timestamp` does."""
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))
