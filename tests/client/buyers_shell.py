"""The buyer's commands as a person types them: processes of their own, with folders of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from centgate.devchain.accounts import BUYERS

PATIENCE = 60
COMMAND = [sys.executable, "-m", "centgate"]


@dataclass(frozen=True)
class Shell:
    """Runs commands with a home of its own; `settings` are those of every command."""

    home: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def __call__(self, *arguments: str, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment(**settings),
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def into(self, output: int | TextIO, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, its answer written to a file or a pipe."""
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment(),
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        """Begin a command."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=self.environment(**settings),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_interruptible,
        )

    def environment(self, **settings: str) -> dict[str, str]:
        """The environment of a command."""
        folders = {f"XDG_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        given = {**self.settings, **settings}
        return {**os.environ, "COLUMNS": "100", "HOME": str(self.home), **folders, **given}


def _interruptible() -> None:
    """As at a terminal: what runs in the background of a shell is not interrupted, nor what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def key_of(number: int = 0) -> str:
    """The private key of one of the ten payers."""
    return BUYERS[number].private_key
