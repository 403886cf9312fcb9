"""Snapshot of everything one API publishes, read at one moment; the input of the whole website."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from time import monotonic
from typing import Any, Literal, cast
from urllib.parse import quote, urlsplit

import httpx2
from msgspec import Struct
from msgspec.structs import replace

from centgate.api.mpp_discovery import SECURITY_SCHEME
from centgate.client import catalog
from centgate.client.base_url import is_private_host
from centgate.client.caps import parse_dollars
from centgate.client.catalog import (
    CatalogUnavailable,
    Health,
    ListedRequirements,
    ServiceDetail,
    ServiceProvider,
)
from centgate.client.status_report import (
    ServiceStatus,
    StatusReport,
    StatusWord,
    fetch_status,
)
from centgate.prices import format_price_range
from centgate.settings import Settings
from centgate.signing.assets import TEST_NETWORKS
from centgate.website.networks import PaymentNetwork, find_network
from centgate.website.validation import (
    has_security_scheme,
    is_site_url,
    parse_contact,
    parse_link,
    parse_redeem_hours,
    sanitize_health,
    validate_openapi,
    validate_service,
    validate_terms,
)

MAX_SERVICES = 100
"""Maximum number of services shown."""
MAX_TERMS = 20
"""Maximum number of accepted tokens shown."""
MCP_CARD = "/.well-known/mcp.json"
"""Path of the card of the API's MCP server; clients that know only the website look for it there as well."""
READ_TIMEOUT = 60.0
"""Seconds allowed for reading all services."""
ServiceState = Literal["up", "degraded", "outage", "down", "no recent calls", "not known", "not reachable"]

_STATES: dict[StatusWord, ServiceState] = {
    "operational": "up",
    "degraded": "degraded",
    "outage": "outage",
    "unconfigured": "down",
    "unknown": "no recent calls",
}


