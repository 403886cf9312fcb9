"""Fixtures of the tests with third-party clients: the official JavaScript packages, installed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_packages import install_packages

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def npm_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the JavaScript programs and the official packages that they use."""
    files = (*HERE.glob("*.mjs"), *HERE.glob("*.json"))
    return install_packages(tmp_path_factory, "clients", files, "ci")
