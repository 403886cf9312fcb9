"""Quality of every page by independent rules: accessible, valid, small, isolated, usable without scripts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator
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
KIB = 1024


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


@pytest.fixture
def narrow(chromium: Browser, shop: ServedSite) -> Generator[Page]:
    """A tab as wide as the smallest phone."""
    context = chromium.new_context(base_url=shop.url, viewport={"width": NARROW, "height": 640})
    yield context.new_page()
    context.close()


PAGES_PER_FOLDER = 2


def select_templates(paths: list[str]) -> list[str]:
    """Return the pages of the site's root and two of each folder, whose pages share a template."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(path.rpartition("/")[0] or path, []).append(path)
    return [path for pages in by_folder.values() for path in pages[:PAGES_PER_FOLDER]]


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", NARROW)])
def test_axe_finds_no_violations(
    chromium: Browser,
    shop: ServedSite,
    axe: Path,
    paths: list[str],
    scheme: Literal["dark", "light"],
    width: int,
) -> None:
    viewport: ViewportSize = {"width": width, "height": 900}
    context = chromium.new_context(base_url=shop.url, color_scheme=scheme, viewport=viewport)
    context.add_init_script(path=axe)
    page = context.new_page()
    found: dict[str, Any] = {}
    for path in paths if scheme == "light" else select_templates(paths):
        page.goto(path)
        found[path] = axe_violations(page)
    context.close()

    assert {path: each for path, each in found.items() if each} == {}


def test_no_page_scrolls_sideways_on_smallest_phone(narrow: Page, paths: list[str]) -> None:
    widths: dict[str, int] = {}
    for path in paths:
        narrow.goto(path)
        widths[path] = narrow.evaluate("document.documentElement.scrollWidth")

    assert {path: width for path, width in widths.items() if width > NARROW} == {}


@pytest.mark.parametrize("width", [1024, 1280])
def test_no_table_is_wider_than_its_column(
    chromium: Browser, shop: ServedSite, paths: list[str], width: int
) -> None:
    context = chromium.new_context(base_url=shop.url, viewport={"width": width, "height": 800})
    page = context.new_page()
    cut: dict[str, list[str]] = {}
    for path in select_templates(paths):
        page.goto(path)
        cut[path] = page.locator(".table").evaluate_all(
            "tables => tables.filter(each => each.scrollWidth > each.clientWidth).map(each => each.ariaLabel)"
        )
    context.close()

    assert {path: names for path, names in cut.items() if names} == {}


def test_pages_load_without_errors_and_external_requests(
    context: BrowserContext, shop: ServedSite, paths: list[str]
) -> None:
    said: list[str] = []
    asked: set[str] = set()
    context.on("request", lambda request: asked.add(get_origin(request)))
    tabs = {path: context.new_page() for path in paths if path != NOWHERE}  # its status alone is an error
    for path, tab in tabs.items():
        tab.on("console", lambda message, path=path: said.append(f"{path}: {message.text}"))
        tab.on("pageerror", lambda error, path=path: said.append(f"{path}: {error}"))
        tab.goto(path)
    for tab in tabs.values():
        tab.wait_for_load_state("networkidle")

    assert said == []
    assert asked <= {shop.url, shop.deployment.api}


def get_origin(request: Request) -> str:
    parts = urlsplit(request.url)
    return f"{parts.scheme}://{parts.netloc}"


def test_pages_are_small(sources: dict[str, str]) -> None:
    sizes = {path: len(html.encode()) for path, html in sources.items()}

    assert {path: size for path, size in sizes.items() if size > 72 * KIB} == {}


def test_scripts_of_pages_are_small(shop: ServedSite, sources: dict[str, str]) -> None:
    sizes: dict[str, int] = {}
    with httpx.Client(base_url=shop.url) as http:
        for path, html in sources.items():
            scripts = re.findall(r'<script[^>]* src="([^"]+)"', html)
            sizes[path] = sum(len(http.get(script).raise_for_status().content) for script in scripts)

    assert {path: size for path, size in sizes.items() if size > 18 * KIB} == {}


def test_pages_have_no_inline_style_or_script(sources: dict[str, str]) -> None:
    inline = re.compile(
        r"<style|<[^>]+ style=|<[^>]+ on[a-z]+=|<script(?![^>]*(?: src=|application/(?:ld\+)?json))",
        re.IGNORECASE,
    )

    assert {path: found.group() for path, html in sources.items() if (found := inline.search(html))} == {}


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


def test_headings_descend_step_by_step_from_one_title(context: BrowserContext, paths: list[str]) -> None:
    page = context.new_page()
    wrong: dict[str, list[int]] = {}
    for path in paths:
        page.goto(path)
        steps = page.evaluate(
            "[...document.querySelectorAll('main :is(h1, h2, h3, h4, h5, h6)')].map(each => +each.tagName[1])"
        )
        falls = all(after - before <= 1 for before, after in pairwise(steps))
        if steps.count(1) != 1 or steps[0] != 1 or not falls:
            wrong[path] = steps

    assert wrong == {}


REACHABLE = """
() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter(each => each.checkVisibility() && !each.disabled && each.tabIndex >= 0).length
"""
FOCUSED = """
() => {
  const at = document.activeElement;
  const style = getComputedStyle(at);
  if (at === document.body) return null;
  at.dataset.seen ??= Math.random();
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
  return { id: at.dataset.seen, outlined, what: at.outerHTML.slice(0, 120) };
}
"""


@pytest.mark.parametrize("path", ["/", "/services/token-risk", "/paying"])
def test_tab_key_reaches_everything_with_visible_focus(context: BrowserContext, path: str) -> None:
    page = context.new_page()
    page.goto(path, wait_until="networkidle")  # the wallet form hides the fields that do not apply
    wanted = page.evaluate(REACHABLE)

    seen: dict[str, dict[str, Any]] = {}
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        seen[focused["id"]] = focused

    assert len(seen) == wanted
    assert [each["what"] for each in seen.values() if not each["outlined"]] == []


def test_first_tab_stop_leads_to_content(context: BrowserContext, paths: list[str]) -> None:
    page = context.new_page()
    for path in select_templates(paths):
        page.goto(path)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")

        assert page.evaluate("document.activeElement.tagName") == "MAIN", path
        assert page.url.endswith("#content")


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
    for path in select_templates(paths):
        page.goto(path)

        assert page.locator("h1").is_visible(), path
        assert page.pdf().startswith(b"%PDF"), path


def test_internal_links_lead_somewhere(shop: ServedSite, sources: dict[str, str]) -> None:
    links = {
        (path, link)
        for path, html in sources.items()
        for link in re.findall(r'<(?:a|link|script|img)[^>]* (?:href|src)="([^"]+)"', html)
        if link.startswith(("/", "#", shop.url))
    }
    targets = {link.partition("#")[0] for _, link in links} - {""}
    with httpx.Client(base_url=shop.url) as http:
        pages = {target: response.text for target in targets if (response := http.get(target)).is_success}

    dead: list[tuple[str, str]] = []
    for path, link in sorted(links):
        target, _, fragment = link.partition("#")
        html = pages.get(target, "") if target else sources[path]
        if not html or (fragment and f'id="{fragment}"' not in html):
            dead.append((path, link))
    assert dead == []
