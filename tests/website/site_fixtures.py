"""Helpers that generate websites of various deployments and parse their texts."""

# lxml is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import httpx
from facilitators import build_settings, open_stub_facilitator
from lxml import html
from markdown_it import MarkdownIt

from centgate.server import run_in_thread
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.file import SiteFile
from centgate.website.files import build_site
from centgate.website.page import SitePage

API = "https://api.shop.example"
SITE = "https://www.shop.example"


@dataclass(frozen=True)
class SiteFixture:
    """A deployment, all pages and files of its website, and a client of its API."""

    deployment: ApiSnapshot
    pages: tuple[SitePage, ...]
    files: dict[str, SiteFile]
    api: httpx.Client

    def text(self, path: str) -> str:
        return self.files[path].content.decode()

    @property
    def markdown_paths(self) -> list[str]:
        """The paths of every page's Markdown."""
        return [page.markdown_path for page in self.pages]


def build_site_fixture(deployment: ApiSnapshot, api: httpx.Client) -> SiteFixture:
    """Generate the website of a deployment."""
    site = build_site(deployment)
    return SiteFixture(deployment, site.pages, site.files, api)


@contextmanager
def open_site_fixture(folder: Path, **changes: object) -> Generator[SiteFixture]:
    """Serve an API with changed settings and generate its website."""
    with open_stub_facilitator() as stub:
        settings = build_settings(folder, stub.url).model_copy(update={"public_url": API, **changes})
        with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=30) as api:
            yield build_site_fixture(read_snapshot(url, SITE), api)


@dataclass(frozen=True)
class MarkdownParts:
    """A Markdown text as HTML, what it links to, and the code that it shows."""

    html: str

    links: tuple[str, ...]
    """Targets of all links."""
    code: tuple[str, ...]
    """All code blocks and inline code."""


@lru_cache(maxsize=256)
def read_markdown(markdown: str) -> MarkdownParts:
    """Return the parts of a Markdown text."""
    reader = MarkdownIt("commonmark").enable("table")
    tokens = reader.parse(markdown)
    links: list[str] = []
    code: list[str] = []
    for token in tokens:
        if token.type == "fence":
            code.append(token.content)
        for child in token.children or ():
            if child.type == "link_open":
                links.append(str(child.attrs["href"]))
            elif child.type == "code_inline":
                code.append(child.content)
    return MarkdownParts(reader.renderer.render(tokens, reader.options, {}), tuple(links), tuple(code))


def find_addresses(text: str, start: str) -> set[str]:
    """Find all URLs in a text that begin with `start`."""
    found = re.findall(re.escape(start) + r"(?:/[\w./{}-]*)?", text)
    return {each.rstrip(".") for each in found}


@lru_cache(maxsize=64)
def parse_html(page: str) -> html.HtmlElement:
    """Parse a page of HTML; equal pages share their elements."""
    return html.fromstring(page)


def xpath(page: str, path: str) -> list[Any]:
    """Evaluate an XPath on a page of HTML: elements, attributes or texts."""
    return cast(list[Any], parse_html(page).xpath(path))


@lru_cache(maxsize=256)
def element_ids(page: str) -> frozenset[str]:
    """Return all element ids of a page of HTML."""
    return frozenset(map(str, xpath(page, "//@id")))
