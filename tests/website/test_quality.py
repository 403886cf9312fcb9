"""Quality of every page in a browser and by independent rules: accessible, valid, usable without scripts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import pytest
from browser_session import ServedSite, axe_violations
from playwright.sync_api import Browser, BrowserContext, Page, Request, ViewportSize

from centgate.website.pages import build_pages

NARROW = 320
NOWHERE = "/404"


@pytest.fixture(scope="module")
def paths(shop: ServedSite) -> list[str]:
    """Paths of the pages, and one that does not exist."""
    return [*(page.path for page in build_pages(shop.deployment)), NOWHERE]


@pytest.fixture(scope="module")
def sources(shop: ServedSite, paths: list[str]) -> dict[str, str]:
    """The HTML of each page."""
    with httpx.Client(base_url=shop.url, headers={"Accept": "text/html"}) as http:
        responses = {path: http.get(path) for path in paths}
    assert [path for path, each in responses.items() if each.status_code != 200] == [NOWHERE]
    return {path: each.text for path, each in responses.items()}


def select_templates(paths: list[str], per_folder: int = 2) -> list[str]:
    """Return the pages of the site's root and some of each folder, whose pages share a template."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(path.rpartition("/")[0] or path, []).append(path)
    return [path for pages in by_folder.values() for path in pages[:per_folder]]


@dataclass
class Visits:
    """Facts of pages that were opened once, by path."""

    violations: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Findings of axe-core."""
    widths: dict[str, int] = field(default_factory=dict[str, int])
    """Width of the content in pixels."""
    headings: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Levels of the headings, in order."""
    unused_fonts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Families of preloaded fonts that no text uses."""
    cut_tables: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names of the tables that are wider than their column."""
    first_stops: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Focused element and fragment after the first stop of the Tab key was followed."""
    messages: list[str] = field(default_factory=list[str])
    """Console messages and script errors; the status of the missing page is one by itself."""
    origins: set[str] = field(default_factory=set[str])
    """Origins of all requests."""


HEADINGS = "[...document.querySelectorAll('main :is(h1, h2, h3, h4, h5, h6)')].map(each => +each.tagName[1])"
UNUSED_FONTS = """
document.fonts.ready.then(
  fonts => [...fonts].filter(each => each.status !== "loaded").map(each => each.family)
)
"""
EARLY_WARNING = "was preloaded using link preload but not used"
"""Chromium writes it after a few seconds without a paint, as on a busy machine; `UNUSED_FONTS` is certain."""
CUT_TABLES = (
    "tables => tables.filter(each => each.scrollWidth > each.clientWidth).map(each => each.ariaLabel)"
)


@pytest.fixture(scope="module")
def phone_visits(chromium: Browser, shop: ServedSite, axe: Path, paths: list[str]) -> Visits:
    """Every page, opened on the smallest phone with light colours."""
    with open_context(chromium, shop, axe, "light", NARROW) as context:
        return visit_pages(context, paths)


@pytest.fixture(scope="module")
def desktop_visits(chromium: Browser, shop: ServedSite, axe: Path, paths: list[str]) -> Visits:
    """A page of each template, opened on a desktop with dark colours."""
    with open_context(chromium, shop, axe, "dark", 1280) as context:
        return visit_pages(context, select_templates(paths), narrower=1024)


@contextmanager
def open_context(
    chromium: Browser, shop: ServedSite, axe: Path, scheme: Literal["dark", "light"], width: int
) -> Generator[BrowserContext]:
    """Open a browser context of a colour scheme and width whose pages can run axe-core."""
    viewport: ViewportSize = {"width": width, "height": 900}
    context = chromium.new_context(base_url=shop.url, color_scheme=scheme, viewport=viewport)
    context.add_init_script(path=axe)
    yield context
    context.close()


def visit_pages(context: BrowserContext, paths: list[str], *, narrower: int | None = None) -> Visits:
    """Open each page once and return its facts; tables are measured at the `narrower` width as well."""
    visits = Visits()
    page = context.new_page()
    path = ""

    def record_message(text: str) -> None:
        if path != NOWHERE and EARLY_WARNING not in text:
            visits.messages.append(f"{path}: {text}")

    page.on("console", lambda message: record_message(message.text))
    page.on("pageerror", lambda error: record_message(str(error)))
    page.on("request", lambda request: visits.origins.add(get_origin(request)))
    for path in paths:
        page.goto(path)
        visits.violations[path] = axe_violations(page)
        page.evaluate("document.fonts.ready.then(() => null)")
        visits.widths[path] = page.evaluate("document.documentElement.scrollWidth")
        visits.headings[path] = page.evaluate(HEADINGS)
        visits.unused_fonts[path] = page.evaluate(UNUSED_FONTS)
        if narrower is None:
            page.wait_for_load_state(
                "networkidle"
            )  # half a second a page; its scripts are those of any width
            continue
        viewport = page.viewport_size
        assert viewport is not None
        tables = page.locator(".table")
        visits.cut_tables[path] = tables.evaluate_all(CUT_TABLES)
        page.set_viewport_size({**viewport, "width": narrower})
        visits.cut_tables[path] += tables.evaluate_all(CUT_TABLES)
        page.set_viewport_size(viewport)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        tag = page.evaluate("document.activeElement.tagName")
        visits.first_stops[path] = tag, urlsplit(page.url).fragment
    return visits


def get_origin(request: Request) -> str:
    parts = urlsplit(request.url)
    return f"{parts.scheme}://{parts.netloc}"


def test_axe_finds_no_violations(phone_visits: Visits, desktop_visits: Visits) -> None:
    found = [visits.violations for visits in (phone_visits, desktop_visits)]

    assert [{path: each for path, each in pages.items() if each} for pages in found] == [{}, {}]


def test_no_page_scrolls_sideways_on_smallest_phone(phone_visits: Visits) -> None:
    assert {path: width for path, width in phone_visits.widths.items() if width > NARROW} == {}


def test_no_table_is_wider_than_its_column(desktop_visits: Visits) -> None:
    assert {path: names for path, names in desktop_visits.cut_tables.items() if names} == {}


def test_pages_load_without_errors_and_external_requests(
    shop: ServedSite, phone_visits: Visits, desktop_visits: Visits
) -> None:
    assert phone_visits.messages + desktop_visits.messages == []
    assert phone_visits.origins | desktop_visits.origins <= {shop.url, shop.deployment.api}


def test_preloaded_fonts_are_used(phone_visits: Visits) -> None:
    assert {path: fonts for path, fonts in phone_visits.unused_fonts.items() if fonts} == {}


VALIDATION = {
    "root": True,
    "extends": ["html-validate:standard", "html-validate:a11y", "html-validate:document"],
    "rules": {
        "no-inline-style": "error",
        "require-sri": ["error", {"target": "crossorigin"}],
        # a scrolling block is a region to have a name and take the focus: `pre` has no native role
        "prefer-native-element": ["error", {"exclude": ["region"]}],
    },
}
"""All rules of the presets are on."""
VALIDATE = """
import { readFileSync } from "node:fs";
import { HtmlValidate, StaticConfigLoader } from "html-validate";
const { config, pages } = JSON.parse(readFileSync(0));
const validator = new HtmlValidate(new StaticConfigLoader(config));
const found = [];
for (const [path, html] of Object.entries(pages)) {
  for (const { messages } of (await validator.validateString(html)).results) {
    found.push(...messages.map((each) => `${path}:${each.line} ${each.ruleId}: ${each.message}`));
  }
}
console.log(JSON.stringify(found));
"""


def test_html_of_pages_is_valid(npm_tools: Path, sources: dict[str, str]) -> None:
    given = json.dumps({"config": VALIDATION, "pages": sources})

    command = ["node", "--input-type=module", "-e", VALIDATE]
    done = subprocess.run(
        command, cwd=npm_tools, input=given, capture_output=True, text=True, timeout=120, check=True
    )

    assert json.loads(done.stdout) == []


def test_headings_descend_step_by_step_from_one_title(phone_visits: Visits) -> None:
    wrong: dict[str, list[int]] = {}
    for path, levels in phone_visits.headings.items():
        falls = all(after - before <= 1 for before, after in pairwise(levels))
        if levels.count(1) != 1 or levels[0] != 1 or not falls:
            wrong[path] = levels

    assert wrong == {}


UNREACHED = """
() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter(each => each.checkVisibility() && !each.disabled && each.tabIndex >= 0 && !each.dataset.seen)
  .map(each => each.outerHTML.slice(0, 120))
