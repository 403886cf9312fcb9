"""What the tests of others' clients share: the official JavaScript packages, installed once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INSTALL_WITHIN = 240


@pytest.fixture(scope="session")
def npm_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JavaScript programs, beside the official packages that they use."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not on this machine")
    folder = tmp_path_factory.mktemp("clients")
    for file in (*HERE.glob("*.mjs"), *HERE.glob("*.json")):
        shutil.copy(file, folder)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_WITHIN, check=False
    )
    if done.returncode:
        pytest.skip(f"npm could not install the client: {done.stderr[-300:]}")
    return folder
