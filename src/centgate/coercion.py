"""Coercion of values in upstreams' JSON, which may be strings or numbers and are sometimes invalid.

Each `as_` function accepts any value. If it is not of the expected kind, `as_object` and `as_list` return an
empty one, the others None.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, cast

from centgate.sanitize import clean_line

MAX_USD = 1e15
"""Maximum plausible amount in US dollars, more than the world's total wealth; larger figures are dropped."""
MAX_BASE_UNITS = 2**256 - 1
"""Maximum amount of a token in base units (uint256)."""
_YEAR_9999 = 253_370_764_800
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_HASH = re.compile(r"0x[0-9a-f]{64}")
_UNITS = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_POOL = re.compile(r"0x([0-9a-f]{40}|[0-9a-f]{64})")


def get_path(row: Any, *path: str) -> Any:
    """Return the value at a path of keys; None if a key is missing or a value on the way is not an object."""
    for key in path:
        row = cast(dict[str, Any], row).get(key) if isinstance(row, dict) else None
    return row


def as_object(value: Any) -> dict[str, Any]:
    """Return an object unchanged; an empty one for anything else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def require_objects(rows: list[Any]) -> list[dict[str, Any]]:
    """Return rows, those that are no objects as empty ones. Raises TypeError if not one is an object."""
    if rows and not any(isinstance(row, dict) for row in rows):
        raise TypeError("rows that are no objects")
    return [as_object(row) for row in rows]


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged; an empty one for anything else."""
    return cast(list[Any], value) if isinstance(value, list) else []


def as_text(value: Any) -> str | None:
    """Return a non-empty string unchanged."""
    return value if isinstance(value, str) and value else None


def as_flag(value: Any) -> bool | None:
    """Parse a flag: a boolean, or 0 or 1 as a number or a text. None for anything else."""
    if isinstance(value, str):
        return {"0": False, "1": True}.get(value)
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def as_clean_name(value: Any) -> str | None:
    """Return an untrusted string as one clean line of at most 64 characters."""
    return clean_line(value) if isinstance(value, str) else None


def as_number(value: Any) -> float | None:
    """Parse a finite number; a text in the form of JSON's numbers, or nearly so."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        return None  # Python reads 1_000 and the digits of every script
    try:
        figure = float(value)
    except (ValueError, OverflowError):
        return None
    return figure if math.isfinite(figure) else None


def as_amount(value: Any) -> float | None:
    """Parse a finite number of 0 or more."""
    figure = as_number(value)
    return figure if figure is not None and figure >= 0 else None


def as_usd(value: Any) -> float | None:
    """Parse an amount of US dollars up to the maximum plausible amount."""
    figure = as_amount(value)
    return figure if figure is not None and figure <= MAX_USD else None


def as_price(value: Any) -> float | None:
    """Parse a price of one token in US dollars; 0 is no price."""
    return as_usd(value) or None


def as_count(value: Any) -> int | None:
    """Parse a count: a whole number below 2**53."""
    figure = as_amount(value)
    return int(figure) if figure is not None and figure.is_integer() and figure < 2**53 else None


def as_address(value: Any) -> str | None:
    """Parse an address; returned in lower case."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _ADDRESS.fullmatch(lower) else None


def as_hash(value: Any) -> str | None:
    """Parse 32 bytes in hex, as of a block or a transaction; returned in lower case."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _HASH.fullmatch(lower) else None


def as_pool_id(value: Any) -> str | None:
    """Parse the address of a pool, or its 32-byte id if it has no contract; returned in lower case."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _POOL.fullmatch(lower) else None


def as_base_units(value: Any) -> int | None:
    """Parse an exact amount: an integer, decimal digits or 0x hex.

    Sources return `0x` or an empty string for contracts that do not respond; both give None.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= MAX_BASE_UNITS else None
    if not isinstance(value, str) or len(value) > 80 or not _UNITS.fullmatch(value):
        return None
    units = int(value, 16) if value[:2] in ("0x", "0X") else int(value)
    return units if units <= MAX_BASE_UNITS else None


def as_block_number(value: Any) -> int | None:
    """Parse a block number, decimal or hex; from 2**53 on, no parser of JSON reads it exactly."""
    number = as_base_units(value)
    return number if number is not None and number < 2**53 else None


def as_decimals(value: Any) -> int | None:
    """Parse a token's decimals, 0 to 255."""
    number = as_base_units(value)
    return number if number is not None and number <= 255 else None


def from_unix_seconds(seconds: Any) -> datetime | None:
    """Parse a Unix time in seconds, above 0."""
    figure = as_number(seconds)
    if figure is None or not 0 < figure < _YEAR_9999:
        return None
    return datetime.fromtimestamp(figure, UTC)


def parse_iso_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time with a time zone; returned in UTC."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return parsed.astimezone(UTC) if parsed.tzinfo else None
    except (ValueError, OverflowError):
        return None
