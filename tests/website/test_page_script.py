"""The script of every page in a real browser, and pages without it."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from browser_session import ServedSite
from playwright.sync_api import Browser, Page, expect

SERVICE = "/services/pool-snapshot"
DARK, LIGHT = "rgb(22, 24, 27)", "rgb(253, 252, 250)"


@pytest.fixture
def scriptless(chromium: Browser, shop: ServedSite) -> Generator[Page]:
    """A tab of a browser that runs no scripts, as narrow as any."""
    size = {"width": 320, "height": 640}
    context = chromium.new_context(base_url=shop.url, java_script_enabled=False, viewport=size)  # pyright: ignore[reportArgumentType]
    yield context.new_page()
    context.close()


def test_the_theme_that_is_chosen_lasts(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto("/paying")
    button = page.get_by_role("button", name="Theme")

    button.click()
    button.click()
    page.goto("/errors")

    expect(button).to_have_text("Theme: dark")
    expect(page.locator("body")).to_have_css("background-color", DARK)


def test_the_theme_is_the_systems_until_one_is_chosen(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/paying")
    expect(page.locator("body")).to_have_css("background-color", DARK)

    page.emulate_media(color_scheme="light")

    expect(page.locator("body")).to_have_css("background-color", LIGHT)


def test_code_in_several_languages_becomes_tabs_that_keys_move_between(page: Page) -> None:
    page.goto(SERVICE)
    tabs = page.get_by_role("tab")
    expect(tabs.first).to_have_attribute("aria-selected", "true")

    tabs.first.focus()
    page.keyboard.press("ArrowRight")

    expect(tabs.nth(1)).to_be_focused()
    expect(page.get_by_role("tabpanel")).to_have_count(1)
    expect(page.get_by_role("tabpanel")).to_contain_text("from centgate.client import")


def test_keys_go_round_the_tabs(page: Page) -> None:
    page.goto(SERVICE)
    tabs = page.get_by_role("tab")

    tabs.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(tabs.last).to_be_focused()
    page.keyboard.press("ArrowRight")

    expect(tabs.first).to_be_focused()


def test_code_can_be_copied_and_the_button_says_so(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/")

    page.get_by_role("button", name="Copy").first.click()

    expect(page.get_by_role("status").last).to_have_text("Copied")
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert "\ncurl -si -X POST http://" in copied


def test_what_does_not_scroll_is_no_stop_of_the_tab_key(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(SERVICE)
    wide = page.get_by_role("region", name="Table: Errors")
    expect(wide).not_to_have_attribute("tabindex", "0")

    page.set_viewport_size({"width": 360, "height": 700})

    expect(wide).to_have_attribute("tabindex", "0")


def test_the_content_can_be_skipped_to(page: Page) -> None:
    page.goto(SERVICE)

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()


def test_without_scripts_all_languages_stand_below_one_another(scriptless: Page) -> None:
    scriptless.goto(SERVICE)

    code = scriptless.locator("#code ~ .code")

    assert code.count() > 4
    assert all(each.is_visible() for each in code.all())
    expect(scriptless.locator("#theme")).to_be_hidden()


@pytest.mark.parametrize("path", ["/", SERVICE, "/services/crawler-scrape", "/nothing"])
def test_no_page_is_wider_than_a_narrow_window(scriptless: Page, path: str) -> None:
    scriptless.goto(path)

    box = scriptless.locator("html").evaluate("each => [each.scrollWidth, each.clientWidth]")

    assert box[0] <= box[1]
