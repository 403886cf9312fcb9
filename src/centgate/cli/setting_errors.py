"""Messages about invalid values of settings, for the commands of operators and buyers."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import ErrorDetails

_MESSAGES: Mapping[str, str] = {
    "int_parsing": "{value} is not a whole number",
    "float_parsing": "{value} is not a number",
    "decimal_parsing": "{value} is not a decimal number, such as 0.02",
    "finite_number": "{value} is not a finite number",
    "bool_parsing": "{value} is neither true nor false",
    "literal_error": "{value} is not {expected}",
    "greater_than": "must be more than {gt}, not {value}",
    "greater_than_equal": "must be at least {ge}, not {value}",
    "less_than": "must be less than {lt}, not {value}",
    "less_than_equal": "must be at most {le}, not {value}",
}
"""Messages by pydantic's error types, which call the value an input and do not repeat it."""

_MAX_LENGTH = 40
"""Characters of a value that is repeated; a private key has more."""


def describe_value(error: ErrorDetails) -> str:
    """Describe an invalid value, without the name of its setting."""
    message = _MESSAGES.get(error["type"])
    if message is None:
        return error["msg"].removeprefix("Value error, ")
    limits = {name: _shorten(limit) for name, limit in error.get("ctx", {}).items()}
    return message.format_map({"value": _repeat_value(error["input"]), **limits})


def _repeat_value(value: object) -> str:
    """Return a value as it was written, unless it may be a secret that was meant for another setting."""
    text = str(value)
    is_shown = len(text) <= _MAX_LENGTH and "://" not in text and "@" not in text
    return repr(value) if is_shown else "the value that is set"


def _shorten(limit: object) -> object:
    """Return a limit as one writes it: 0, not 0.0."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit
