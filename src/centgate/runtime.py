"""What lives as long as the process: opened once, closed once."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import structlog

from centgate.cache.answers import Answers
from centgate.cache.memory import MemoryCache
from centgate.catalog import all_providers, all_services
from centgate.errors import CentgateError
from centgate.payments.facilitator import Facilitator, authorize
from centgate.payments.flights import Flights
from centgate.payments.gate import Gate
from centgate.payments.journal import LEASE, Journal
from centgate.payments.reconcile import Chain
from centgate.payments.store import open_store
from centgate.payments.terms import terms_of
from centgate.provider import Provider
from centgate.resources import open_resources
from centgate.service import AnyService
from centgate.settings import PREFIX, Settings

DRAIN = 6
"""Seconds that payments in flight get to finish when the process is asked to end."""


@dataclass(frozen=True)
class Runtime:
    """Settings, catalogue, providers, gate, journal, answers still fresh, and the payments in flight."""

    settings: Settings
    catalog: tuple[AnyService, ...]
    providers: Mapping[str, Mapping[str, Provider]]
    """Each service's own, by its slug and their names."""
    journal: Journal
    gate: Gate
    answers: Answers
    flights: Flights = field(default_factory=Flights)


def rehearse(settings: Settings) -> None:
    """Use once what the settings name, so that a start fails in words: those of ValueError or OSError."""
    catalog = all_services()
    for provider in all_providers(catalog).values():
        provider(settings)
    for pin in settings.pinned:
        _check_pin(pin, catalog)
    authorize(settings, settings.facilitator)


def _check_pin(pin: str, catalog: tuple[AnyService, ...]) -> None:
    slug, _, name = pin.partition("=")
    leads = {
        service.slug: [source.about.name for source in service.sources if source.leads] for service in catalog
    }
    if slug not in leads:
        raise ValueError(f"{PREFIX}PINNED: there is no service {slug!r}")
    if name not in leads[slug]:
        raise ValueError(f"{PREFIX}PINNED: {slug} is answered by {' or '.join(leads[slug])}, not by {name!r}")


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncGenerator[Runtime]:
    """Open everything a server needs; at the end let payments in flight finish, then close it."""
    catalog = all_services()
    store = open_store(settings.database_url)
    journal = Journal(store, keep_seconds=settings.redeem_hours * 3600)
    async with (
        aiohttp.ClientSession(trust_env=False, connector=aiohttp.TCPConnector(limit=0)) as session,
        open_resources(settings) as resources,
    ):
        providers = {name: kind(settings, resources) for name, kind in all_providers(catalog).items()}
        runtime = Runtime(
            settings=settings,
            catalog=catalog,
            providers={
                service.slug: service.among(providers, settings.pin(service.slug)) for service in catalog
            },
            journal=journal,
            gate=_gate(settings, catalog, journal, session),
            answers=Answers(MemoryCache()),
        )
        heart = asyncio.create_task(_beat(journal))
        # what is here stays; a collector that walks it again and again doubles the slowest answers
        gc.collect()
        gc.freeze()
        try:
            yield runtime
        finally:
            await runtime.flights.land(DRAIN)
            heart.cancel()
            with suppress(asyncio.CancelledError):
                await heart
            await journal.leave()
            await store.close()


def _gate(
    settings: Settings,
    catalog: tuple[AnyService, ...],
    journal: Journal,
    session: aiohttp.ClientSession,
) -> Gate:
    priced = catalog if settings.pay_to else ()
    return Gate(
        terms={service.slug: terms_of(service, settings) for service in priced},
        journal=journal,
        facilitator=Facilitator(session, settings),
        chain=Chain(session, settings.rpc_url) if settings.rpc_url else None,
    )


async def _beat(journal: Journal) -> None:
    """Keep this process known as alive in the journal."""
    log = structlog.get_logger()
    while True:
        try:
            await journal.beat()
        except CentgateError as error:
            log.warning("the journal cannot be written", error=str(error.__cause__ or error))
        await asyncio.sleep(LEASE / 3)
