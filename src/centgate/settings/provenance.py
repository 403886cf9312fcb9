"""Where the values of settings come from, and variables that set nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from centgate.environment import PREFIX, read_env_file
from centgate.settings.model import Settings
from centgate.settings.terms import SINGLE_TOKEN_FIELDS
from centgate.settings.variables import PRICE_PREFIX, field_variables, read_server_variables

SettingSource = Literal["environment", ".env", "file", "command", "default"]
"""Where the value of a setting comes from; `command`: an option, or derived at the start."""
_FIELD_VARIABLES = field_variables(Settings)
_COMMAND_OPTIONS = frozenset({"host", "port", "workers"})


def find_unknown_variables(provider_variables: Collection[str]) -> list[str]:
    """Return the `CENTGATE_` variables that no setting reads.

    `provider_variables` are those of the providers, without the prefix; `*` in one stands for a chain id.
    """
    known = {name.upper() for name in provider_variables}
    return [
        PREFIX + name
        for name in sorted(read_server_variables(_FIELD_VARIABLES))
        if name not in _FIELD_VARIABLES
        and not name.startswith(PRICE_PREFIX)  # the start refuses those of no service
        and not {name, re.sub(r"_[0-9]+_", "_*_", name)} & known
    ]


def get_raw_value(name: str) -> str | None:
    """Return the raw value of a setting, by its name without the prefix; None if it is not set."""
    return read_server_variables(_FIELD_VARIABLES).get(name)


def find_variables(names: Iterable[str]) -> list[str]:
    """Return the variables, with prefix, that set these settings, in lower case, by a value or a file."""
    merged: dict[str, str | None] = {**read_env_file(), **os.environ}
    candidates = (f"{PREFIX}{name.upper()}{suffix}" for name in names for suffix in ("", "_FILE"))
    return [each for each in candidates if merged.get(each)]


def find_setting_source(settings: Settings, name: str) -> SettingSource:
    """Return where the value of a setting comes from, by its name in lower case, without the prefix."""
    if settings.accepts and name in SINGLE_TOKEN_FIELDS:
        name = "accepts"
    variable = PREFIX + name.upper()
    value, field = getattr(settings, name, None), Settings.model_fields.get(name)
    places: tuple[tuple[Mapping[str, str | None], SettingSource], ...] = (
        (os.environ, "environment"),
        (read_env_file(), ".env"),
    )
    for names, kind in places:
        if raw := names.get(variable):
            return "command" if name in _COMMAND_OPTIONS and raw != str(value) else kind
        if names.get(f"{variable}_FILE") and f"{name}_file" not in Settings.model_fields:
            return "file"
    return "command" if field is not None and value != field.default else "default"
