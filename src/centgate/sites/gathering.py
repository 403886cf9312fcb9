"""The sitemaps of one site: those that robots.txt names, what an index names, else the usual places."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from centgate.facts.web import UnreadReason
from centgate.safefetch.fetcher import Fetched, Fetcher, FetchFailed
from centgate.sandbox import Sandbox, WorkFailed
from centgate.sites.mapping import Packed, Part, sitemap_part
from centgate.sites.robots import Robots
from centgate.sites.site import joined

MOST_SITEMAPS = 5
"""Sitemaps that are fetched for one map."""
MOST_NAMED = 2
"""Those of them that robots.txt names, before what an index names has its turn."""
AT_ONCE = 2
MOST_BYTES = 5 << 20
PARSE_SECONDS = 5
GUESSES = ("/sitemap.xml", "/sitemap_index.xml")
"""Where sitemaps lie that robots.txt does not name."""
TYPES = (
    "text/xml",
    "application/xml",
    "text/plain",
    "application/gzip",
    "application/x-gzip",
    "application/octet-stream",
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "text/html",  # what programs send it as that say nothing of their sitemap's type
)
_BLOCKED = frozenset({401, 402, 403, 407, 429, 451})
_GONE = frozenset({404, 410})


class Gathering:
    """Sitemaps as they are read; what was read counts although time runs out for the rest.

    An index is followed for one level. One that the site names is there to be fetched; one that is only
    guessed at is fetched where robots.txt allows it, or where its bans are not heeded.
    """

    def __init__(self, fetcher: Fetcher, sandbox: Sandbox, robots: Robots, *, heeds_bans: bool) -> None:
        self._fetcher, self._sandbox, self._robots = fetcher, sandbox, robots
        self._heeds_bans = heeds_bans
        self._asked: dict[str, Packed | None] = {}
        self.unread: dict[str, str] = {}
        """Why a sitemap was not read, as a clause, by its address."""
        self.left_out = False
        """Whether the site has further sitemaps, beyond what one map reads."""
        self.late = False
        """Whether there was no time for all of it."""

    @property
    def parts(self) -> list[Packed]:
        """The pages of what has been read, in the order it was asked for."""
        return [part for part in self._asked.values() if part]

    async def read(self, url: str, words: str, seconds: float) -> None:
        """Read what the site of a page has; `words` choose among the many that an index can name."""
        try:
            async with asyncio.timeout(seconds):
                further = await self._begin(url, words, seconds)
                parts = await self._all(further, words, seconds)
                self.left_out = self.left_out or any(part.further for part in parts)
        except TimeoutError:
            self.late = True

    async def _begin(self, url: str, words: str, seconds: float) -> list[str]:
        """Read those that are named, else those in the usual places; gives what is to be read after them."""
        if named := await self._robots.sitemaps(url):
            parts = await self._all(named[:MOST_NAMED], words, seconds, more=True)
            return [*self._further(parts), *named[MOST_NAMED:]]
        for path in GUESSES:
            guess = joined(url, path) or url
            if self._heeds_bans and not await self._robots.allows(guess):
                continue
            if part := await self._one(guess, words, seconds, guessed=True):
                return self._further([part])
        return []

    def _further(self, parts: Iterable[Part]) -> list[str]:
        """What indexes name, in turns."""
        named = [list(part.further) for part in parts]
        self.left_out = self.left_out or any(part.further_count > len(part.further) for part in parts)
        longest = max(map(len, named), default=0)
        return [each[n] for n in range(longest) for each in named if n < len(each)]

    async def _all(
        self, urls: Iterable[str], words: str, seconds: float, *, more: bool = False
    ) -> list[Part]:
        """Read as many as there is room for; `more` when others are going to be read after them."""
        new = [url for url in dict.fromkeys(urls) if url not in self._asked]
        room = max(0, MOST_SITEMAPS - len(self._asked))
        self.left_out = self.left_out or (len(new) > room and not more)
        turns = asyncio.Semaphore(AT_ONCE)

        async def in_turn(url: str) -> Part | None:
            async with turns:
                return await self._one(url, words, seconds)

        read = await asyncio.gather(*map(in_turn, new[:room]))
        return [part for part in read if part]

    async def _one(self, url: str, words: str, seconds: float, *, guessed: bool = False) -> Part | None:
        """Read one sitemap; None, with the cause kept, when it cannot be read."""
        self._asked[url] = None
        try:
            part = await self._part(url, words, seconds)
        except FetchFailed as failure:
            if not (guessed and failure.reason in ("not_found", "unsupported")):
                self.unread[url] = failure.message
            return None
        self._asked[url] = part.entries if part.count else None
        return part

    async def _part(self, url: str, words: str, seconds: float) -> Part:
        fetched = await self._fetcher.fetch(url, seconds=seconds, most_bytes=MOST_BYTES, types=TYPES)
        if refused := refusal(fetched):
            raise refused
        try:
            part = await self._sandbox.run(PARSE_SECONDS, sitemap_part, fetched.body, fetched.url, words)
        except WorkFailed as failure:
            raise FetchFailed("failed", f"it could not be parsed: {failure}") from failure
        if part is None:
            raise FetchFailed("unsupported", "it is no sitemap")
        return part


def refusal(fetched: Fetched) -> FetchFailed | None:
    """What a status other than success means to a reader."""
    if 200 <= fetched.status < 300:
        return None
    reason: UnreadReason = "failed"
    if fetched.status in _GONE:
        reason = "not_found"
    elif fetched.status in _BLOCKED:
        reason = "blocked"
    return FetchFailed(reason, f"the site answered with status {fetched.status}")
