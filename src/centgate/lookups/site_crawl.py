"""Crawl the operator's sites into the index: the site mapper finds pages, the page reader reads them.

Nothing else writes to the index; pages that buyers have read are not in it. Sites are strangers' text:
what a page can do to the index is bounded by `web/index/page.py` and by the number of pages of its site.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator

import structlog
from msgspec import Struct, field

from centgate.errors import CentgateError, NoData, PageUnread, ProviderFailure
from centgate.fallback import open_task_group
from centgate.provider import RequestTrace
from centgate.providers.pagereader import PageReader
from centgate.providers.sitemapper import SiteMapper
from centgate.timestamps import format_timestamp
from centgate.web.extract.parts import take_part
from centgate.web.index.crawl_state import CrawlState, DuePage, IndexedSite
from centgate.web.index.duplicates import compute_fingerprint
from centgate.web.index.index_writer import PageIndexWriter
from centgate.web.index.page import (
    MAX_TITLE_LENGTH,
    MIN_TEXT_LENGTH,
    IndexedPage,
    find_headings,
    page_key,
    plain_text,
)
from centgate.web.results import UnchangedPage, WebPage
from centgate.web.sitemap.robots import Robots

MAX_DELAY = 60.0
"""Longest pause in seconds between two requests that a site's robots.txt can ask for."""
COMMIT_PAGES = 50
"""Pages of a site after which they can be found."""
CONCURRENT_SITES = 4
MAX_MAPPED_PAGES = 50_000
MAX_CONSECUTIVE_FAILURES = 10
"""Pages in a row that cannot be read after which a site's crawl ends: it is down, or wants no crawler."""
_NOINDEX = "the page asks search engines to leave it out"


class CrawlReport(Struct):
    """Result of the crawl of one site."""

    site: str
    counts: Counter[str] = field(default_factory=Counter[str])
    """Pages that were read or removed, by their status; `unchanged` if the site said so."""
    message: str | None = None
    """What went wrong, as a sentence: the site could not be mapped, or its crawl ended early. Else None."""
    warnings: list[str] = field(default_factory=list[str])
    """What the site mapper says of pages that it may have missed, as sentences."""


