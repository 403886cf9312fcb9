"""Work for a sandbox, good and bad."""

from __future__ import annotations

import os
import re
import time


def doubled(number: int) -> int:
    """Twice a number."""
    return 2 * number


def process() -> int:
    """The id of the process that works."""
    return os.getpid()


def forever() -> None:
    """Never ends, and lets other threads run."""
    while True:
        time.sleep(0.01)


def held() -> bool:
    """Takes hours in C without giving the interpreter's lock back."""
    return re.fullmatch(r"(a|aa)+b", "a" * 200) is not None


def fat() -> int:
    """Wants more memory than there is."""
    return len(b"x" * (4 << 30))


def leaking() -> None:
    """Takes memory bit by bit."""
    kept = [b"x" * (1 << 20)]
    while True:
        kept.append(b"x" * (1 << 20))


def gone() -> None:
    """Ends its process."""
    os._exit(1)


def wrong() -> None:
    """Raises what its author did not think of."""
    raise KeyError("missing")
