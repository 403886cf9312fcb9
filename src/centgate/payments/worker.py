"""The names of those at work on payments, and whether one of that name can still be at it."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Worker:
    """Somebody at work on payments: a process, a part of it that works by itself, or one claim of theirs."""

    process: str
    """Where it runs, its number there, and something no other process has; its sign of life is under this."""
    name: str

    def part(self, name: str) -> Worker:
        """A part of it, which lives as long as its process."""
        return Worker(self.process, f"{self.name}/{name}")

    def surely_dead(self, other: str) -> bool:
        """Whether another worker has died, as far as can be told from here; False for what runs elsewhere."""
        place, number, _ = process_of(other).rsplit("/", 2)
        if place != _place() or process_of(other) == self.process:
            return False
        if int(number) == os.getpid():  # it was restarted, as in a container, where numbers repeat
            return True
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


def new_worker() -> Worker:
    """This process."""
    process = f"{_place()}/{os.getpid()}/{secrets.token_hex(8)}"
    return Worker(process, process)


def process_of(worker: str) -> str:
    """The process that a worker's name says it is, or is a part of."""
    return "/".join(worker.split("/")[:3])


def _place() -> str:
    """The host and, where there are such things, the namespace in which process numbers mean something."""
    namespace = 0
    with suppress(OSError):
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - the link's target is not a path
    return f"{socket.gethostname()}:{namespace}"
