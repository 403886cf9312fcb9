"""Set-up of metrics; prometheus_client is only imported if metrics are enabled."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from centgate.instrumentation import NULL_METER, Meter

if TYPE_CHECKING:
    from centgate.settings import Settings


@contextmanager
def open_meter(settings: Settings) -> Generator[Meter]:
    """Publish the metrics of a single server process until the context ends; yields its meter.

    Raises OSError with a message if the port is not available.
    """
    if settings.metrics_port is None:
        yield NULL_METER
        return
    from centgate.metrics import exporter

    with (
        exporter.open_listener(settings) as listener,
        exporter.publish_process(settings, listener) as meter,
    ):
        yield meter


@contextmanager
def publish_worker_metrics(settings: Settings, pids: Callable[[], Sequence[int]]) -> Generator[None]:
    """Publish the metrics of several processes that are started within the context; `pids` returns their ids.

    Raises OSError with a message if the port is not available.
    """
    if settings.metrics_port is None:
        yield
        return
    from centgate.metrics import exporter

    with exporter.open_listener(settings) as listener, exporter.publish_workers(settings, listener, pids):
        yield


def create_worker_meter(settings: Settings) -> Meter:
    """Return the meter of one of several processes."""
    if settings.metrics_port is None:
        return NULL_METER
    from prometheus_client import CollectorRegistry

    from centgate.metrics.exporter import create_meter

    return create_meter(CollectorRegistry(), settings)
