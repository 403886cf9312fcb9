"""Connections and worker processes that all providers share, opened once per process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
from msgspec import Struct

from centgate import __version__
from centgate.cache.redis_rate_limiter import RedisRateLimiter
from centgate.instrumentation import NULL_METER, Meter
from centgate.rate_limiter import RateLimit, RateLimiter
from centgate.sandbox import Sandbox
from centgate.settings import Settings
from centgate.upstream import open_session
from centgate.web.browser.executable import RenderFailed, find_executable
from centgate.web.browser.renderer import Renderer
from centgate.web.fetch.fetcher import Fetcher, open_fetcher
from centgate.web.sitemap.robots import Robots

if TYPE_CHECKING:
    from centgate.cache.redis import SharedRedis

PARSER_MEGABYTES = 1024
PARSER_MODULES = (
    *(
        "centgate.web.extract.extract",
        "centgate.web.extract.feeds",
        "centgate.web.extract.pdf",
        "trafilatura",
    ),
    *("centgate.web.sitemap.site_map", "centgate.web.sitemap.robots", "charset_normalizer"),
    "centgate.crypto.contract.code_analysis",
)
BUILDER_MEGABYTES = 2048


class Resources(Struct, frozen=True):
    """Connections, and processes for work that must not block the event loop."""

    session: aiohttp.ClientSession
    """HTTP session for upstreams, whose URLs the operator configures."""
    fetcher: Fetcher
    """Fetcher for URLs that buyers send."""
    page_parsers: Sandbox
    """Processes that parse pages."""
    index_builder: Sandbox
    """Process that indexes documentation."""
    robots: Robots
    """Cache of robots.txt rules."""
    renderer: Renderer | None = None
    """Browser for pages rendered by scripts; None if there is none, or the operator disables it."""
    shared: SharedRedis | None = None
    """Redis that servers share; None unless configured."""
    meter: Meter = NULL_METER

    def create_rate_limiter(self, rate: RateLimit, processes: int, *, name: str) -> RateLimiter:
        """Return a rate limiter for the upstream of this name, which is the same on every server."""
        return RateLimiter(
            rate, processes, RedisRateLimiter(self.shared, name, rate) if self.shared else None
        )


@asynccontextmanager
async def open_resources(
    settings: Settings, shared: SharedRedis | None = None, *, meter: Meter = NULL_METER
) -> AsyncGenerator[Resources]:
    """Open all resources except `shared`, and close them at the end."""
    readers = Sandbox(settings.page_processes, megabytes=PARSER_MEGABYTES, modules=PARSER_MODULES)
    builder = Sandbox(1, megabytes=BUILDER_MEGABYTES)
    renderer = _create_renderer(settings)
    try:
        async with (
            open_session() as session,
            open_fetcher(settings.fetch_policy, user_agent(settings)) as fetcher,
        ):
            robots = Robots(fetcher, readers, user_agent(settings))
            yield Resources(session, fetcher, readers, builder, robots, renderer, shared, meter)
    finally:
        if renderer is not None:
            await renderer.close()
        await readers.close()
        await builder.close()


def _create_renderer(settings: Settings) -> Renderer | None:
    """Return a renderer if the operator enables it, or leaves it open and a browser is installed."""
    if settings.pagereader_render is None:
        try:
            find_executable(settings.pagereader_chromium)
        except RenderFailed:
            return None
    elif not settings.pagereader_render:
        return None
    return Renderer(settings.fetch_policy, user_agent(settings), chromium=settings.pagereader_chromium)


def user_agent(settings: Settings) -> str:
    """Return the User-Agent for fetched sites, with a contact address."""
    contact = settings.operator or settings.public_url
    return f"Centgate/{__version__}" + (f" (+{contact})" if contact else "")
