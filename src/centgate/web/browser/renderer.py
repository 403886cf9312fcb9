"""Render pages that are built by their scripts, in a browser restricted to the URLs that may be fetched."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from centgate.web.browser.chromium import Browser, BrowserEnded, OpenPage
from centgate.web.browser.executable import RenderFailed
from centgate.web.browser.proxy import FilteringProxy, ProxyGrant
from centgate.web.fetch.dns import DnsResolver, ResolveFunction
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.policy import FetchPolicy
from centgate.web.fetch.url import parse_target

PAGES_PER_BROWSER = 50
IDLE_SECONDS = 180.0
MAX_QUEUE = 8
MARGIN_SECONDS = 0.25
"""Part of a page's time that is reserved to return its HTML."""
SPENT_SECONDS = 4.0
"""Time for a page to finish after it has exceeded a limit of the proxy."""
RENDERED_TYPES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """Page after its scripts have run."""

    url: str
    """Final URL, which scripts can set to any of the host."""
    source: str
    """URL of the response that the page was made of."""
    status: int | None
    html: bytes = field(repr=False)
    """In UTF-8, whatever charset it declares; truncated at 2 MB."""


class Renderer:
    """Renderer with one Chromium, started at the first page; few concurrent pages, each in its own context.

    A browser is replaced after `PAGES_PER_BROWSER` pages, and stopped after `IDLE_SECONDS` without pages.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        user_agent: str,
        *,
        chromium: Path | None,
        max_pages: int = 2,
        resolve: ResolveFunction | None = None,
    ) -> None:
        """Create a renderer; `chromium` is the browser's executable, searched on the PATH if None."""
        self._policy, self._user_agent, self._chromium = policy, user_agent, chromium
        self._resolver = None if resolve else DnsResolver()
        self._proxy = FilteringProxy(policy, resolve or self._resolver or DnsResolver())
        self._proxy_url: str | None = None
        self._slots = asyncio.Semaphore(max_pages)
        self._waiting = 0
        self._starting: asyncio.Task[Browser] | None = None
        self._browsers: set[Browser] = set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def render(self, url: str, timeout: float) -> RenderedPage:
        """Return a page after its scripts have run and it has gone quiet, or its time is almost over.

        Raises FetchFailed if the page could not be read, and RenderFailed if no browser is available.
        """
        _raise_if_rejected(self._policy.rejection(url), url)
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(deadline):
                return await self._render_with_retry(url, deadline - MARGIN_SECONDS)
        except TimeoutError:
            raise FetchFailed(
                "timeout", f"{_host_label(url)} was not rendered within {timeout:g} s"
            ) from None

    async def close(self) -> None:
        """Stop the browser and the proxy."""
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._starting is not None:
            with suppress(RenderFailed):
                await self._starting
        await asyncio.gather(*(browser.stop() for browser in self._browsers))
        await self._proxy.close()
        if self._resolver is not None:
            self._resolver.close()

    async def _render_with_retry(self, url: str, deadline: float) -> RenderedPage:
        try:
            return await self._render_once(url, deadline)
        except BrowserEnded:  # another page may have caused it
            pass
        try:
            return await self._render_once(url, deadline)
        except BrowserEnded:
            raise FetchFailed("failed", f"the browser ended while it had {_host_label(url)} open") from None

    async def _render_once(self, url: str, deadline: float) -> RenderedPage:
        await self._acquire_slot()
        page: OpenPage | None = None
        try:
            browser = await self._get_browser()
            with self._proxy.grant_access() as grant:
                page = self._open_page(browser, url, deadline, grant)
                answer = await _wait_for_response(browser, page, grant)
        finally:
            if page is None:
                self._slots.release()
        return self._parse_response(url, answer, grant)

    async def _acquire_slot(self) -> None:
        if self._slots.locked() and self._waiting >= MAX_QUEUE:
            raise RenderFailed("too many pages are waiting for the browser")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1

    def _open_page(self, browser: Browser, url: str, deadline: float, grant: ProxyGrant) -> OpenPage:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        seconds = max(deadline - asyncio.get_running_loop().time(), 0.01)
        page = browser.open_page(url, seconds, username=grant.username, password=grant.password)
        # a page holds its slot until the browser has closed it, even after it was cancelled
        page.closed.add_done_callback(lambda _: self._page_closed(browser))
        return page

    def _page_closed(self, browser: Browser) -> None:
        self._slots.release()
        if browser.open_pages or self._closed:
            return
        if browser.page_count >= PAGES_PER_BROWSER:
            browser.stop()
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._stop_idle)

    def _stop_idle(self) -> None:
        for browser in self._browsers:
            if not browser.open_pages:
                browser.stop()

    async def _get_browser(self) -> Browser:
        """Return the running browser; callers share one start, which their cancellation does not stop."""
        if self._closed:
            raise RenderFailed("the renderer is closed")
        if self._starting is None or not _is_usable(self._starting):
            self._starting = asyncio.ensure_future(self._start_browser())
        return await asyncio.shield(self._starting)

    async def _start_browser(self) -> Browser:
        if self._proxy_url is None:
            self._proxy_url = await self._proxy.start()
        browser = await Browser.start(self._chromium, self._proxy_url, self._user_agent)
        self._browsers = {each for each in self._browsers if not each.has_ended} | {browser}
        return browser

    def _parse_response(self, url: str, answer: dict[str, Any], grant: ProxyGrant) -> RenderedPage:
        """Parse the browser's response; it is untrusted, since the page may have compromised the browser."""
        requested_url = str(answer.get("at", url))
        final_url = str(answer.get("url", ""))
        failed = str(answer.get("failed", ""))
        if failed or final_url.startswith("chrome-error:"):
            raise grant.find_failure(requested_url) or _map_failure(requested_url, failed)
        _raise_if_rejected(self._policy.rejection(final_url), final_url)
        content_type = str(answer.get("type", "")).partition(";")[0].strip().lower()
        if content_type and content_type not in RENDERED_TYPES:
            raise FetchFailed(
                "unsupported", f"{_host_label(final_url)} is {content_type[:60]}, which is not rendered"
            )
        status, source = answer.get("status"), str(answer.get("source") or final_url)
        return RenderedPage(final_url, source, status if isinstance(status, int) else None, answer["html"])


