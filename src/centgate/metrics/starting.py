"""Metrics where the operator wants them; where not, nothing is even loaded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from centgate.meter import SILENT, Meter

if TYPE_CHECKING:
    from centgate.settings import Settings


@contextmanager
def metered(settings: Settings) -> Generator[Meter]:
    """The meter of a server that is one process; what it counts is published until the `with` ends.

    Raises OSError, in words, when the port cannot be had.
    """
    if settings.metrics_port is None:
        yield SILENT
        return
    from centgate.metrics import publishing

    with publishing.listening(settings) as listener, publishing.alone(settings, listener) as meter:
        yield meter


@contextmanager
def metered_together(settings: Settings, pids: Callable[[], Sequence[int]]) -> Generator[None]:
    """Publish what several processes count, of the numbers `pids`, that are started within.

    Raises as `metered` does.
    """
    if settings.metrics_port is None:
        yield
        return
    from centgate.metrics import publishing

    with publishing.listening(settings) as listener, publishing.together(settings, listener, pids):
        yield


def meter_of_several(settings: Settings) -> Meter:
    """The meter of one of several processes."""
    if settings.metrics_port is None:
        return SILENT
    from prometheus_client import CollectorRegistry

    from centgate.metrics.publishing import meter_in

    return meter_in(CollectorRegistry(), settings)
