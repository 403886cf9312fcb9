"""Index of the sources of all services."""

from __future__ import annotations

from dataclasses import dataclass

from centgate.website.api_snapshot import ApiSnapshot


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source and the services that use it."""

    name: str
    label: str
    docs_url: str
    configured: bool
    terms: str
    services: tuple[str, ...]
    """Slugs of the services."""


def list_sources(deployment: ApiSnapshot) -> tuple[SourceEntry, ...]:
    """Return all sources of the catalogue, sorted by label."""
    services_by_source: dict[str, list[str]] = {}
    sources = {source.name: source for service in deployment.services for source in service.sources}
    providers = {each.name: each for service in deployment.services for each in service.providers}
    for service in deployment.services:
        for provider in service.providers:
            services_by_source.setdefault(provider.name, []).append(service.slug)
    return tuple(
        SourceEntry(
            name,
            provider.label,
            provider.docs_url,
            configured=name in sources and sources[name].configured,
            terms=sources[name].terms if name in sources else "",
            services=tuple(services_by_source[name]),
        )
        for name, provider in sorted(providers.items(), key=lambda each: each[1].label.lower())
    )
