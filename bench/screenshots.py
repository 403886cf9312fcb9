"""Screenshots of the website and the operator's console for the documentation, in light and dark.

PYTHONPATH=tests:tests/console .venv/bin/python bench/screenshots.py docs/screenshots
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from browser_session import BrowserWallet, install_wallet, serve_site
from console_session import ServedConsole, serve_console
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from centgate.client import Centgate, Wallet
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.environment import devchain_settings
from centgate.log import configure_logging
from centgate.server import run_in_thread
from centgate.settings import Settings
from centgate.web.browser.executable import find_executable

Scheme = Literal["light", "dark"]
SIZES: Final[Mapping[str, ViewportSize]] = {
    "desk": {"width": 1280, "height": 860},
    "phone": {"width": 390, "height": 844},
}
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
MAX_BYTES: Final = 280 * 1024
QUESTIONS: Final = 40
"""Answers bought before the screenshots of the console."""


def open_home(page: Page) -> None:
    page.goto("/")


def open_service(page: Page) -> None:
    page.goto("/services/token-risk")


def buy_answer(page: Page) -> None:
    """Pay for an answer, and limit the viewport to the answer with its receipt."""
    page.goto("/services/phishing-check")
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("button", name="Pay with wallet").click()
    page.get_by_role("button", name="Sign and pay").click()
    page.locator("#try-answer").wait_for()
    height = page.locator("#try").evaluate("each => each.scrollHeight")
    page.set_viewport_size({"width": page.evaluate("innerWidth"), "height": height + 32})
    page.locator("#try").evaluate("each => each.scrollIntoView({ behavior: 'instant' })")


def open_status(page: Page) -> None:
    page.goto("/status")


def open_payment(page: Page) -> None:
    """Open the newest payment in the console."""
    page.goto("/payments")
    page.locator("tbody th a").first.click()


VIEWS: Final[Mapping[str, Callable[[Page], None]]] = {
    "home": open_home,
    "service": open_service,
    "paid": buy_answer,
    "status": open_status,
}
CONSOLE_VIEWS: Final[Mapping[str, Callable[[Page], None]]] = {
    "console": open_home,
    "payment": open_payment,
}


def main() -> None:
    """Take all screenshots; exit at the first one that is too large."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    configure_logging("error")
    with tempfile.TemporaryDirectory() as data_folder, open_devchain() as chain:
        settings = devchain_settings(chain, Settings(), Path(data_folder))
        with run_in_thread(settings) as api, serve_site(api) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_executable(None), args=["--no-sandbox", "--disable-gpu"]
            )
            buy_answers(api, chain)
            with serve_console(settings) as console:
                for size in SIZES:
                    for scheme in SCHEMES:
                        page = open_tab(browser, site.url, scheme)
                        install_wallet(page, BrowserWallet())
                        take_screenshots(page, VIEWS, size, scheme, folder=folder)
                        page = open_tab(browser, console.url, scheme)
                        log_in(page, console)
                        take_screenshots(page, CONSOLE_VIEWS, size, scheme, folder=folder)
            browser.close()


def buy_answers(api: str, chain: DevChain) -> None:
    """Buy answers of one service, so that the console has payments to show."""
    wallet = Wallet.from_key(chain.accounts[1].private_key)
    with Centgate(api, wallet=wallet, networks=[f"eip155:{chain.chain_id}"]) as client:
        for number in range(QUESTIONS):
            client.phishing_check(url=f"https://wallet-ethereum{number}.net/unlock")


def log_in(page: Page, console: ServedConsole) -> None:
    """Log in to the console by a new one-time link."""
    console.console.print_link()
    page.goto(console.link)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{console.url}/")


def open_tab(browser: Browser, url: str, scheme: Scheme) -> Page:
    """Return a tab with cookies of its own, which are kept until the browser ends."""
    context = browser.new_context(base_url=url, color_scheme=scheme, reduced_motion="reduce")
    return context.new_page()


def take_screenshots(
    page: Page, views: Mapping[str, Callable[[Page], None]], size: str, scheme: Scheme, *, folder: Path
) -> None:
    """Take a screenshot of each view in one size and color scheme."""
    for name, open_view in views.items():
        page.set_viewport_size(SIZES[size])
        open_view(page)
        file = folder / f"{name}-{size}-{scheme}.png"
        page.screenshot(path=file, animations="disabled", caret="hide")
        if file.stat().st_size > MAX_BYTES:
            sys.exit(f"{file} has {file.stat().st_size} bytes, more than {MAX_BYTES}")
    page.context.close()


if __name__ == "__main__":
    main()
