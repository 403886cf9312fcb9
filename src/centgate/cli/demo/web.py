"""Demo steps for the web: map and scrape a site, and query a library's documentation."""

from __future__ import annotations

from typing import Any

import httpx
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from centgate.cli.demo.buyer import DemoBuyer, expect
from centgate.cli.demo.site import GUIDE_PATH, PAGES
from centgate.libdocs.registry import pypi
from centgate.settings import Settings

SCRAPE, MAP = "/services/crawler/scrape", "/services/crawler/map"
RESOLVE, QUERY = "/services/libdocs/resolve-library", "/services/libdocs/query-docs"
LIBRARY, TOPIC = "httpx", "set a timeout"
NO_REGISTRY = "skipped: no package registry is reachable from here"
"""Output instead of the documentation."""


def read_site(buyer: DemoBuyer, site: str) -> None:
    """Map the demo's site, and scrape one of its pages."""
    buyer.print_line(f"[bold]6. Read the web[/]  a site of three pages at {site}\n")
    links = buyer.buy(MAP, {"url": f"{site}/"}).json()["data"]["links"]
    table = Table("title", "url", title="crawler-map", title_justify="left")
    for link in links:
        table.add_row(link["title"], link["url"])
    buyer.print_line(table)
    paths = {link["url"].removeprefix(site) for link in links}
    expect(set(PAGES) <= paths, f"the map lists {sorted(paths)}, but not all of {sorted(PAGES)}")
    page = buyer.buy(SCRAPE, {"url": f"{site}{GUIDE_PATH}"}).json()["data"]
    buyer.print_line("\n[italic]crawler-scrape[/]")
    buyer.print_line(Padding(Text(page["markdown"]), (0, 3)))
    buyer.print_line()
    expect("| loopback |" in page["markdown"], "the page's table is not in the markdown")
    expect("Accept all cookies" not in page["markdown"], "the consent banner is in the markdown")


def read_documentation(buyer: DemoBuyer, settings: Settings) -> None:
    """Find a library and query a topic; skipped with a message if no package registry responds."""
    buyer.print_line(f"[bold]7. Read a library's documentation[/]  {LIBRARY}: {TOPIC}\n")
    if not _registry_answers(settings):
        buyer.print_line(f"   {NO_REGISTRY}\n")
        return
    library = buyer.buy(RESOLVE, {"libraryName": LIBRARY}).json()["data"]["libraries"][0]
    description = escape(library["description"] or "")
    buyer.print_line(f"   {library['title']} {library['version']}, {library['id']}: {description}")
    answer = buyer.buy(QUERY, {"libraryId": library["id"], "topic": TOPIC, "tokens": 1000}).json()
    _show_docs(buyer, answer)


def _registry_answers(settings: Settings) -> bool:
    registry = settings.provider_settings("packagedocs_pypi").url or pypi.BASE_URL
    try:
        return httpx.get(f"{registry}/pypi/{LIBRARY}/json", timeout=5).is_success
    except httpx.HTTPError:
        return False


def _show_docs(buyer: DemoBuyer, answer: dict[str, Any]) -> None:
    docs = answer["data"]["docs"]
    table = Table("title", "language", "tokens", title="libdocs-query-docs", title_justify="left")
    for doc in docs:
        table.add_row(escape(doc["title"] or ""), doc["language"], str(doc["tokens"]))
    buyer.print_line(table)
    buyer.print_warnings(answer)
    expect(bool(docs), "there is no documentation")
    expect("timeout" in str(docs[0]).lower(), "the first excerpt does not cover the topic")
    buyer.print_line(f"   {escape(docs[0]['title'] or '')}, from {docs[0]['sourceUrl']}:")
    buyer.print_line(Padding(Text((docs[0]["code"] or docs[0]["text"] or "").strip()[:500]), (0, 3)))
    buyer.print_line()
