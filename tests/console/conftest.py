"""Fixtures of the console's tests."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from console_session import Operator, ServedConsole, serve_console
from databases import create_sqlite

from centgate.settings import Settings


@pytest.fixture
def console_settings(tmp_path: Path) -> Settings:
    """A deployment with an empty journal."""
    return Settings(pay_to="0x" + "ce" * 20, database_url=create_sqlite(tmp_path))


@pytest.fixture
def console(console_settings: Settings) -> Generator[ServedConsole]:
    """A console with an empty journal."""
    with serve_console(console_settings) as console:
        yield console


@pytest.fixture
def operator(console: ServedConsole) -> Operator:
    """A browser that is logged in."""
    return console.log_in()
