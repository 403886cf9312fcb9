"""Checks of the configured providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from centgate.catalog import all_providers, all_services, sources_by_resale
from centgate.chains import CHAIN_BY_ID
from centgate.cli.doctor.check import fail, ok, skip, warn
from centgate.cli.doctor.context import DoctorContext, display_origin
from centgate.environment import PREFIX, node_variable
from centgate.errors import CentgateError, ProviderFailure, ProviderRefused
from centgate.findings import Finding
from centgate.provider import Provider, RequestTrace, Resale
from centgate.providers.jsonrpc.client import CallFeatures, run_concurrently
from centgate.providers.rpc import Rpc
from centgate.service import AnyService

_RESALE_MEANINGS: dict[Resale, str] = {
    "permitted": "resale permitted",
    "unstated": "no statement on resale found in the terms",
    "forbidden": "resale forbidden without consent",
}
REACHABLE_STATUSES = range(200, 500)
"""Statuses that prove the host is up: a URL without a path is no valid request."""


@runtime_checkable
class SupportsProbe(Protocol):
    """Provider with a free request that verifies its key."""

    async def probe(self) -> str:
        """Send the request and describe the result, as a clause. Raises ProviderFailure."""
        ...


async def check_services(deployment: DoctorContext) -> Finding:
    """Every service has a configured provider that can answer alone."""
    unserved = [
        service.slug for service in all_services() if not _has_configured_provider(service, deployment)
    ]
    if unserved:
        return warn(
            f"{', '.join(unserved)}: no provider is configured, so calls return 503 and are not charged",
            "configure a provider that the catalogue lists, or ignore this",
        )
    return ok("every service has a configured provider")


async def check_terms(deployment: DoctorContext) -> Finding:
    """The terms of use of the sources permit selling answers made of their data."""
    sources = sources_by_resale(deployment.settings)
    parts = [
        f"{meaning}: {', '.join(about.name for about in sources[kind])}"
        for kind, meaning in _RESALE_MEANINGS.items()
        if sources[kind]
    ]
    what = "; ".join(parts) or "no source is in use"
    if sources["forbidden"]:
        names = " and ".join(
            f"{PREFIX}{about.name.upper()}_RESALE_PERMITTED=true" for about in sources["forbidden"]
        )
        return warn(
            what,
            f"get the consent of these sources and set {names}, or leave them out by "
            f"{PREFIX}RESALE_PERMITTED_ONLY=true",
        )
    return ok(what)


def _has_configured_provider(service: AnyService, deployment: DoctorContext) -> bool:
    pin = deployment.settings.pinned_provider(service.slug)
    return any(
        source.provider(deployment.settings).is_configured
        for source in service.leads
        if pin in (None, source.info.name)
    )


async def check_simulation(deployment: DoctorContext) -> Finding:
    """Check that the nodes can simulate trades; our token verdicts need it."""
    rpc = Rpc(deployment.settings, deployment.resources).bind(RequestTrace())
    if not rpc.settings.enabled:
        return skip("the nodes are disabled")
    try:
        features = await rpc.call_features_by_chain()
    except ProviderFailure as failure:
        return warn(f"the nodes were not tested: {failure.message}", "check the outbound connection")
    known = {chain: nodes for chain, nodes in features.items() if chain in CHAIN_BY_ID}
    what = "; ".join(
        f"{CHAIN_BY_ID[chain].slug}: {_describe_features(nodes)}" for chain, nodes in known.items()
    )
    lacking = [chain for chain, nodes in known.items() if not any(_is_complete(node) for node in nodes)]
    if not lacking:
        return ok(what) if known else skip("no node is configured")
    variable = node_variable(f"eip155:{lacking[0]}")
    return warn(what, f"set {variable} to a node that runs calls without recipient and overrides of code")


def _is_complete(features: CallFeatures | None) -> bool:
    return features is not None and features.create_calls and features.overrides


def _describe_features(nodes: Sequence[CallFeatures | None]) -> str:
    """Describe what the nodes of a chain can simulate, as `2 of 2 nodes simulate trades`."""
    complete = sum(map(_is_complete, nodes))
    text = f"{complete} of {len(nodes)} nodes simulate trades"
    known = [node for node in nodes if node is not None]
    purchases = sum(node.create_calls and not node.overrides for node in known)
    sales = sum(node.overrides and not node.create_calls for node in known)
    silent = len(nodes) - len(known)
    text += f", {purchases} only those of new accounts" if purchases else ""
    text += f", {sales} only those of holders" if sales else ""
    return text + (f", {silent} did not answer" if silent else "")


async def check_provider(name: str, deployment: DoctorContext) -> Finding:
    """The provider is configured and reachable, and accepts its key if that can be tested for free."""
    provider_class = all_providers(all_services())[name]
    setting = PREFIX + name.upper()
    try:
        instance = provider_class(deployment.settings, deployment.resources).bind(RequestTrace())
    except (ValueError, OSError) as error:
        return fail(str(error), f"check the settings {setting}_…")
    if instance.is_withheld:
        return skip(
            "left out, as its terms do not permit resale",
            f"with the source's consent, set {setting}_RESALE_PERMITTED=true",
        )
    if not instance.settings.enabled:
        return skip("disabled")
    if not instance.is_configured:
        needs = "URL" if instance.info.url is None else "KEY"
        return skip("not configured", instance.info.setup or f"set {setting}_{needs} to use it")
    try:
        result = (
            await instance.probe()
            if isinstance(instance, SupportsProbe)
            else await _check_reachable(instance, deployment)
        )
    except ProviderRefused as refusal:
        return fail(refusal.message, f"check {setting}_KEY and its plan")
    except (ProviderFailure, CentgateError) as failure:
        return fail(failure.message, f"check the outbound connection, or set {setting}_ENABLED=false")
    if instance.trace.warnings:
        return warn(f"{result}; {'; '.join(instance.trace.warnings)}", f"check the settings {setting}_…")
    return ok(result)


async def _check_reachable(instance: Provider, deployment: DoctorContext) -> str:
    """Check that the provider's hosts accept connections."""
    urls = _provider_urls(instance, deployment)
    if not urls:
        return "nothing to reach"
    await run_concurrently(instance.upstream.get(url, accept=REACHABLE_STATUSES) for url in urls)
    key = "; its key was not tested, because calls are metered" if instance.settings.key else ""
    return f"{', '.join(display_origin(url) for url in urls)} responds{key}"


def _provider_urls(instance: Provider, deployment: DoctorContext) -> list[str]:
    about = instance.info
    if about.part_urls:
        overrides = {
            part: deployment.settings.provider_settings(f"{about.name}_{part}").url
            for part, _ in about.part_urls
        }
        urls = (overrides[part] or instance.settings.url or address for part, address in about.part_urls)
        return [url for url in urls if url]
    address = instance.settings.url or about.url
    return [address] if address else []
