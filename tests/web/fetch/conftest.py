"""Fixtures of the fetcher tests: sites on loopback addresses, and both event loops."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hostile_site import Web, serve_web


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run with the event loop of the server, and with that of the standard library."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@pytest.fixture
def web() -> Generator[Web]:
    """Three sites; `site.test` and `other.test` resolve to two of them."""
    with serve_web() as sites:
        yield sites
