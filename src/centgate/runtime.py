"""Runtime of a server process: everything that is opened at its start and closed at its end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from centgate.cache.redis_responses import SharedResponses
from centgate.cache.response_cache import MemoryCache, ResponseCache
from centgate.catalog import all_providers, all_services
from centgate.instrumentation import NULL_METER, Meter
from centgate.lookups.phishing_refresh import PhishingListRefresher, open_list_upstream
from centgate.payments.alerts import Alerts
from centgate.payments.background import build_background_work
from centgate.payments.facilitator import FacilitatorClient, build_auth_headers
from centgate.payments.gate import PaymentGate
from centgate.payments.heartbeat import keep_alive
from centgate.payments.journal import Journal
from centgate.payments.payment_node import open_node_session
from centgate.payments.settlement import build_settler
from centgate.payments.singleflight import SingleFlight
from centgate.payments.store_factory import open_store
from centgate.phishing.store import ListFolder
from centgate.provider import Provider
from centgate.providers.phishinglist import PhishingList
from centgate.resources import Resources, open_resources
from centgate.service import AnyService
from centgate.settings import PREFIX, Settings

if TYPE_CHECKING:
    from centgate.cache.redis import SharedRedis

DRAIN_SECONDS = 4
"""Seconds for payments in progress to finish at shutdown."""
GC_THRESHOLD = 10_000
"""Threshold of the first garbage collection generation; each collection takes about the time of a call."""
CLOSE_SECONDS = 2
"""Seconds to deregister from the journal and close it at shutdown; its database may be unavailable."""


@dataclass(frozen=True)
class Runtime:
    """Settings, catalogue, providers, payment gate, journal, response cache, and payments in progress."""

    settings: Settings
    catalog: tuple[AnyService, ...]
    providers: Mapping[str, Mapping[str, Provider]]
    """Providers by service slug and provider name."""
    journal: Journal
    gate: PaymentGate
    response_cache: ResponseCache
    shared: SharedRedis | None
    """Redis that servers share; None unless configured."""
    meter: Meter = NULL_METER
    single_flight: SingleFlight = field(default_factory=SingleFlight)

    @cached_property
    def validation_context(self) -> dict[str, Any]:
        """Validation context of requests: development chain and fetch policy of this deployment."""
        settings = self.settings
        return {"development_chain": settings.development_chain, "fetch_policy": settings.fetch_policy}


def validate_startup(settings: Settings) -> None:
    """Validate the settings before the start by using them once. Raises ValueError or OSError."""
    catalog = all_services()
    for provider in all_providers(catalog).values():
        provider(settings)
    for pin in settings.pinned:
        _check_pin(pin, catalog)
    build_auth_headers(settings, settings.facilitator)
    try:
        FacilitatorClient(settings).close()
    except ValueError as error:
        raise ValueError(f"{PREFIX}FACILITATOR_URL: not a valid address") from error
    if settings.cache_url is not None:
        from centgate.cache.redis import check_url

        check_url(settings.cache_url)


def _check_pin(pin: str, catalog: tuple[AnyService, ...]) -> None:
    slug, _, name = pin.partition("=")
    leads = {service.slug: [source.info.name for source in service.leads] for service in catalog}
    if slug not in leads:
        raise ValueError(f"{PREFIX}PINNED: there is no service {slug!r}")
    if name not in leads[slug]:
        raise ValueError(f"{PREFIX}PINNED: {slug} is answered by {' or '.join(leads[slug])}, not by {name!r}")


@asynccontextmanager
async def open_runtime(settings: Settings, meter: Meter = NULL_METER) -> AsyncGenerator[Runtime]:
    """Open everything a server needs; at the end let payments in progress finish, then close it."""
    catalog = all_services()
    store = open_store(settings.database_url, connections=settings.database_connections, meter=meter)
    journal = Journal(store, keep_seconds=settings.redeem_hours * 3600, meter=meter)
    async with (
        open_node_session() as session,
        _open_shared(settings) as shared,
        open_resources(settings, shared, meter=meter) as resources,
        meter.observe_process(shared),
    ):
        alerts = Alerts(settings, journal.for_component("alerts"), session)
        facilitator = FacilitatorClient(settings, on_outcome=alerts.record_settlement)
        providers = {name: kind(settings, resources) for name, kind in all_providers(catalog).items()}
        runtime = Runtime(
            settings=settings,
            catalog=catalog,
            providers={
                service.slug: service.select_providers(providers, settings.pinned_provider(service.slug))
                for service in catalog
            },
            journal=journal,
            gate=PaymentGate(build_settler(settings, catalog, journal, facilitator, session)),
            response_cache=ResponseCache(MemoryCache(), SharedResponses(shared) if shared else None),
            shared=shared,
            meter=meter,
        )
        upkeep = build_background_work(
            settings, catalog, journal, facilitator, session, store=store, alerts=alerts
        )
        # these objects live as long as the process; scanning them repeatedly doubles the slowest responses
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        try:
            async with keep_alive(journal), _refresh_lists(settings, providers, resources):
                upkeep.start()
                try:
                    yield runtime
                finally:
                    await asyncio.gather(upkeep.stop(), runtime.single_flight.drain(DRAIN_SECONDS))
        finally:
            facilitator.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await journal.deregister()
                    await store.close()


def _refresh_lists(
    settings: Settings, providers: Mapping[str, Provider], resources: Resources
) -> AbstractAsyncContextManager[None]:
    """Return the context in which phishing lists are fetched and reloaded."""
    provider = providers.get(PhishingList.info.name)
    if not isinstance(provider, PhishingList) or not provider.is_configured:
        return nullcontext()
    folder = ListFolder(settings.phishing_folder)
    upstream = open_list_upstream(resources)
    return PhishingListRefresher(settings.phishing_urls, folder, provider.store, upstream).run_in_background()


@asynccontextmanager
async def _open_shared(settings: Settings) -> AsyncGenerator[SharedRedis | None]:
    if settings.cache_url is None:
        yield None
        return
    from centgate.cache.redis import open_redis  # its client takes long to load

    async with open_redis(settings.cache_url) as shared:
        yield shared
