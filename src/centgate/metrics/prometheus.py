"""The meter that Prometheus reads."""

# prometheus_client is typed in parts
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Generic, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from centgate.meter import Asked, LimitedBy, PaymentState, Place, Settlement, SharedCache
from centgate.metrics import declared
from centgate.metrics.declared import Declared

LOOK_EVERY = 0.5
"""Seconds between two looks at what is watched."""

M = TypeVar("M", Counter, Gauge, Histogram)
_CLASSES = tuple(f"{hundred}xx" for hundred in range(10))


class _Children(dict[tuple[str, ...], M], Generic[M]):
    """A metric's children by their labels: a look here costs a tenth of one through the library."""

    def __init__(self, metric: M) -> None:
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> M:
        child = self[labels] = self._metric.labels(*labels)
        return child


class PrometheusMeter:
    """Counts in the registry it is given, or in the files that several processes share (see `publishing`)."""

    def __init__(self, registry: CollectorRegistry, *, services: Iterable[str], decimals: int) -> None:
        """`decimals`: those of the token that payments are made in."""
        disable_created_metrics()  # files that processes share have none either
        self._registry = registry
        self._dollar = 10**decimals
        self._payments = _Children(_counter(declared.PAYMENTS, registry))
        self._earned = _Children(_counter(declared.EARNED, registry))
        self._earned_test = _Children(_counter(declared.EARNED_TEST, registry))
        self._redeemed = _Children(_counter(declared.REDEEMED, registry))
        self._replayed = _Children(_counter(declared.REPLAYED, registry))
        self._settle = _Children(_histogram(declared.SETTLE, registry))
        self._calls = _Children(_counter(declared.PROVIDER_CALLS, registry))
        self._call_seconds = _Children(_histogram(declared.PROVIDER_SECONDS, registry))
        self._breakers = _Children(_gauge(declared.BREAKERS, registry))
        self._lookups = _Children(_counter(declared.CACHE, registry))
        self._requests = _Children(_histogram(declared.REQUESTS, registry))
        self._limited = _Children(_counter(declared.LIMITED, registry))
        self._in_flight = _gauge(declared.IN_FLIGHT, registry)
        self._commits = _histogram(declared.COMMITS, registry)
        self._grouped = _histogram(declared.GROUPED, registry)
        self._lag = _histogram(declared.LAG, registry)
        self._begin_at_zero(services)

    def _begin_at_zero(self, services: Iterable[str]) -> None:
        """What alerts and rates are made of is there before it first happens."""
        for service in services:
            for state in get_args(PaymentState):
                self._payments[state, service].inc(0)
            for each in (self._earned, self._earned_test, self._redeemed, self._replayed):
                each[(service,)].inc(0)
        for outcome in get_args(Settlement):
            self._settle[(outcome,)]
        for by in get_args(LimitedBy):
            self._limited[(by,)].inc(0)

    def entered(self, state: PaymentState, service: str) -> None:
        self._payments[state, service].inc()

    def earned(self, service: str, base_units: int, *, test_network: bool) -> None:
        counter = self._earned_test if test_network else self._earned
        counter[(service,)].inc(base_units / self._dollar)

    def redeemed(self, service: str) -> None:
        self._redeemed[(service,)].inc()

    def presented(self, settlement: Settlement, seconds: float) -> None:
        self._settle[(settlement,)].observe(seconds)

    def asked(self, provider: str, outcome: Asked, seconds: float) -> None:
        self._calls[provider, outcome].inc()
        self._call_seconds[(provider,)].observe(seconds)

    def tripped(self, provider: str, change: Literal[1, -1]) -> None:
        self._breakers[(provider,)].inc(change)

    def looked_up(self, service: str, place: Place, *, hit: bool) -> None:
        self._lookups[service, place, "hit" if hit else "miss"].inc()

    def came(self) -> None:
        self._in_flight.inc()

    def went(self, service: str, status: int, seconds: float, *, replayed: bool) -> None:
        self._in_flight.dec()
        self._requests[service, _CLASSES[status // 100 % 10]].observe(seconds)
        if replayed:
            self._replayed[(service,)].inc()

    def limited(self, by: LimitedBy) -> None:
        self._limited[(by,)].inc()

    def committed(self, seconds: float, units: int) -> None:
        self._commits.observe(seconds)
        self._grouped.observe(units)

    @asynccontextmanager
    async def watching(self, shared: SharedCache | None) -> AsyncGenerator[None]:
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
            due = clock() + LOOK_EVERY
            await asyncio.sleep(LOOK_EVERY)
            self._lag.observe(max(0.0, clock() - due))

    async def _watch_cache(self, shared: SharedCache) -> None:
        up = _gauge(declared.CACHE_UP, self._registry, of_several="livemin")
        failures, counted = _counter(declared.CACHE_FAILURES, self._registry), 0
        while True:
            up.set(bool(shared.up))
            failures.inc(shared.failures - counted)
            counted = shared.failures
            await asyncio.sleep(LOOK_EVERY)


def _counter(what: Declared, registry: CollectorRegistry) -> Counter:
    return Counter(what.name, what.meaning, what.labels, registry=registry)


def _gauge(
    what: Declared, registry: CollectorRegistry, *, of_several: Literal["livesum", "livemin"] = "livesum"
) -> Gauge:
    """`of_several`: what is shown of several processes, without those that have died."""
    return Gauge(what.name, what.meaning, what.labels, registry=registry, multiprocess_mode=of_several)


def _histogram(what: Declared, registry: CollectorRegistry) -> Histogram:
    return Histogram(what.name, what.meaning, what.labels, registry=registry, buckets=what.buckets)
