"""All files of the website, for the server to serve and the static build to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from centgate.api.wellknown_files import WellKnownFile
from centgate.client.catalog import CatalogUnavailable
from centgate.website import skill
from centgate.website.api_snapshot import MCP_CARD, ApiSnapshot
from centgate.website.discovery import (
    API_CATALOG,
    LINKSET_TYPE,
    SECURITY_TXT,
    api_catalog,
    has_security_contact,
    security_txt,
)
from centgate.website.file import HTML, MARKDOWN, PLAIN_TEXT, SiteFile, make_text_file
from centgate.website.llms_txt import render_llms_full, render_llms_txt, render_robots_txt, render_sitemap
from centgate.website.page import SitePage
from centgate.website.page_changes import PageVersion, date_pages
from centgate.website.pages import build_pages, error_pages
from centgate.website.rendering import render_html, render_markdown
from centgate.website.search_index import MAX_QUERY_CHARACTERS, SearchEntry, search
from centgate.website.social_pictures import make_picture_files

SEARCH_PATH = "/search"
Maker = Callable[[ApiSnapshot, tuple[SitePage, ...]], Iterator[SiteFile]]


class BuiltSite(Struct, frozen=True):
    """The pages of a website and all its files by path."""

    pages: tuple[SitePage, ...]
    files: dict[str, SiteFile]
    versions: dict[str, PageVersion]
    """Version of each page by its path."""


def build_files(deployment: ApiSnapshot, operator_files: Sequence[WellKnownFile] = ()) -> dict[str, SiteFile]:
    """Return all files of the website by path. Raises as `build_site`."""
    return build_site(deployment, operator_files).files


def build_site(
    deployment: ApiSnapshot,
    operator_files: Sequence[WellKnownFile] = (),
    earlier: Mapping[str, PageVersion] = MappingProxyType({}),
) -> BuiltSite:
    """Return the pages and files of the website; `operator_files` never hide generated ones.

    `earlier` are the versions of pages that were published before, by path. Raises CatalogUnavailable if no
    pages can be made of the API's schemas and documents.
    """
    makers: tuple[Maker, ...] = (_pages, _error_page_files, _asset_files, _picture_files, _machine_files)
    operator_entries = {
        file.path: SiteFile(file.path, file.media_type, file.content, file.path[1:])
        for file in operator_files
    }
    try:
        pages = build_pages(deployment)
        files = operator_entries | {file.path: file for make in makers for file in make(deployment, pages)}
        versions = date_pages(pages, files, deployment.unreachable_since or deployment.read_at, earlier)
        sitemap = make_text_file("/sitemap.xml", "application/xml", render_sitemap(deployment, versions))
        return BuiltSite(pages, files | {sitemap.path: sitemap}, versions)
    except Exception as error:  # schemas have no fixed form, so reading one can fail anywhere
        reason = f"{type(error).__name__}: {str(error)[:200]!r}"
        raise CatalogUnavailable(
            f"no website can be generated from the documents of {deployment.api}: {reason}"
        ) from error


def render_search(site: BuiltSite, deployment: ApiSnapshot, query: str) -> SiteFile:
    """Return the search page with the results for a query, for visitors without scripts."""
    page = next(each for each in site.pages if each.path == SEARCH_PATH)
    results = search(page.context["entries"], query)
    context = {**page.context, "query": query[:MAX_QUERY_CHARACTERS], "results": results, "groups": []}
    content = render_html(replace(page, context=context), deployment, site.pages).encode()
    return replace(site.files[SEARCH_PATH], content=content)


def _pages(deployment: ApiSnapshot, pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    for page in pages:
        content = render_html(page, deployment, pages).encode()
        yield SiteFile(page.path, HTML, content, page.file, alternate=page.markdown_path)
        content = render_markdown(page, deployment).encode()
        yield SiteFile(page.markdown_path, MARKDOWN, content, page.markdown_path[1:], alternate=page.path)


def _error_page_files(deployment: ApiSnapshot, pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    """Yield the error pages; static hosts serve `404.html` for unknown paths."""
    for page in error_pages():
        yield make_text_file(f"{page.path}.html", HTML, render_html(page, deployment, pages))
        yield make_text_file(page.markdown_path, MARKDOWN, render_markdown(page, deployment))


_ASSET_TYPES = {
    ".css": "text/css",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": PLAIN_TEXT,
    ".woff2": "font/woff2",
}


def _asset_files(_deployment: ApiSnapshot, _pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    for asset in sorted((files("centgate.website") / "assets").iterdir(), key=lambda each: each.name):
        suffix = "." + asset.name.rpartition(".")[2]
        yield SiteFile(f"/{asset.name}", _ASSET_TYPES[suffix], asset.read_bytes(), asset.name)


def _picture_files(_deployment: ApiSnapshot, pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    return make_picture_files(pages)


def _machine_files(deployment: ApiSnapshot, pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    """Yield the files for machines: indexes, files under `/.well-known/`, the agent skill."""
    yield make_text_file("/llms.txt", PLAIN_TEXT, render_llms_txt(deployment, pages))
    yield make_text_file("/llms-full.txt", PLAIN_TEXT, render_llms_full(deployment, pages))
    yield make_text_file("/robots.txt", PLAIN_TEXT, render_robots_txt(deployment))
    entries: list[SearchEntry] = next(page for page in pages if page.path == SEARCH_PATH).context["entries"]
    fields = [
        [each.page, each.title, each.path, each.excerpt, " ".join(sorted(each.words))] for each in entries
    ]
    yield _json_file("/search.json", fields)
    yield _json_file(API_CATALOG, api_catalog(deployment), LINKSET_TYPE)
    yield _json_file("/.well-known/x402", deployment.x402)
    if deployment.mcp_card is not None:
        yield _json_file(MCP_CARD, deployment.mcp_card)
    if has_security_contact(deployment):
        yield make_text_file(SECURITY_TXT, PLAIN_TEXT, security_txt(deployment))
    content = skill.render_skill(deployment)
    yield make_text_file(skill.SKILL_PATH, MARKDOWN, content)
    yield _json_file(skill.INDEX_PATH, skill.skill_index(deployment, content))


def _json_file(path: str, content: Any, media_type: str = "application/json") -> SiteFile:
    return SiteFile(path, media_type, orjson.dumps(content), path[1:])
