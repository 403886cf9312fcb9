"""Fetch the sitemaps of one site: those that robots.txt or an index names, else the common paths."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from centgate.errors import UnreadReason
from centgate.sandbox import Sandbox, TaskFailed
from centgate.web.fetch.fetcher import PARTIAL_CONTENT, Fetcher, FetchFailed, FetchResult
from centgate.web.fetch.url import join_url
from centgate.web.sitemap.robots import Robots
from centgate.web.sitemap.site_map import PackedEntries, SitemapPart, build_sitemap_part

MAX_SITEMAPS = 5
"""Maximum number of sitemaps fetched for one site map."""
MAX_NAMED_FIRST = 2
"""Sitemaps named by robots.txt that are fetched before those named by an index."""
CONCURRENCY = 2
MAX_BYTES = 5 << 20
PARSE_SECONDS = 5
GUESSED_PATHS = ("/sitemap.xml", "/sitemap_index.xml")
"""Common paths of sitemaps that robots.txt does not name."""
SITEMAP_TYPES = (
    "text/xml",
    "application/xml",
    "text/plain",
    "application/gzip",
    "application/x-gzip",
    "application/octet-stream",
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "text/html",  # default type of programs that do not set one for sitemaps
)
_BLOCKED_STATUSES = frozenset({401, 402, 403, 407, 429, 451})
_GONE_STATUSES = frozenset({404, 410})


class SitemapFetcher:
    """Fetcher of a site's sitemaps; keeps what was read when the time runs out.

    Follows an index for one level. Fetches a sitemap that the site names in any case, and a guessed one only
    if robots.txt allows it or `obey_robots` is False.
    """

    def __init__(self, fetcher: Fetcher, sandbox: Sandbox, robots: Robots, *, obey_robots: bool) -> None:
        self._fetcher, self._sandbox, self._robots = fetcher, sandbox, robots
        self._obeys_robots = obey_robots
        self._results: dict[str, PackedEntries | None] = {}
        self.failures: dict[str, FetchFailed] = {}
        """Failure of each sitemap that was not read, by URL."""
        self.cut: list[str] = []
        """URL of each sitemap of which only the beginning was read."""
        self.is_incomplete = False
        """True if the site has more sitemaps than are fetched for one site map."""
        self.timed_out = False
        """True if the time ran out."""

    @property
    def entries(self) -> list[PackedEntries]:
        """Return the entries of the sitemaps read so far, in request order."""
        return [part for part in self._results.values() if part]

    async def fetch(self, url: str, words: str, timeout: float) -> None:
        """Read the sitemaps of a page's site; `words` select among the many that an index can name."""
        try:
            async with asyncio.timeout(timeout):
                further = await self._read_first(url, words, timeout)
                parts = await self._read_all(further, words, timeout)
                self.is_incomplete = self.is_incomplete or any(part.child_sitemaps for part in parts)
        except TimeoutError:
            self.timed_out = True

    async def fetch_children(self, url: str, index: SitemapPart, words: str, timeout: float) -> None:
        """Read the sitemaps that an index names, which was read at `url` already."""
        self._results.setdefault(url, None)
        try:
            async with asyncio.timeout(timeout):
                parts = await self._read_all(self._index_entries([index]), words, timeout)
                self.is_incomplete = self.is_incomplete or any(part.child_sitemaps for part in parts)
        except TimeoutError:
            self.timed_out = True

    async def _read_first(self, url: str, words: str, seconds: float) -> list[str]:
        """Read the named sitemaps, else those at common paths; return the URLs to read next."""
        if named := await self._robots.list_sitemaps(url):
            parts = await self._read_all(named[:MAX_NAMED_FIRST], words, seconds, more=True)
            return [*self._index_entries(parts), *named[MAX_NAMED_FIRST:]]
        for path in GUESSED_PATHS:
            candidate = join_url(url, path) or url
            if candidate in self._results or len(self._results) >= MAX_SITEMAPS:
                continue
            if self._obeys_robots and not await self._robots.can_fetch(candidate):
                continue
            if part := await self._read_one(candidate, words, seconds, guessed=True):
                return self._index_entries([part])
        return []

    def _index_entries(self, parts: Iterable[SitemapPart]) -> list[str]:
        """Return the sitemaps that indexes name, taken from each index in turn."""
        named = [list(part.child_sitemaps) for part in parts]
        self.is_incomplete = self.is_incomplete or any(
            part.child_count > len(part.child_sitemaps) for part in parts
        )
        longest = max(map(len, named), default=0)
        return [each[n] for n in range(longest) for each in named if n < len(each)]

    async def _read_all(
        self, urls: Iterable[str], words: str, seconds: float, *, more: bool = False
    ) -> list[SitemapPart]:
        """Read sitemaps up to the limit; `more` is True if others will be read after them."""
        unread = [url for url in dict.fromkeys(urls) if url not in self._results]
        available = max(0, MAX_SITEMAPS - len(self._results))
        self.is_incomplete = self.is_incomplete or (len(unread) > available and not more)
        chosen = unread[:available]
        self._results.update(dict.fromkeys(chosen))  # no reading beside this one may exceed the limit
        slots = asyncio.Semaphore(CONCURRENCY)

        async def read_limited(url: str) -> SitemapPart | None:
            async with slots:
                return await self._read_one(url, words, seconds)

        read = await asyncio.gather(*map(read_limited, chosen))
        return [part for part in read if part]

    async def _read_one(
        self, url: str, words: str, seconds: float, *, guessed: bool = False
    ) -> SitemapPart | None:
        """Read one sitemap. If it cannot be read, record the cause and return None."""
        self._results[url] = None
        try:
            part = await self._fetch_part(url, words, seconds)
        except FetchFailed as failure:
            if not (guessed and failure.reason in ("not_found", "unsupported")):
                self.failures[url] = failure
            return None
        self._results[url] = part.entries if part.count else None
        if part.is_cut:
            self.cut.append(url)
        return part

    async def _fetch_part(self, url: str, words: str, seconds: float) -> SitemapPart:
        fetched = await self._fetcher.fetch(
            url, timeout=seconds, max_bytes=MAX_BYTES, media_types=SITEMAP_TYPES
        )
        if failed := status_failure(fetched):
            raise failed
        try:
            part = await self._sandbox.run_task(
                PARSE_SECONDS, build_sitemap_part, fetched.body, fetched.url, words
            )
        except TaskFailed as failure:
            raise FetchFailed("failed", f"it could not be parsed: {failure}") from failure
        if part is None:
            raise FetchFailed("unsupported", "it is not a sitemap")
        return part


def status_failure(fetched: FetchResult) -> FetchFailed | None:
    """Return the failure for a status other than 2xx, and for a part of a page; None for success."""
    if 200 <= fetched.status < 300 and fetched.status != PARTIAL_CONTENT:
        return None
    reason: UnreadReason = "failed"
    if fetched.status in _GONE_STATUSES:
        reason = "not_found"
    elif fetched.status in _BLOCKED_STATUSES:
        reason = "blocked"
    return FetchFailed(reason, f"the site answered with status {fetched.status}")
