"""The catalogue: every service declared in the modules of `services/`, and its JSON entry."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

from centgate.envelope import RoleName
from centgate.prices import format_price
from centgate.provider import Provider, ProviderInfo, Resale
from centgate.service import AnyService, Service
from centgate.web.fetch.policy import PUBLIC
from centgate.web.fields import allow_all_hosts

if TYPE_CHECKING:
    from centgate.accepted_tokens import AcceptedToken
    from centgate.settings import Settings

SERVICES = "centgate.services"
"""Package of the services, loaded by name: a new file is all that a new service needs."""
PRICING_NOTE = (
    "A fixed price per request in USDC by x402, the same on a cache hit. A request that is refused "
    "costs nothing; "
    "one that was paid and could not be answered can be sent again with the same payment."
)


def all_services() -> tuple[AnyService, ...]:
    """Return the services in catalogue order, one from each module of `services/`."""
    return tuple(sorted(_load_services(), key=lambda service: service.order))


def _load_services() -> Iterator[AnyService]:
    package = import_module(SERVICES)
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(import_module(f"{SERVICES}.{module.name}")).values():
            if isinstance(value, Service):
                yield value


def all_providers(catalog: tuple[AnyService, ...]) -> dict[str, type[Provider]]:
    """Return every provider that some service uses, by name."""
    return {source.info.name: source.provider for service in catalog for source in service.sources}


def list_prices(catalog: Iterable[AnyService], settings: Settings) -> list[Decimal]:
    """Return the price of each service on this deployment, in US dollars per call."""
    return [settings.price_of(service.slug) for service in catalog]


def service_summary(service: AnyService, settings: Settings) -> dict[str, Any]:
    """Return a service's entry in `GET /services`."""
    return {
        "slug": service.slug,
        "title": service.title,
        "summary": service.summary,
        "description": service.description,
        "category": service.category,
        "tags": list(service.tags),
        "method": "POST",
        "path": service.path,
        "price": format_price(settings.price_of(service.slug)),
        "priceUsd": float(settings.price_of(service.slug)),
        "pricingNote": PRICING_NOTE,
        "inputExample": service.input_example,
        "outputFields": list(service.output_schema["properties"]),
        "guardrails": list(service.guardrails),
        "providers": [_provider_entry(about, role) for about, role in _provider_roles(service, settings)],
        "payment": {
            "protocol": "x402",
            "network": settings.network,
            "accepts": [_accepted_entry(token) for token in settings.accepted_tokens],
            "enforced": bool(settings.accepted_tokens),
            "devMode": settings.development_chain is not None,
        },
    }


def _accepted_entry(token: AcceptedToken) -> dict[str, str]:
    """Return an entry of `payment.accepts`, with the keys of `CENTGATE_ACCEPTS`."""
    return {
        "network": token.network,
        "asset": token.asset.address,
        "payTo": token.pay_to,
        "name": token.asset.name,
        "version": token.asset.version,
    }


def sources_by_resale(settings: Settings) -> dict[Resale, list[ProviderInfo]]:
    """Return the configured sources by what their terms, or the operator's agreements, say of resale."""
    sources: dict[Resale, list[ProviderInfo]] = {"permitted": [], "unstated": [], "forbidden": []}
    for provider in (kind(settings) for kind in all_providers(all_services()).values()):
        if provider.is_configured:
            sources[provider.resale].append(provider.info)
    return sources


def service_details(service: AnyService, settings: Settings) -> dict[str, Any]:
    """Return the body of `GET /services/<slug>`: the entry with its schemas and a sample response."""
    return {
        **service_summary(service, settings),
        "inputSchema": published_input_schema(service, settings),
        "outputSchema": service.output_schema,
        "outputExample": service.output_example,
        "cacheSeconds": int(service.cache_ttl.total_seconds()),
        "sources": _source_entries(service, settings),
    }


def published_input_schema(service: AnyService, settings: Settings) -> dict[str, Any]:
    """Return the JSON Schema of the bodies that this deployment accepts."""
    schema = service.input_schema(settings.development_chain)
    if settings.fetch_policy != PUBLIC:
        allow_all_hosts(schema)
    return schema


def _source_entries(service: AnyService, settings: Settings) -> list[dict[str, Any]]:
    """Return for each provider if it is configured here, and its terms of use."""
    providers = _select_providers(service, settings)
    return [
        {"name": about.name, "configured": providers[about.name].is_configured, "terms": about.terms}
        for about, _ in service.provider_roles(providers)
    ]


def _provider_roles(service: AnyService, settings: Settings) -> list[tuple[ProviderInfo, RoleName]]:
    return service.provider_roles(_select_providers(service, settings))


def _select_providers(service: AnyService, settings: Settings) -> Mapping[str, Provider]:
    providers = {source.info.name: source.provider(settings) for source in service.sources}
    return service.select_providers(providers, settings.pinned_provider(service.slug))


def _provider_entry(about: ProviderInfo, role: str) -> dict[str, str]:
    return {"name": about.name, "label": about.label, "role": role, "docsUrl": about.docs_url}
