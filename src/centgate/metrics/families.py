"""Prometheus metric families for values that are looked up at each scrape."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily

from centgate.metrics.definitions import MetricDefinition


def create_gauge(metric: MetricDefinition, value: float | None = None) -> GaugeMetricFamily:
    """Create a gauge with one value, or, if it has labels, without values."""
    return GaugeMetricFamily(metric.name, metric.meaning, value=value, labels=metric.labels or None)
