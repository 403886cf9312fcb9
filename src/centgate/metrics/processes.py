"""What is running: the version, and what the system knows of each server process."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from centgate.metrics import declared
from centgate.metrics.families import gauge

Pids = Callable[[], Sequence[int]]
"""The numbers of the server processes now, each always in its own place."""


class Build(Collector):
    """The version of what is running."""

    def collect(self) -> Iterable[Metric]:
        info = gauge(declared.BUILD)
        info.add_metric([version("centgate"), platform.python_version()], 1)
        yield info


class Processes(Collector):
    """The library's metrics of a process, for each server process, labelled with its place among them."""

    def __init__(self, pids: Pids) -> None:
        self._pids = pids

    def collect(self) -> Iterable[Metric]:
        found: dict[str, Metric] = {}
        for place, pid in enumerate(self._pids()):
            for metric in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():
                empty = Metric(metric.name, metric.documentation, metric.type)
                together = found.setdefault(metric.name, empty)
                for sample in metric.samples:
                    together.add_sample(sample.name, {"worker": str(place)}, sample.value)
        return found.values()