"""
FOCUSED = """
() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  if (at === document.body) return null;
  at.dataset.seen = "yes";
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  return { outlined, what: at.outerHTML.slice(0, 120) };
}
"""


@pytest.mark.parametrize("path", ["/", "/services/token-risk", "/paying"])
def test_tab_key_reaches_everything_with_visible_focus(context: BrowserContext, path: str) -> None:
    page = context.new_page()
    page.goto(path, wait_until="networkidle")  # the wallet form hides the fields that do not apply

    focused = [focus_first(page)]
    while (element := focus_next(page)) is not None:
        focused.append(element)
        assert len(focused) < 500, "the focus does not leave the page"

    # counted at the end, since parts of the form appear with the answer to the page's own requests
    assert page.evaluate(UNREACHED) == []
    assert [each["what"] for each in focused if not each["outlined"]] == []


def focus_first(page: Page) -> dict[str, Any]:
    """Press the Tab key until an element is focused: a browser on a busy machine may lose the first keys."""
    for _ in range(20):
        if (element := focus_next(page)) is not None:
            return element
        page.wait_for_timeout(200)
        if (element := page.evaluate(FOCUSED)) is not None:
            return element
    raise AssertionError("the Tab key focuses nothing")


def focus_next(page: Page) -> dict[str, Any] | None:
    """Press the Tab key; return the focused element, or None past the last one."""
    page.keyboard.press("Tab")
    return page.evaluate(FOCUSED)


def test_first_tab_stop_leads_to_content(desktop_visits: Visits) -> None:
    stops = desktop_visits.first_stops

    assert {path: stop for path, stop in stops.items() if stop != ("MAIN", "content")} == {}


def test_pages_are_readable_without_scripts(chromium: Browser, shop: ServedSite, paths: list[str]) -> None:
    context = chromium.new_context(base_url=shop.url, java_script_enabled=False)
    page = context.new_page()
    lacking: list[str] = []
    for path in select_templates(paths):
        page.goto(path)
        complete = page.locator("h1").is_visible() and page.locator("nav a").first.is_visible()
        if not complete or len(page.locator("main").inner_text()) < 200:
            lacking.append(path)
    context.close()

    assert lacking == []


def test_pages_are_printable(context: BrowserContext, paths: list[str]) -> None:
    page = context.new_page()
    page.emulate_media(media="print")
    for path in select_templates(paths, per_folder=1):
        page.goto(path)

        assert page.locator("h1").is_visible(), path
        assert page.pdf().startswith(b"%PDF"), path
