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
        # a URL may contain a password, and the key of an address is easily taken for it
        is_shown = setting.repr and "@" not in text and not re.search(r"[0-9a-fA-F]{64}", text)
        value = repr(error["input"]) if is_shown else "the value"
        message = f"{value} is not valid. {setting.description}"
    return f"{PREFIX}{field.upper()}: {message}"
