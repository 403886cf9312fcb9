"""What the typed methods stand on: calls by slug, and answers that are read when they are looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from centgate.client.answers import Answer, Receipt
from centgate.client.errors import Drift
from centgate.client.reading import Foreign

D = TypeVar("D", bound="AnswerData")


class AnswerData(Foreign):
    """A part of an answer; what a newer server adds is left out here, and stands in `answer.data`."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore", defer_build=True
    )


class AnswerDrift(Drift):
    """An answer that is not as this client knows it: whole and as it came in `answer`, and paid for."""

    def __init__(self, answer: Answer, found: ValidationError) -> None:
        first = found.errors()[0]
        where = ".".join(map(str, first["loc"])) or "data"
        super().__init__(
            f"the answer of {answer.envelope.get('service')} is not as this client knows it ({where}: "
            f"{first['msg']}): read it as it came in `.answer.data`, and bring client and server to one "
            "version",
            money=answer.money,
            request_id=answer.request_id,
        )
        self.answer = answer


class TypedAnswer(Generic[D]):
    """An answer whose data is read into a model when it is first looked at.

    `data` raises AnswerDrift where the answer is not as this client knows it. All else works then too.
    """

    def __init__(self, answer: Answer, model: type[D]) -> None:
        self.answer = answer
        """The answer as it came."""
        self._model = model

    @cached_property
    def data(self) -> D:
        """What the service found out."""
        try:
            return self._model.model_validate(self.answer.data)
        except ValidationError as error:
            raise AnswerDrift(self.answer, error) from error

    @property
    def request_id(self) -> str:
        """What the server's logs call the request."""
        return self.answer.request_id

    @property
    def cached(self) -> bool:
        """Whether the answer came from the server's cache."""
        return self.answer.cached

    @property
    def providers(self) -> tuple[dict[str, Any], ...]:
        """What each source did."""
        return self.answer.providers

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went less well than it should."""
        return self.answer.warnings

    @property
    def receipt(self) -> Receipt | None:
        """What was paid; None where nothing was."""
        return self.answer.receipt


class Calls(ABC):
    """What makes the calls of a sync client."""

    @abstractmethod
    def call(self, slug: str, body: Mapping[str, Any]) -> Answer:
        """Buy one answer."""


class AsyncCalls(ABC):
    """What makes the calls of an async client."""

    @abstractmethod
    async def call(self, slug: str, body: Mapping[str, Any]) -> Answer:
        """Buy one answer."""


def given(**keywords: Any) -> dict[str, Any]:
    """A request body of the keywords that were given, named as on the wire."""
    return {name: value for name, value in keywords.items() if value is not None}
