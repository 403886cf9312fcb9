"""Base classes of the typed methods: calls by slug, and answers parsed on first access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from centgate.client.errors import Drift
from centgate.client.responses import Answer, Receipt
from centgate.client.wire_model import UntrustedModel

D = TypeVar("D", bound="AnswerData")


class AnswerData(UntrustedModel):
    """Part of an answer. Fields added by newer servers are dropped here, but are in `answer.data`."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore", defer_build=True
    )


class AnswerDrift(Drift):
    """The answer does not match this client's model. It was paid; `answer` holds it unchanged."""

    def __init__(self, answer: Answer, validation_error: ValidationError) -> None:
        first = validation_error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "data"
        super().__init__(
            f"the answer of {answer.envelope.get('service')} does not match this client's model ({location}: "
            f"{first['msg']}): use the raw data in `.answer.data`, and update client and server to the same "
            "version",
            money=answer.money,
            request_id=answer.request_id,
        )
        self.answer = answer


class TypedAnswer(Generic[D]):
    """Answer whose data is parsed into a model on first access.

    `data` raises AnswerDrift if the answer does not match the model. Everything else still works.
    """

    def __init__(self, answer: Answer, model: type[D]) -> None:
        self.answer = answer
        """The raw answer."""
        self._model = model

    @cached_property
    def data(self) -> D:
        """The parsed data of the answer."""
        try:
            return self._model.model_validate(self.answer.data)
        except ValidationError as error:
            raise AnswerDrift(self.answer, error) from error

    @property
    def request_id(self) -> str:
        """Request ID in the server's logs."""
        return self.answer.request_id

    @property
    def cached(self) -> bool:
        """True if the answer came from the server's cache."""
        return self.answer.cached

    @property
    def providers(self) -> tuple[dict[str, Any], ...]:
        """Status of each provider call."""
        return self.answer.providers

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems that reduce the quality of the answer."""
        return self.answer.warnings

    @property
    def receipt(self) -> Receipt | None:
        """Receipt of the payment; None if nothing was paid."""
        return self.answer.receipt


class Calls(ABC):
    """Base class for calls of a sync client."""

    @abstractmethod
    def call(self, slug: str, body: Mapping[str, Any]) -> Answer:
        """Buy one answer."""


class AsyncCalls(ABC):
    """Base class for calls of an async client."""

    @abstractmethod
    async def call(self, slug: str, body: Mapping[str, Any]) -> Answer:
        """Buy one answer."""


def given(**keywords: Any) -> dict[str, Any]:
    """Build a request body from the keywords that are not None; the names are those of the JSON fields."""
    return {name: value for name, value in keywords.items() if value is not None}
