"""Settings of a server for its operator's commands, and messages about invalid ones."""

from __future__ import annotations

import re
from typing import Any

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from centgate.cli.setting_errors import describe_value
from centgate.cli.terminal import print_message
from centgate.environment import PREFIX
from centgate.settings import Settings

MIN_KEY_DIGITS = 50
"""Hex digits from which a value may be a private key; an address has 40."""


def load_settings(**overrides: Any) -> Settings:
    """Load the settings with overrides from the command line; None means not given there.

    Prints the problems of invalid settings and exits with code 2.
    """
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        problems = [describe_problem(each) for each in error.errors()]
    except ValueError as error:
        problems = [str(error)]
    for problem in problems:
        print_message(problem)
    raise typer.Exit(2)


def describe_problem(error: ErrorDetails) -> str:
    """Describe an invalid setting; for a pattern mismatch, use the setting's description."""
    message = describe_value(error)
    if not error["loc"]:
        return message
    field = str(error["loc"][0])
    if error["type"] == "string_pattern_mismatch":
        setting = Settings.model_fields[field]
        text = str(error["input"])
        # a URL may contain a password, and the key of an address is easily taken for it; a key of 64 digits
        # may have spaces between them, or miss so few that the others tell it
        has_key = len(re.findall(r"[0-9a-fA-F]", text)) >= MIN_KEY_DIGITS
        is_shown = setting.repr and "@" not in text and not has_key
        value = repr(error["input"]) if is_shown else "the value"
        message = f"{value} is not valid. {setting.description}"
    return f"{PREFIX}{field.upper()}: {message}"
