"""JavaScript packages that tests run, installed once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

INSTALL_WITHIN = 240
SURROUNDINGS = dict(os.environ)
"""As they were before any test: packages come from the Internet, with its authorities."""
QUIETLY = ("--no-audit", "--no-fund", "--ignore-scripts")


def installed(factory: pytest.TempPathFactory, name: str, files: Iterable[Path], *command: str) -> Path:
    """A folder of these files with the packages that `npm <command>` puts beside them.

    What has the same name shares the packages. Skips where they cannot be had.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not on this machine")
    folder = factory.mktemp(name)
    for file in files:
        shutil.copy(file, folder)
    own = factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / f"{name}-packages"
    shared.mkdir(exist_ok=True)
    failure = shared / "failure"
    with (shared / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not failure.exists():
            failure.write_text(_install([npm, *command, *QUIETLY], folder, shared))
    if said := failure.read_text():
        pytest.skip(f"npm cannot install the packages here: {said}")
    (folder / "node_modules").symlink_to(shared / "node_modules")
    return folder


def _install(command: list[str], wanted: Path, shared: Path) -> str:
    """Install what a folder wants; what went wrong."""
    for file in wanted.glob("package*.json"):
        shutil.copy(file, shared)
    done = subprocess.run(
        command,
        cwd=shared,
        env=SURROUNDINGS,
        capture_output=True,
        text=True,
        timeout=INSTALL_WITHIN,
        check=False,
    )
    return (done.stderr[-300:] or "no reason given") if done.returncode else ""
