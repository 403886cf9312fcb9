"""Chromium for tests of pages."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

from centgate.web.browser.executable import RenderFailed, find_executable


@contextmanager
def open_chromium() -> Generator[Browser]:
    """Open the browser that the page renderer would find; skips the test if there is none."""
    try:
        executable = find_executable(None)
    except RenderFailed as error:
        pytest.skip(str(error))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
