"""Set-up of metrics; prometheus_client is only imported if metrics are enabled."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from centgate.meter import SILENT, Meter

if TYPE_CHECKING:
    from centgate.settings import Settings


@contextmanager
def metered(settings: Settings) -> Generator[Meter]:
    """Publish the metrics of a single server process until the context ends; yields its meter.

    Raises OSError with a message if the port is not available.
    """
    if settings.metrics_port is None:
        yield SILENT
        return
    from centgate.metrics import publishing

    with publishing.listening(settings) as listener, publishing.alone(settings, listener) as meter:
        yield meter


@contextmanager
def metered_together(settings: Settings, pids: Callable[[], Sequence[int]]) -> Generator[None]:
    """Publish the metrics of several processes that are started within the context; `pids` returns their ids.

    Raises OSError with a message if the port is not available.
    """
    if settings.metrics_port is None:
        yield
        return
    from centgate.metrics import publishing

    with publishing.listening(settings) as listener, publishing.together(settings, listener, pids):
        yield


def meter_of_several(settings: Settings) -> Meter:
    """Return the meter of one of several processes."""
    if settings.metrics_port is None:
        return SILENT
    from prometheus_client import CollectorRegistry

    from centgate.metrics.publishing import meter_in

    return meter_in(CollectorRegistry(), settings)
