"""The names of those at work on payments: a process, its parts, and their claims."""

from __future__ import annotations

import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Worker:
    """Somebody at work on payments: a process, a part of it that works by itself, or one claim of theirs."""

    process: str
    """A random id: host names and process numbers repeat on machines that are copies of each other."""
    name: str
    """The process, then its parts, each after a slash."""

    def part(self, name: str) -> Worker:
        """A part of it, which lives as long as its process."""
        return Worker(self.process, f"{self.name}/{name}")

    def shares_process(self, other: str) -> bool:
        """True if the worker of that name is this one's process or a part of it."""
        return other == self.process or other.startswith(self.process + "/")


def new_worker() -> Worker:
    """This process."""
    process = secrets.token_hex(16)
    return Worker(process, process)
