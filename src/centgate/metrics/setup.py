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
def publish_worker_metrics(
    settings: Settings, start: Callable[[], None], pids: Callable[[], Sequence[int]]
) -> Generator[None]:
    """Start several processes and publish their metrics; `pids` returns their ids.

    `start` is called before this process has threads. Raises OSError with a message if the port is not
    available.
    """
    if settings.metrics_port is None:
        start()
        yield
        return
    from centgate.metrics import exporter

    with (
        exporter.open_listener(settings) as listener,
        exporter.publish_workers(settings, listener, start, pids),
    ):
        yield


def create_worker_meter(settings: Settings) -> Meter:
    """Return the meter of one of several processes."""
    if settings.metrics_port is None:
        return NULL_METER
    from prometheus_client import CollectorRegistry, values

    from centgate.metrics.exporter import create_meter

    values.ValueClass = values.get_value_class()  # of this process; a fork would have its parent's
    return create_meter(CollectorRegistry(), settings)
