"""What a buyer asks without paying: the catalogue, and the terms of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

import orjson

from centgate.client.answers import Answer, Failure, NotJson, OtherShape, read_answer, read_failure
from centgate.client.catalog import CatalogUnread, Entry, Listed, read_entry, read_listed
from centgate.client.errors import (
    BuyerError,
    Drift,
    InvalidInput,
    Issue,
    NotFound,
    ServiceFailed,
    Unavailable,
    Unreachable,
    UnsupportedOptions,
)
from centgate.client.exchange import Broken, Pause, Reply, Send, Way, ask
from centgate.client.judging import TRANSIENT, retry_after
from centgate.client.payment import Order
from centgate.client.terms import Offer, read_offer

_PATH = re.compile(r"/[A-Za-z0-9/_.~-]+")
_SLUG = re.compile(r"[A-Za-z0-9_.~-]{1,100}")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits, in seconds, and how often it sends the same payment."""

    deadline: float = 90
    """For an answer, from the moment a payment is first sent."""
    attempts: int = 8
    answer: float = 60
    """For one response."""
    connect: float = 10
    pause: float = 0.5
    """Before the second attempt; twice as long before each further one."""
    longest_pause: float = 10


PATIENCE = Patience()
"""How long a client waits unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Requests to one API that cost nothing: a failed one is told with nothing signed."""

    api: str
    patience: Patience

    def services(self) -> Way[tuple[Listed, ...]]:
        """Every service of the API, in its order."""
        content = yield from self._free("/services", "the API has no catalogue")
        try:
            return read_listed(content, self.api)
        except CatalogUnread as error:
            raise Drift(str(error)) from None

    def service(self, slug: str) -> Way[Entry]:
        """One service, whole."""
        content = yield from self._described(slug)
        try:
            entry = read_entry(content, self.api, slug)
        except CatalogUnread as error:
            raise Drift(str(error)) from None
        _require_path(entry.path, self.api, slug)
        return entry

    def path(self, slug: str) -> Way[str]:
        """Where a service is called: all of its entry that a purchase needs, and all that is read of it."""
        content = yield from self._described(slug)
        path = cast(dict[str, Any], content).get("path") if isinstance(content, dict) else None
        return _require_path(path, self.api, slug)

    def _described(self, slug: str) -> Way[Any]:
        if not _SLUG.fullmatch(slug):
            raise NotFound(f"{slug[:60]!r} is no service of {self.api}: `services()` lists them")
        missing = f"{self.api} has no service {slug!r}: `services()` lists those it has"
        return (yield from self._free(f"/services/{slug}", missing))

    def terms(self, order: Order) -> Way[Offer | Answer]:
        """Ask without a payment: the terms; or the answer, where nothing is asked for."""
        headers = {"Content-Type": "application/json"}
        patience = self.patience
        came = yield from self._once_more(
            Send("POST", order.path, order.body, headers, patience.connect, patience.answer)
        )
        if came.status == 200:
            return self._given(came)
        failure = read_failure(came)
        if came.status != 402 or failure.code == "payment_not_configured":
            raise _refusal(self.api, came, failure)
        return read_offer(came.headers.get("payment-required"))

    def _free(self, path: str, missing: str) -> Way[Any]:
        """The JSON at a free path."""
        came = yield from self._once_more(Send("GET", path, connect=self.patience.connect))
        if came.status == 404:
            raise NotFound(missing)
        if came.status != 200:
            raise _refusal(self.api, came, read_failure(came))
        try:
            return orjson.loads(came.body)
        except ValueError:
            raise Drift(f"{self.api}{path} does not answer with JSON: is a Centgate there?") from None

    def _once_more(self, send: Send) -> Way[Reply]:
        """A request that costs nothing, sent twice if need be; Unreachable without a whole response."""
        came = yield from ask(send)
        if (isinstance(came, Broken) and came.why == "cut") or (
            isinstance(came, Reply) and came.status in TRANSIENT and _worth_waiting(came, self.patience)
        ):
            yield Pause(max(self.patience.pause, retry_after(came) if isinstance(came, Reply) else 0))
            came = yield from ask(send)
        if isinstance(came, Broken):
            if came.why == "too_large":
                raise Drift(f"{self.api} {came.sentence}: is a Centgate there? Nothing was signed")
            raise Unreachable(f"{self.api} {came.sentence}. Nothing was signed; look at CENTGATE_API_URL")
        return came

    def _given(self, reply: Reply) -> Answer:
        try:
            return read_answer(reply, None)
        except (NotJson, OtherShape) as error:
            raise Drift(
                f"{self.api} does not answer as a Centgate does: {error}. Nothing was signed"
            ) from None


def _require_path(path: object, api: str, slug: str) -> str:
    if not isinstance(path, str) or not _PATH.fullmatch(path) or path.startswith("//"):
        raise Drift(f"{api} says that {slug} is at {str(path)[:80]!r}, which is no path")
    return path


def _refusal(api: str, reply: Reply, failure: Failure) -> BuyerError:
    """What a request that brought no payment was refused with."""
    if 300 <= reply.status < 400:
        where = reply.headers.get("location", "elsewhere")[:200]
        return Drift(f"{api} redirects to {where}: call that address itself. Nothing was signed")
    told, request_id = failure.message, failure.request_id
    match failure.code:
        case "validation_error":
            return InvalidInput(told, _issues(failure) or [Issue("", told)], request_id=request_id)
        case "unsupported_options":
            named = [str(each) for each in _list(failure, "options")]
            return UnsupportedOptions(told, named, request_id=request_id)
        case "not_found":
            return NotFound(told, request_id=request_id)
        case "payment_not_configured" | "provider_unconfigured":
            return Unavailable(f"{api} does not sell it: {told}", request_id=request_id)
        case None:
            return Drift(f"{api} answers with {reply.status}, and not as a Centgate does. Nothing was signed")
        case code:
            sentence = f"{told} ({code}). Nothing was signed; call again later"
            return ServiceFailed(sentence, code, failure.provider, request_id=request_id)


def _worth_waiting(reply: Reply, patience: Patience) -> bool:
    return retry_after(reply) <= patience.longest_pause


def _issues(failure: Failure) -> list[Issue]:
    told = [cast(dict[str, Any], each) for each in _list(failure, "issues") if isinstance(each, dict)]
    return [Issue(str(each.get("path", "")), str(each.get("message", ""))) for each in told]


def _list(failure: Failure, name: str) -> list[Any]:
    told = failure.details.get(name)
    return cast(list[Any], told) if isinstance(told, list) else []
