"""A service that fails when a test wants it to, put on the shelf the catalogue is made from."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from centgate import services

MOODY = "/services/moody"
WHY = {"question": "why"}


class Moods:
    """What the service will do, and what it was asked."""

    def __init__(self, moods: list[Callable[[], Exception]], asked: list[str]) -> None:
        self._moods = moods
        self.asked = asked

    def then(self, *moods: Callable[[], Exception]) -> None:
        """Raise these in the next calls, first to last."""
        self._moods.extend(moods)

    def forget(self) -> None:
        """Begin anew."""
        self._moods.clear()
        self.asked.clear()


@contextmanager
def moody_on_the_shelf() -> Generator[Moods]:
    """One service more in the catalogue of every API that is opened meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        shelf = str(Path(__file__).with_name("shelf"))
        patch.setattr(services, "__path__", [*services.__path__, shelf])
        moody = import_module("centgate.services.moody")
        moods = Moods(moody.MOODS, moody.ASKED)
        moods.forget()
        yield moods
