"""Base classes of the typed methods: calls by slug, and answers parsed on first access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from centgate.client.errors import Drift

if TYPE_CHECKING:
    from pydantic import ValidationError

    from centgate.client.answer_data import AnswerData
    from centgate.client.errors import Money
    from centgate.client.payment import Receipt
    from centgate.client.responses import Answer

MAX_REPR = 200
"""Characters of an answer's data in its repr."""
D = TypeVar("D", bound="AnswerData")


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

    def __init__(self, answer: Answer, model: type[D] | str) -> None:
        """Wrap an answer; `model` may be the name of a generated model, which is then imported on access."""
        self.answer = answer
        """The raw answer."""
        self._model = model

    @cached_property
    def data(self) -> D:
        """The parsed data of the answer."""
        from pydantic import ValidationError  # imported with the model

        try:
            return self._load_model().model_validate(self.answer.data)
        except ValidationError as error:
            raise AnswerDrift(self.answer, error) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values: its whole body, with the receipt, the money and notes."""
        return self.answer.to_dict()

    def __repr__(self) -> str:
        paid = f"paid {self.receipt.amount} USD" if self.receipt else f"money {self.answer.money}"
        data = repr(self.answer.data)
        shown = data if len(data) <= MAX_REPR else f"{data[:MAX_REPR]}…"
        name = f"{self.answer.envelope.get('service')} {self.request_id}"[:MAX_REPR]
        return f"<TypedAnswer {name!r}, {paid}, {len(self.warnings)} warnings, data={shown}>"

    def _load_model(self) -> type[D]:
        if isinstance(self._model, str):
            return getattr(import_module("centgate.client._generated.models"), self._model)
        return self._model

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
        """Receipt of the payment; None without one: `money` tells what is known then."""
        return self.answer.receipt

    @property
    def money(self) -> Money:
        """`moved` if there is a receipt; `unknown` if a payment was sent and no receipt came back."""
        return self.answer.money

    @property
    def notes(self) -> tuple[str, ...]:
        """Observations of this client, such as a missing receipt."""
        return self.answer.notes

    @property
    def body(self) -> bytes:
        """The body, byte for byte: a signed receipt covers its hash."""
        return self.answer.body


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


def build_body(**keywords: Any) -> dict[str, Any]:
    """Build a request body from the keywords that are not None; the names are those of the JSON fields."""
    return {name: value for name, value in keywords.items() if value is not None}
