"""All files of the website, for the server to serve and the static build to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files

from centgate.api.wellknown_files import WellKnownFile
from centgate.client.catalog import CatalogUnavailable
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.file import HTML, MARKDOWN, SiteFile, make_text_file
from centgate.website.machine_files import build_machine_files
from centgate.website.page import SitePage
from centgate.website.pages import build_pages, error_pages
from centgate.website.rendering import render_html, render_markdown

Maker = Callable[[ApiSnapshot, tuple[SitePage, ...]], Iterator[SiteFile]]


def build_files(deployment: ApiSnapshot, operator_files: Sequence[WellKnownFile] = ()) -> dict[str, SiteFile]:
    """Return all files of the website by path; `operator_files` never hide generated ones.

    Raises CatalogUnavailable if no pages can be made of the API's schemas and documents.
    """
    makers: tuple[Maker, ...] = (_pages, _error_page_files, _asset_files, build_machine_files)
    operator_entries = {
        file.path: SiteFile(file.path, file.media_type, file.content, file.path[1:])
        for file in operator_files
    }
    try:
        pages = build_pages(deployment)
        return operator_entries | {file.path: file for make in makers for file in make(deployment, pages)}
    except Exception as error:  # schemas have no fixed form, so reading one can fail anywhere
        reason = f"{type(error).__name__}: {str(error)[:200]!r}"
        raise CatalogUnavailable(
            f"no website can be generated from the documents of {deployment.api}: {reason}"
        ) from error


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
}


def _asset_files(_deployment: ApiSnapshot, _pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    for asset in sorted((files("centgate.website") / "assets").iterdir(), key=lambda each: each.name):
        suffix = "." + asset.name.rpartition(".")[2]
        yield SiteFile(f"/{asset.name}", _ASSET_TYPES[suffix], asset.read_bytes(), asset.name)
