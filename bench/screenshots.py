"""Pictures of the website for the documentation: a payment on a development chain, seen by day and by night.

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
LIMIT: Final = 280 * 1024


def home(page: Page) -> None:
    page.goto("/")


def service(page: Page) -> None:
    page.goto("/services/token-risk")


def paid(page: Page) -> None:
    """An answer with its receipt, which really was paid; as much of the page as they need."""
    page.goto("/services/phishing-check")
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("button", name="Pay with wallet").click()
    page.get_by_role("button", name="Sign and pay").click()
    page.locator("#try-answer").wait_for()
    height = page.locator("#try").evaluate("each => each.scrollHeight")
    page.set_viewport_size({"width": page.evaluate("innerWidth"), "height": height + 32})
    page.locator("#try").evaluate("each => each.scrollIntoView({ behavior: 'instant' })")


def status(page: Page) -> None:
    page.goto("/status")


VIEWS: Final[Mapping[str, Callable[[Page], None]]] = {
    "home": home,
    "service": service,
    "paid": paid,
    "status": status,
}


def main() -> None:
    """Take every picture; a picture that is too large ends it."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots")
    out.mkdir(parents=True, exist_ok=True)
    configure_logging("error")
    with tempfile.TemporaryDirectory() as folder, open_devchain() as chain:
        settings = devchain_settings(chain, Settings(), Path(folder))
        with run_in_thread(settings) as api, serve_site(api) as site, sync_playwright() as playwright:
            path = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            for size in SIZES:
                for scheme in SCHEMES:
                    take(browser, site.url, size, scheme, out=out)
            browser.close()


def take(browser: Browser, site: str, size: str, scheme: Scheme, *, out: Path) -> None:
    """Every view in one size and scheme."""
    context = browser.new_context(base_url=site, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    install_wallet(page, BrowserWallet())
    for name, show in VIEWS.items():
        page.set_viewport_size(SIZES[size])
        show(page)
        place = out / f"{name}-{size}-{scheme}.png"
        page.screenshot(path=place, animations="disabled", caret="hide")
        if place.stat().st_size > LIMIT:
            sys.exit(f"{place} has {place.stat().st_size} bytes, more than {LIMIT}")
    context.close()


if __name__ == "__main__":
    main()
