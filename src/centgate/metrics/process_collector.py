"""Collectors of the running version and of the server processes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from centgate.metrics import definitions
from centgate.metrics.families import create_gauge

ProcessIds = Callable[[], Sequence[int]]
"""Returns the current process ids of the server; each worker keeps its index."""


class BuildCollector(Collector):
    """Collector of the running version."""

    def collect(self) -> Iterable[Metric]:
        info = create_gauge(definitions.BUILD)
        info.add_metric([version("centgate"), platform.python_version()], 1)
        yield info


class ServerProcessCollector(Collector):
    """prometheus_client's process metrics for each server process, labelled with its index."""

    def __init__(self, pids: ProcessIds) -> None:
        self._pids = pids

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, Metric] = {}
        for index, pid in enumerate(self._pids()):
            for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():
                empty = Metric(metric.name, metric.documentation, metric.type)
                combined = metrics.setdefault(metric.name, empty)
                for sample in metric.samples:
                    combined.add_sample(sample.name, {"worker": str(index)}, sample.value)
        return metrics.values()
