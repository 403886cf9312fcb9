"""An API and its stub facilitator that several tests of a file can share, and the API as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from facilitators import StubFacilitator, settings_in, stub_facilitator

from centgate.server import serving
from centgate.settings import Settings


@dataclass(frozen=True)
class House:
    """An API that answers, and who settles for it."""

    client: httpx.Client
    facilitator: StubFacilitator


@contextmanager
def open_house(folder: Path, **changes: Any) -> Generator[House]:
    """An API in this process with a facilitator of its own; `changes` are settings."""
    with (
        stub_facilitator() as stub,
        serving(settings_in(folder, **{"facilitator_url": stub.url, **changes})) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield House(client, stub)


class Process:
    """`centgate serve` as an operator runs it."""

    def __init__(self, settings: Settings, *, log: Path | None = None, **more: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
        given = {
            "PAY_TO": settings.pay_to or "",
            "NETWORK": settings.network,
            "FACILITATOR_URL": settings.facilitator,
            "DATABASE_URL": settings.database_url,
            **more,
        }
        with (log or Path(os.devnull)).open("wb") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "centgate", "serve", "--port", "0"],
                cwd=Path(settings.database_url.removeprefix("sqlite:///")).parent,  # where no .env lies
                env=environment | {f"CENTGATE_{name}": value for name, value in given.items()},
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.popen.stdout is not None
        word, _, self.url = self.popen.stdout.readline().decode().strip().partition(" ")
        assert word == "ready"

    def end(self) -> int:
        """Ask it to end, and wait until it has; its exit status."""
        self.popen.terminate()
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        return self.popen.wait(timeout=30)


@contextmanager
def running(settings: Settings, *, log: Path | None = None, **more: str) -> Generator[Process]:
    """The API in a process of its own; `more` are settings as the environment spells them."""
    process = Process(settings, log=log, **more)
    try:
        yield process
    finally:
        process.end()
