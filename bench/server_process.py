"""Server processes of the benchmarks: start, stop, processor time and memory by Linux's /proc."""

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

TIMEOUT = 60
"""Seconds that a server has to get ready, and to stop."""


class StartFailed(Exception):
    """A server ended, or printed another line, before it was ready."""


@dataclass(frozen=True)
class ServerProcess:
    """Server that is ready for requests."""

    pid: int
    url: str
    start_time: float
    """Time of the process's creation in seconds, on the clock of `time.perf_counter`."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def run_server(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Generator[ServerProcess]:
    """Run a server in a folder until the `with` ends.

    Raises StartFailed if its first line is not `ready http://...`.
    """
    log = folder / "log.txt"
    start = time.perf_counter()
    with (
        log.open("a") as errors,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**_build_environment(), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            line = _read_first_line(process)
            if not line.startswith("ready "):
                tail = "\n".join(log.read_text().splitlines()[-20:])
                raise StartFailed(f"{' '.join(command)} printed {line!r}\n{tail}")
            yield ServerProcess(process.pid, line.split()[1], start)
        finally:
            _stop_process(process)


def _build_environment() -> dict[str, str]:
    """Return this process's environment without Centgate's settings, Python's variables and proxies."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("CENTGATE_", "PYTHON"))
    }
    return {**variables, "NO_PROXY": "*", "no_proxy": "*"}


def _read_first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    timer = threading.Timer(TIMEOUT, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def _stop_process(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()


def build_script_command(script: str, *arguments: str) -> list[str]:
    """Return the command that runs a script of this folder."""
    return [sys.executable, str(Path(__file__).parent / script), *arguments]


def list_process_tree(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants."""
    children = [
        int(child)
        for file in Path(f"/proc/{pid}/task").glob("*/children")
        for child in file.read_text().split()
    ]
    return [pid, *(descendant for child in children for descendant in list_process_tree(child))]


def read_cpu_seconds(pid: int) -> float:
    """Return the processor time in seconds that a process tree has used so far, over all threads."""
    threads = [
        thread
        for member in list_process_tree(pid)
        for thread in Path(f"/proc/{member}/task").glob("*/schedstat")
    ]
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def read_resident_mb(pid: int) -> float:
    """Return the memory of a process tree in millions of bytes; shared pages count once."""
    return sum(_read_proportional_mb(member) for member in list_process_tree(pid))


def _read_proportional_mb(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024 / 1e6
