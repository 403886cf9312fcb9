"""Filters of the console's templates: money, times, durations and long names as an operator reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from centgate.payments.time_format import format_iso
from centgate.signing.assets import TOKEN_DECIMALS

HIDDEN = "set, not shown"
"""Text instead of a secret."""
_MAX_TEXT = 300


def format_cents(amount: int) -> str:
    """Format base units as dollars: two decimals, or all if there are more."""
    value = Decimal(amount).scaleb(-TOKEN_DECIMALS)
    return f"${value:,.2f}" if value == value.quantize(Decimal("0.01")) else f"${value.normalize():,f}"


def format_time(seconds: float) -> str:
    """Format a time as date and time in UTC."""
    return format_iso(seconds)[:19].replace("T", " ") + " UTC"


def format_day(day: int) -> str:
    """Format whole days since 1970 as a date."""
    return format_iso(day * 86_400)[:10]


def format_duration(seconds: float | None) -> str:
    """Format a duration of a call; a dash without one."""
    if seconds is None:
        return "-"
    if seconds == float("inf"):
        return "> 30 s"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def shorten_hash(name: str) -> str:
    """Shorten an address or a hash; the title of its element has it in full."""
    return name if len(name) <= 20 else f"{name[:8]}…{name[-6:]}"


def clean_text(text: str | None) -> str:
    """Return a stranger's text in one line of printable characters, cut to a length; a dash for none."""
    if not text:
        return "-"
    line = "".join(each if each.isprintable() else "\ufffd" for each in text)
    return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "…"


def show_origin(url: str) -> str:
    """Return scheme, host and port of a URL; the rest may contain keys."""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return HIDDEN
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "dollars": format_cents,
    "time": format_time,
    "day": format_day,
    "duration": format_duration,
    "short": shorten_hash,
    "clean": clean_text,
    "origin": show_origin,
}
