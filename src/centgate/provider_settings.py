"""Settings of the providers: `CENTGATE_<NAME>_<FIELD>`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic import SecretStr

from centgate.environment import PREFIX


def _parse_bool(value: str) -> bool:
    if value.lower() not in ("true", "1", "yes", "on", "false", "0", "no", "off"):
        raise ValueError(f"{value[:40]!r} is neither true nor false")
    return value.lower() in ("true", "1", "yes", "on")


def _parse_urls(value: str) -> str:
    """Check one or several comma-separated URLs; errors do not show them, since some contain keys."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not parts or not all(re.match(r"^https?://[^\s/?#]", part) for part in parts):
        raise ValueError("needs http:// or https:// addresses")
    return ",".join(parts)


def _parse_number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"{value[:40]!r} is not a number from 1 to 1,000,000")
    return number


def _parse_count(value: str) -> int:
    number = _parse_number(value)
    if not number.is_integer():
        raise ValueError(f"{value[:40]!r} is not a whole number")
    return int(number)


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Settings of one provider: each field is `CENTGATE_<NAME>_<FIELD>`, with its parser and meaning."""

    enabled: bool = field(default=True, metadata={"parse": _parse_bool, "meaning": "`false` disables it"})
    url: str | None = field(
        default=None,
        repr=False,
        metadata={"parse": _parse_urls, "meaning": "its address: a proxy, the host of a paid plan, a test"},
    )
    key: SecretStr | None = field(
        default=None, metadata={"parse": SecretStr, "meaning": "the key of the operator's account"}
    )
    per_minute: int | None = field(
        default=None,
        metadata={
            "parse": _parse_count,
            "meaning": "calls per minute instead of its rate limit (per host if there are several): with "
            "Redis of all servers together, else divided among the processes of this server",
        },
    )
    timeout: float | None = field(
        default=None, metadata={"parse": _parse_number, "meaning": "timeout of a call in seconds"}
    )
    resale_permitted: bool | None = field(
        default=None,
        metadata={
            "parse": _parse_bool,
            "meaning": "`true` if the operator may sell answers made of its data, `false` if not; "
            "default: what its terms of use say, empty if they were not found to say it",
        },
    )


PROVIDER_FIELDS = {each.name.upper(): each for each in fields(ProviderSettings)}
"""Fields of the settings of a provider by the ends of their variables' names."""
_PROVIDER_VARIABLE = re.compile(rf"^(?P<name>[A-Z][A-Z0-9_]*?)_(?P<what>{'|'.join(PROVIDER_FIELDS)})$")


def parse_providers(variables: Mapping[str, str]) -> dict[str, ProviderSettings]:
    """Parse the variables `<NAME>_<FIELD>`, by provider; others are ignored. Raises ValueError.

    `variables` has none of the server's own settings, whose names may look alike.
    """
    settings: dict[str, dict[str, Any]] = {}
    for name, value in variables.items():
        if match := _PROVIDER_VARIABLE.match(name):
            parsed = settings.setdefault(match["name"].lower(), {})
            parsed[match["what"].lower()] = _parse_provider_variable(name, match["what"], value)
    return {name: ProviderSettings(**values) for name, values in settings.items()}


def _parse_provider_variable(name: str, what: str, value: str) -> Any:
    try:
        return PROVIDER_FIELDS[what].metadata["parse"](value)
    except ValueError as error:
        raise ValueError(f"{PREFIX}{name}: {error}") from None