class ApiSnapshot(Struct, frozen=True):
    """An API and its website, at one moment."""

    api: str
    """The address that buyers call, as published by the API."""
    site: str
    """The website's own address, without a trailing slash."""
    services: tuple[ServiceDetail, ...]
    """In catalogue order."""
    terms: ListedRequirements | None
    """Payment terms of every route in the first accepted token; None if payments are disabled."""
    health: Health | None
    """None if the health endpoint was unreachable."""
    openapi: dict[str, Any]
    x402: dict[str, Any]
    """The API's document `/.well-known/x402`."""
    read_at: datetime
    other_terms: tuple[ListedRequirements, ...] = ()
    """Payment terms of every route in the other accepted tokens, in the API's order."""
    measured: StatusReport | None = None
    """What the API measured from real calls; None if it does not publish it."""
    mcp_card: dict[str, Any] | None = None
    """The API's document `/.well-known/mcp.json`; None if it has none."""
    unreachable_since: datetime | None = None
    """Time when the API first failed to respond (all other fields are older); None while it responds."""

    @property
    def version(self) -> str:
        """Version of the API's software."""
        return str(self.openapi["info"]["version"])

    @property
    def prices(self) -> list[Decimal]:
        """Price of each service in US dollars per call, in catalogue order."""
        return [parse_price(service) for service in self.services]

    @property
    def price_range(self) -> str:
        """The price of a call, such as `$0.01`, or `$0.01 to $0.03` if services differ."""
        return format_price_range(self.prices)

    @property
    def redeem_period(self) -> str:
        """The time for which a payment can be redeemed, such as `24 hours`."""
        hours = parse_redeem_hours(self.openapi)
        if hours is None:
            hours = Settings.model_fields["redeem_hours"].default
            return f"{hours:g} hours unless the operator has set another period"
        return f"{hours:g} hour{'' if hours == 1 else 's'}"

    @property
    def contact(self) -> str | None:
        """The operator's contact as a URL or `mailto:` address; None if not published."""
        return parse_contact(self.openapi["info"].get("contact"))

    @property
    def repository(self) -> str | None:
        """URL of the source code that the API runs; None if not published."""
        return parse_link(self.openapi["info"].get("x-repository"))

    @property
    def typical_milliseconds(self) -> int | None:
        """Median over the services, by their calls, of the median time of an answer in the last day."""
        figures = [each.last_day for each in self.measured.services] if self.measured else []
        medians = sorted((each.p50_ms, each.calls) for each in figures if each.p50_ms is not None)
        remaining = sum(calls for _, calls in medians) / 2
        for milliseconds, calls in medians:
            remaining -= calls
            if remaining <= 0:
                return milliseconds
        return None

    @property
    def categories(self) -> dict[str, list[ServiceDetail]]:
        """Services by category, in catalogue order."""
        grouped: dict[str, list[ServiceDetail]] = {}
        for service in self.services:
            grouped.setdefault(service.category, []).append(service)
        return grouped

    def category_title(self, category: str) -> str:
        """Return a category's title: `crypto-context` becomes `Crypto context`."""
        return category.replace("-", " ").capitalize()

    def category_summary(self, category: str) -> str:
        """Return the API's description of a category, or ""."""
        tags: list[dict[str, str]] = self.openapi.get("tags", [])
        return next((tag.get("description", "") for tag in tags if tag.get("name") == category), "")

    @property
    def takes_payments(self) -> bool:
        """True if payments are enabled."""
        return any(service.payment.enforced for service in self.services)

    @property
    def accepts_mpp(self) -> bool:
        """True if payments by MPP are accepted beside x402."""
        return self.takes_payments and has_security_scheme(self.openapi, SECURITY_SCHEME)

    @property
    def uses_test_network(self) -> bool:
        """True if payments are made on a test network, whose tokens have no value."""
        return any(each.payment.dev_mode or each.payment.network in TEST_NETWORKS for each in self.services)

    @property
    def payment_network(self) -> PaymentNetwork | None:
        """The first network of payments; None if payments are disabled."""
        return None if self.terms is None else self._find_network(self.terms)

    @property
    def payment_options(self) -> list[tuple[ListedRequirements, PaymentNetwork]]:
        """Terms and network of each accepted token, in the API's order; empty if payments are disabled."""
        accepted = () if self.terms is None else (self.terms, *self.other_terms)
        return [(each, self._find_network(each)) for each in accepted]

    @property
    def payment_networks(self) -> list[PaymentNetwork]:
        """The networks of payments, each once."""
        return list({each.identifier: each for _, each in self.payment_options}.values())

    def _find_network(self, terms: ListedRequirements) -> PaymentNetwork:
        """Return the network of terms.

        It has no explorer if the API is a local one of a test network: a development chain has the identifier
        of a public network, whose explorer knows none of its transactions.
        """
        network = find_network(terms.network)
        is_local = is_private_host(urlsplit(self.api).hostname or "")
        return replace(network, explorer=None) if is_local and self.uses_test_network else network

    @property
    def is_healthy(self) -> bool:
        """True if the API reports that it is healthy."""
        return self.health is not None and self.health.status == "ok"

    def is_up(self, service: ServiceDetail) -> bool:
        """Return True if a service can be bought: healthy API, payments on, a source set up, no outage."""
        measured = self.status_of(service)
        is_offered = self.is_healthy and service.payment.enforced and service.available
        return is_offered and (measured is None or measured.available)

    def state(self, service: ServiceDetail) -> ServiceState:
        """Return the service's state as shown to people."""
        if self.unreachable_since:
            return "not reachable"
        if not (self.is_healthy and service.payment.enforced and service.available):
            return "down"
        measured = self.status_of(service)
        return _STATES[measured.state] if measured else "not known"

    def status_of(self, service: ServiceDetail) -> ServiceStatus | None:
        """Return what was measured of a service; None if nothing is published."""
        reports = self.measured.services if self.measured else ()
        return next((each for each in reports if each.slug == service.slug), None)

    def unavailable_reason(self, service: ServiceDetail) -> str:
        """Return a sentence on why a service cannot be bought now, or "" if it can."""
        if self.unreachable_since:
            return f"The API has been unreachable since {format_time(self.unreachable_since)}."
        if not self.is_healthy:
            return "The API reports that it is not working at the moment."
        if not service.payment.enforced:
            return "Payments are disabled on this deployment."
        if not service.available:
            return f"It needs {join_labels(service.leads, 'or')}, which is not configured on this deployment."
        if not self.is_up(service):
            return "None of its sources answers at the moment; new payments are refused and not charged."
        return ""

    def as_unreachable(self, now: datetime) -> ApiSnapshot:
        """Return a copy that marks the API as unreachable, since `now` unless it was unreachable before."""
        return replace(self, health=None, measured=None, unreachable_since=self.unreachable_since or now)


