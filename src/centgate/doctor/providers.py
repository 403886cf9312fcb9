"""Whether the upstreams that are set up can be asked."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from centgate.catalog import all_providers, all_services
from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import Deployment, host
from centgate.errors import CentgateError, ProviderFailure, ProviderRefused
from centgate.jsonrpc.nodes import at_once
from centgate.provider import Announced, Provider, Record
from centgate.service import AnyService
from centgate.settings import PREFIX

ANYTHING = range(200, 500)
"""Statuses of who is there: an address without a path is no question."""


@runtime_checkable
class Probed(Protocol):
    """A provider that has a question which costs nothing, and shows whether its key is good."""

    async def probe(self) -> str:
        """Ask it: what came of it, as a clause; ProviderFailure like every question."""
        ...


async def services(deployment: Deployment) -> Finding:
    """Every service has a provider that can lead its answer."""
    without = [service.slug for service in all_services() if not _led(service, deployment)]
    if without:
        return warning(
            f"{', '.join(without)}: none of the providers is set up, so a call gets 503 and is not charged",
            "set up one that the catalogue names, or leave it",
        )
    return ok("every service has a provider to lead its answer")


def _led(service: AnyService, deployment: Deployment) -> bool:
    pin = deployment.settings.pin(service.slug)
    leads = [source for source in service.sources if source.leads]
    return any(
        source.provider(deployment.settings).configured
        for source in leads
        if pin in (None, source.about.name)
    )


async def provider(name: str, deployment: Deployment) -> Finding:
    """The provider is set up, can be reached, and takes its key where asking that costs nothing."""
    kind = all_providers(all_services())[name]
    setting = PREFIX + name.upper()
    try:
        asked = kind(deployment.settings, deployment.resources).on(Record())
    except (ValueError, OSError) as error:
        return failed(str(error), f"see the settings {setting}_…")
    if issubclass(kind, Announced):
        return skipped("this version has no adapter for it")
    if not asked.settings.enabled:
        return skipped("switched off")
    if not asked.configured:
        needs = "URL" if asked.about.url is None else "KEY"
        return skipped("not set up", f"set {setting}_{needs} to have it asked")
    try:
        said = await asked.probe() if isinstance(asked, Probed) else await _reached(asked, deployment)
    except ProviderRefused as refusal:
        return failed(refusal.message, f"see {setting}_KEY, and the plan it belongs to")
    except (ProviderFailure, CentgateError) as failure:
        return failed(failure.message, f"see the way out to it, or set {setting}_ENABLED=false")
    if asked.record.warnings:
        return warning(f"{said}; {'; '.join(asked.record.warnings)}", f"see the settings {setting}_…")
    return ok(said)


async def _reached(asked: Provider, deployment: Deployment) -> str:
    """Whether somebody answers at its addresses, whatever it says there."""
    addresses = _addresses(asked, deployment)
    if not addresses:
        return "nothing to reach"
    await at_once(asked.upstream.get(address, accept=ANYTHING) for address in addresses)
    key = "; its key was not tried, since calls are counted" if asked.settings.key else ""
    return f"{', '.join(host(address) for address in addresses)} answers{key}"


def _addresses(asked: Provider, deployment: Deployment) -> list[str]:
    about = asked.about
    if about.addresses:
        own = {part: deployment.settings.provider(f"{about.name}_{part}").url for part, _ in about.addresses}
        return [own[part] or address for part, address in about.addresses]
    address = asked.settings.url or about.url
    return [address] if address else []
