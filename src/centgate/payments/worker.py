"""The name of a process at work on payments, and whether a process of that name can still be at it."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress


def new_worker() -> str:
    """A name for this process: where it runs, its number there, and something no other process has."""
    return f"{_place()}/{os.getpid()}/{secrets.token_hex(8)}"


def surely_dead(worker: str) -> bool:
    """Whether the process has died, as far as can be told from here; False for what runs elsewhere."""
    place, number, _ = worker.rsplit("/", 2)
    if place != _place():
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


def _place() -> str:
    """The host and, where there are such things, the namespace in which process numbers mean something."""
    namespace = 0
    with suppress(OSError):
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - the link's target is not a path
    return f"{socket.gethostname()}:{namespace}"
