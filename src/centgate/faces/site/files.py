"""All files of the website, for the server to serve and the static build to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files

from centgate.client.catalog import CatalogUnread
from centgate.faces.site.deployment import Deployment
from centgate.faces.site.file import HTML, MARKDOWN, File, text_file
from centgate.faces.site.machine import machine_files
from centgate.faces.site.page import Page
from centgate.faces.site.pages import all_pages, apologies
from centgate.faces.site.rendering import html, markdown
from centgate.faces.verification import VerificationFile

Maker = Callable[[Deployment, tuple[Page, ...]], Iterator[File]]


def all_files(deployment: Deployment, own: Sequence[VerificationFile] = ()) -> dict[str, File]:
    """Return all files of the website by path; the operator's files (`own`) never hide generated ones.

    Raises CatalogUnread if no pages can be made of the API's schemas and documents.
    """
    makers: tuple[Maker, ...] = (_pages, _error_page_files, _asset_files, machine_files)
    operator_entries = {
        file.path: File(file.path, file.media_type, file.content, file.path[1:]) for file in own
    }
    try:
        pages = all_pages(deployment)
        return operator_entries | {file.path: file for make in makers for file in make(deployment, pages)}
    except Exception as error:  # schemas have no fixed form, so reading one can fail anywhere
        reason = f"{type(error).__name__}: {str(error)[:200]!r}"
        raise CatalogUnread(
            f"no website can be generated from the documents of {deployment.api}: {reason}"
        ) from error


def _pages(deployment: Deployment, pages: tuple[Page, ...]) -> Iterator[File]:
    for page in pages:
        content = html(page, deployment, pages).encode()
        yield File(page.path, HTML, content, page.file, alternate=page.markdown_path)
        content = markdown(page, deployment).encode()
        yield File(page.markdown_path, MARKDOWN, content, page.markdown_path[1:], alternate=page.path)


def _error_page_files(deployment: Deployment, pages: tuple[Page, ...]) -> Iterator[File]:
    """Yield the error pages; static hosts serve `404.html` for unknown paths."""
    for page in apologies():
        yield text_file(f"{page.path}.html", HTML, html(page, deployment, pages))
        yield text_file(page.markdown_path, MARKDOWN, markdown(page, deployment))


_ASSET_TYPES = {
    ".css": "text/css",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


def _asset_files(_deployment: Deployment, _pages: tuple[Page, ...]) -> Iterator[File]:
    for asset in sorted((files("centgate.faces.site") / "assets").iterdir(), key=lambda each: each.name):
        suffix = "." + asset.name.rpartition(".")[2]
        yield File(f"/{asset.name}", _ASSET_TYPES[suffix], asset.read_bytes(), asset.name)
