"""Helpers that generate websites of various deployments and parse their texts."""

# lxml is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
from facilitators import build_settings, open_stub_facilitator
from lxml import html
from markdown_it import MarkdownIt

from centgate.server import run_in_thread
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.file import SiteFile
from centgate.website.files import build_files
from centgate.website.pages import build_pages

API = "https://api.shop.example"
SITE = "https://www.shop.example"


@dataclass(frozen=True)
class SiteFixture:
    """A deployment, all files of its website, and a client of its API."""

    deployment: ApiSnapshot
    files: dict[str, SiteFile]
    api: httpx.Client

    def text(self, path: str) -> str:
        return self.files[path].content.decode()

    @property
    def markdown_paths(self) -> list[str]:
        """The paths of every page's Markdown."""
        return [page.markdown_path for page in build_pages(self.deployment)]


@contextmanager
def open_site_fixture(folder: Path, **changes: object) -> Generator[SiteFixture]:
    """Serve an API with changed settings and generate its website."""
    with open_stub_facilitator() as stub:
        settings = build_settings(folder, stub.url).model_copy(update={"public_url": API, **changes})
        with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=30) as api:
            deployment = read_snapshot(url, SITE)
            yield SiteFixture(deployment, build_files(deployment), api)


def iterate_links(markdown: str) -> Iterator[str]:
    """Yield the targets of all links in a Markdown text."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])


def iterate_code(markdown: str) -> Iterator[str]:
    """Yield all code blocks and inline code of a Markdown text."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "fence":
            yield token.content
        yield from (child.content for child in token.children or () if child.type == "code_inline")


def find_addresses(text: str, start: str) -> set[str]:
    """Find all URLs in a text that begin with `start`."""
    found = re.findall(re.escape(start) + r"(?:/[\w./{}-]*)?", text)
    return {each.rstrip(".") for each in found}


def xpath(page: str, path: str) -> list[Any]:
    """Evaluate an XPath on a page of HTML: elements, attributes or texts."""
    return cast(list[Any], html.fromstring(page).xpath(path))


def element_ids(page: str) -> set[str]:
    """Return all element ids of a page of HTML."""
    return set(map(str, xpath(page, "//@id")))
