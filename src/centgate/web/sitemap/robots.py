"""Apply a site's robots.txt, by RFC 9309."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import ada_url
from cachetools import TLRUCache
from msgspec import Struct
from protego import Protego

from centgate.errors import UnreadReason
from centgate.sandbox import Sandbox, TaskFailed
from centgate.web.fetch.fetcher import CheckRedirect, Fetcher, FetchFailed
from centgate.web.fetch.url import join_url
from centgate.web.sitemap.urls import parse_page_url

MAX_BYTES = 500 << 10
"""Bytes read of a robots.txt: the minimum that RFC 9309, 2.5, requires."""
CACHE_BYTES = 16 << 20
CACHE_SECONDS = 600
FAILED_SECONDS = 15
FETCH_SECONDS = 5
MATCH_SECONDS = 3
MAX_SITEMAPS = 1000
"""Sitemaps of a robots.txt that are kept: more than are read, so that the others are counted."""
_UNREACHED_REASONS = frozenset[UnreadReason]({"dns", "blocked_address", "tls", "unreachable"})
_UNAVAILABLE_REASONS = frozenset[UnreadReason]({"unsupported", "too_large"})


class Disallowed(Struct, frozen=True):
    """Reason not to fetch a page; `message` is a clause that names the host."""

    reason: UnreadReason
    message: str
    is_temporary: bool = False
    """True if the rules could not be read, so that they may allow it later."""


class _RobotsFile(Struct, frozen=True):
    """Cached robots.txt of one origin, or the reason why the whole origin is disallowed."""

    text: bytes = b""
    disallowed: Disallowed | None = None
    ttl: float = CACHE_SECONDS

    @property
    def size(self) -> int:
        return len(self.text) + 500


class Robots:
    """Cache of the robots.txt rules of each origin, and checks against them.

    A missing file (any 4xx) allows everything (RFC 9309, 2.3.1.3), and so does one that is too long to fetch.
    A server failure (5xx, timeout, incomplete response) disallows everything for a while (2.3.1.4), and so do
    rules that cannot be matched in time. If no server is reached at all, everything is allowed: fetching the
    page itself then fails in the same way, with the cause.
    """

    def __init__(self, fetcher: Fetcher, sandbox: Sandbox, user_agent: str) -> None:
        """Match rules in the sandbox, by the product token that `user_agent` starts with."""
        self._fetcher, self._sandbox = fetcher, sandbox
        self._token = user_agent.partition("/")[0]
        self._cache: TLRUCache[str, _RobotsFile] = TLRUCache(
            CACHE_BYTES, ttu=_expiry_time, timer=time.monotonic, getsizeof=_cache_size
        )
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def can_fetch(self, url: str) -> bool:
        """True if a page may be fetched."""
        return await self.disallow_reason(url) is None

    async def disallow_reason(self, url: str) -> Disallowed | None:
        """Return the reason not to fetch a page; None if it may be fetched."""
        origin, host = _split_origin(url)
        rules = await self._load_rules(origin)
        if rules.disallowed or not rules.text:
            return rules.disallowed
        try:
            if await self._sandbox.run_task(MATCH_SECONDS, is_allowed, rules.text, self._token, url):
                return None
        except TaskFailed:
            disallowed = Disallowed(
                "robots",
                f"the rules in robots.txt of {host} could not be evaluated, so nothing there is read",
                is_temporary=True,
            )
            self._cache[origin] = _RobotsFile(disallowed=disallowed, ttl=FAILED_SECONDS)
            return disallowed
        return Disallowed("robots", f"robots.txt of {host} does not allow it")

    async def require_allowed(self, url: str) -> None:
        """Raise FetchFailed if a page may not be fetched."""
        if disallowed := await self.disallow_reason(url):
            raise FetchFailed(disallowed.reason, disallowed.message)

    async def crawl_delay(self, url: str) -> float:
        """Return the seconds that robots.txt wants between two requests; 0 if it names none."""
        rules = await self._load_rules(_split_origin(url)[0])
        if not rules.text:
            return 0.0
        try:
            return await self._sandbox.run_task(MATCH_SECONDS, parse_crawl_delay, rules.text, self._token)
        except TaskFailed:
            return 0.0

    async def list_sitemaps(self, url: str) -> list[str]:
        """Return the sitemaps that robots.txt names, as absolute URLs; empty if it cannot be read."""
        origin, _ = _split_origin(url)
        rules = await self._load_rules(origin)
        if not rules.text:
            return []
        try:
            return await self._sandbox.run_task(MATCH_SECONDS, parse_sitemap_lines, rules.text, origin)
        except TaskFailed:
            return []

    async def _load_rules(self, origin: str) -> _RobotsFile:
        """Return the rules of an origin, with a single fetch for concurrent callers."""
        lock = self._locks.setdefault(origin, asyncio.Lock())
        async with lock:
            if (rules := self._cache.get(origin)) is None:
                rules = self._cache[origin] = await self._fetch_rules(origin)
            return rules

    async def _fetch_rules(self, origin: str) -> _RobotsFile:
        host = urlsplit(origin).netloc
        try:
            answer = await self._fetcher.fetch(f"{origin}/robots.txt", timeout=FETCH_SECONDS)
        except FetchFailed as failure:
            if failure.reason in _UNAVAILABLE_REASONS:
                return _RobotsFile()
            message = f"robots.txt of {host} could not be read ({failure.message}), so nothing there is read"
            is_unreached = failure.reason in _UNREACHED_REASONS
            return _RobotsFile(
                disallowed=None if is_unreached else Disallowed(failure.reason, message, is_temporary=True),
                ttl=FAILED_SECONDS,
            )
        if answer.status >= 500:
            message = (
                f"robots.txt of {host} was answered with status {answer.status}, so nothing there is read"
            )
            refusal = Disallowed("robots", message, is_temporary=True)
            return _RobotsFile(disallowed=refusal, ttl=FAILED_SECONDS)
        return _RobotsFile(_truncate_lines(answer.body) if 200 <= answer.status < 300 else b"")


def check_redirects(url: str, check: CheckRedirect) -> CheckRedirect:
    """Return a check of redirects from a URL: of targets that differ in more than the scheme.

    To others the same rules apply, and the URL itself was checked before.
    """

    async def check_target(target: str) -> None:
        if target.partition("://")[2] != url.partition("://")[2]:
            await check(target)

    return check_target


def is_allowed(text: bytes, token: str, url: str) -> bool:
    """True if the rules allow a robot to fetch a page."""
    return Protego.parse(_decode(text)).can_fetch(url, token)


def parse_crawl_delay(text: bytes, token: str) -> float:
    """Return the `Crawl-delay` for a robot in seconds; 0 without a usable one."""
    delay = Protego.parse(_decode(text)).crawl_delay(token)
    return delay if delay is not None and 0 < delay < float("inf") else 0.0


def parse_sitemap_lines(text: bytes, origin: str) -> list[str]:
    """Return the http and https URLs of the `Sitemap` lines without duplicates."""
    urls = (join_url(f"{origin}/", each) for each in Protego.parse(_decode(text)).sitemaps)
    sitemaps = dict.fromkeys(each for each in urls if each and parse_page_url(each))
    return list(sitemaps)[:MAX_SITEMAPS]


def _decode(text: bytes) -> str:
    return text.decode("utf-8-sig", "replace")


def _truncate_lines(text: bytes) -> bytes:
    """Truncate a long file after its last complete line."""
    return text if len(text) <= MAX_BYTES else text[: text.rfind(b"\n", 0, MAX_BYTES) + 1]


def _split_origin(url: str) -> tuple[str, str]:
    """Return the origin of a URL, and its host with the port."""
    parsed = ada_url.URL(url)
    return f"{parsed.protocol}//{parsed.host}", str(parsed.host)


def _expiry_time(_key: str, rules: _RobotsFile, now: float) -> float:
    return now + rules.ttl


def _cache_size(rules: _RobotsFile) -> int:
    return rules.size
