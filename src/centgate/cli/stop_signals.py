"""SIGTERM and SIGINT: a command that runs until it is stopped ends with its cleanup, and with exit code 0."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_on_interrupt() -> None:
    """Let SIGINT end the process at once, as SIGTERM does by default, until `exit_on_stop_signals` begins.

    For the imports of a start, when there is nothing to clean up yet: Python ignores a KeyboardInterrupt that
    is raised in a callback of the garbage collector or of a weak reference, and the server would go on.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def exit_on_stop_signals() -> Generator[None]:
    """Raise SystemExit(0) in the block at SIGTERM or SIGINT, so that all `with` blocks inside it end.

    By default, SIGTERM ends a process at once, and temporary folders stay. uvicorn handles the signals while
    it serves, and raises them again when all requests are answered. A second signal has its default effect:
    it stops a cleanup that hangs. A signal that is ignored, as in a shell's background, remains so.
    """
    replaced = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    ours = [each for each, handler in replaced.items() if handler is not signal.SIG_IGN]
    for each in ours:
        signal.signal(each, _exit)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, replaced[each])


def end_process(code: int) -> NoReturn:
    """End the process without waiting for its threads, after everything was cleaned up."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _exit(_signal: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise SystemExit(0)
