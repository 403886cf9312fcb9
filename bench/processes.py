"""Server processes under measurement: started, watched through /proc, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_WITHIN = 60
"""Seconds a server has to say that it is ready."""


class DidNotStart(Exception):
    """A server ended, or said something else, before it was ready."""


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    pid: int
    url: str
    started: float
    """When its process was created, on the clock of `time.perf_counter`."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def running(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Generator[Running]:
    """Run a server in a folder until the `with` ends; it says `ready http://...` once it answers."""
    log = folder / "log.txt"
    started = time.perf_counter()
    with (
        log.open("a") as errors,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**_surroundings(), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            line = _first_line(process)
            if not line.startswith("ready "):
                tail = "\n".join(log.read_text().splitlines()[-20:])
                raise DidNotStart(f"{' '.join(command)} said {line!r}\n{tail}")
            yield Running(process.pid, line.split()[1], started)
        finally:
            _end(process)


def _surroundings() -> dict[str, str]:
    """This process's environment without what would set up the servers differently, or come between them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CENTGATE_", "PYTHON"))}
    return {**kept, "NO_PROXY": "*", "no_proxy": "*"}


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    patience = threading.Timer(START_WITHIN, process.kill)
    patience.start()
    try:
        return process.stdout.readline()
    finally:
        patience.cancel()


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(START_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()


def python(script: str, *arguments: str) -> list[str]:
    """The command that runs a script of this folder."""
    return [sys.executable, str(Path(__file__).parent / script), *arguments]


def family(pid: int) -> list[int]:
    """A process and all that it started, and they."""
    started = [
        int(child)
        for children in Path(f"/proc/{pid}/task").glob("*/children")
        for child in children.read_text().split()
    ]
    return [pid, *(member for child in started for member in family(child))]


def cpu_seconds(pid: int) -> float:
    """Processor time that a process and its family have used so far, all threads together."""
    threads = [
        thread for member in family(pid) for thread in Path(f"/proc/{member}/task").glob("*/schedstat")
    ]
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def resident_mb(pid: int) -> float:
    """Memory of a process and its family, in millions of bytes; pages that they share count once."""
    return sum(_resident_mb(member) for member in family(pid))


def _resident_mb(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024 / 1e6
