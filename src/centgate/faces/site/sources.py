"""The sources of all services, each once."""

from __future__ import annotations

from dataclasses import dataclass

from centgate.faces.site.deployment import Deployment


@dataclass(frozen=True, slots=True)
class UsedSource:
    """A source, and which services ask it."""

    name: str
    label: str
    docs_url: str
    configured: bool
    terms: str
    services: tuple[str, ...]
    """Slugs."""


def all_sources(deployment: Deployment) -> tuple[UsedSource, ...]:
    """Every source of the catalogue by its label."""
    asking: dict[str, list[str]] = {}
    known = {source.name: source for service in deployment.services for source in service.sources}
    providers = {each.name: each for service in deployment.services for each in service.providers}
    for service in deployment.services:
        for provider in service.providers:
            asking.setdefault(provider.name, []).append(service.slug)
    return tuple(
        UsedSource(
            name,
            provider.label,
            provider.docs_url,
            configured=name in known and known[name].configured,
            terms=known[name].terms if name in known else "",
            services=tuple(asking[name]),
        )
        for name, provider in sorted(providers.items(), key=lambda each: each[1].label.lower())
    )
