"""failing: a test service that raises the errors that a test has scripted."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from centgate.provider import Primary
from centgate.providers.phishinglist import PhishingList
from centgate.schema import Data, Request
from centgate.service import service

FAILURES: list[Callable[[], Exception]] = []
"""Errors of the next calls, first to last; without any left the service answers."""
ASKED: list[str] = []
"""Received questions."""


class FailingRequest(Request):
    """A question."""

    question: str
    patience: int = Field(default=3, ge=0)


class FailingAnswer(Data):
    """The answer."""

    answer: str


@service(
    order=1000,
    title="Failing",
    category="crypto-context",
    tags=("test",),
    guardrails=(),
    input_example=FailingRequest(question="why"),
    output_example=FailingAnswer(answer="because"),
)
async def failing(request: FailingRequest, phishinglist: Primary[PhishingList]) -> FailingAnswer:
    """Raise the next scripted error, or answer."""
    ASKED.append(request.question)
    if FAILURES:
        raise FAILURES.pop(0)()
    return FailingAnswer(answer=f"{request.question}, the {len(ASKED)}. time")