async def _wait_for_response(browser: Browser, page: OpenPage, grant: ProxyGrant) -> dict[str, Any]:
    exhausted = asyncio.ensure_future(grant.exhausted.wait())
    try:
        await asyncio.wait((page.response, exhausted), return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(SPENT_SECONDS if exhausted.done() else None):
            return await asyncio.shield(page.response)
    except TimeoutError:
        raise FetchFailed("too_large", "the page loads more data than the limit") from None
    except BrowserEnded:
        if browser.exceeded_memory:
            raise FetchFailed("too_large", "the page needed more memory than the limit") from None
        raise
    finally:
        exhausted.cancel()
        browser.cancel_page(page)


def _is_usable(starting: asyncio.Task[Browser]) -> bool:
    if not starting.done():
        return True
    if starting.cancelled() or starting.exception() is not None:
        return False
    browser = starting.result()
    return browser.is_running and browser.page_count < PAGES_PER_BROWSER


def _map_failure(url: str, message: str) -> FetchFailed:
    """Map the browser's error message; `net::ERR_...` codes are in Chromium's net_error_list.h."""
    if message == "timeout":
        return FetchFailed("timeout", f"{_host_label(url)} did not load in time")
    if message == "the page keeps navigating":
        return FetchFailed("failed", f"{_host_label(url)} leads from page to page without end")
    if "Download is starting" in message:
        return FetchFailed("unsupported", f"{_host_label(url)} is a download, which is not rendered")
    if "ERR_CERT" in message or "ERR_SSL" in message:
        return FetchFailed("tls", f"the TLS handshake with {_host_label(url)} failed")
    if "net::ERR_" in message:
        return FetchFailed("unreachable", f"{_host_label(url)} could not be loaded by the browser")
    return FetchFailed("failed", f"{_host_label(url)} could not be rendered")


def _raise_if_rejected(rejection: str | None, url: str) -> None:
    if rejection is not None:
        raise FetchFailed("blocked_address", f"{_host_label(url)} must not be fetched: {rejection}")


def _host_label(url: str) -> str:
    target = parse_target(url)
    return target.label if target and target.host else "the page"
