"""A client's services as tools of agent frameworks; each is an extra of the package.

A tool returns the answer as JSON. An error that a model can act on, such as a cap that is reached, is
returned as JSON too, with the state of the money; wrong input is raised in the framework's own way, so that a
model corrects it.
"""

from __future__ import annotations

from typing import Any

from centgate.client.errors import BuyerError, InvalidInput, UnsupportedOptions
from centgate.client.responses import Answer

WRONG_INPUT = (InvalidInput, UnsupportedOptions)
"""Errors that a model can correct; nothing was signed."""


def render_answer(answer: Answer) -> dict[str, Any]:
    """Return what a model needs of an answer."""
    return {
        "data": answer.data,
        "warnings": [*answer.warnings, *answer.notes],
        "requestId": answer.request_id,
    }


def render_error(error: BuyerError) -> dict[str, Any]:
    """Return an error with the state of the money."""
    return {"error": {"message": str(error), "money": error.money}}


def describe_input_error(error: BuyerError) -> str:
    """Return an error in the input with all of its issues."""
    issues = [f"{issue.path}: {issue.message}" for issue in getattr(error, "issues", ())]
    return "; ".join([str(error), *issues])
