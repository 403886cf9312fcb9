"""An API and its stub facilitator that several tests of a file can share, and the API as a process."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
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
        client.get("/health")  # by now there are tables
        off_duty(folder)
        yield House(client, stub)


def off_duty(folder: Path) -> None:
    """Keep the API on a folder's journal from looking into open payments by itself while tests do.

    What it asked the facilitator would be given the replies that were meant for a test.
    """
    with closing(sqlite3.connect(folder / "journal.db", timeout=30)) as journal, journal:
        journal.execute("REPLACE INTO duties VALUES ('upkeep', 'a test', 1e12)")


class Process:
    """`centgate serve` as an operator runs it."""

    program: tuple[str, ...] = (sys.executable, "-m", "centgate")

    def __init__(self, settings: Settings, *, log: Path | None = None, **more: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
        given = {
            "PAY_TO": settings.pay_to or "",
            "NETWORK": settings.network,
            "FACILITATOR_URL": settings.facilitator,
            "DATABASE_URL": settings.database_url,
            "FREE_PER_MINUTE": str(settings.free_per_minute),
            "REFUSED_PER_MINUTE": str(settings.refused_per_minute),
            **more,
        }
        with (log or Path(os.devnull)).open("ab") as errors:
            self.popen = subprocess.Popen(
                [*self.program, "serve", "--port", "0"],
                cwd=_without_env(settings),
                env=environment | {f"CENTGATE_{name}": value for name, value in given.items()},
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.popen.stdout is not None
        word, _, self.url = self.popen.stdout.readline().decode().strip().partition(" ")
        assert word == "ready"

    def kill(self) -> None:
        """End it at once, unless it has ended."""
        self.popen.kill()
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        self.popen.wait(timeout=30)

    def end(self) -> int:
        """Ask it to end, and wait until it has; its exit status."""
        self.popen.terminate()
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        return self.popen.wait(timeout=30)


def _without_env(settings: Settings) -> Path:
    """A folder where no .env lies."""
    if settings.database_url.startswith("sqlite:///"):
        return Path(settings.database_url.removeprefix("sqlite:///")).parent
    return Path(tempfile.gettempdir())


@contextmanager
def running(settings: Settings, *, log: Path | None = None, **more: str) -> Generator[Process]:
    """The API in a process of its own; `more` are settings as the environment spells them."""
    process = Process(settings, log=log, **more)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def running_pair(settings: Settings, **more: str) -> Generator[tuple[Process, Process]]:
    """Two such processes, started at once."""
    with ThreadPoolExecutor(2) as pool, ExitStack() as open_processes:
        starts = [pool.submit(partial(Process, settings, log=None, **more)) for _ in range(2)]
        one, other = (start.result() for start in starts)
        for process in (one, other):
            open_processes.callback(process.end)
        yield one, other
