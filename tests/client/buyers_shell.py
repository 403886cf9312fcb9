"""Run the client's commands as separate processes, with their own home folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from centgate_process import CentgateProcess, read_text, run_centgate

from centgate.devchain.accounts import BUYER_ACCOUNTS

TIMEOUT = 60
COMMAND = [sys.executable, "-m", "centgate"]


@dataclass(frozen=True)
class Shell:
    """Runner of commands with its own home folder; `settings` apply to every command."""

    home: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def __call__(self, *arguments: str, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command to completion."""
        environment = self.environment(**settings)
        return run_centgate([*arguments], env=environment, cwd=self.home, input=stdin, timeout=TIMEOUT)

    def run_into(
        self, output: int | IO[bytes], *arguments: str, stdin: int | IO[bytes] = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to completion, with its output written to a file or a pipe."""
        with TemporaryFile() as errors:
            process = CentgateProcess(
                [*arguments], env=self.environment(), stdin=stdin, stdout=output, stderr=errors
            )
            try:
                code = process.wait(TIMEOUT)
            finally:
                process.kill()
            return subprocess.CompletedProcess(arguments, code, "", read_text(errors))

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        """Start a command in an interpreter of its own."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=self.environment(**settings),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_enable_sigint,
        )

    def environment(self, **settings: str) -> dict[str, str]:
        """Return the environment of a command."""
        folders = {f"XDG_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        overrides = {**self.settings, **settings}
        return {**os.environ, "COLUMNS": "100", "HOME": str(self.home), **folders, **overrides}


def _enable_sigint() -> None:
    """Restore SIGINT as at a terminal: background processes of a shell and their children ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def private_key_of(number: int = 0) -> str:
    """Return the private key of one of the ten development accounts."""
    return BUYER_ACCOUNTS[number].private_key
