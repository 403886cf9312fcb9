"""Directories in the console: the offer of each service as directories read it, and what they said of it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from centgate.catalog import all_services
from centgate.coercion import as_list, get_path
from centgate.console.console import Console
from centgate.console.pages import render
from centgate.console.sessions import ConsoleSession
from centgate.payments.terms import MAX_OFFER_HEADER, build_terms
from centgate.prices import format_price
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.receipts.signer import RECEIPT_EXTENSION


class OfferRow(Struct, frozen=True):
    """The offer of one service."""

    slug: str
    url: str
    price: str
    header_bytes: int
    """Size of its `PAYMENT-REQUIRED` header."""
    responses: str | None
    """Statuses that the facilitator's directory answered with, and how often; None if not known."""
    valid_until: float | None
    """End of a signed offer made now, in seconds since 1970; None if offers are not signed."""
    problems: tuple[str, ...]
    """Reasons why a directory may not list it."""


async def show_directories(console: Console, request: Request, session: ConsoleSession) -> Response:
    """Show the offers of all services."""
    settings = console.settings
    services = all_services() if settings.pay_to else ()
    rows = [
        read_offer(each, settings, console.metrics.find_directory_responses(each.slug)) for each in services
    ]
    return render(
        console,
        request,
        session,
        "directories.html.j2",
        rows=rows,
        is_paid=settings.pay_to is not None,
        public_url=settings.public_url,
        facilitator=settings.facilitator,
        problem=console.metrics.problem,
    )


def read_offer(service: AnyService, settings: Settings, responses: Mapping[str, int]) -> OfferRow:
    """Build the terms of a service as the server does, and read them as a directory does.

    `responses`: those of the facilitator's directory, by status.
    """
    terms = build_terms(service, settings)
    header = terms.header
    offer: dict[str, Any] = orjson.loads(b64decode(header))
    return OfferRow(
        slug=service.slug,
        url=terms.route.url,
        price=format_price(settings.price_of(service.slug)),
        header_bytes=len(header),
        responses=", ".join(f"{status}: {number}" for status, number in responses.items()) or None,
        valid_until=_find_end(offer),
        problems=tuple(_find_problems(offer, settings, len(header))),
    )


def _find_problems(offer: Mapping[str, Any], settings: Settings, size: int) -> list[str]:
    problems: list[str] = []
    listing = get_path(offer, "extensions", "bazaar", "info")
    if get_path(listing, "input") is None:
        problems.append("the discovery block has no input")
    if get_path(listing, "output") is None:
        problems.append("the discovery block has no output, which directories require")
    if not settings.public_url or not settings.public_url.startswith("https:"):
        problems.append("its URL is not public https: set CENTGATE_PUBLIC_URL")
    if _find_end(offer) is not None and size > MAX_OFFER_HEADER:
        problems.append(f"its header has more than {MAX_OFFER_HEADER} bytes, which some facilitators refuse")
    return problems


def _find_end(offer: Mapping[str, Any]) -> float | None:
    signed = as_list(get_path(offer, "extensions", RECEIPT_EXTENSION, "info", "offers"))
    end = get_path(signed[0], "payload", "validUntil") if signed else None
    return float(end) if isinstance(end, int | float) else None