def _public_address(openapi: Any, api: str) -> str:
    """Return the API's public address from its OpenAPI document. Raises CatalogUnavailable."""
    try:
        address = str(openapi["servers"][0]["url"]).rstrip("/")
    except (KeyError, IndexError, TypeError) as error:
        raise CatalogUnavailable(
            f"{api}/openapi.json has no server address. Is this a Centgate API URL?"
        ) from error
    if not is_site_url(address):
        raise CatalogUnavailable(
            f"{api}/openapi.json has the server address {address[:80]!r}, which is not a valid URL"
        )
    return address


def format_time(time: datetime) -> str:
    """Format a time for people, in UTC, to the minute."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def join_labels(providers: Sequence[ServiceProvider], conjunction: str) -> str:
    """Join the labels of providers: `A, B and C`."""
    *others, last = [provider.label for provider in providers]
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def parse_price(service: ServiceDetail) -> Decimal:
    """Return the price of a call in US dollars."""
    return parse_dollars(service.price)


def read_snapshot(api: str, site: str | None) -> ApiSnapshot:
    """Read everything from the API. Raises CatalogUnavailable if it is unreachable or cannot be shown.

    If `site` is None, the website uses the API's address as its own.
    """
    with httpx2.Client(base_url=api, follow_redirects=False, trust_env=False) as http:
        openapi = catalog.fetch_json(http, "/openapi.json")
        address = _public_address(openapi, api)
        services = _read_services(http, api)
        x402 = catalog.fetch_json(http, "/.well-known/x402")
        offers = [each.accepts for each in catalog.parse_paid_routes(x402, api) if each.accepts]
        terms = [validate_terms(each, api) for each in offers[0][:MAX_TERMS]] if offers else []
        return ApiSnapshot(
            api=address,
            site=(site or address).rstrip("/"),
            services=services,
            terms=terms[0] if terms else None,
            other_terms=tuple(terms[1:]),
            health=_read_health(http),
            openapi=validate_openapi(openapi, api),
            x402=x402,
            read_at=datetime.now(UTC),
            measured=_read_status(http),
            mcp_card=_read_mcp_card(http),
        )


def _read_services(http: httpx2.Client, api: str) -> tuple[ServiceDetail, ...]:
    """Read all services in full; give up after `READ_TIMEOUT` seconds, in case the catalogue never ends."""
    slugs = [each.slug for each in catalog.fetch_services(http)]
    if not 0 < len(slugs) <= MAX_SERVICES:
        raise CatalogUnavailable(
            f"{api} has {len(slugs):,} services, but this website supports 1 to {MAX_SERVICES}"
        )
    deadline = monotonic() + READ_TIMEOUT
    services: list[ServiceDetail] = []
    for slug in slugs:
        if monotonic() > deadline:
            raise CatalogUnavailable(
                f"reading the services of {api} took longer than {READ_TIMEOUT:.0f} seconds"
            )
        services.append(validate_service(catalog.fetch_service(http, quote(slug, safe="")), api))
    return tuple(services)


def _read_status(http: httpx2.Client) -> StatusReport | None:
    try:
        return fetch_status(http)
    except CatalogUnavailable:
        return None


def _read_mcp_card(http: httpx2.Client) -> dict[str, Any] | None:
    try:
        card = catalog.fetch_json(http, MCP_CARD)
    except CatalogUnavailable:
        return None
    return cast(dict[str, Any], card) if isinstance(card, dict) else None


def _read_health(http: httpx2.Client) -> Health | None:
    try:
        return sanitize_health(catalog.fetch_health(http))
    except CatalogUnavailable:
        return None
