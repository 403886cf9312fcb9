"""What providers reach the world with: opened once for the process, shared by all of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import aiohttp

from centgate.browser.rendering import Renderer
from centgate.cache.shared_rates import SharedRate
from centgate.meter import SILENT, Meter
from centgate.safefetch.fetcher import Fetcher, open_fetcher
from centgate.sandbox import Sandbox
from centgate.settings import Settings
from centgate.sites.robots import Robots
from centgate.upstream import Rate, Turns, open_session

if TYPE_CHECKING:
    from centgate.cache.shared import Shared

READER_MEGABYTES = 1024
PARSERS = (
    *("centgate.pages.reading", "centgate.pages.feeds", "centgate.pages.pdf", "trafilatura"),
    *("centgate.sites.mapping", "centgate.sites.robots"),
)
BUILDER_MEGABYTES = 2048


@dataclass(frozen=True)
class Resources:
    """Connections, and processes for work that must not hold up the event loop."""

    session: aiohttp.ClientSession
    """To upstreams, whose addresses the operator sets."""
    fetcher: Fetcher
    """To whatever address a buyer names."""
    readers: Sandbox
    """Where pages are parsed."""
    builder: Sandbox
    """Where documentation is indexed."""
    robots: Robots
    """What sites ask of readers, asked once for all."""
    renderer: Renderer | None = None
    """Where pages are read whose scripts make them; None unless the operator wants a browser."""
    shared: Shared | None = None
    """What servers share; None unless the operator has set it up."""
    meter: Meter = SILENT

    def turns(self, rate: Rate, processes: int, *, name: str) -> Turns:
        """Turns at the upstream of this name, which is the same on every server."""
        return Turns(rate, processes, SharedRate(self.shared, name, rate) if self.shared else None)


@asynccontextmanager
async def open_resources(
    settings: Settings, shared: Shared | None = None, *, meter: Meter = SILENT
) -> AsyncGenerator[Resources]:
    """Open everything but `shared`; at the end close it."""
    readers = Sandbox(settings.page_processes, megabytes=READER_MEGABYTES, modules=PARSERS)
    builder = Sandbox(1, megabytes=BUILDER_MEGABYTES)
    renderer = _renderer(settings) if settings.pagereader_render else None
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


def _renderer(settings: Settings) -> Renderer:
    return Renderer(settings.fetch_policy, user_agent(settings), chromium=settings.pagereader_chromium)


def user_agent(settings: Settings) -> str:
    """How this deployment names itself to sites, with whom to turn to."""
    contact = settings.operator or settings.public_url
    return f"Centgate/{version('centgate')}" + (f" (+{contact})" if contact else "")
