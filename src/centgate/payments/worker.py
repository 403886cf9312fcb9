"""The name of a process at work on payments, and whether a process of that name can still be at it."""

from __future__ import annotations

import os
import secrets
import socket


def new_worker() -> str:
    """A name for this process: its host, its number there, and something no other process has."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(8)}"


def surely_dead(worker: str) -> bool:
    """Whether the process has died on this very host; False also for what cannot be known from here."""
    host, number, _ = worker.rsplit("/", 2)
    if host != socket.gethostname():
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
