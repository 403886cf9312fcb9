"""Implementation of the meter with prometheus_client."""

# prometheus_client is typed in parts
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from centgate.instrumentation import (
    CacheLevel,
    FacilitatorRank,
    FallbackCause,
    LimitScope,
    ListingStatus,
    PaymentStateLabel,
    ProviderCallOutcome,
    SettlementLabel,
    SharedCacheHealth,
    WebhookOutcome,
)
from centgate.metrics import definitions
from centgate.metrics.definitions import MetricDefinition
from centgate.signing.assets import TOKEN_DECIMALS, is_test_network

MEASURE_SECONDS = 0.5
"""Seconds between two measurements of the event loop and the shared cache."""

M = TypeVar("M", Counter, Gauge, Histogram)
_STATUS_CLASSES = tuple(f"{hundred}xx" for hundred in range(10))


class _Children(dict[tuple[str, ...], M], Generic[M]):
    """Cache of a metric's children by labels: a lookup takes a tenth of the time of the library's."""

    def __init__(self, metric: M) -> None:
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> M:
        child = self[labels] = self._metric.labels(*labels)
        return child


class PrometheusMeter:
    """Meter that counts in a registry, or in the files that several processes share."""

    def __init__(
        self, registry: CollectorRegistry, *, services: Iterable[str], networks: Sequence[str]
    ) -> None:
        """Create the metrics; `networks` (CAIP-2) are those that payments are accepted on."""
        disable_created_metrics()  # the multiprocess files have none either
        self._registry = registry
        self._payments = _Children(_counter(definitions.PAYMENTS, registry))
        self._revenue = _Children(_counter(definitions.REVENUE, registry))
        self._test_revenue = _Children(_counter(definitions.TEST_REVENUE, registry))
        self._redeemed = _Children(_counter(definitions.REDEEMED, registry))
        self._replayed = _Children(_counter(definitions.REPLAYED, registry))
        self._directory = _Children(_counter(definitions.DIRECTORY_RESPONSES, registry))
        self._settlements = _Children(_histogram(definitions.SETTLEMENTS, registry))
        self._fallbacks = _Children(_counter(definitions.FALLBACKS, registry))
        self._calls = _Children(_counter(definitions.PROVIDER_CALLS, registry))
        self._call_seconds = _Children(_histogram(definitions.PROVIDER_SECONDS, registry))
        self._breakers = _Children(_gauge(definitions.BREAKERS, registry))
        self._lookups = _Children(_counter(definitions.CACHE, registry))
        self._requests = _Children(_histogram(definitions.REQUESTS, registry))
        self._limited = _Children(_counter(definitions.LIMITED, registry))
        self._webhooks = _Children(_counter(definitions.WEBHOOKS, registry))
        self._in_flight = _gauge(definitions.IN_FLIGHT, registry)
        self._commits = _histogram(definitions.COMMITS, registry)
        self._grouped = _histogram(definitions.COMMIT_ENTRIES, registry)
        self._lag = _histogram(definitions.LAG, registry)
        self._initialize_series(services, networks)

    def _initialize_series(self, services: Iterable[str], networks: Sequence[str]) -> None:
        """Create the series that alerts and rates use, so that they exist before the first event."""
        for service in services:
            for state in get_args(PaymentStateLabel):
                self._payments[state, service].inc(0)
            for each in (self._redeemed, self._replayed):
                each[(service,)].inc(0)
            for network in networks:
                self.record_revenue(service, network, 0)
        for outcome in get_args(SettlementLabel):
            self._settlements[outcome, "first"]
        for cause in get_args(FallbackCause):
            self._fallbacks[(cause,)].inc(0)
        for by in get_args(LimitScope):
            self._limited[(by,)].inc(0)
        for outcome in get_args(WebhookOutcome):
            self._webhooks[(outcome,)].inc(0)

    def record_payment_state(self, state: PaymentStateLabel, service: str) -> None:
        self._payments[state, service].inc()

    def record_revenue(self, service: str, network: str, base_units: int) -> None:
        counter = self._test_revenue if is_test_network(network) else self._revenue
        counter[service, network].inc(base_units / 10**TOKEN_DECIMALS)

    def record_redemption(self, service: str) -> None:
        self._redeemed[(service,)].inc()

    def record_settlement(
        self, settlement: SettlementLabel, seconds: float, facilitator: FacilitatorRank
    ) -> None:
        self._settlements[settlement, facilitator].observe(seconds)

    def record_fallback(self, cause: FallbackCause) -> None:
        self._fallbacks[(cause,)].inc()

    def record_directory_response(self, service: str, status: ListingStatus) -> None:
        self._directory[service, status].inc()

    def record_provider_call(self, provider: str, outcome: ProviderCallOutcome, seconds: float) -> None:
        self._calls[provider, outcome].inc()
        self._call_seconds[(provider,)].observe(seconds)

    def record_breaker_change(self, provider: str, change: Literal[1, -1]) -> None:
        self._breakers[(provider,)].inc(change)

    def record_cache_lookup(self, service: str, place: CacheLevel, *, hit: bool) -> None:
        self._lookups[service, place, "hit" if hit else "miss"].inc()

    def record_request_start(self) -> None:
        self._in_flight.inc()

    def record_request_end(self, service: str, status: int, seconds: float, *, replayed: bool) -> None:
        self._in_flight.dec()
        self._requests[service, _STATUS_CLASSES[status // 100 % 10]].observe(seconds)
        if replayed:
            self._replayed[(service,)].inc()

    def record_rate_limit(self, by: LimitScope) -> None:
        self._limited[(by,)].inc()

    def record_webhook(self, outcome: WebhookOutcome) -> None:
        self._webhooks[(outcome,)].inc()

    def record_commit(self, seconds: float, units: int) -> None:
        self._commits.observe(seconds)
        self._grouped.observe(units)

    @asynccontextmanager
    async def observe_process(self, shared: SharedCacheHealth | None) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self._watch_loop())]
        if shared is not None:
            tasks.append(asyncio.create_task(self._watch_cache(shared)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch_loop(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + MEASURE_SECONDS
            await asyncio.sleep(MEASURE_SECONDS)
            self._lag.observe(max(0.0, clock() - due))

    async def _watch_cache(self, shared: SharedCacheHealth) -> None:
        up = _gauge(definitions.CACHE_UP, self._registry, mode="livemin")
        failures, counted = _counter(definitions.CACHE_FAILURES, self._registry), 0
        while True:
            up.set(bool(shared.is_up))
            failures.inc(shared.failures - counted)
            counted = shared.failures
            await asyncio.sleep(MEASURE_SECONDS)


def _counter(metric: MetricDefinition, registry: CollectorRegistry) -> Counter:
    return Counter(metric.name, metric.meaning, metric.labels, registry=registry)


def _gauge(
    metric: MetricDefinition, registry: CollectorRegistry, *, mode: Literal["livesum", "livemin"] = "livesum"
) -> Gauge:
    """`mode`: how values of several live processes are combined."""
    return Gauge(metric.name, metric.meaning, metric.labels, registry=registry, multiprocess_mode=mode)


def _histogram(metric: MetricDefinition, registry: CollectorRegistry) -> Histogram:
    return Histogram(metric.name, metric.meaning, metric.labels, registry=registry, buckets=metric.buckets)
