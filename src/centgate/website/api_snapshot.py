"""Snapshot of everything one API publishes, read at one moment; the input of the whole website."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal
from urllib.parse import quote

import httpx2

from centgate.client import catalog
from centgate.client.catalog import (
    CatalogUnavailable,
    Health,
    ListedRequirements,
    ServiceDetail,
    ServiceProvider,
)
from centgate.signing.assets import TEST_NETWORKS
from centgate.website.validation import (
    is_site_url,
    parse_contact,
    sanitize_health,
    validate_openapi,
    validate_service,
    validate_terms,
)

MAX_SERVICES = 100
"""Maximum number of services shown."""
READ_TIMEOUT = 60.0
"""Seconds allowed for reading all services."""
ServiceState = Literal["up", "down", "not reachable"]


@dataclass(frozen=True)
class ApiSnapshot:
    """An API and its website, at one moment."""

    api: str
    """The address that buyers call, as published by the API."""
    site: str
    """The website's own address, without a trailing slash."""
    services: tuple[ServiceDetail, ...]
    """In catalogue order."""
    terms: ListedRequirements | None
    """Payment terms of every route; None if payments are disabled."""
    health: Health | None
    """None if the health endpoint was unreachable."""
    openapi: dict[str, Any]
    x402: dict[str, Any]
    """The API's document `/.well-known/x402`."""
    read_at: datetime
    unreachable_since: datetime | None = None
    """Time when the API first failed to respond (all other fields are older); None while it responds."""

    @property
    def version(self) -> str:
        """Version of the API's software."""
        return str(self.openapi["info"]["version"])

    @property
    def contact(self) -> str | None:
        """The operator's contact as a URL or `mailto:` address; None if not published."""
        return parse_contact(self.openapi["info"].get("contact"))

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
    def uses_test_network(self) -> bool:
        """True if payments are made on a test network, whose tokens have no value."""
        return any(each.payment.dev_mode or each.payment.network in TEST_NETWORKS for each in self.services)

    @property
    def is_healthy(self) -> bool:
        """True if the API reports that it is healthy."""
        return self.health is not None and self.health.status == "ok"

    def is_up(self, service: ServiceDetail) -> bool:
        """Return True if a service can be bought now: API healthy, payments enabled, a source configured."""
        return self.is_healthy and service.payment.enforced and service.available

    def state(self, service: ServiceDetail) -> ServiceState:
        """Return the service's state as shown to people."""
        if self.unreachable_since:
            return "not reachable"
        return "up" if self.is_up(service) else "down"

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
        return ""

    def as_unreachable(self, now: datetime) -> ApiSnapshot:
        """Return a copy that marks the API as unreachable, since `now` unless it was unreachable before."""
        return replace(self, health=None, unreachable_since=self.unreachable_since or now)


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


def read_snapshot(api: str, site: str | None) -> ApiSnapshot:
    """Read everything from the API. Raises CatalogUnavailable if it is unreachable or cannot be shown.

    If `site` is None, the website uses the API's address as its own.
    """
    with httpx2.Client(base_url=api, follow_redirects=False, trust_env=False) as http:
        openapi = catalog.fetch_json(http, "/openapi.json")
        address = _public_address(openapi, api)
        services = _read_services(http, api)
        x402 = catalog.fetch_json(http, "/.well-known/x402")
        offers = [each.accepts[0] for each in catalog.parse_paid_routes(x402, api) if each.accepts]
        return ApiSnapshot(
            api=address,
            site=(site or address).rstrip("/"),
            services=services,
            terms=validate_terms(offers[0], api) if offers else None,
            health=_read_health(http),
            openapi=validate_openapi(openapi, api),
            x402=x402,
            read_at=datetime.now(UTC),
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


def _read_health(http: httpx2.Client) -> Health | None:
    try:
        return sanitize_health(catalog.fetch_health(http))
    except CatalogUnavailable:
        return None
