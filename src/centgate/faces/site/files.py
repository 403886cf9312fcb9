"""Everything the website consists of, as paths and bytes: what the server serves and the builder writes."""

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
    """Every file of the website by its path; `own` are the operator's, which never hide one of ours.

    CatalogUnread where the API's schemas and documents are of no form that pages can be made of.
    """
    makers: tuple[Maker, ...] = (_pages, _apologies, _assets, machine_files)
    given = {file.path: File(file.path, file.media_type, file.content, file.path[1:]) for file in own}
    try:
        pages = all_pages(deployment)
        return given | {file.path: file for make in makers for file in make(deployment, pages)}
    except Exception as error:  # schemas are free in form: what is wrong with one shows where it is read
        why = f"{type(error).__name__}: {str(error)[:200]!r}"
        raise CatalogUnread(
            f"no website can be made of what {deployment.api} says of itself: {why}"
        ) from error


def _pages(deployment: Deployment, pages: tuple[Page, ...]) -> Iterator[File]:
    for page in pages:
        content = html(page, deployment, pages).encode()
        yield File(page.path, HTML, content, page.file, twin=page.twin)
        content = markdown(page, deployment).encode()
        yield File(page.twin, MARKDOWN, content, page.twin[1:], twin=page.path)


def _apologies(deployment: Deployment, pages: tuple[Page, ...]) -> Iterator[File]:
    """`404.html` is what hosts of static files show where there is nothing."""
    for page in apologies():
        yield text_file(f"{page.path}.html", HTML, html(page, deployment, pages))
        yield text_file(page.twin, MARKDOWN, markdown(page, deployment))


_TYPES = {
    ".css": "text/css",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


def _assets(_deployment: Deployment, _pages: tuple[Page, ...]) -> Iterator[File]:
    for asset in sorted((files("centgate.faces.site") / "assets").iterdir(), key=lambda each: each.name):
        suffix = "." + asset.name.rpartition(".")[2]
        yield File(f"/{asset.name}", _TYPES[suffix], asset.read_bytes(), asset.name)
