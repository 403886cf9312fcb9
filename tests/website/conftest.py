"""Fixtures of the website's tests: an API on the development chain, its website, and a browser."""

# eth_account is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from browser_session import ServedSite, serve_site
from chromium import open_chromium
from eth_account import Account
from eth_account.messages import encode_defunct
from playwright.sync_api import Browser, BrowserContext, Page
from site_fixtures import API, SiteFixture, open_site_fixture

from centgate.devchain.accounts import BUYER_ACCOUNTS
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


def sign_ownership() -> str:
    """Return a proof of ownership: a signature of the API's URL by the payee."""
    signed = Account.sign_message(encode_defunct(text=API), BUYER_ACCOUNTS[0].private_key)
    return "0x" + signed.signature.hex().removeprefix("0x")


@pytest.fixture(scope="session")
def sepolia_site(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """Website for test money whose operator has published everything about themselves."""
    options = {
        "pay_to": BUYER_ACCOUNTS[0].address,
        "operator": "mailto:desk@shop.example",
        "ownership_proofs": (sign_ownership(),),
    }
    with open_site_fixture(tmp_path_factory.mktemp("sepolia_site"), **options) as found:
        yield found


@pytest.fixture(scope="session")
def unpaid_site(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """Website of an API that takes no payments, and whose operator cannot be contacted."""
    with open_site_fixture(tmp_path_factory.mktemp("unpaid_site"), pay_to=None) as found:
        yield found


# of a module, since Playwright's event loop counts as running for as long as it is open
@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """Chromium; skips the test if it is not installed."""
    with open_chromium() as browser:
        yield browser


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
