"""A service that fails on demand, added to the folder that the catalogue is loaded from."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from centgate import services

FAILING_SERVICE = "/services/moody"
FAILING_QUERY = {"question": "why"}


class ServiceFailures:
    """Scripted failures of the service, and the questions it received."""

    def __init__(self, moods: list[Callable[[], Exception]], asked: list[str]) -> None:
        self._failures = moods
        self.asked = asked

    def raise_next(self, *failures: Callable[[], Exception]) -> None:
        """Raise these in the next calls, first to last."""
        self._failures.extend(failures)

    def reset(self) -> None:
        """Remove scripted failures and recorded questions."""
        self._failures.clear()
        self.asked.clear()


@contextmanager
def install_failing_service() -> Generator[ServiceFailures]:
    """Add the service to the catalogue of every API that is opened inside the context."""
    with pytest.MonkeyPatch.context() as patch:
        shelf = str(Path(__file__).with_name("extra_services"))
        patch.setattr(services, "__path__", [*services.__path__, shelf])
        moody = import_module("centgate.services.moody")
        moods = ServiceFailures(moody.MOODS, moody.ASKED)
        moods.reset()
        yield moods
