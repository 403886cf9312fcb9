"""What the website's texts are read with: deployments of every kind, and all files that tell of them."""

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
from facilitators import settings_in, stub_facilitator
from lxml import html
from markdown_it import MarkdownIt

from centgate.faces.site.deployment import Deployment, read_deployment
from centgate.faces.site.file import File
from centgate.faces.site.files import all_files
from centgate.faces.site.pages import all_pages
from centgate.server import serving

API = "https://api.shop.example"
SITE = "https://www.shop.example"


@dataclass(frozen=True)
class Reading:
    """A deployment, all files that the website makes of it, and a client of its API."""

    deployment: Deployment
    files: dict[str, File]
    api: httpx.Client

    def text(self, path: str) -> str:
        return self.files[path].content.decode()

    @property
    def markdown_paths(self) -> list[str]:
        """The paths of every page's Markdown."""
        return [page.markdown_path for page in all_pages(self.deployment)]


@contextmanager
def reading(folder: Path, **changes: object) -> Generator[Reading]:
    """A website that tells of an API whose settings are `changes`; the API answers, the website is made."""
    with stub_facilitator() as stub:
        settings = settings_in(folder, stub.url).model_copy(update={"public_url": API, **changes})
        with serving(settings) as url, httpx.Client(base_url=url, timeout=30) as api:
            deployment = read_deployment(url, SITE)
            yield Reading(deployment, all_files(deployment), api)


def links(markdown: str) -> Iterator[str]:
    """Where every link of a text leads."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])


def code(markdown: str) -> Iterator[str]:
    """Everything that a text marks as code."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "fence":
            yield token.content
        yield from (child.content for child in token.children or () if child.type == "code_inline")


def addresses(text: str, start: str) -> set[str]:
    """Every address in a text that begins with `start`, whatever marks stand around it."""
    found = re.findall(re.escape(start) + r"(?:/[\w./{}-]*)?", text)
    return {each.rstrip(".") for each in found}


def picked(page: str, path: str) -> list[Any]:
    """What an XPath finds in a page of HTML: elements, attributes or texts."""
    return cast(list[Any], html.fromstring(page).xpath(path))


def ids(page: str) -> set[str]:
    """What can be linked to in a page of HTML."""
    return set(map(str, picked(page, "//@id")))
