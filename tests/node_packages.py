"""JavaScript packages that tests run, installed once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

TYPESCRIPT_CLIENT = Path(__file__).parents[1] / "clients" / "typescript"
"""The TypeScript client's package."""
COMPILED = ("dist", "build")
"""Folders of what is compiled."""
INSTALL_TIMEOUT = 240
BUILD_TIMEOUT = 120
ORIGINAL_ENVIRONMENT = dict(os.environ)
"""The environment before any test: packages come from the Internet, with its certificate authorities."""
QUIET_OPTIONS = ("--no-audit", "--no-fund", "--ignore-scripts")


def install_packages(
    factory: pytest.TempPathFactory, name: str, files: Iterable[Path], *command: str
) -> Path:
    """Return a folder of these files with the packages that `npm <command>` installs beside them.

    Folders of the same name share the packages. Skips the test if they cannot be installed.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not on this machine")
    folder = factory.mktemp(name)
    for file in files:
        shutil.copy(file, folder)
    base_folder = factory.getbasetemp()
    shared = (base_folder.parent if "PYTEST_XDIST_WORKER" in os.environ else base_folder) / f"{name}-packages"
    shared.mkdir(exist_ok=True)
    failure = shared / "failure"
    with (shared / "turn").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not failure.exists():
            failure.write_text(_install([npm, *command, *QUIET_OPTIONS], folder, shared))
    if message := failure.read_text():
        pytest.skip(f"npm cannot install the packages here: {message}")
    (folder / "node_modules").symlink_to(shared / "node_modules")
    return folder


def build_typescript_client(factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the TypeScript client and its tests, both built. Skips without npm.

    It is built once for all processes of a test run, which takes ten seconds of processor time.
    """
    files = [file for file in TYPESCRIPT_CLIENT.iterdir() if file.is_file()]
    folder = install_packages(factory, "typescript", files, "ci")
    for name in ("src", "test"):
        shutil.copytree(TYPESCRIPT_CLIENT / name, folder / name)
    shared = (folder / "node_modules").resolve().parent
    with (shared / "turn").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "build").exists():
            _compile_typescript_client(folder)
            for name in COMPILED:
                shutil.copytree(folder / name, shared / name)
            return folder
    for name in COMPILED:
        shutil.copytree(shared / name, folder / name)
    return folder


def _compile_typescript_client(folder: Path) -> None:
    """Compile the client, and its tests, which import it."""
    for project in ("tsconfig.json", "tsconfig.test.json"):
        command = [str(folder / "node_modules" / ".bin" / "tsc"), "-p", project]
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False
        )
        assert result.returncode == 0, result.stdout


def _install(command: list[str], source: Path, shared: Path) -> str:
    """Install the packages of a folder; return the error message, empty on success."""
    for file in source.glob("package*.json"):
        shutil.copy(file, shared)
    result = subprocess.run(
        command,
        cwd=shared,
        env=ORIGINAL_ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT,
        check=False,
    )
    return (result.stderr[-300:] or "no reason given") if result.returncode else ""
