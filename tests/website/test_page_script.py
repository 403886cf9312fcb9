"""Script of the pages in a real browser, and pages without it."""

from __future__ import annotations

import re
from collections.abc import Generator

import pytest
from browser_session import ServedSite
from playwright.sync_api import Browser, Page, expect

from centgate.website.answer_plan import FactPlan, Unit, format_fact

pytestmark = pytest.mark.extended

SERVICE = "/services/pool-snapshot"
DARK, LIGHT = "rgb(19, 21, 24)", "rgb(250, 248, 244)"


@pytest.fixture
def scriptless(chromium: Browser, shop: ServedSite) -> Generator[Page]:
    """A narrow tab of a browser that runs no scripts."""
    size = {"width": 320, "height": 640}
    context = chromium.new_context(base_url=shop.url, java_script_enabled=False, viewport=size)  # pyright: ignore[reportArgumentType]
    yield context.new_page()
    context.close()


def test_chosen_theme_is_kept(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto("/paying")
    button = page.get_by_role("button", name="Theme")

    button.click()
    button.click()
    page.goto("/errors")

    expect(button).to_have_text("Theme: dark")
    expect(page.locator("body")).to_have_css("background-color", DARK)


def test_theme_is_that_of_system_until_chosen(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/paying")
    expect(page.locator("body")).to_have_css("background-color", DARK)

    page.emulate_media(color_scheme="light")

    expect(page.locator("body")).to_have_css("background-color", LIGHT)


def test_code_languages_become_tabs_for_keys(page: Page) -> None:
    page.goto(SERVICE)
    tabs = page.get_by_role("tab")
    expect(tabs.first).to_have_attribute("aria-selected", "true")

    tabs.first.focus()
    page.keyboard.press("ArrowRight")

    expect(tabs.nth(1)).to_be_focused()
    expect(page.get_by_role("tabpanel")).to_have_count(1)
    expect(page.get_by_role("tabpanel")).to_contain_text("from centgate.client import")


def test_keys_cycle_through_tabs(page: Page) -> None:
    page.goto(SERVICE)
    tabs = page.get_by_role("tab")

    tabs.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(tabs.last).to_be_focused()
    page.keyboard.press("ArrowRight")

    expect(tabs.first).to_be_focused()


def test_code_is_copied_and_confirmed(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/")

    page.get_by_role("button", name="Copy", exact=True).first.click()

    expect(page.get_by_role("status").last).to_have_text("Copied")
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert "\ncurl -si -X POST http://" in copied


def test_unscrollable_block_is_no_tab_stop(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/start")
    code = page.get_by_role("region", name="Code: Get a wallet and money", exact=True)
    expect(code).not_to_have_attribute("tabindex", "0")

    page.set_viewport_size({"width": 320, "height": 700})

    expect(code).to_have_attribute("tabindex", "0")


def test_narrow_table_is_stacked_with_column_names(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(SERVICE)

    cell = page.get_by_role("region", name="Table: Errors").locator("td").first

    expect(cell).to_have_css("display", "block")
    assert cell.evaluate("each => getComputedStyle(each, '::before').content") == '"Status: "'


def test_chosen_language_is_kept(page: Page) -> None:
    page.goto(SERVICE)
    page.get_by_role("tab", name="TypeScript").click()

    page.goto("/services/phishing-check")

    expect(page.get_by_role("tab", name="TypeScript")).to_have_attribute("aria-selected", "true")


def test_key_opens_search_that_leads_to_section(page: Page) -> None:
    page.goto(SERVICE)

    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("spending caps")
    page.get_by_role("dialog").get_by_role("link").first.click()

    expect(page).to_have_url(re.compile("/agents#spending-caps$"))


def test_search_is_loaded_again_after_failure(page: Page) -> None:
    page.goto(SERVICE)
    page.route("**/search.json", lambda route: route.abort(), times=1)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()
    said = page.get_by_role("dialog").get_by_role("status")

    page.keyboard.type("sp")
    expect(said).to_contain_text("could not be loaded")
    page.keyboard.type("ending caps")

    expect(page.get_by_role("dialog").get_by_role("link").first).to_be_visible()
    expect(said).to_contain_text("results")


NUMBERS = [
    *(0, 0.05, 12345.6, 99999, 1.5e16, 1.5e21, 98_000_000.0, 41200, 1234.56789, 999999.99999),
    *(0.9998, 0.00001234, 0.00012345, -0.00001, -1234.5, 1, 12.5, 0.0000001, 1e-12, 2.00005),
]


@pytest.mark.parametrize("unit", ["usd", "percent", "number"])
def test_script_formats_numbers_like_page(page: Page, unit: Unit) -> None:
    page.goto("/")
    script = """async ([unit, values]) => {
        const { drawAnswer } = await import("/answer.js");
        const plan = { findings: [], facts: [{ path: "a", label: "A", unit }] };
        const draw = (a) => drawAnswer({ plan, tones: {} }, { data: { a } })[0];
        return values.map((a) => draw(a).querySelector("dd").textContent);
    }"""

    drawn = page.evaluate(script, [unit, NUMBERS])

    assert drawn == [format_fact(FactPlan("a", "A", unit), value) for value in NUMBERS]


def test_search_page_works_without_scripts(scriptless: Page) -> None:
    scriptless.goto("/search")
    scriptless.get_by_role("searchbox").fill("honeypot")
    scriptless.get_by_role("main").get_by_role("button", name="Search").click()

    expect(scriptless.locator("#found a").first).to_have_attribute(
        "href", re.compile("^/services/token-risk")
    )


def test_both_searches_agree(page: Page, scriptless: Page) -> None:
    for query in ("redeem", "mcp wallet", "max tim", "zzzz"):
        scriptless.goto(f"/search?q={query}")
        page.goto("/search")
        page.get_by_role("main").get_by_role("searchbox").fill(query)
        expected = [each.get_attribute("href") for each in scriptless.locator("#found a").all()]

        expect(page.locator("#found-count")).to_have_text(f"{len(expected)} results")
        assert [each.get_attribute("href") for each in page.locator("#found a").all()] == expected


def test_narrow_menu_opens_without_scripts(scriptless: Page) -> None:
    scriptless.goto(SERVICE)
    link = scriptless.locator("#menu").get_by_role("link", name="Get started")
    expect(link).to_be_hidden()

    scriptless.get_by_role("button", name="Menu").click()

    expect(link).to_be_visible()


def test_skip_link_leads_to_content(page: Page) -> None:
    page.goto(SERVICE)

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()


def test_all_languages_are_shown_without_scripts(scriptless: Page) -> None:
    scriptless.goto(SERVICE)

    code = scriptless.locator("#code ~ .code")

    assert code.count() > 4
    assert all(each.is_visible() for each in code.all())
    expect(scriptless.locator("#theme")).to_be_hidden()


@pytest.mark.parametrize("path", ["/", SERVICE, "/services/crawler-scrape", "/nothing"])
def test_no_page_is_wider_than_narrow_window(scriptless: Page, path: str) -> None:
    scriptless.goto(path)

    box = scriptless.locator("html").evaluate("each => [each.scrollWidth, each.clientWidth]")

    assert box[0] <= box[1]


def test_page_can_be_copied_as_prompt(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/pricing")

    page.get_by_role("button", name="Copy page as a prompt").click()

    expect(page.get_by_role("button", name="Page copied")).to_be_visible()
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert copied.startswith("Read this page of http://")
    assert "# Pricing" in copied


def test_page_without_connections_offers_none(page: Page) -> None:
    page.goto("/receipt")

    expect(page.get_by_role("button", name="Copy page as a prompt")).to_have_count(0)
    page.get_by_role("link", name="Search", exact=True).first.click()

    expect(page).to_have_url(re.compile("/search$"))


def test_reference_can_be_filtered(page: Page) -> None:
    page.goto("/reference")
    heads = page.locator("main section > h3")
    everything = heads.count()

    page.get_by_label("Filter this page").fill("post crawler")

    expect(page.get_by_role("heading", name="POST /services/crawler/map")).to_be_visible()
    expect(page.get_by_role("heading", name="POST /services/token-risk")).to_be_hidden()
    page.get_by_label("Filter this page").fill("")
    assert heads.filter(visible=True).count() == everything


def test_calculator_multiplies_calls_by_price(page: Page) -> None:
    page.goto("/pricing")

    page.get_by_label("Calls a day").fill("4")

    expect(page.locator("#cost")).to_have_text("10,000 calls a day: $100.00 a day, $3,000.00 a month.")


def test_nested_fields_open_without_scripts(scriptless: Page) -> None:
    scriptless.goto("/services/token-risk")
    inside = scriptless.locator(".fields .fields").get_by_text("isHoneypot", exact=True)
    expect(inside).to_be_hidden()

    scriptless.get_by_text(re.compile("fields in honeypot")).click()

    expect(inside).to_be_visible()


def test_example_answer_is_drawn_without_scripts_and_payment(scriptless: Page) -> None:
    scriptless.goto("/services/phishing-check")
    example = scriptless.locator("#try-example")

    expect(example.locator(".verdict")).to_have_text("Level medium")
    expect(example).to_contain_text("myetherwallet.com")
