"""Built-in site mapper: a site's own sitemaps and the links of one page."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from centgate.errors import PageUnread, UnreadReason
from centgate.provider import FetchingProvider, ProviderInfo, instrumented
from centgate.sandbox import TaskFailed
from centgate.sanitize import clean_line
from centgate.web.extract.content_type import is_page_list
from centgate.web.fetch.fetcher import MAX_REDIRECTS, FetchFailed, FetchResult
from centgate.web.results import Hit
from centgate.web.sitemap.fetch_sitemaps import (
    FETCHED_BYTES,
    SITEMAP_TYPES,
    SitemapFetcher,
    status_failure,
)
from centgate.web.sitemap.robots import check_redirects
from centgate.web.sitemap.site_map import (
    PackedEntries,
    RankedPages,
    SitemapPart,
    build_page_part,
    build_sitemap_part,
    pack_entries,
    rank_pages,
)
from centgate.web.sitemap.sitemaps import MAX_BYTES
from centgate.web.sitemap.urls import PageEntry, parse_page_url

PAGE_BYTES = 2 << 20
PARSE_SECONDS = 5
FETCH_SHARE = 0.75
"""Share of the time for fetching; the rest is for ranking the pages."""
PAGE_TYPES = ("text/html", "application/xhtml+xml", *SITEMAP_TYPES)
"""A sitemap or a feed is accepted as the start page too; its entries are returned."""
_FILLED = ": those that match, then others in the order of the site"
_TEMPORARY: frozenset[UnreadReason] = frozenset({"timeout", "unreachable", "failed"})
"""Reasons that a retry may not meet again."""
_OUT_OF_TIME = "there was no time to read all of the site's sitemaps"
_SITEMAP_URL = re.compile(r"sitemap|\.xml(?:\.gz)?(?:[?#]|$)", re.IGNORECASE)
"""Addresses that are probably of an index of sitemaps, which is read before all others."""


class _StartPage(Struct, frozen=True):
    """The requested page, fetched and parsed."""

    url: str
    part: SitemapPart | None
    """Pages that it links to or lists, and sitemaps that it names; None if it could not be parsed."""

    @property
    def parts(self) -> tuple[PackedEntries, ...]:
        """Return the pages that it names, then itself."""
        own_entry = pack_entries([PageEntry(self.url)])
        return (self.part.entries, own_entry) if self.part else (own_entry,)

    @property
    def is_index(self) -> bool:
        """True if it is an index of sitemaps."""
        return bool(self.part and self.part.child_sitemaps)

    @property
    def refresh_target(self) -> str | None:
        """Return the page that it leads to at once; None if it is a page of its own."""
        return self.part.refresh_target if self.part else None

    @property
    def has_links(self) -> bool:
        """True if it names a page or a sitemap."""
        return bool(self.part and (self.part.count or self.part.child_sitemaps))


class SiteMapper(FetchingProvider):
    """Links of a site, from what the site itself publishes. Only the requested page is fetched.

    Pages disallowed by robots.txt may be listed, but are not fetched.
    """

    info = ProviderInfo(
        "sitemapper",
        "Built-in site mapper",
        docs_url="https://www.sitemaps.org/protocol.html",
        resale="permitted",
        terms="Lists addresses that a site publishes itself, and respects its robots.txt.",
        timeout=15,
    )

    def list_fetches(self, options: Mapping[str, Any]) -> list[str]:
        """Return the address of a request twice, as its page and sitemaps are read together."""
        return [options["url"]] * 2

    @instrumented
    async def site_links(self, url: str, search: str | None, limit: int) -> list[Hit]:
        """Return pages of a site, best first: those that match `search`, else the nearest to the page.

        Raises PageUnread if neither the page nor any sitemap lists a page, or if no page matches and a retry
        may read more of the site. Raises NoData if no page matches, or if the page does not exist and the
        site has no sitemap.
        """
        resources = self._server_resources
        sitemaps = SitemapFetcher(
            resources.fetcher, resources.page_parsers, resources.robots, obey_robots=self._respects_robots
        )
        page = await self._fetch_all(url, search or url, sitemaps)
        page_parts, final_url = (page.parts, page.url) if isinstance(page, _StartPage) else ((), url)
        ranked = await self._rank((*page_parts, *sitemaps.entries), url, final_url, search, limit)
        if not ranked.total:
            raise self._no_pages_error(page, sitemaps)
        self._warn_incomplete(url, page, sitemaps)
        if not ranked.hits:
            raise self._no_match_error(ranked, page, sitemaps)
        self._warn_of_cut(ranked)
        return list(ranked.hits)

    async def _fetch_all(self, url: str, words: str, sitemaps: SitemapFetcher) -> _StartPage | FetchFailed:
        """Fetch the page and the sitemaps of its site; those that the page names come before the others."""
        until = time.monotonic() + self.remaining_seconds * FETCH_SHARE

        async def fetch_page(share: float) -> _StartPage | FetchFailed:
            page = await self._fetch_page_or_failure(url, words, share * (until - time.monotonic()))
            if isinstance(page, _StartPage) and page.part and page.is_index:
                await sitemaps.fetch_children(page.url, page.part, words, until - time.monotonic())
            return page

        async def fetch_sitemaps() -> None:
            await sitemaps.fetch(url, words, until - time.monotonic())

        if _SITEMAP_URL.search(url):
            page = await fetch_page(0.5)
            await fetch_sitemaps()
            return page
        page, _ = await asyncio.gather(fetch_page(1.0), fetch_sitemaps())
        if isinstance(page, _StartPage) and not sitemaps.entries and _host_of(page.url) != _host_of(url):
            await sitemaps.fetch(page.url, words, until - time.monotonic())
        return page

    async def _fetch_page_or_failure(self, url: str, words: str, seconds: float) -> _StartPage | FetchFailed:
        """Fetch the page; return a failure instead of raising it, since sitemaps may be enough."""
        try:
            async with asyncio.timeout(seconds):
                return await self._fetch_page(url, words, seconds)
        except TimeoutError:
            return FetchFailed("timeout", f"it could not be read within {seconds:.3g} s")
        except FetchFailed as failure:
            return failure

    async def _fetch_page(self, url: str, words: str, seconds: float) -> _StartPage:
        """Fetch the page, or the one that it leads to by `refresh`, as start pages of documentation do."""
        page, seen = await self._fetch_one(url, words, seconds), {url}
        while page.refresh_target and page.refresh_target not in seen and len(seen) <= MAX_REDIRECTS:
            seen |= {page.url, page.refresh_target}
            page = await self._fetch_one(page.refresh_target, words, seconds)
        return page

    async def _fetch_one(self, url: str, words: str, seconds: float) -> _StartPage:
        await self._check_robots(url)
        is_sitemap = _SITEMAP_URL.search(url) is not None
        fetched = await self._server_resources.fetcher.fetch(
            url,
            timeout=seconds,
            max_bytes=FETCHED_BYTES if is_sitemap else PAGE_BYTES,
            media_types=PAGE_TYPES,
            check_redirect=check_redirects(url, self._check_robots),
            on_excess="cut" if is_sitemap else "fail",
        )
        if error := status_failure(fetched):
            raise error
        return await self._parse_page(fetched, words)

    async def _check_robots(self, url: str) -> None:
        if self._respects_robots:
            await self._server_resources.robots.require_allowed(url)

    async def _parse_page(self, fetched: FetchResult, words: str) -> _StartPage:
        """Parse a response: the pages that it links to or lists, and the sitemaps that it names."""
        run = self._server_resources.page_parsers.run_task
        try:
            is_html = "html" in (fetched.content_type or "html").lower()
            if is_html and not is_page_list(fetched.body, "xml"):
                part = await run(
                    PARSE_SECONDS, build_page_part, fetched.body, fetched.content_type, fetched.url
                )
            else:
                part = await run(PARSE_SECONDS, build_sitemap_part, fetched.body, fetched.url, words)
        except TaskFailed:
            part = None
        return _StartPage(fetched.url, part)

    async def _rank(
        self, parts: tuple[PackedEntries, ...], url: str, final_url: str, search: str | None, limit: int
    ) -> RankedPages:
        """Rank the pages of all parts; of the first part alone if all are too many and it has a match."""
        if not parts:
            return RankedPages((), 0)
        run = self._server_resources.page_parsers.run_task
        cause: TaskFailed | None = None
        for selection in (parts, parts[:1]):
            try:
                ranked = await run(PARSE_SECONDS, rank_pages, selection, url, final_url, search, limit)
            except TaskFailed as failure:
                cause = failure
                self.trace.add_warning(f"not all pages of the site could be ranked: {failure}")
            else:
                if ranked.hits or cause is None:
                    return ranked
        raise self.invalid_response(f"could not rank the site's pages: {cause}")

    def _warn_of_cut(self, ranked: RankedPages) -> None:
        """Warn of pages that are left out, and of those that do not match."""
        given, matching = len(ranked.hits), ranked.matching
        if ranked.left_out:
            self.trace.add_warning(_describe_left_out(ranked))
        if ranked.total > given:
            told = f", of which {matching:,} match the search" if matching is not None else ""
            order = _FILLED if matching is not None and matching < given else ""
            self.trace.add_warning(
                f"the site names {ranked.total:,} pages{told}; the first {given} are given{order}"
            )
        elif matching is not None and matching < given:
            self.trace.add_warning(
                f"{matching} of the {ranked.total} pages that the site names match the search; the others "
                "follow in the order of the site"
            )

    def _no_pages_error(self, page: _StartPage | FetchFailed, sitemaps: SitemapFetcher) -> Exception:
        """Build the error for a site without any page found."""
        reason, message = (
            ("failed", "it lists no page") if isinstance(page, _StartPage) else (page.reason, page.message)
        )
        if reason == "not_found" and not sitemaps.failures and not sitemaps.timed_out:
            return self.no_data("no page at this address, and its site has no sitemap")
        return PageUnread(self.info.name, reason, f"the page was not read: {message}")

    def _no_match_error(
        self, ranked: RankedPages, page: _StartPage | FetchFailed, sitemaps: SitemapFetcher
    ) -> Exception:
        """Build the error for a search without a match.

        It is a failure if a retry may read more of the site. Else it is NoData, which names what is never
        read: a failure would leave the buyer with a payment that no retry can redeem.
        """
        unread = _list_unread(ranked, page, sitemaps)
        for reason, cause in unread:
            if reason in _TEMPORARY:
                message = f"nothing that was read of the site matches the search, and {cause}"
                return PageUnread(self.info.name, reason, message)
        cause = f"; {unread[0][1]}" if unread else ""
        return self.no_data(
            f"no match for the search among the {ranked.total:,} pages that the site names{cause}"
        )

    def _warn_incomplete(self, url: str, page: _StartPage | FetchFailed, sitemaps: SitemapFetcher) -> None:
        """Warn of what is missing in the result."""
        if isinstance(page, FetchFailed):
            self.trace.add_warning(
                f"the page itself was not read: {page.message}; the links are from sitemaps"
            )
        elif _host_of(page.url) != _host_of(url):
            self.trace.add_warning(
                f"the address leads to {clean_line(page.url, 200)}, whose site is listed as well"
            )
        elif not page.has_links and not sitemaps.entries:
            self.trace.add_warning("the page has no links of its own; links created by scripts are missing")
        if sitemaps.failures:
            self.trace.add_warning(_describe_failures(sitemaps.failures))
        if cut := _list_cut(page, sitemaps):
            self.trace.add_warning(_describe_cut(cut))
        if sitemaps.timed_out:
            self.trace.add_warning(_OUT_OF_TIME)
        if sitemaps.is_incomplete:
            self.trace.add_warning(_describe_incomplete(sitemaps))


def _describe_left_out(ranked: RankedPages) -> str:
    return f"{ranked.left_out:,} entries of the site's sitemaps are too many to compare"


def _describe_incomplete(sitemaps: SitemapFetcher) -> str:
    return f"the site has more sitemaps than were read: {sitemaps.read_count:,} of {sitemaps.named_count:,}"


def _describe_failures(failures: Mapping[str, FetchFailed]) -> str:
    """Return the first sitemap that was not read with its cause, and the number of others, as a clause."""
    first, failure = next(iter(failures.items()))
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return f"the sitemap {clean_line(first, 200)}{others} was not read: {failure.message}"


def _list_cut(page: _StartPage | FetchFailed, sitemaps: SitemapFetcher) -> list[str]:
    """Return the sitemaps of which only the beginning was read; the requested page can be one."""
    own = [page.url] if isinstance(page, _StartPage) and page.part and page.part.is_cut else []
    return list(dict.fromkeys([*own, *sitemaps.cut]))


def _describe_cut(urls: Sequence[str]) -> str:
    """Return the first sitemap that was read in part, and the number of others, as a clause."""
    others = f" (and {len(urls) - 1} more)" if len(urls) > 1 else ""
    return (
        f"only the beginning of the sitemap {clean_line(urls[0], 200)}{others} was read: it is damaged or "
        f"longer than {MAX_BYTES >> 20} MB"
    )


def _list_unread(
    ranked: RankedPages, page: _StartPage | FetchFailed, sitemaps: SitemapFetcher
) -> list[tuple[UnreadReason, str]]:
    """Return what was not read or compared of a site: the reason as one word and as a clause."""
    unread: list[tuple[UnreadReason, str]] = []
    if isinstance(page, FetchFailed):
        if page.reason != "not_found":
            unread.append((page.reason, f"the page itself was not read: {page.message}"))
    elif page.part is None:
        unread.append(("unsupported", "the page itself could not be parsed"))
    if sitemaps.timed_out:
        unread.append(("timeout", _OUT_OF_TIME))
    unread.extend((each.reason, _describe_failures({url: each})) for url, each in sitemaps.failures.items())
    if cut := _list_cut(page, sitemaps):
        unread.append(("too_large", _describe_cut(cut)))
    if sitemaps.is_incomplete:
        unread.append(("too_large", _describe_incomplete(sitemaps)))
    if ranked.left_out:
        unread.append(("too_large", _describe_left_out(ranked)))
    return unread


def _host_of(url: str) -> str | None:
    return site.host if (site := parse_page_url(url)) else None
