"""Prometheus metric families for values that are looked up at each scrape."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily

from centgate.metrics.declared import Declared


def gauge(what: Declared, value: float | None = None) -> GaugeMetricFamily:
    """Create a gauge with one value, or, if it has labels, without values."""
    return GaugeMetricFamily(what.name, what.meaning, value=value, labels=what.labels or None)
