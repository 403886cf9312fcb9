"""Reading the values in upstreams' JSON, which come as text or numbers, and sometimes as nonsense.

Each function takes whatever stood there and gives None for what it is not.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, cast

from centgate.text import cleaned

MOST_USD = 1e15
"""More than all that is owned in the world: a figure beyond it says nothing."""
MOST_UNITS = 2**256 - 1
"""The largest amount that a token can have."""
_YEAR_9999 = 253_370_764_800
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_POOL = re.compile(r"0x([0-9a-f]{40}|[0-9a-f]{64})")


def at(row: Any, *path: str) -> Any:
    """What stands at a path of keys; None where anything is missing or of another kind."""
    for key in path:
        row = cast(dict[str, Any], row).get(key) if isinstance(row, dict) else None
    return row


def items(value: Any) -> list[Any]:
    """A list; an empty one for anything else."""
    return cast(list[Any], value) if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """A text that says something, as it was written."""
    return value if isinstance(value, str) and value else None


def name(value: Any) -> str | None:
    """A text that strangers wrote, cleaned and cut to 64 characters."""
    return cleaned(value) if isinstance(value, str) else None


def number(value: Any) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        figure = float(value)
    except (ValueError, OverflowError):
        return None
    return figure if math.isfinite(figure) else None


def amount(value: Any) -> float | None:
    """A finite number of 0 or more."""
    figure = number(value)
    return figure if figure is not None and figure >= 0 else None


def usd(value: Any) -> float | None:
    """An amount of US dollars that is not absurd."""
    figure = amount(value)
    return figure if figure is not None and figure <= MOST_USD else None


def price(value: Any) -> float | None:
    """US dollars for one token: an amount above nothing."""
    return usd(value) or None


def count(value: Any) -> int | None:
    """How many: a whole number."""
    figure = amount(value)
    return int(figure) if figure is not None and figure.is_integer() and figure < 2**53 else None


def address(value: Any) -> str | None:
    """An address, in lower case."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _ADDRESS.fullmatch(lower) else None


def pool(value: Any) -> str | None:
    """The address of a pool, or its 32-byte id where it has no contract of its own, in lower case."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _POOL.fullmatch(lower) else None


def base_units(value: Any) -> int | None:
    """An amount given as a number, in decimal digits or as 0x hex, exact.

    `0x` alone, and no text at all, is what sources say of contracts that do not answer.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= MOST_UNITS else None
    if not isinstance(value, str) or len(value) > 80:
        return None
    try:
        units = int(value, 16) if value[:2] in ("0x", "0X") else int(value)
    except ValueError:
        return None
    return units if 0 <= units <= MOST_UNITS else None


def decimals(value: Any) -> int | None:
    """A token's decimals, 0 to 255."""
    number = base_units(value)
    return number if number is not None and number <= 255 else None


def since_1970(seconds: Any) -> datetime | None:
    """A time given in seconds, above 0."""
    figure = number(seconds)
    if figure is None or not 0 < figure < _YEAR_9999:
        return None
    return datetime.fromtimestamp(figure, UTC)


def moment(value: Any) -> datetime | None:
    """A time in ISO 8601 with its zone."""
    if not isinstance(value, str):
        return None
    try:
        told = datetime.fromisoformat(value)
        return told.astimezone(UTC) if told.tzinfo else None
    except (ValueError, OverflowError):
        return None
