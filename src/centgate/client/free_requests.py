"""Unpaid requests: the catalogue, and the payment terms of a call."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import orjson

from centgate.client.catalog import (
    CatalogUnavailable,
    ServiceDetail,
    ServiceSummary,
    parse_service,
    parse_services,
)
from centgate.client.errors import (
    BuyerError,
    Drift,
    InputIssue,
    InvalidInput,
    NotFound,
    ServiceFailed,
    Unavailable,
    Unreachable,
    UnsupportedOptions,
)
from centgate.client.outcome import TRANSIENT_STATUSES, parse_retry_after
from centgate.client.payment import PurchaseOrder
from centgate.client.policy import Patience
from centgate.client.quote import PaymentOffer, parse_offer
from centgate.client.responses import (
    Answer,
    ErrorResponse,
    NotJson,
    UnexpectedShape,
    parse_answer,
    parse_error,
)
from centgate.client.transport import HttpResponse, Transport, TransportError

CATALOG_TIMEOUT = 30.0
"""Total timeout of one request for the catalogue, in seconds."""
_PATH = re.compile(r"/[A-Za-z0-9/_.~-]+")
_SLUG = re.compile(r"[A-Za-z0-9_.~-]{1,100}")


@dataclass(frozen=True, slots=True)
class ServiceOffer:
    """Path of a service, and whether the catalogue called it available at a time (monotonic seconds)."""

    path: str
    is_available: bool
    fetched_at: float

    @property
    def age(self) -> float:
        """Seconds since it was fetched."""
        return time.monotonic() - self.fetched_at


@dataclass(frozen=True, slots=True)
class FreeRequests:
    """Unpaid requests to one API. Every error raised here means that nothing was signed."""

    api: str
    patience: Patience
    transport: Transport
    api_option: str = "CENTGATE_API_URL"
    """Name of the option that set the API's URL."""

    async def fetch_services(self) -> tuple[ServiceSummary, ...]:
        """Return every service of the API, in catalogue order."""
        content = await self._get_json("/services", "the API has no catalogue")
        try:
            return parse_services(content, self.api)
        except CatalogUnavailable as error:
            raise Drift(str(error)) from None

    async def fetch_service(self, slug: str) -> ServiceDetail:
        """Return one service with its schemas."""
        content = await self._fetch_entry(slug)
        try:
            entry = parse_service(content, self.api, slug)
        except CatalogUnavailable as error:
            raise Drift(str(error)) from None
        _require_path(entry.path, self.api, slug)
        return entry

    async def fetch_offer(self, slug: str) -> ServiceOffer:
        """Return what a purchase needs to know of a service; it depends on nothing else in the entry."""
        content = await self._fetch_entry(slug)
        path = cast(dict[str, Any], content).get("path") if isinstance(content, dict) else None
        try:
            is_available = parse_service(content, self.api, slug).available
        except CatalogUnavailable:
            is_available = True  # an entry in another format says nothing about it
        return ServiceOffer(_require_path(path, self.api, slug), is_available, time.monotonic())

    async def _fetch_entry(self, slug: str) -> Any:
        if not _SLUG.fullmatch(slug):
            raise NotFound(f"{self.api} has no service {slug[:60]!r}: `services()` lists its services")
        missing = f"{self.api} has no service {slug!r}: `services()` lists its services"
        return await self._get_json(f"/services/{slug}", missing)

    async def fetch_terms(self, order: PurchaseOrder) -> PaymentOffer | Answer:
        """Send a request without a payment. Returns its terms, or the answer if no payment is required.

        Raises InvalidInput for terms with `details.issues`: an API gives directories the terms for an empty
        object too, but would refuse it with a payment.
        """
        response = await self._send(order.path, order.body, timeout=self.patience.answer)
        if response.status == 200:
            return self._parse_free_answer(response)
        failure = parse_error(response)
        if response.status != 402 or failure.code == "payment_not_configured":
            raise error_from_response(self.api, response, failure)
        if issues := _parse_issues(failure):
            raise InvalidInput(_describe_issues(issues), issues, request_id=failure.request_id)
        return parse_offer(response.headers.get("payment-required"))

    async def _get_json(self, path: str, missing: str) -> Any:
        """Fetch the JSON at an unpaid path."""
        response = await self._send(path, timeout=min(CATALOG_TIMEOUT, self.patience.answer))
        if response.status == 404:
            raise NotFound(missing)
        if response.status != 200:
            raise error_from_response(self.api, response, parse_error(response))
        try:
            return orjson.loads(response.body)
        except ValueError:
            raise Drift(f"{self.api}{path} did not return JSON. Is this a Centgate API URL?") from None

    async def _send(self, path: str, body: bytes | None = None, *, timeout: float) -> HttpResponse:
        """Send an unpaid request, with one retry. Raises Unreachable if there is no complete response."""
        try:
            return await self._send_with_retry(partial(self.transport.send, path, body, timeout=timeout))
        except TransportError as error:
            if error.reason == "too_large":
                raise Drift(f"{self.api} {error}. Is this a Centgate API URL? Nothing was signed") from None
            raise Unreachable(f"{self.api} {error}. Nothing was signed; check {self.api_option}") from None

    async def _send_with_retry(self, send: Callable[[], Awaitable[HttpResponse]]) -> HttpResponse:
        delay = self.patience.pause
        try:
            response = await send()
        except TransportError as error:
            if error.reason != "cut":
                raise
        else:
            retry_after = parse_retry_after(response)
            if response.status not in TRANSIENT_STATUSES or retry_after > self.patience.longest_pause:
                return response
            delay = max(delay, retry_after)
        await anyio.sleep(delay)
        return await send()

    def _parse_free_answer(self, response: HttpResponse) -> Answer:
        try:
            return parse_answer(response, None)
        except (NotJson, UnexpectedShape) as error:
            raise Drift(f"{self.api} did not return a Centgate answer: {error}. Nothing was signed") from None


