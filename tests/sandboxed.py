"""Tasks for a sandbox: valid, hanging, failing and crashing ones."""

from __future__ import annotations

import os
import re
import threading
import time


def double_number(number: int) -> int:
    """Return twice a number."""
    return 2 * number


def skip_check(_: object) -> None:
    """Stand for a check that passes."""


def worker_process_id() -> int:
    """Return the id of the worker process."""
    return os.getpid()


def run_forever() -> None:
    """Run forever, and let other threads run."""
    while True:
        time.sleep(0.01)


def sleep(seconds: float) -> float:
    """Use no processor time; return the time that elapsed."""
    started = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - started


def compute(seconds: float) -> float:
    """Use this much processor time; return the time used."""
    started = time.process_time()
    while time.process_time() < started + seconds:
        pass
    return time.process_time() - started


def run_in_thread() -> None:
    """Compute for hours in another thread."""
    thread = threading.Thread(target=compute, args=(10_000,))
    thread.start()
    thread.join()


def hold_interpreter_lock() -> bool:
    """Run for hours in C without releasing the interpreter's lock."""
    return re.fullmatch(r"(a|aa)+b", "a" * 200) is not None


def allocate_too_much() -> int:
    """Allocate more memory than available."""
    return len(b"x" * (4 << 30))


def leak_memory() -> None:
    """Allocate memory in small steps."""
    kept = [b"x" * (1 << 20)]
    while True:
        kept.append(b"x" * (1 << 20))


def exit_process() -> None:
    """Terminate the process."""
    os._exit(1)


def raise_unexpected() -> None:
    """Raise an unexpected exception."""
    raise KeyError("missing")


def fork_server_id() -> int:
    """Return the id of the process that forks the workers."""
    return os.getppid()
