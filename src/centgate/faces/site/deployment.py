"""What the website knows: everything that one API says of itself, read at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal
from urllib.parse import quote

import httpx2

from centgate.client import catalog
from centgate.client.catalog import CatalogUnread, Entry, Health, Provider, Requirements
from centgate.dollars import TEST_NETWORKS
from centgate.faces.site.admission import (
    admitted,
    admitted_contact,
    admitted_document,
    admitted_health,
    admitted_terms,
    is_address,
)

MOST = 100
"""Services that are shown."""
WITHIN = 60.0
"""Seconds that telling of all services may take."""
State = Literal["up", "down", "not reachable"]


@dataclass(frozen=True)
class Deployment:
    """An API and its website, as they stood at one moment."""

    api: str
    """The address buyers call, as the API itself says it."""
    site: str
    """The website's own address, without a slash at its end."""
    services: tuple[Entry, ...]
    """In catalogue order."""
    terms: Requirements | None
    """What every route asks for; None where no payments are taken."""
    health: Health | None
    """None when it could not be asked."""
    openapi: dict[str, Any]
    x402: dict[str, Any]
    """What the API says under `/.well-known/x402`."""
    read_at: datetime
    unreachable_since: datetime | None = None
    """When the API was first found not to answer; the rest is from before. None while it answers."""

    @property
    def version(self) -> str:
        """The version of the software that answers."""
        return str(self.openapi["info"]["version"])

    @property
    def contact(self) -> str | None:
        """Whom to write to, as a URL or `mailto:` address; None where the operator does not say."""
        return admitted_contact(self.openapi["info"].get("contact"))

    @property
    def categories(self) -> dict[str, list[Entry]]:
        """The services by category, in catalogue order."""
        grouped: dict[str, list[Entry]] = {}
        for service in self.services:
            grouped.setdefault(service.category, []).append(service)
        return grouped

    def category_title(self, category: str) -> str:
        """A category in words: `crypto-context` is `Crypto context`."""
        return category.replace("-", " ").capitalize()

    def category_summary(self, category: str) -> str:
        """What the API says of a category; empty where it says nothing."""
        tags: list[dict[str, str]] = self.openapi.get("tags", [])
        return next((tag.get("description", "") for tag in tags if tag.get("name") == category), "")

    @property
    def takes_payments(self) -> bool:
        """Whether anything can be bought."""
        return any(service.payment.enforced for service in self.services)

    @property
    def test_money(self) -> bool:
        """Whether it is paid in money that is worth nothing."""
        return any(each.payment.dev_mode or each.payment.network in TEST_NETWORKS for each in self.services)

    @property
    def works(self) -> bool:
        """Whether the API said that it works."""
        return self.health is not None and self.health.status == "ok"

    def up(self, service: Entry) -> bool:
        """Whether a service can be bought now: the API works, takes payments, and has a source for it."""
        return self.works and service.payment.enforced and service.available

    def state(self, service: Entry) -> State:
        """The same in a word, for people."""
        if self.unreachable_since:
            return "not reachable"
        return "up" if self.up(service) else "down"

    def trouble(self, service: Entry) -> str:
        """Why a service cannot be bought now, as a sentence; empty where it can."""
        if self.unreachable_since:
            return f"The API has not been reachable since {moment(self.unreachable_since)}."
        if not self.works:
            return "The API says that it does not work at the moment."
        if not service.payment.enforced:
            return "This deployment takes no payments."
        if not service.available:
            return f"It needs {listing(service.leads, 'or')}, which this deployment has not set up."
        return ""

    def lost(self, now: datetime) -> Deployment:
        """The same API when it does not answer any more."""
        return replace(self, health=None, unreachable_since=self.unreachable_since or now)


def _address(openapi: Any, api: str) -> str:
    """Where the API says that it is called."""
    try:
        address = str(openapi["servers"][0]["url"]).rstrip("/")
    except (KeyError, IndexError, TypeError) as error:
        raise CatalogUnread(
            f"{api}/openapi.json does not say where it is called: is a Centgate there?"
        ) from error
    if not is_address(address):
        raise CatalogUnread(
            f"{api}/openapi.json says that it is called at {address[:80]!r}, which is no address"
        )
    return address


def moment(time: datetime) -> str:
    """A time as people read it, to the minute."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def listing(providers: Sequence[Provider], joint: str) -> str:
    """`A, B and C`."""
    *most, last = [provider.label for provider in providers]
    return f"{', '.join(most)} {joint} {last}" if most else last


def read_deployment(api: str, site: str | None) -> Deployment:
    """Read everything from the API at `api`; CatalogUnread when it cannot be read, or not be shown.

    Without an address of its own, the website calls itself by the API's.
    """
    with httpx2.Client(base_url=api, follow_redirects=False, trust_env=False) as http:
        openapi = catalog.get_json(http, "/openapi.json")
        address = _address(openapi, api)
        services = _services(http, api)
        x402 = catalog.get_json(http, "/.well-known/x402")
        offers = [each.accepts[0] for each in catalog.read_products(x402, api) if each.accepts]
        return Deployment(
            api=address,
            site=(site or address).rstrip("/"),
            services=services,
            terms=admitted_terms(offers[0], api) if offers else None,
            health=_health(http),
            openapi=admitted_document(openapi, api),
            x402=x402,
            read_at=datetime.now(UTC),
        )


def _services(http: httpx2.Client, api: str) -> tuple[Entry, ...]:
    """Every service, whole; a catalogue without an end is left after `WITHIN`."""
    slugs = [each.slug for each in catalog.listed(http)]
    if not 0 < len(slugs) <= MOST:
        raise CatalogUnread(f"{api} has {len(slugs):,} services, and this website shows 1 to {MOST}")
    until = monotonic() + WITHIN
    services: list[Entry] = []
    for slug in slugs:
        if monotonic() > until:
            raise CatalogUnread(f"{api} takes longer than {WITHIN:.0f} seconds to tell of its services")
        services.append(admitted(catalog.entry(http, quote(slug, safe="")), api))
    return tuple(services)


def _health(http: httpx2.Client) -> Health | None:
    try:
        return admitted_health(catalog.health(http))
    except CatalogUnread:
        return None
