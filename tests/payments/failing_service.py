"""A service that fails on demand, added to the folder that the catalogue is loaded from."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from centgate import services

FAILING_SERVICE = "/services/failing"
FAILING_QUERY = {"question": "why"}


class ServiceFailures:
    """Scripted failures of the service, and the questions it received."""

    def __init__(self, failures: list[Callable[[], Exception]], questions: list[str]) -> None:
        self._failures = failures
        self.questions = questions

    def raise_next(self, *failures: Callable[[], Exception]) -> None:
        """Raise these errors in the next calls, first to last."""
        self._failures.extend(failures)

    def reset(self) -> None:
        """Remove scripted failures and recorded questions."""
        self._failures.clear()
        self.questions.clear()


@contextmanager
def install_failing_service() -> Generator[ServiceFailures]:
    """Add the service to the catalogue of every API that is opened inside the context."""
    with pytest.MonkeyPatch.context() as patch:
        folder = str(Path(__file__).with_name("extra_services"))
        patch.setattr(services, "__path__", [*services.__path__, folder])
        failing = import_module("centgate.services.failing")
        failures = ServiceFailures(failing.FAILURES, failing.ASKED)
        failures.reset()
        yield failures
