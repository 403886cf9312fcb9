"""Reading pages that are made by their scripts, with a browser that reaches only what may be fetched."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from centgate.browser.chromium import Browser, BrowserEnded, OpenPage
from centgate.browser.program import RenderFailed
from centgate.browser.proxy import FilteringProxy, Pass
from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.policy import Policy
from centgate.safefetch.resolving import Resolve, Resolver
from centgate.safefetch.target import read_target

PAGES_PER_BROWSER = 50
IDLE_SECONDS = 180.0
QUEUE = 8
MARGIN_SECONDS = 0.25
"""Of a page's time, for its text to come back."""
SPENT_SECONDS = 4.0
"""For a page that has used up what it may load, to do without more."""
TYPES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as its scripts have left it."""

    url: str
    """Where it came to rest."""
    status: int | None
    html: bytes = field(repr=False)
    """In UTF-8, whatever it says of itself; cut at 2 MB."""


class Renderer:
    """One Chromium, started at the first page, with few pages at once and each in a context of its own.

    A browser is replaced after some pages, and ends when none was asked for in a while.
    """

    def __init__(
        self,
        policy: Policy,
        user_agent: str,
        *,
        chromium: Path | None,
        pages: int = 2,
        resolve: Resolve | None = None,
    ) -> None:
        """`chromium` is the browser's program, looked for under its usual names when None."""
        self._policy, self._user_agent, self._chromium = policy, user_agent, chromium
        self._resolver = None if resolve else Resolver()
        self._proxy = FilteringProxy(policy, resolve or self._resolver or Resolver())
        self._proxy_url: str | None = None
        self._turns = asyncio.Semaphore(pages)
        self._waiting = 0
        self._starting: asyncio.Task[Browser] | None = None
        self._browsers: set[Browser] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    async def html(self, url: str, seconds: float) -> Rendered:
        """A page after its scripts have run and it has gone quiet, or its time for that is nearly over.

        FetchFailed when the page could not be read, RenderFailed when there is no browser to read it with.
        """
        _refuse(self._policy.objection(url), url)
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                return await self._rendered(url, deadline - MARGIN_SECONDS)
        except TimeoutError:
            raise FetchFailed("timeout", f"{_shown(url)} was not rendered within {seconds:g} s") from None

    async def close(self) -> None:
        """End the browser, and everything that belongs to it."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._starting is not None:
            with suppress(RenderFailed):
                await self._starting
        await asyncio.gather(*(browser.end() for browser in self._browsers))
        await self._proxy.close()
        if self._resolver is not None:
            self._resolver.close()

    async def _rendered(self, url: str, deadline: float) -> Rendered:
        try:
            return await self._tried(url, deadline)
        except BrowserEnded:  # perhaps because of another page
            pass
        try:
            return await self._tried(url, deadline)
        except BrowserEnded:
            raise FetchFailed("failed", f"the browser ended while it had {_shown(url)} open") from None

    async def _tried(self, url: str, deadline: float) -> Rendered:
        await self._turn()
        page: OpenPage | None = None
        try:
            browser = await self._browser()
            with self._proxy.admitting() as holder:
                page = self._opened(browser, url, deadline, holder)
                answer = await _waited(browser, page, holder)
        finally:
            if page is None:
                self._turns.release()
        return self._read(url, answer, holder)

    async def _turn(self) -> None:
        if self._turns.locked() and self._waiting >= QUEUE:
            raise RenderFailed("too many pages are waiting for the browser")
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1

    def _opened(self, browser: Browser, url: str, deadline: float, holder: Pass) -> OpenPage:
        if self._idle is not None:
            self._idle.cancel()
        seconds = max(deadline - asyncio.get_running_loop().time(), 0.01)
        page = browser.open(url, seconds, username=holder.username, password=holder.password)
        # a page has its turn until the browser has closed it, also when nobody waits for it any more
        page.closed.add_done_callback(lambda _: self._page_closed(browser))
        return page

    def _page_closed(self, browser: Browser) -> None:
        self._turns.release()
        if browser.open_pages or self._closed:
            return
        if browser.asked >= PAGES_PER_BROWSER:
            browser.end()
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._sleep)

    def _sleep(self) -> None:
        for browser in self._browsers:
            if not browser.open_pages:
                browser.end()

    async def _browser(self) -> Browser:
        """The browser that takes pages; one start for all who wait, which goes on without them."""
        if self._closed:
            raise RenderFailed("the renderer is closed")
        if self._starting is None or not _usable(self._starting):
            self._starting = asyncio.ensure_future(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> Browser:
        if self._proxy_url is None:
            self._proxy_url = await self._proxy.open()
        browser = await Browser.start(self._chromium, self._proxy_url, self._user_agent)
        self._browsers = {each for each in self._browsers if not each.ended} | {browser}
        return browser

    def _read(self, url: str, answer: dict[str, Any], holder: Pass) -> Rendered:
        """What the browser says of a page, believed as far as it goes: the page may have taken it over."""
        at = str(answer.get("at", url))
        final = str(answer.get("url", ""))
        failed = str(answer.get("failed", ""))
        if failed or final.startswith("chrome-error:"):
            raise holder.refusal(at) or _failure(at, failed)
        _refuse(self._policy.objection(final), final)
        kind = str(answer.get("type", "")).partition(";")[0].strip().lower()
        if kind and kind not in TYPES:
            raise FetchFailed("unsupported", f"{_shown(final)} is {kind[:60]}, which is not rendered")
        status = answer.get("status")
        return Rendered(final, status if isinstance(status, int) else None, answer["html"])


async def _waited(browser: Browser, page: OpenPage, holder: Pass) -> dict[str, Any]:
    spent = asyncio.ensure_future(holder.spent.wait())
    try:
        await asyncio.wait((page.answer, spent), return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(SPENT_SECONDS if spent.done() else None):
            return await asyncio.shield(page.answer)
    except TimeoutError:
        raise FetchFailed("too_large", "the page goes on loading more than a page may have") from None
    except BrowserEnded:
        if browser.overgrown:
            raise FetchFailed("too_large", "the page needed more memory than a page may have") from None
        raise
    finally:
        spent.cancel()
        browser.give_up(page)


def _usable(starting: asyncio.Task[Browser]) -> bool:
    if not starting.done():
        return True
    if starting.cancelled() or starting.exception() is not None:
        return False
    browser = starting.result()
    return browser.alive and browser.asked < PAGES_PER_BROWSER


def _failure(at: str, failed: str) -> FetchFailed:
    """What the browser's own words for a failure mean; `net::ERR_...` is Chromium's net_error_list.h."""
    if failed == "timeout":
        return FetchFailed("timeout", f"{_shown(at)} had not loaded when its time was over")
    if "Download is starting" in failed:
        return FetchFailed("unsupported", f"{_shown(at)} is a download, which is not rendered")
    if "ERR_CERT" in failed or "ERR_SSL" in failed:
        return FetchFailed("tls", f"no TLS connection to {_shown(at)} could be agreed on")
    if "net::ERR_" in failed:
        return FetchFailed("unreachable", f"{_shown(at)} could not be loaded by the browser")
    return FetchFailed("failed", f"{_shown(at)} could not be rendered")


def _refuse(objection: str | None, url: str) -> None:
    if objection is not None:
        raise FetchFailed("blocked_address", f"{_shown(url)} must not be fetched: {objection}")


def _shown(url: str) -> str:
    target = read_target(url)
    return target.shown if target and target.host else "the page"
