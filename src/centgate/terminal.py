"""What the commands share: how they read the settings, what they say, how they fail."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from centgate.settings import PREFIX, Settings


def settings_given(**given: Any) -> Settings:
    """The settings with what the command line says in their place; None is what it does not say.

    What is wrong with them is told, and ends the command.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = [_problem(found) for found in error.errors()]
    except ValueError as error:
        problems = [str(error)]
    for problem in problems:
        say(problem)
    raise typer.Exit(2)


def _problem(found: ErrorDetails) -> str:
    """What is wrong with a setting, in words; a pattern is told as what the setting is for."""
    message = found["msg"].removeprefix("Value error, ")
    if not found["loc"]:
        return message
    field = str(found["loc"][0])
    if found["type"] == "string_pattern_mismatch":
        setting = Settings.model_fields[field]
        given = repr(found["input"]) if setting.repr else "what is set"  # it may hold a password
        message = f"{given} does not fit. {setting.description}"
    return f"{PREFIX}{field.upper()}: {message}"


def say(sentence: str) -> None:
    """A sentence for who runs the command, beside its output."""
    print(f"centgate: {sentence}", file=sys.stderr)


def fail(sentence: str, code: int = 1) -> NoReturn:
    """End the command with a sentence and an exit code."""
    say(sentence)
    raise typer.Exit(code)
