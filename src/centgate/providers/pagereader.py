"""The built-in page reader: fetches a page over HTTP and keeps its text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from centgate.browser.program import RenderFailed
from centgate.errors import NoData, PageUnread, ProviderUnconfigured
from centgate.facts.web import Page, Unread, UnreadReason
from centgate.pages.kinds import MEDIA_TYPES, Unreadable, Unsupported
from centgate.pages.reading import Reading, read
from centgate.pages.walls import is_challenge
from centgate.provider import About, Provider, reported
from centgate.resources import Resources
from centgate.safefetch.fetcher import Fetched, FetchFailed
from centgate.sandbox import Died, Overran, WorkFailed
from centgate.settings import Settings
from centgate.text import cleaned

READ_SECONDS = 5
FETCHING = 0.65
"""The share of the time that fetching may take; the rest is for reading."""
RENDERING = 0.7
"""The share of the time left that a browser may take."""
_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 402, 403, 407, 429, 451})
_BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    AssertionError,
)
"""What a page that no parser was ready for may come to."""


class PageReader(Provider):
    """Pages fetched and read inside the server.

    A page without any text is a failure, so that nobody pays for nothing: it is either made by its scripts or
    holds pictures alone.
    """

    about = About(
        "pagereader",
        "Built-in page reader",
        docs_url="https://www.rfc-editor.org/rfc/rfc9110",
        timeout=15,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._heeds_bans = settings.fetch_robots

    @reported
    async def read(self, url: str, only_main_content: bool) -> Page:  # noqa: FBT001 - as every scraper is asked
        """One page; NoData where there is none, PageUnread where it cannot be read."""
        return await self._page(url, only_main_content=only_main_content)

    @reported
    async def contents(self, urls: Sequence[str], most_characters: int) -> list[Page | Unread]:
        """The main content of several pages, read at the same time, in the order asked."""
        return list(await asyncio.gather(*map(self._tried, urls)))

    async def _tried(self, url: str) -> Page | Unread:
        seconds = self.left * 0.95
        try:
            async with asyncio.timeout(seconds):
                return await self._page(url, only_main_content=True)
        except NoData as missing:
            return Unread(url, "not_found", missing.message)
        except PageUnread as unread:
            return Unread(url, unread.reason, unread.message)
        except TimeoutError:
            return Unread(url, "timeout", f"the page at {_host(url)} was not read within {seconds:.3g} s")

    async def _page(self, url: str, *, only_main_content: bool) -> Page:
        fetched = await self._fetched(url)
        reading = await self._reading(fetched, only_main_content=only_main_content)
        if reading.leads_to and not reading.blocked:
            fetched = await self._fetched(reading.leads_to)
            reading = await self._reading(fetched, only_main_content=only_main_content)
        if reading.needs_scripts and not reading.blocked:
            fetched, reading = await self._rendered(fetched, reading, only_main_content=only_main_content)
        if reading.blocked:
            raise self._unread(
                "blocked", f"{_host(fetched.url)} answers with a bot check in place of the page"
            )
        if not reading.markdown.strip():
            scripts = " of its own: it is made by its scripts" if reading.needs_scripts else ""
            raise self._unread("failed", f"the page at {_host(fetched.url)} has no text{scripts}")
        return _told(url, fetched, reading)

    async def _fetched(self, url: str) -> Fetched:
        world = self._world
        seconds = self.left * FETCHING
        try:
            await self._heed(url)
            fetched = await world.fetcher.fetch(url, seconds=seconds, types=MEDIA_TYPES)
            if _host(fetched.url) != _host(url):
                await self._heed(fetched.url)
        except FetchFailed as failure:
            raise self._unread(failure.reason, f"the page could not be read: {failure.message}") from None
        if refusal := self._refusal(fetched):
            raise refusal
        return fetched

    @property
    def _world(self) -> Resources:
        if self.resources is None:
            raise ProviderUnconfigured(self.about.name, f"{self.about.label} has nothing to fetch with")
        return self.resources

    async def _heed(self, url: str) -> None:
        if self._heeds_bans and (ban := await self._world.robots.ban(url)):
            raise self._unread(ban.reason, f"the page was not fetched: {ban.message}")

    def _refusal(self, fetched: Fetched) -> Exception | None:
        """What a status means that is no page."""
        status, host = fetched.status, _host(fetched.url)
        if 200 <= status < 300:
            return None
        if status in _GONE:
            return self.nothing(f"no page at this address: {host} answers with status {status}")
        if status in _REFUSED or (status >= 500 and is_challenge(fetched.body)):
            return self._unread("blocked", f"{host} refuses the page with status {status}")
        return self._unread("failed", f"{host} answers with status {status} in place of the page")

    async def _reading(self, fetched: Fetched, *, only_main_content: bool) -> Reading:
        run, host = self._world.readers.run, _host(fetched.url)
        try:
            return await run(
                READ_SECONDS,
                read,
                fetched.body,
                fetched.content_type,
                fetched.url,
                only_main_content=only_main_content,
            )
        except (Unsupported, Unreadable) as nothing:
            raise self._unread("unsupported", f"what {host} answers with cannot be read: {nothing}") from None
        except Overran:
            said = f"the page at {host} could not be made out within {READ_SECONDS} s"
            raise self._unread("failed", said) from None
        except Died:
            said = f"the page at {host} needs more memory than a page may have"
            raise self._unread("too_large", said) from None
        except WorkFailed as failure:
            raise self._unread("failed", f"the page at {host} could not be made out: {failure}") from None
        except _BROKEN as error:
            raise self._unread("failed", f"the page at {host} could not be made out") from error

    async def _rendered(
        self, fetched: Fetched, reading: Reading, *, only_main_content: bool
    ) -> tuple[Fetched, Reading]:
        """The page as a browser shows it; as it was read, with a warning, where the browser fails."""
        renderer = self._world.renderer
        if renderer is None:
            return fetched, reading
        try:
            page = await renderer.html(fetched.url, self.left * RENDERING)
        except (FetchFailed, RenderFailed) as failure:
            unrendered = (*reading.warnings, f"a browser could not read it either: {failure}")
            return fetched, replace(reading, warnings=unrendered)
        shown = replace(fetched, url=page.url, status=page.status or fetched.status, body=page.html)
        shown = replace(shown, content_type="text/html; charset=utf-8")
        return shown, await self._reading(shown, only_main_content=only_main_content)

    def _unread(self, reason: UnreadReason, message: str) -> PageUnread:
        return PageUnread(self.about.name, reason, message)


def _told(url: str, fetched: Fetched, reading: Reading) -> Page:
    metadata = reading.metadata
    return Page(
        url=url,
        markdown=reading.markdown,
        length=reading.length,
        title=metadata.title,
        description=metadata.description,
        language=metadata.language,
        canonical=metadata.canonical,
        author=metadata.author,
        published=metadata.published,
        modified=metadata.modified,
        status=fetched.status,
        content_type=cleaned(fetched.content_type, 100),
        final_url=fetched.url,
        warnings=reading.warnings,
    )


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()
