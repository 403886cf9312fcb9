"""A served API with its stub facilitator, to be shared by the tests of a file, and the API as a process."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import httpx
from buyer import SHARED
from centgate_process import CentgateProcess
from facilitators import StubFacilitator, build_settings, open_stub_facilitator

from centgate.server import run_in_thread
from centgate.settings import Settings


@dataclass(frozen=True)
class ServedApi:
    """Client of a served API, and its facilitator."""

    client: httpx.Client
    facilitator: StubFacilitator


@contextmanager
def serve_api(folder: Path, **changes: Any) -> Generator[ServedApi]:
    """Serve an API in this process with its own facilitator; `changes` are settings."""
    with (
        open_stub_facilitator() as stub,
        run_in_thread(build_settings(folder, **{"facilitator_url": stub.url, **changes})) as url,
        httpx.Client(base_url=url, timeout=30, limits=SHARED) as client,
    ):
        client.get("/health")  # creates the tables
        disable_reconciler(folder)
        yield ServedApi(client, stub)


def disable_reconciler(folder: Path) -> None:
    """Keep the API on a folder's journal from reconciling open payments while tests run.

    Its calls to the facilitator would consume the replies that are meant for a test. A trigger keeps
    others from leading: no process respects a lease that does not end.
    """
    with closing(sqlite3.connect(folder / "journal.db", timeout=30)) as journal, journal:
        journal.execute("REPLACE INTO duties VALUES ('upkeep', 'a test', 0)")
        journal.execute(
            "CREATE TRIGGER IF NOT EXISTS no_leader BEFORE UPDATE ON duties WHEN old.worker = 'a test' "
            "BEGIN SELECT RAISE(IGNORE); END"
        )


class ApiProcess:
    """A `centgate serve` process, as an operator runs it."""

    program: tuple[str, ...] | None = None
    """Command in place of `centgate`."""

    def __init__(self, settings: Settings, *, log: Path | None = None, **more: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
        settings_environment = {
            "PAY_TO": settings.pay_to or "",
            "NETWORK": settings.network,
            "FACILITATOR_URL": settings.facilitator,
            "DATABASE_URL": settings.database_url,
            "FREE_PER_MINUTE": str(settings.free_per_minute),
            "REFUSED_PER_MINUTE": str(settings.refused_per_minute),
            "PHISHING_LIST_URL": "off",
            **more,
        }
        with (log or Path(os.devnull)).open("ab") as errors:
            self.popen = self._start(
                environment | {f"CENTGATE_{name}": value for name, value in settings_environment.items()},
                _folder_without_env(settings),
                errors,
            )
        assert self.popen.stdout is not None
        word, _, self.url = self.popen.stdout.readline().strip().partition(" ")
        assert word == "ready"

    def _start(
        self, environment: Mapping[str, str], folder: Path, errors: IO[bytes]
    ) -> CentgateProcess | subprocess.Popen[str]:
        arguments = ["serve", "--port", "0"]
        if self.program is None:
            return CentgateProcess(arguments, env=environment, cwd=folder, stderr=errors)
        return subprocess.Popen(
            [*self.program, *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    def kill(self) -> None:
        """Kill the process if it runs."""
        self.popen.kill()
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        self.popen.wait(timeout=30)

    def stop(self) -> int:
        """Terminate the process, wait for its end, and return its exit status."""
        self.popen.terminate()
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        return self.popen.wait(timeout=30)


def _folder_without_env(settings: Settings) -> Path:
    """Return a folder without an .env file."""
    if settings.database_url.startswith("sqlite:///"):
        return Path(settings.database_url.removeprefix("sqlite:///")).parent
    return Path(tempfile.gettempdir())


@contextmanager
def run_api_process(settings: Settings, *, log: Path | None = None, **more: str) -> Generator[ApiProcess]:
    """Run the API in its own process; `more` are settings by environment name without prefix."""
    process = ApiProcess(settings, log=log, **more)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def run_api_processes(settings: Settings, **more: str) -> Generator[tuple[ApiProcess, ApiProcess]]:
    """Run two such processes, started at the same time."""
    with ThreadPoolExecutor(2) as pool, ExitStack() as open_processes:
        starts = [pool.submit(partial(ApiProcess, settings, log=None, **more)) for _ in range(2)]
        one, other = (start.result() for start in starts)
        for process in (one, other):
            open_processes.callback(process.stop)
        yield one, other