def _require_path(path: object, api: str, slug: str) -> str:
    if not isinstance(path, str) or not _PATH.fullmatch(path) or path.startswith("//"):
        raise Drift(f"{api} gives {str(path)[:80]!r} as the path of {slug}, which is not a path")
    return path


def error_from_response(api: str, response: HttpResponse, failure: ErrorResponse) -> BuyerError:
    """Map the error response of an unpaid request to an exception."""
    if 300 <= response.status < 400:
        location = response.headers.get("location", "elsewhere")[:200]
        return Drift(f"{api} redirects to {location}: call that address directly. Nothing was signed")
    message, request_id = failure.message, failure.request_id
    match failure.code:
        case "validation_error":
            return InvalidInput(
                message, _parse_issues(failure) or [InputIssue("", message)], request_id=request_id
            )
        case "unsupported_options":
            options = [str(each) for each in _detail_list(failure, "options")]
            return UnsupportedOptions(message, options, request_id=request_id)
        case "not_found":
            return NotFound(message, request_id=request_id)
        case "payment_not_configured" | "provider_unconfigured":
            return Unavailable(f"{api} does not sell it: {message}", request_id=request_id)
        case None:
            return Drift(f"{api} returned {response.status} without a Centgate error. Nothing was signed")
        case code:
            sentence = f"{message} ({code}). Nothing was signed; call again later"
            return ServiceFailed(sentence, code, failure.provider, request_id=request_id)


def _parse_issues(failure: ErrorResponse) -> list[InputIssue]:
    issues = [
        cast(dict[str, Any], each) for each in _detail_list(failure, "issues") if isinstance(each, dict)
    ]
    return [InputIssue(str(each.get("path", "")), str(each.get("message", ""))) for each in issues]


def _describe_issues(issues: list[InputIssue]) -> str:
    """Return the issues as one message, in the form of the API's `validation_error`."""
    listed = (f"{each.path}: {each.message}" if each.path else each.message for each in issues)
    text = "".join(char if char.isprintable() else " " for char in "; ".join(listed)[:500])
    return f"{text}. Nothing was signed"


def _detail_list(failure: ErrorResponse, name: str) -> list[Any]:
    value = failure.details.get(name)
    return cast(list[Any], value) if isinstance(value, list) else []