class SiteCrawler:
    """Crawler of sites, each at its own pace."""

    def __init__(
        self,
        reader: PageReader,
        mapper: SiteMapper,
        robots: Robots | None,
        *,
        state: CrawlState,
        writer: PageIndexWriter,
        pause: float,
    ) -> None:
        """`robots` is None if the operator does not respect it; `pause` is in seconds between requests."""
        self._reader, self._mapper, self._robots = reader, mapper, robots
        self._state, self._writer, self._pause = state, writer, pause

    async def crawl_sites(
        self, sites: list[IndexedSite], limit: int, report: Callable[[CrawlReport], None]
    ) -> None:
        """Crawl sites concurrently, at most `limit` pages of each, and report the end of each."""
        slots = asyncio.Semaphore(CONCURRENT_SITES)

        async def crawl_one(site: IndexedSite) -> None:
            async with slots:
                report(await self.crawl_site(site, limit))

        async with open_task_group() as group:
            for site in sites:
                group.create_task(crawl_one(site))

    async def crawl_site(self, site: IndexedSite, limit: int) -> CrawlReport:
        """Crawl one site: find its pages, and read at most `limit` that are due."""
        report = CrawlReport(site.url)
        try:
            await self._apply_robots(site, report)
            report.message = await self._map_site(site, report)
            await self._read_due(site, limit, report)
        finally:
            self._commit()
            self._state.finish_site(site.url, report.message)
        return report

    async def _apply_robots(self, site: IndexedSite, report: CrawlReport) -> None:
        """Remove pages that robots.txt does not allow any more, whether they are due or not."""
        for page in self._state.list_indexed(site.url) if self._robots else ():
            refused = await self._robots.disallow_reason(page.url) if self._robots else None
            if refused and not refused.is_temporary:
                report.counts[self._refuse(page, refused.message)] += 1

    async def _map_site(self, site: IndexedSite, report: CrawlReport) -> str | None:
        """Add the pages that the site names; return what went wrong as a sentence."""
        trace = RequestTrace()
        if self._robots and (refused := await self._robots.disallow_reason(site.url)):
            self._state.add_pages(site, [(site.url, None)])
            return refused.message
        try:
            links = await self._mapper.bind(trace).site_links(site.url, None, MAX_MAPPED_PAGES)
        except CentgateError as failure:
            self._state.add_pages(site, [(site.url, None)])
            return failure.message
        finally:
            report.warnings += trace.warnings
        with self._state.transaction():
            for url in self._state.forget_gone(site.url, [link.url for link in links]):
                self._writer.delete(url)  # in case that a crawl was killed before it was committed
            self._state.add_pages(site, [(link.url, link.modified) for link in links])
        if not any(site.contains(link.url) for link in links):
            return f"it names no page of its own, but {links[0].url}: add that site instead"
        return None

    async def _read_due(self, site: IndexedSite, limit: int, report: CrawlReport) -> None:
        pause = await self._choose_pause(site)
        failures, started, removed = 0, time.time(), report.counts.total()
        while report.counts.total() - removed < limit:
            due = self._state.list_due(site.url, 1, started)
            if not due:
                return
            (page,) = due
            await asyncio.sleep(pause)  # also before the first one: the site was just mapped
            status = await self._try_page(site, page)
            report.counts[status] += 1
            failures = failures + 1 if status == "failed" else 0
            if failures >= MAX_CONSECUTIVE_FAILURES:
                report.message = f"{failures} pages in a row could not be read"
                return
            if self._writer.pending >= COMMIT_PAGES:
                self._commit()

    async def _choose_pause(self, site: IndexedSite) -> float:
        """Return the seconds between two requests: the operator's, or the site's if they are more."""
        wanted = await self._robots.crawl_delay(site.url) if self._robots else 0.0
        return max(self._pause, min(wanted, MAX_DELAY))

    async def _try_page(self, site: IndexedSite, page: DuePage) -> str:
        """Read one page and return its new status: "failed" if it causes an unexpected error."""
        try:
            return await self._read_page(site, page)
        except (OSError, sqlite3.Error):  # a fault of the folder, which every page would have
            raise
        except Exception as error:  # noqa: BLE001 - no page may end the crawl of all sites
            structlog.get_logger().exception("a page could not be indexed", url=page.url)
            return self._keep_failed(page, f"an unexpected error ({type(error).__name__}), see the log")

    async def _read_page(self, site: IndexedSite, page: DuePage) -> str:
        """Read one page and put it into the index or remove it from there; return its new status."""
        if self._robots and (refused := await self._robots.disallow_reason(page.url)):
            return (
                self._keep_failed(page, refused.message)
                if refused.is_temporary
                else self._refuse(page, refused.message)
            )
        try:
            read = await self._fetch_page(page)
        except NoData as missing:
            return self._remove(page, "gone", missing.message)
        except PageUnread as failure:
            is_final = failure.reason in ("robots", "unsupported", "blocked_address")
            if is_final and not failure.is_temporary:
                return self._refuse(page, failure.message)
            return self._keep_failed(page, failure.message)
        except ProviderFailure as failure:
            return self._keep_failed(page, failure.message)
        if isinstance(read, UnchangedPage):
            return self._keep_unchanged(page, read)
        return self._index_page(site, page, read)

    async def _fetch_page(self, page: DuePage) -> WebPage | UnchangedPage:
        """Read a page; one that can be found only if it has changed since."""
        reader = self._reader.bind(RequestTrace())
        if page.validators and page.status == "indexed":
            return await reader.read_changed_page(page.url, page.validators)
        return await reader.read_page(page.url, True)  # noqa: FBT003 - the reader's order

    def _keep_unchanged(self, page: DuePage, unchanged: UnchangedPage) -> str:
        if not unchanged.is_indexable:
            return self._refuse(page, _NOINDEX)
        self._state.record_unchanged(page)
        return "unchanged"

    def _index_page(self, site: IndexedSite, page: DuePage, read: WebPage) -> str:
        final_url = read.final_url or page.url
        if not site.contains(final_url):
            return self._remove(page, "gone", "the address leads out of the site")
        if read.is_list:
            return self._refuse(page, "it is a sitemap or a feed, which only names pages")
        if not read.is_indexable:
            return self._refuse(page, _NOINDEX)
        self._state.add_pages(site, [(url, None) for url in _find_links(read)])
        indexed = _build_page(site, page.url, read)
        if len(indexed.text) < MIN_TEXT_LENGTH:
            return self._remove(page, "gone", "the page has hardly any text")
        fingerprint = compute_fingerprint(indexed.text)
        if original := self._find_original(site, page, indexed, fingerprint, final_url=final_url):
            self._writer.delete(page.url)
            self._state.record_reading(page, "duplicate", f"the same as {original}")
            return "duplicate"
        self._writer.put(indexed)
        self._state.record_reading(
            page,
            "indexed",
            content_hash=indexed.content_hash,
            fingerprint=fingerprint,
            validators=read.validators,
        )
        return "indexed"

    def _find_original(
        self,
        site: IndexedSite,
        page: DuePage,
        indexed: IndexedPage,
        fingerprint: int | None,
        *,
        final_url: str,
    ) -> str | None:
        """Return the address of the page that this one repeats; None if it repeats none.

        A redirect within the site leads to an original that is read in its own turn.
        """
        if page_key(final_url) != page.key:
            self._state.add_pages(site, [(final_url, None)])
            return final_url
        return self._state.find_duplicate(page.key, indexed.content_hash, fingerprint)

    def _refuse(self, page: DuePage, message: str) -> str:
        return self._remove(page, "refused", message)

    def _remove(self, page: DuePage, status: str, message: str) -> str:
        self._writer.delete(page.url)
        self._state.record_reading(page, "refused" if status == "refused" else "gone", message)
        return status

    def _keep_failed(self, page: DuePage, message: str) -> str:
        """Keep a page that could be read before; the last reading is found until it failed repeatedly."""
        if self._state.record_failure(page, message):
            self._writer.delete(page.url)
        return "failed"

    def _commit(self) -> None:
        """Commit the index, and only then the times of the next readings."""
        if self._writer.pending:
            self._writer.commit()
        self._state.settle()


def _build_page(site: IndexedSite, url: str, read: WebPage) -> IndexedPage:
    return IndexedPage(
        url=url,
        site=site.url,
        title=(read.title or "")[:MAX_TITLE_LENGTH] or None,
        text=plain_text(read.markdown),
        headings=find_headings(read.markdown),
        language=read.language,
        fetched=format_timestamp(),
        published=read.published,
        modified=read.modified,
        description=read.description,
        site_name=read.site_name,
        image=read.image,
    )


def _find_links(read: WebPage) -> Iterator[str]:
    """Yield the pages that a page's text links to; pictures are left out."""
    return (link.url for link in take_part(read, 0, len(read.markdown) + 1).links if not link.is_image)
