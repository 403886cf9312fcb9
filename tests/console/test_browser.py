"""The console in a real browser: without scripts, accessible, on the smallest phone, in light and dark."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from pathlib import Path
from typing import Literal

import pytest
from browser_session import axe_violations
from buyer import Buyer
from chromium import open_chromium
from console_session import PAGES, ServedConsole, serve_console
from journal_rows import insert_rows, payment_row
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize
from pydantic import SecretStr
from webhook_outboxes import open_outbox
from webhook_receiver import SECRET as WEBHOOK_SECRET

from centgate.settings import Settings

pytestmark = pytest.mark.extended
NARROW = 320
REFUND = "0x" + "f0" * 32
DAY = 86_400.0


# of a module, since Playwright's event loop counts as running for as long as it is open
@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """Chromium; skips the test if it is not installed."""
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def axe(npm_tools: Path) -> Path:
    """The script of axe-core."""
    return npm_tools / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def shop(console_settings: Settings, chromium: Browser) -> Generator[ServedConsole]:
    """A console with a payment of each state."""
    states = ("delivered", "settled", "settling", "refused", "unused")
    rows = [
        payment_row(number, state, created_at=time.time() - days * DAY)
        for number, (state, days) in enumerate((state, days) for state in states for days in (0.001, 3))
    ]
    # Playwright's loop counts as running in this thread
    insert_in_thread(console_settings, rows)
    with serve_console(console_settings) as served:
        yield served


def insert_in_thread(settings: Settings, rows: list[dict[str, object]]) -> None:
    """Insert payments from a thread of its own."""
    import threading

    thread = threading.Thread(target=lambda: asyncio.run(insert_rows(settings.database_url, payments=rows)))
    thread.start()
    thread.join()


def deliver_in_thread(settings: Settings) -> None:
    """Record a delivered payment with its event from a thread of its own."""
    import threading

    async def deliver() -> None:
        async with open_outbox(settings) as outbox:
            await outbox.deliver(Buyer())

    thread = threading.Thread(target=lambda: asyncio.run(deliver()))
    thread.start()
    thread.join()


def log_in(context: BrowserContext, served: ServedConsole) -> Page:
    """Open a tab and log in by a new link."""
    page = context.new_page()
    served.console.print_link()
    page.goto(served.link)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{served.url}/")
    return page


def find_payment_path(page: Page, state: str) -> str:
    """Return the path of the first payment in a state."""
    page.goto(f"/payments?state={state}")
    return page.locator("tbody th a").first.get_attribute("href") or ""


def test_refund_is_entered_without_scripts(chromium: Browser, shop: ServedConsole) -> None:
    context = chromium.new_context(base_url=shop.url, java_script_enabled=False)
    page = log_in(context, shop)

    page.get_by_role("link", name="Refundable").click()
    page.locator("tbody th a").first.click()
    page.get_by_label("Transaction of your transfer").fill(REFUND)
    page.get_by_label("Record it without a check").check()
    page.get_by_role("button", name="Record the refund").click()
    notice = page.get_by_role("status").inner_text()
    page.get_by_role("link", name="Log", exact=True).click()
    log = page.locator("tbody tr").first.inner_text()
    page.get_by_role("button", name="Log out").click()
    left = page.url
    page.goto("/")
    back = page.url
    context.close()

    assert notice == f"The refund in {REFUND} was recorded."
    assert "refund" in log
    assert left == back == f"{shop.url}/login"


def test_page_reloads_until_stopped(chromium: Browser, shop: ServedConsole) -> None:
    context = chromium.new_context(base_url=shop.url)
    page = log_in(context, shop)

    headers: list[str | None] = []
    page.on("response", lambda response: headers.append(response.headers.get("refresh")))
    page.goto("/payments")
    before, headers[:] = [each for each in headers if each], []
    page.get_by_role("button", name="Stop that").click()
    page.get_by_role("button", name="Load it every 30 seconds").wait_for()
    context.close()

    assert before == ["30;url=/payments?refresh=1"]
    assert [each for each in headers if each] == []


def test_table_of_events_scrolls_without_the_page(chromium: Browser, console_settings: Settings) -> None:
    changes = {"webhook_url": "http://127.0.0.1:9/", "webhook_secret": SecretStr(WEBHOOK_SECRET)}
    settings = console_settings.model_copy(update=changes)
    deliver_in_thread(settings)

    with serve_console(settings) as served:
        context = chromium.new_context(base_url=served.url, viewport={"width": NARROW, "height": 900})
        page = log_in(context, served)
        page.goto("/webhooks")
        sent_again = page.get_by_role("button", name="again").count()
        width = page.evaluate("document.documentElement.scrollWidth")
        context.close()

    assert (sent_again, width) == (1, NARROW)


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", NARROW)])
def test_axe_finds_nothing_and_nothing_is_blocked(
    chromium: Browser, shop: ServedConsole, axe: Path, scheme: Literal["dark", "light"], width: int
) -> None:
    viewport: ViewportSize = {"width": width, "height": 900}
    context = chromium.new_context(base_url=shop.url, color_scheme=scheme, viewport=viewport)
    context.add_init_script(path=axe)
    messages: list[str] = []
    context.on("console", lambda message: messages.append(message.text))
    found: dict[str, list[str]] = {}
    login = context.new_page()
    login.goto("/login")
    found["/login"] = axe_violations(login)
    page = log_in(context, shop)
    paths = [*PAGES, find_payment_path(page, "refundable"), find_payment_path(page, "open"), "/nothing"]
    widths: dict[str, int] = {}
    for path in paths:
        page.goto(path)
        found[path] = axe_violations(page)
        widths[path] = page.evaluate("document.documentElement.scrollWidth")
    page.goto("/doctor")
    page.get_by_role("button", name="Run all checks now").click()
    page.wait_for_load_state()
    found["checked"] = axe_violations(page)
    context.close()

    assert {path: each for path, each in found.items() if each} == {}
    assert {path: each for path, each in widths.items() if each > width} == {}
    assert [each for each in messages if "404" not in each] == []
