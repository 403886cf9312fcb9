"""What a site's robots.txt allows, by RFC 9309."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import ada_url
from cachetools import TLRUCache
from protego import Protego

from centgate.facts.web import UnreadReason
from centgate.safefetch.fetcher import Fetcher, FetchFailed
from centgate.sandbox import Sandbox, WorkFailed
from centgate.sites.site import address, joined

MOST_BYTES = 500 << 10
"""What is read of a robots.txt: as much as RFC 9309, 2.5, asks for."""
CACHE_BYTES = 16 << 20
FRESH_SECONDS = 600
FAILED_SECONDS = 15
FETCH_SECONDS = 5
MATCH_SECONDS = 3
MOST_SITEMAPS = 50
_SAYS_NOTHING = frozenset[UnreadReason]({"dns", "blocked_address", "tls", "unreachable"})
_UNAVAILABLE = frozenset[UnreadReason]({"unsupported", "too_large"})


@dataclass(frozen=True, slots=True)
class Ban:
    """Why a page must not be fetched; `message` is a clause that names the host."""

    reason: UnreadReason
    message: str


@dataclass(frozen=True, slots=True)
class _Rules:
    """The robots.txt of one origin, or why everything is banned there."""

    text: bytes = b""
    ban: Ban | None = None
    seconds: float = FRESH_SECONDS

    @property
    def size(self) -> int:
        return len(self.text) + 500


class Robots:
    """Asks each origin for its rules once in a while, and keeps to them.

    A file that is not there (any 4xx) allows everything (RFC 9309, 2.3.1.3), and so does one that is longer
    than is fetched. One that a server owes us (5xx, no answer in time, an answer that breaks off) bans
    everything for a while (2.3.1.4), and so do rules that cannot be matched in time. Where no server is
    reached at all nothing is banned: fetching the page itself then fails in the same way, and says why.
    """

    def __init__(self, fetcher: Fetcher, sandbox: Sandbox, user_agent: str) -> None:
        """Rules are matched in the sandbox, by the product token that `user_agent` begins with."""
        self._fetcher, self._sandbox = fetcher, sandbox
        self._token = user_agent.partition("/")[0]
        self._known: TLRUCache[str, _Rules] = TLRUCache(
            CACHE_BYTES, ttu=_until, timer=time.monotonic, getsizeof=_size
        )
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def allows(self, url: str) -> bool:
        """Whether a page may be fetched."""
        return await self.ban(url) is None

    async def ban(self, url: str) -> Ban | None:
        """Why a page must not be fetched; None when it may be."""
        origin, host = _origin(url)
        rules = await self._rules(origin)
        if rules.ban or not rules.text:
            return rules.ban
        try:
            if await self._sandbox.run(MATCH_SECONDS, permits, rules.text, self._token, url):
                return None
        except WorkFailed:
            unread = Ban(
                "robots", f"the rules in robots.txt of {host} cannot be made out, so nothing there is read"
            )
            self._known[origin] = _Rules(ban=unread, seconds=FAILED_SECONDS)
            return unread
        return Ban("robots", f"robots.txt of {host} does not allow it")

    async def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that a page's site names, as absolute URLs; none when its rules cannot be read."""
        origin, _ = _origin(url)
        rules = await self._rules(origin)
        if not rules.text:
            return []
        try:
            return await self._sandbox.run(MATCH_SECONDS, named_sitemaps, rules.text, origin)
        except WorkFailed:
            return []

    async def _rules(self, origin: str) -> _Rules:
        """Fetched by whoever asks first, while the others wait."""
        turn = self._turns.setdefault(origin, asyncio.Lock())
        async with turn:
            if (known := self._known.get(origin)) is None:
                known = self._known[origin] = await self._fetched(origin)
            return known

    async def _fetched(self, origin: str) -> _Rules:
        host = urlsplit(origin).netloc
        try:
            answer = await self._fetcher.fetch(f"{origin}/robots.txt", seconds=FETCH_SECONDS)
        except FetchFailed as failure:
            if failure.reason in _UNAVAILABLE:
                return _Rules()
            said = f"robots.txt of {host} could not be read ({failure.message}), so nothing there is"
            known = failure.reason in _SAYS_NOTHING
            return _Rules(ban=None if known else Ban(failure.reason, said), seconds=FAILED_SECONDS)
        if answer.status >= 500:
            said = f"robots.txt of {host} was answered with status {answer.status}, so nothing there is read"
            return _Rules(ban=Ban("robots", said), seconds=FAILED_SECONDS)
        return _Rules(_cut(answer.body) if 200 <= answer.status < 300 else b"")


def permits(text: bytes, token: str, url: str) -> bool:
    """Whether rules allow a robot a page."""
    return Protego.parse(_decoded(text)).can_fetch(url, token)


def named_sitemaps(text: bytes, origin: str) -> list[str]:
    """The http and https addresses in the `Sitemap` lines, each once."""
    said = (joined(f"{origin}/", each) for each in Protego.parse(_decoded(text)).sitemaps)
    found = dict.fromkeys(each for each in said if each and address(each))
    return list(found)[:MOST_SITEMAPS]


def _decoded(text: bytes) -> str:
    return text.decode("utf-8-sig", "replace")


def _cut(text: bytes) -> bytes:
    """Whole lines of what is read of a long file."""
    return text if len(text) <= MOST_BYTES else text[: text.rfind(b"\n", 0, MOST_BYTES) + 1]


def _origin(url: str) -> tuple[str, str]:
    """An origin as it stands in URLs, and its host with the port."""
    parsed = ada_url.URL(url)
    return f"{parsed.protocol}//{parsed.host}", str(parsed.host)


def _until(_origin: str, rules: _Rules, now: float) -> float:
    return now + rules.seconds


def _size(rules: _Rules) -> int:
    return rules.size
