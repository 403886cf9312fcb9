"""Fetch the sitemaps of one site: those that robots.txt or an index names, else the common paths."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque

from msgspec import Struct

from centgate.sandbox import Sandbox, TaskFailed
from centgate.web.fetch.failure import classify_status
from centgate.web.fetch.fetcher import PARTIAL_CONTENT, Fetcher, FetchFailed, FetchResult
from centgate.web.fetch.site import find_site
from centgate.web.fetch.url import join_url
from centgate.web.sitemap.robots import Robots
from centgate.web.sitemap.site_map import PackedEntries, SitemapPart, build_sitemap_part
from centgate.web.sitemap.sitemaps import MAX_BYTES

MAX_SITEMAPS = 100
"""Maximum number of sitemaps fetched for one site map."""
MAX_TOTAL_BYTES = 25 << 20
"""Decompressed bytes of sitemaps after which no further one is fetched for one site map."""
MAX_FAILURES = 10
"""Sitemaps that cannot be read after which no further one is fetched: the site refuses or is broken."""
MAX_DEPTH = 3
"""Levels of indexes that are followed. The protocol knows one; some sites have more."""
MAX_PER_OTHER_SITE = 5
"""Sitemaps fetched from one other site, which need not have agreed to be named."""
UNPACED_SITEMAPS = 5
"""Sitemaps that are fetched without the pauses which robots.txt wants between requests."""
BEGIN_SHARE = 0.6
"""Share of the time after which no further sitemap of an index or of robots.txt is begun."""
CONCURRENCY = 2
FETCHED_BYTES = MAX_BYTES + 1
"""Bytes read of one sitemap: one more than are parsed, by which the parser knows that there are more."""
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


class _SitemapList(Struct):
    """Sitemaps that robots.txt or one index names, which are not read yet."""

    urls: deque[str]
    depth: int
    """Number of indexes above them."""


class SitemapFetcher:
    """Fetcher of a site's sitemaps; keeps what was read when the time runs out.

    Follows indexes, also those of indexes, from each in turn. Fetches a sitemap that the site names in any
    case, and a guessed one only if robots.txt allows it or `obey_robots` is False.
    """

    def __init__(self, fetcher: Fetcher, sandbox: Sandbox, robots: Robots, *, obey_robots: bool) -> None:
        self._fetcher, self._sandbox, self._robots = fetcher, sandbox, robots
        self._obeys_robots = obey_robots
        self._results: dict[str, PackedEntries | None] = {}
        self._unread: set[str] = set()
        self._hidden_count = self._missing_guesses = self._bytes = 0
        self._site_counts = Counter[str]()
        self._begin_until = float("inf")
        self.read_count = 0
        """Number of sitemaps and indexes that were read."""
        self.failures: dict[str, FetchFailed] = {}
        """Failure of each sitemap that was not read, by URL."""
        self.cut: list[str] = []
        """URL of each sitemap of which only the beginning was read."""
        self.timed_out = False
        """True if the time ran out."""

    @property
    def entries(self) -> list[PackedEntries]:
        """Return the entries of the sitemaps read so far, in request order."""
        return [part for part in self._results.values() if part]

    @property
    def named_count(self) -> int:
        """Return the number of sitemaps and indexes that the site is known to have."""
        unread = len(self._unread - self._results.keys())
        return len(self._results) - self._missing_guesses + unread + self._hidden_count

    @property
    def is_incomplete(self) -> bool:
        """True if the site has more sitemaps than are fetched for one site map."""
        return bool(self._unread - self._results.keys() or self._hidden_count)

    async def fetch(self, url: str, words: str, timeout: float) -> None:
        """Read the sitemaps of a page's site; `words` select among the many that an index can name."""
        try:
            async with asyncio.timeout(timeout):
                await self._set_limits(url, timeout)
                if named := await self._robots.list_sitemaps(url):
                    await self._read_all(url, [_SitemapList(deque(named), 0)], words, timeout)
                elif part := await self._read_guessed(url, words, timeout):
                    await self._read_all(url, self._list_children(part, 0), words, timeout)
        except TimeoutError:
            self.timed_out = True

    async def fetch_children(self, url: str, index: SitemapPart, words: str, timeout: float) -> None:
        """Read the sitemaps that an index names, which was read at `url` already."""
        self.read_count += url not in self._results
        self._results.setdefault(url, None)
        try:
            async with asyncio.timeout(timeout):
                await self._set_limits(url, timeout)
                await self._read_all(url, self._list_children(index, 0), words, timeout)
        except TimeoutError:
            self.timed_out = True

    async def _set_limits(self, url: str, timeout: float) -> None:
        """Set the time for beginning, and the site, of which any number of sitemaps may be read."""
        self._begin_until = min(self._begin_until, time.monotonic() + timeout * BEGIN_SHARE)
        site = await asyncio.to_thread(find_site, url)  # it reads the public suffix list once
        self._site_counts[site] = -MAX_SITEMAPS

    async def _read_guessed(self, url: str, words: str, seconds: float) -> SitemapPart | None:
        """Read the first sitemap at a common path."""
        for path in GUESSED_PATHS:
            candidate = join_url(url, path) or url
            if candidate in self._results or len(self._results) >= MAX_SITEMAPS:
                continue
            if self._obeys_robots and not await self._robots.can_fetch(candidate):
                continue
            if part := await self._read_one(candidate, words, seconds, guessed=True):
                return part
        return None

    def _list_children(self, index: SitemapPart, depth: int) -> list[_SitemapList]:
        """Return the sitemaps to read that an index names."""
        self._hidden_count += index.child_count - len(index.child_sitemaps)
        if depth < MAX_DEPTH and index.child_sitemaps:
            return [_SitemapList(deque(index.child_sitemaps), depth + 1)]
        self._unread.update(index.child_sitemaps)
        return []

    async def _read_all(self, url: str, lists: list[_SitemapList], words: str, seconds: float) -> None:
        """Read sitemaps, and those that they name, a few at once as far as the limits permit."""
        running = set[asyncio.Task[None]]()

        async def read_next(sitemap: str, depth: int) -> None:
            if part := await self._read_one(sitemap, words, seconds):
                lists.extend(self._list_children(part, depth))

        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    while len(running) < CONCURRENCY and await self._can_begin(url):
                        if (chosen := self._choose_next(lists)) is None:
                            break
                        self._results[chosen[0]] = None
                        running.add(group.create_task(read_next(*chosen)))
                    if not running:
                        return
                    _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._unread.update(each for unread in lists for each in unread.urls)

    async def _can_begin(self, url: str) -> bool:
        """True while a further sitemap may be fetched, after the pause that robots.txt wants."""
        if self._has_reached_limit():
            return False
        if not self._obeys_robots or len(self._results) < UNPACED_SITEMAPS:
            return True
        pause = await self._robots.crawl_delay(url)
        if time.monotonic() + pause > self._begin_until:
            return False
        await asyncio.sleep(pause)
        return not self._has_reached_limit()  # others may have read in the meantime

    def _has_reached_limit(self) -> bool:
        return (
            len(self._results) >= MAX_SITEMAPS
            or len(self.failures) >= MAX_FAILURES
            or self._bytes >= MAX_TOTAL_BYTES
            or time.monotonic() > self._begin_until
        )

    def _choose_next(self, lists: list[_SitemapList]) -> tuple[str, int] | None:
        """Take the next sitemap to read and its depth, from each list in turn; None if there is none."""
        while lists:
            current = lists.pop(0)
            while current.urls:
                url = current.urls.popleft()
                if url in self._results:
                    continue
                site = find_site(url)
                if self._site_counts[site] < MAX_PER_OTHER_SITE:
                    self._site_counts[site] += 1
                    lists.append(current)
                    return url, current.depth
                self._unread.add(url)
        return None

    async def _read_one(
        self, url: str, words: str, seconds: float, *, guessed: bool = False
    ) -> SitemapPart | None:
        """Read one sitemap. If it cannot be read, record the cause and return None."""
        self._results[url] = None
        try:
            part = await self._fetch_part(url, words, seconds)
        except FetchFailed as failure:
            if guessed and failure.reason in ("not_found", "unsupported"):
                self._missing_guesses += 1
            else:
                self.failures[url] = failure
            return None
        self.read_count += 1
        self._bytes += part.size
        self._results[url] = part.entries if part.count else None
        if part.is_cut:
            self.cut.append(url)
        return part

    async def _fetch_part(self, url: str, words: str, seconds: float) -> SitemapPart:
        fetched = await self._fetcher.fetch(
            url, timeout=seconds, max_bytes=FETCHED_BYTES, media_types=SITEMAP_TYPES, on_excess="cut"
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
    reason = classify_status(fetched.status)
    return FetchFailed(reason, f"the site answered with status {fetched.status}")
