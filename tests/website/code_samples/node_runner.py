"""One Node process for many programs: a start of Node and its imports costs a second of processor time."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Timer

RUN_WITHIN = 90
RUNNER = Path(__file__).with_name("run_programs.mjs")


class NodeRunner:
    """A Node process that runs programs one after another, which share nothing but their imports."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        shutil.copy(RUNNER, folder)
        self._process = subprocess.Popen(
            ["node", RUNNER.name],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, code: str) -> list[str]:
        """Run a program, which must succeed, and return the lines that it prints."""
        file = self._folder / f"{name}.mjs"
        file.write_text(code)
        answer = self._ask(file.as_uri())
        assert answer, f"Node ended, or was ended after {RUN_WITHIN} seconds"
        result = json.loads(answer)
        assert not result["error"], result["error"]
        return result["printed"]

    def close(self) -> None:
        """Wait for the end of the process, which nothing may keep from ending."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            code = self._process.wait(RUN_WITHIN)
        finally:
            self._process.kill()
            self._process.stdout.close()
        assert code == 0

    def _ask(self, program: str) -> str:
        """Return the line that is printed for a program, empty if the process ends."""
        assert self._process.stdin
        assert self._process.stdout
        limit = Timer(RUN_WITHIN, self._process.kill)
        limit.start()
        try:
            self._process.stdin.write(f"{program}\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()
        finally:
            limit.cancel()
