"""Fixtures of the website's tests: an API on the development chain, its website, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from browser_session import ServedSite, serve_site
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.server import run_in_thread
from centgate.settings import Settings


@pytest.fixture(scope="session")
def shop(devchain: DevChain, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedSite]:
    """The website of an API that is paid on the development chain."""
    settings = devchain_settings(devchain, Settings(port=0), tmp_path_factory.mktemp("shop"))
    with run_in_thread(settings) as api, serve_site(api) as site:
        yield site


# of a module, since Playwright's event loop counts as running for as long as it is open
@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """Chromium; skips the test if it is not installed."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser, shop: ServedSite) -> Generator[BrowserContext]:
    """A browser context whose base URL is the website."""
    context = chromium.new_context(base_url=shop.url)
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Generator[Page]:
    """A tab; script errors and CSP violations fail the test."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console", lambda message: errors.append(message.text) if "Content Security" in message.text else None
    )
    yield page
    assert errors == []


@pytest.fixture(scope="session")
def axe(npm_tools: Path) -> Path:
    """The script of axe-core."""
    return npm_tools / "node_modules" / "axe-core" / "axe.min.js"
