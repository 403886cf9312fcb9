"""Runtime of a server process: everything that is opened at its start and closed at its end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from functools import cached_property
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from centgate.cache.redis_responses import SharedResponses
from centgate.cache.response_cache import MemoryCache, ResponseCache
from centgate.catalog import all_providers, all_services
from centgate.environment import PREFIX
from centgate.instrumentation import NULL_METER, Meter
from centgate.lookups.phishing_refresh import PhishingListRefresher, open_list_upstream
from centgate.payments.background import build_background_work
from centgate.payments.chain.payment_node import open_node_session
from centgate.payments.database.store_factory import open_store
from centgate.payments.facilitator.extension_responses import DirectoryResponses
from centgate.payments.facilitator.facilitator import build_auth_headers
from centgate.payments.facilitator.facilitators import open_facilitators
from centgate.payments.gate import PaymentGate
from centgate.payments.heartbeat import keep_alive
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.read_model import JournalReader, LimitedReader
from centgate.payments.journal.sign_in_nonces import SignInNonces
from centgate.payments.journal.webhook_events import create_event_builder
from centgate.payments.mpp.challenge import create_issuer
from centgate.payments.notifications.alerts import Alerts
from centgate.payments.notifications.webhook_sender import WebhookSender
from centgate.payments.payee import check_payees
from centgate.payments.payer_policy import PayerPolicy
from centgate.payments.settlement import build_settler
from centgate.payments.singleflight import SingleFlight
from centgate.payments.terms import build_terms
from centgate.payments.wallet.sign_in import SignInGate
from centgate.phishing.store import ListFolder
from centgate.provider import Provider
from centgate.providers.phishinglist import PhishingList
from centgate.resources import Resources, open_resources
from centgate.service import AnyService
from centgate.service_status import StatusRecorder
from centgate.settings import Settings, price_variable

if TYPE_CHECKING:
    from centgate.cache.redis import SharedRedis

STOP_DELAY_SECONDS = 3
"""Maximum seconds for which a server with payments in progress accepts connections after a stop signal."""
DRAIN_SECONDS = 4
"""Seconds for payments in progress to finish at shutdown."""
WALLET_READS = 4
"""Maximum number of reads of the journal at once for wallets that sign in."""
LATE_MODULES = (
    *("eth_abi.abi", "rapidfuzz", "charset_normalizer", "nodesemver"),
    *("centgate.web.extract.extract", "centgate.libdocs.index.build_job"),
)
"""Modules that only some answers need: imported by a thread after the start, which they would delay."""
LATE_IMPORT_DELAY = 0.5
"""Seconds after the start; a request that needs them earlier waits for the import."""
CLOSE_SECONDS = 2
"""Seconds to deregister from the journal and close it at shutdown; its database may be unavailable."""


class Runtime(Struct, frozen=True, dict=True):
    """Settings, catalogue, providers, payment gate, journal, response cache, and payments in progress."""

    settings: Settings
    catalog: tuple[AnyService, ...]
    providers: Mapping[str, Mapping[str, Provider]]
    """Providers by service slug and provider name."""
    journal: Journal
    reader: JournalReader
    """Reads of the journal for wallets that sign in, which anybody can do for nothing."""
    gate: PaymentGate
    sign_in: SignInGate
    response_cache: ResponseCache
    shared: SharedRedis | None
    """Redis that servers share; None unless configured."""
    status: StatusRecorder
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
    _check_prices(settings, catalog)
    check_payees(settings)
    PayerPolicy(settings)
    for account in settings.facilitators:
        build_auth_headers(account, account.url)
    open_facilitators(settings).close()
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


def _check_prices(settings: Settings, catalog: tuple[AnyService, ...]) -> None:
    slugs = [service.slug for service in catalog]
    for unknown in sorted(settings.service_prices.keys() - set(slugs)):
        raise ValueError(
            f"{price_variable(unknown)}: there is no such service; prices can be set by "
            f"{', '.join(map(price_variable, slugs))}"
        )
    for service in catalog if settings.pay_to else ():
        build_terms(service, settings)  # raises for a price that the token cannot pay


@asynccontextmanager
async def open_runtime(settings: Settings, meter: Meter = NULL_METER) -> AsyncGenerator[Runtime]:
    """Open everything a server needs; at the end let payments in progress finish, then close it."""
    catalog = all_services()
    store = open_store(
        settings.database_url,
        connections=settings.database_connections,
        meter=meter,
        prepared_statements=settings.database_prepared_statements,
    )
    journal = Journal(
        store,
        keep_seconds=settings.redeem_hours * 3600,
        meter=meter,
        events=create_event_builder(settings),
    )
    async with (
        open_node_session() as session,
        _open_shared(settings) as shared,
        open_resources(settings, shared, meter=meter) as resources,
        meter.observe_process(shared),
    ):
        alerts = Alerts(settings, journal.for_component("alerts"), session)
        directory = DirectoryResponses(meter)
        facilitators = open_facilitators(settings, observer=alerts, directory=directory, meter=meter)
        providers = {name: kind(settings, resources) for name, kind in all_providers(catalog).items()}
        by_service = {
            service.slug: service.select_providers(providers, settings.pinned_provider(service.slug))
            for service in catalog
        }
        payers = PayerPolicy(settings)
        status = StatusRecorder(catalog, by_service, journal, store)
        settler = build_settler(settings, catalog, journal, facilitators, session)
        runtime = Runtime(
            settings=settings,
            catalog=catalog,
            providers=by_service,
            journal=journal,
            reader=LimitedReader(store, WALLET_READS),
            gate=PaymentGate(settler, payers, create_issuer(settings)),
            sign_in=SignInGate(settings, journal, settler.chains, SignInNonces(store)),
            response_cache=ResponseCache(MemoryCache(), SharedResponses(shared) if shared else None),
            shared=shared,
            status=status,
            meter=meter,
        )
        webhooks = WebhookSender(settings, journal.for_component("webhooks"), store, session, meter=meter)
        background_work = build_background_work(
            settings,
            catalog,
            journal,
            facilitators,
            session,
            store=store,
            alerts=alerts,
            webhooks=webhooks,
        )
        try:
            async with (
                keep_alive(journal),
                _refresh_lists(settings, providers, resources),
                status.run_in_background(),
                payers.run_in_background(),
            ):
                background_work.start()
                late_imports = asyncio.create_task(_import_late_modules())
                try:
                    with _delay_stop(runtime.single_flight):
                        yield runtime
                finally:
                    drained = runtime.single_flight.drain(DRAIN_SECONDS)
                    late_imports.cancel()
                    await asyncio.gather(background_work.stop(), drained)
        finally:
            facilitators.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await journal.deregister()
                    await store.close()


@contextmanager
def _delay_stop(single_flight: SingleFlight) -> Generator[None]:
    """Delay the effect of the first SIGTERM or SIGINT in the block while payments are in progress.

    Meanwhile `/readyz` is 503, and connections are accepted: a load balancer learns that new requests belong
    elsewhere, before one is refused. A second signal has its effect at once.
    """
    if threading.current_thread() is not threading.main_thread():  # another thread gets no signals
        yield
        return
    loop = asyncio.get_running_loop()
    replaced = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    ours = {each: handler for each, handler in replaced.items() if callable(handler)}
    tasks = set[asyncio.Task[None]]()

    def restore() -> None:
        for each, handler in ours.items():
            if signal.getsignal(each) is begin:
                signal.signal(each, handler)

    def begin(number: int, _frame: FrameType | None) -> None:
        restore()
        single_flight.draining = True
        loop.call_soon_threadsafe(lambda: tasks.add(loop.create_task(stop_later(number))))

    async def stop_later(number: int) -> None:
        await single_flight.wait_running(STOP_DELAY_SECONDS)
        signal.raise_signal(number)

    for each in ours:
        signal.signal(each, begin)
    try:
        yield
    finally:
        restore()


async def _import_late_modules() -> None:
    await asyncio.sleep(LATE_IMPORT_DELAY)
    for name in LATE_MODULES:
        await asyncio.to_thread(import_module, name)


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
