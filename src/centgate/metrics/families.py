"""Metrics that are looked up when they are read."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily

from centgate.metrics.declared import Declared


def gauge(what: Declared, value: float | None = None) -> GaugeMetricFamily:
    """A gauge with its one value, or, where it has labels, with values to be added."""
    return GaugeMetricFamily(what.name, what.meaning, value=value, labels=what.labels or None)
