"""Pages of documentation sites, read as buyers' pages are: by the site mapper and the page reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from centgate.errors import CentgateError
from centgate.libdocs.index.site_pages import SitePage
from centgate.provider import RequestTrace
from centgate.providers.pagereader import PageReader
from centgate.providers.sitemapper import SiteMapper

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

MAX_FOUND = 400
"""Maximum number of pages of a site among which the documentation is selected."""


class SitePages:
    """Finds and reads pages, without a browser."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        self._mapper = SiteMapper(settings, resources)
        self._reader = PageReader(settings, replace(resources, renderer=None))

    async def find_pages(self, url: str) -> list[str]:
        """Return the pages that a site names, the nearest to a page first; empty if it cannot be read."""
        try:
            links = await self._mapper.bind(RequestTrace()).site_links(url, None, MAX_FOUND)
        except CentgateError:
            return []
        return [link.url for link in links]

    async def read_page(self, url: str) -> SitePage | None:
        """Return the main content of a page as Markdown; None if it cannot be read."""
        try:
            page = await self._reader.bind(RequestTrace()).read_page(url, True)  # noqa: FBT003 - the reader's order
        except CentgateError:
            return None
        heading = "" if page.markdown.startswith("# ") or not page.title else f"# {page.title}\n\n"
        return SitePage(page.final_url or url, heading + page.markdown)
