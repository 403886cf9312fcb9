"""moody: a service that does what a test says, for what the others do only when an upstream is down."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from centgate.provider import Primary
from centgate.providers.phishinglist import PhishingList
from centgate.schema import Data, Request
from centgate.service import service

MOODS: list[Callable[[], Exception]] = []
"""What the next calls raise, first to last; with none left it answers."""
ASKED: list[str] = []
"""The questions it was asked."""


class MoodyRequest(Request):
    """A question."""

    question: str
    patience: int = Field(default=3, ge=0)


class Moody(Data):
    """What it felt like saying."""

    answer: str


@service(
    order=1000,
    title="Moody",
    category="crypto-context",
    tags=("test",),
    guardrails=(),
    input_example=MoodyRequest(question="why"),
    output_example=Moody(answer="because"),
)
async def moody(request: MoodyRequest, phishinglist: Primary[PhishingList]) -> Moody:
    """Answers, or does not."""
    ASKED.append(request.question)
    if MOODS:
        raise MOODS.pop(0)()
    return Moody(answer=f"{request.question}, the {len(ASKED)}. time")
