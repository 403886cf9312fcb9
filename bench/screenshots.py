"""Screenshots of the website for the documentation, in light and dark: pages and a paid answer.

PYTHONPATH=tests/website .venv/bin/python bench/screenshots.py docs/screenshots
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from browser_session import BrowserWallet, install_wallet, serve_site
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from centgate.devchain.devnet import open_devchain
from centgate.devchain.environment import devchain_settings
from centgate.log import configure_logging
from centgate.server import run_in_thread
from centgate.settings import Settings

Scheme = Literal["light", "dark"]
SIZES: Final[Mapping[str, ViewportSize]] = {
    "desk": {"width": 1280, "height": 860},
    "phone": {"width": 390, "height": 844},
}
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
MAX_BYTES: Final = 280 * 1024


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


VIEWS: Final[Mapping[str, Callable[[Page], None]]] = {
    "home": open_home,
    "service": open_service,
    "paid": buy_answer,
    "status": open_status,
}


def main() -> None:
    """Take all screenshots; exit at the first one that is too large."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    configure_logging("error")
    with tempfile.TemporaryDirectory() as data_folder, open_devchain() as chain:
        settings = devchain_settings(chain, Settings(), Path(data_folder))
        with run_in_thread(settings) as api, serve_site(api) as site, sync_playwright() as playwright:
            path = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            for size in SIZES:
                for scheme in SCHEMES:
                    take_screenshots(browser, site.url, size, scheme, folder=folder)
            browser.close()


def take_screenshots(browser: Browser, site: str, size: str, scheme: Scheme, *, folder: Path) -> None:
    """Take a screenshot of each view in one size and color scheme."""
    context = browser.new_context(base_url=site, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    install_wallet(page, BrowserWallet())
    for name, open_view in VIEWS.items():
        page.set_viewport_size(SIZES[size])
        open_view(page)
        file = folder / f"{name}-{size}-{scheme}.png"
        page.screenshot(path=file, animations="disabled", caret="hide")
        if file.stat().st_size > MAX_BYTES:
            sys.exit(f"{file} has {file.stat().st_size} bytes, more than {MAX_BYTES}")
    context.close()


if __name__ == "__main__":
    main()
