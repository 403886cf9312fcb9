"""Identity of the workers that process payments: a process, its components, and their claims."""

from __future__ import annotations

import secrets

from msgspec import Struct

LEASE_SECONDS = 3.0
"""Seconds without a heartbeat after which a process counts as dead."""


class Worker(Struct, frozen=True):
    """Identity of a worker: a process, an independent component of it, or one of their claims."""

    process: str
    """A random id: host names and process ids repeat on cloned machines."""
    name: str
    """The process, then its components, separated by slashes."""

    def for_component(self, name: str) -> Worker:
        """Return the identity of a component, which lives as long as its process."""
        return Worker(self.process, f"{self.name}/{name}")

    def is_same_process(self, other: str) -> bool:
        """Return True if the worker of that name belongs to the same process."""
        return other == self.process or other.startswith(self.process + "/")


def create_worker() -> Worker:
    """Return a new identity for this process."""
    process = secrets.token_hex(16)
    return Worker(process, process)
