"""The built-in site mapper: a site's own sitemaps and the links of one page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from centgate.errors import PageUnread, ProviderUnconfigured
from centgate.facts.web import Hit
from centgate.provider import About, Provider, reported
from centgate.resources import Resources
from centgate.safefetch.fetcher import Fetched, FetchFailed
from centgate.sandbox import WorkFailed
from centgate.settings import Settings
from centgate.sites.gathering import TYPES, Gathering, refusal
from centgate.sites.mapping import Packed, best, packed, page_part, sitemap_part
from centgate.sites.site import Entry, address
from centgate.text import cleaned

PAGE_BYTES = 2 << 20
PARSE_SECONDS = 5
FETCHING = 0.75
"""The share of the time that fetching may take; the rest is for putting the map together."""
PAGE_TYPES = ("text/html", "application/xhtml+xml", *TYPES)
"""Whoever asks for a map of a sitemap or a feed gets what it names."""


@dataclass(frozen=True, slots=True)
class _Page:
    """The page that was asked for, where it was found."""

    url: str
    parts: tuple[Packed, ...]
    links: int
    """Pages it names beside itself."""


class SiteMapper(Provider):
    """Links of a site, from what the site itself publishes. No page but the one asked for is fetched.

    Pages that robots.txt bans may be named, but are not fetched.
    """

    about = About(
        "sitemapper",
        "Built-in site mapper",
        docs_url="https://www.sitemaps.org/protocol.html",
        timeout=15,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._heeds_bans = settings.fetch_robots

    @reported
    async def links(self, url: str, search: str | None, most: int) -> list[Hit]:
        """The pages of a site, best first: those that match `search`, else those nearest to the page asked.

        Raises PageUnread when neither the page nor any sitemap names one; NoData when the page is not there
        and the site has no sitemap.
        """
        world = self._world
        sitemaps = Gathering(world.fetcher, world.readers, world.robots, heeds_bans=self._heeds_bans)
        seconds = self.left * FETCHING
        page, _ = await asyncio.gather(self._page(url, seconds), sitemaps.read(url, search or url, seconds))
        mine, final = (page.parts, page.url) if isinstance(page, _Page) else ((), url)
        hits = await self._best((*mine, *sitemaps.parts), url, final, search, most)
        if not hits:
            raise self._emptiness(page, sitemaps)
        self._warn(url, page, sitemaps)
        return hits

    @property
    def _world(self) -> Resources:
        if self.resources is None:
            raise ProviderUnconfigured(self.about.name, f"{self.about.label} has nothing to fetch with")
        return self.resources

    async def _page(self, url: str, seconds: float) -> _Page | FetchFailed:
        """The page, or why it cannot be read: the sitemaps may do without it."""
        try:
            async with asyncio.timeout(seconds):
                return await self._fetched(url, seconds)
        except TimeoutError:
            return FetchFailed("timeout", f"it could not be read within {seconds:.3g} s")
        except FetchFailed as failure:
            return failure

    async def _fetched(self, url: str, seconds: float) -> _Page:
        world = self._world
        if self._heeds_bans and (ban := await world.robots.ban(url)):
            raise FetchFailed(ban.reason, ban.message)
        fetched = await world.fetcher.fetch(url, seconds=seconds, most_bytes=PAGE_BYTES, types=PAGE_TYPES)
        if refused := refusal(fetched):
            raise refused
        return await self._parsed(fetched)

    async def _parsed(self, fetched: Fetched) -> _Page:
        """What an answer names: itself, and what it links to or lists."""
        run = self._world.readers.run
        itself = packed([Entry(fetched.url)])
        try:
            if "html" in (fetched.content_type or "html").lower():
                part = await run(PARSE_SECONDS, page_part, fetched.body, fetched.content_type, fetched.url)
            else:
                part = await run(PARSE_SECONDS, sitemap_part, fetched.body, fetched.url, "")
        except WorkFailed:
            part = None
        return _Page(fetched.url, (part.entries, itself) if part else (itself,), part.count if part else 0)

    async def _best(
        self, parts: tuple[Packed, ...], url: str, final: str, search: str | None, most: int
    ) -> list[Hit]:
        """The best of all parts; of the first alone when there is too much in the others."""
        run = self._world.readers.run
        for some in (parts, parts[:1]):
            try:
                return await run(PARSE_SECONDS, best, some, url, final, search, most) if some else []
            except WorkFailed as failure:
                cause = failure
                self.record.warn(f"not all pages of the site could be put in order: {failure}")
        raise self.failed(f"could not put the site's pages in order: {cause}")

    def _emptiness(self, page: _Page | FetchFailed, sitemaps: Gathering) -> Exception:
        """What to say when nothing was found."""
        reason, message = (
            ("failed", "it names no page") if isinstance(page, _Page) else (page.reason, page.message)
        )
        if reason == "not_found" and not sitemaps.unread and not sitemaps.late:
            return self.nothing("no page at this address, and its site has no sitemap")
        return PageUnread(self.about.name, reason, f"the page was not read: {message}")

    def _warn(self, url: str, page: _Page | FetchFailed, sitemaps: Gathering) -> None:
        """Say what is missing from the answer."""
        if isinstance(page, FetchFailed):
            self.record.warn(f"the page itself was not read: {page.message}; the links are from sitemaps")
        elif _host(page.url) != _host(url):
            self.record.warn(f"the address leads to {cleaned(page.url, 200)}, whose site is listed as well")
        elif not page.links and not sitemaps.parts:
            self.record.warn("the page has no links of its own: those that scripts make are not seen")
        if sitemaps.unread:
            first, cause = next(iter(sitemaps.unread.items()))
            others = f" (and {len(sitemaps.unread) - 1} more)" if len(sitemaps.unread) > 1 else ""
            self.record.warn(f"the sitemap {cleaned(first, 200)}{others} was not read: {cause}")
        if sitemaps.late:
            self.record.warn("there was no time to read all of the site's sitemaps")
        if sitemaps.left_out:
            self.record.warn("the site has more sitemaps than were read")


def _host(url: str) -> str | None:
    return found.host if (found := address(url)) else None
