"""Calls, errors and latency of providers, from the metrics of the server processes beside the console.

The server's `/metrics` is read every few seconds; figures of a period are differences of two readings.
"""

# prometheus_client is typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping

import httpx2
from msgspec import Struct, field
from prometheus_client.parser import text_string_to_metric_families

from centgate.metrics import definitions

READ_INTERVAL = 15.0
"""Seconds between two readings."""
READ_TIMEOUT = 5.0
KEPT_SECONDS = 3600.0
"""Age in seconds of the oldest reading, so the longest period of figures."""
MAX_METRICS_BYTES = 8 << 20
FAILED_OUTCOMES = frozenset({"error", "timeout", "rate_limited"})
"""Outcomes of a call that are the provider's failure."""
_IGNORED_OUTCOMES = frozenset({"cancelled"})


class ProviderCounters(Struct):
    """Counters of one provider since the start of the server."""

    calls: dict[str, float] = field(default_factory=dict[str, float])
    """By outcome."""
    buckets: dict[float, float] = field(default_factory=dict[float, float])
    """Cumulative number of calls by upper bound of their duration in seconds."""
    seconds: float = 0.0
    """Sum of all durations."""
    open_breakers: float = 0.0


class MetricsReading(Struct, frozen=True):
    """Counters of all providers at one time (monotonic clock)."""

    at: float
    providers: Mapping[str, ProviderCounters]
    directory: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Responses of the facilitator's directory since the server's start: number by service and status."""


class ProviderActivity(Struct, frozen=True):
    """Figures of one provider for a period."""

    seconds: float
    """Length of the period."""
    calls: int
    failures: int
    mean: float | None
    """Mean duration in seconds; None without calls."""
    p95: float | None
    """Upper bound in seconds of the histogram's bucket with the 95th percentile; None without calls."""
    open_breakers: int


class MetricsHistory:
    """Readings of the last hour."""

    def __init__(self, url: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        """`url` is that of the server's metrics; None if it publishes none."""
        self.url = url
        self.problem: str | None = None if url else "the server publishes no metrics (CENTGATE_METRICS_PORT)"
        self._clock = clock
        self._readings = deque[MetricsReading](maxlen=int(KEPT_SECONDS / READ_INTERVAL) + 1)

    async def read_forever(self) -> None:
        """Read the metrics again and again; a failure is kept as `problem`."""
        if self.url is None:
            return
        async with httpx2.AsyncClient(timeout=READ_TIMEOUT, trust_env=False) as client:
            while True:
                await self.read_once(client)
                await asyncio.sleep(READ_INTERVAL)

    async def read_once(self, client: httpx2.AsyncClient) -> None:
        """Read the metrics once."""
        try:
            response = await client.get(self.url or "")
            response.raise_for_status()
            if len(response.content) > MAX_METRICS_BYTES:
                raise ValueError("the answer is too long")
            reading = MetricsReading(self._clock(), *parse_metrics(response.text))
        except (httpx2.HTTPError, ValueError) as error:
            self.problem = f"the server's metrics cannot be read: {str(error) or type(error).__name__}"
            return
        self.problem = None
        self.add_reading(reading)

    def add_reading(self, reading: MetricsReading) -> None:
        """Add a reading, and drop those of a server that was started again since."""
        if self._readings and _is_reset(self._readings[-1], reading):
            self._readings.clear()
        self._readings.append(reading)

    def find_directory_responses(self, service: str) -> Mapping[str, int]:
        """Return the directory's responses for a service since the server's start: number by status.

        There are none while the metrics cannot be read.
        """
        return self._readings[-1].directory.get(service, {}) if self._readings and not self.problem else {}

    def find_activity(self, provider: str, seconds: float) -> ProviderActivity | None:
        """Return a provider's figures of the last `seconds`, or since the first reading.

        With a single reading the figures are those since the server's start. None without a reading, and
        while the metrics cannot be read: the last figures may be old then.
        """
        if self.problem or not self._readings:
            return None
        latest = self._readings[-1]
        first = next(each for each in self._readings if each.at >= latest.at - seconds - READ_INTERVAL / 2)
        now = latest.providers.get(provider, ProviderCounters())
        before = ProviderCounters() if first is latest else first.providers.get(provider, ProviderCounters())
        return _subtract(now, before, latest.at - first.at)


DirectoryCounts = dict[str, dict[str, int]]


def parse_metrics(text: str) -> tuple[dict[str, ProviderCounters], DirectoryCounts]:
    """Parse Prometheus' text format to the counters of providers and of the directory. Raises ValueError."""
    providers: dict[str, ProviderCounters] = defaultdict(ProviderCounters)
    directory: DirectoryCounts = defaultdict(dict)
    duration = definitions.PROVIDER_SECONDS.name
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.labels.get("provider")
            if sample.name == definitions.DIRECTORY_RESPONSES.name and sample.value:
                directory[sample.labels["service"]][sample.labels["status"]] = int(sample.value)
            if name is None:
                continue
            if sample.name == definitions.PROVIDER_CALLS.name:
                providers[name].calls[sample.labels["outcome"]] = sample.value
            elif sample.name == f"{duration}_bucket":
                providers[name].buckets[float(sample.labels["le"])] = sample.value
            elif sample.name == f"{duration}_sum":
                providers[name].seconds = sample.value
            elif sample.name == definitions.BREAKERS.name:
                providers[name].open_breakers = sample.value
    return dict(providers), dict(directory)


def _is_reset(before: MetricsReading, after: MetricsReading) -> bool:
    """True if counters went back: the server was started again."""
    empty = ProviderCounters()
    return any(
        count > after.providers.get(name, empty).calls.get(outcome, 0.0)
        for name, counters in before.providers.items()
        for outcome, count in counters.calls.items()
    )


def _subtract(now: ProviderCounters, before: ProviderCounters, seconds: float) -> ProviderActivity:
    calls = {
        outcome: count - before.calls.get(outcome, 0.0)
        for outcome, count in now.calls.items()
        if outcome not in _IGNORED_OUTCOMES
    }
    buckets = {bound: count - before.buckets.get(bound, 0.0) for bound, count in now.buckets.items()}
    measured = max(buckets.values(), default=0.0)
    return ProviderActivity(
        seconds=seconds,
        calls=int(sum(calls.values())),
        failures=int(sum(count for outcome, count in calls.items() if outcome in FAILED_OUTCOMES)),
        mean=(now.seconds - before.seconds) / measured if measured else None,
        p95=_find_percentile(buckets, measured * 0.95) if measured else None,
        open_breakers=int(now.open_breakers),
    )


def _find_percentile(buckets: Mapping[float, float], rank: float) -> float:
    """Return the bound of the first bucket that reaches a rank; infinity beyond the last bound."""
    return min(bound for bound, count in buckets.items() if count >= rank)
