"""Built-in page reader: fetches a page over HTTP and extracts its text."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urlsplit

import structlog
from msgspec import Struct
from msgspec.structs import replace

from centgate.errors import NoData, PageUnread, UnreadReason
from centgate.provider import FetchingProvider, ProviderInfo, instrumented
from centgate.sandbox import WORK_KEYS, TaskDied, TaskFailed, TaskTimedOut
from centgate.sanitize import clean_line
from centgate.web.browser.executable import RenderFailed
from centgate.web.extract.content_type import MEDIA_TYPES, PARSER_ERRORS, Unreadable, Unsupported
from centgate.web.extract.interstitials import MAX_SHELL_TEXT, is_challenge, parse_refresh
from centgate.web.extract.metadata import permits_index
from centgate.web.extract.parts import PagePart, take_part
from centgate.web.fetch.failure import classify_status
from centgate.web.fetch.fetcher import MAX_REDIRECTS, NOT_MODIFIED, PARTIAL_CONTENT, FetchFailed, FetchResult
from centgate.web.fetch.site import find_site
from centgate.web.fetch.validators import Validators
from centgate.web.results import UnchangedPage, UnreadPage, WebPage
from centgate.web.sitemap.robots import check_redirects

if TYPE_CHECKING:
    from centgate.web.extract.extract import ExtractedPage

READ_SECONDS = 5
"""Seconds for parsing one page."""
REQUEST_SECONDS = 12
"""Seconds for parsing all pages of one request."""
MAX_PARSES = 2
"""Times for parsing a page that are the limit for a page and those that its refreshes lead to."""
CUT_SECONDS = 5
"""Seconds for taking a part of one page."""
FETCH_SHARE = 0.65
"""Share of the time for fetching; the rest is for extraction."""
RENDER_SHARE = 0.7
"""Share of the remaining time for the browser."""
_RENDERED_WARNING = "the page is built by its scripts, so it was rendered in a browser that ran them"
_LED_AWAY = "the page's scripts lead to another, which was not read"
_TOO_MANY_REQUESTS = 429
_RESPONSE: ContextVar[FetchResult | None] = ContextVar("response", default=None)
"""Latest response of the site of the page that a task reads: a failure to read the page tells it, too."""


class _ParseTime(Struct):
    """Time for parsing a page, and the pages that its refreshes lead to."""

    limit: float
    """Seconds for each time that a page is parsed."""
    left: float
    """Seconds for all of them."""


class PageReader(FetchingProvider):
    """Pages fetched and read by the server itself.

    A page without text is a failure, so that no caller pays for an empty result: it is either rendered by
    scripts or contains only pictures.
    """

    info = ProviderInfo(
        "pagereader",
        "Built-in page reader",
        docs_url="https://www.rfc-editor.org/rfc/rfc9110",
        resale="permitted",
        terms="Pages are under the rights of their sites, whose robots.txt is respected.",
        timeout=15,
    )

    @instrumented
    async def read_page(self, url: str, only_main_content: bool) -> WebPage:  # noqa: FBT001 - as every scraper is asked
        """Read one page; NoData if it does not exist, PageUnread if it cannot be read."""
        return await self._read_page(url, READ_SECONDS, only_main_content=only_main_content)

    @instrumented
    async def read_changed_page(self, url: str, validators: Validators) -> WebPage | UnchangedPage:
        """Read the main content of a page unless it is still of the version that has these validators."""
        fetched = await self._fetch(url, validators=validators)
        if fetched.status == NOT_MODIFIED:
            return UnchangedPage(url, is_indexable=permits_index(fetched.headers.get("X-Robots-Tag")))
        return await self._read_fetched(url, fetched, READ_SECONDS, only_main_content=True)

    @instrumented
    async def page_contents(self, urls: Sequence[str], max_characters: int) -> list[WebPage | UnreadPage]:
        """Read the main content of several pages concurrently, in the order of `urls`."""
        parse_seconds = min(READ_SECONDS, REQUEST_SECONDS / max(1, len(urls)))
        return list(await asyncio.gather(*(self._read_or_reason(url, parse_seconds) for url in urls)))

    async def take_part(self, page: WebPage, offset: int, max_length: int) -> PagePart:
        """Return at most `max_length` characters of a page that any provider has read, from an offset.

        Long pages are cut in a parser's process. Raises PageUnread if that takes too long or fails.
        """
        message = f"the text of the page at {_host_of(page.url)} could not be divided"
        try:
            if len(page.markdown) <= max_length:
                return take_part(page, offset, max_length)
            run = self._server_resources.page_parsers.run_task
            return await run(CUT_SECONDS, take_part, page, offset, max_length)
        except TaskFailed as failure:
            raise self._page_error("failed", f"{message}: {failure}") from None
        except PARSER_ERRORS as error:
            structlog.get_logger().exception("a page could not be divided", url=page.url)
            raise self._page_error("failed", message) from error

    @instrumented
    async def probe(self) -> str:
        """Parse a page of one sentence, as pages of buyers are parsed."""
        from centgate.web.extract.extract import extract_page  # late, see `runtime.LATE_MODULES`

        page = (b"<p>This page can be read.</p>", "text/html", "https://example.com/")
        try:
            await self._server_resources.page_parsers.run_task(
                READ_SECONDS, extract_page, *page, only_main_content=True
            )
        except (TaskFailed, *PARSER_ERRORS) as failure:
            raise self.invalid_response(
                f"cannot parse pages: {failure}; install the extra `server` again, as a module may be missing"
            ) from failure
        return "parses pages"

    def list_fetches(self, options: Mapping[str, Any]) -> list[str]:
        """Return the addresses that a request names."""
        return list(dict.fromkeys(options.get("urls") or [options["url"]]))

    async def _read_or_reason(self, url: str, parse_seconds: float) -> WebPage | UnreadPage:
        seconds = self.remaining_seconds * 0.95
        try:
            async with asyncio.timeout(seconds):
                return await self._read_page(url, parse_seconds, only_main_content=True)
        except NoData as no_data:
            unread = UnreadPage(url, "not_found", no_data.message)
        except PageUnread as failure:
            unread = UnreadPage(url, failure.reason, failure.message, failure.is_temporary)
        except TimeoutError:
            message = f"the page at {_host_of(url)} was not read within {seconds:.3g} s"
            unread = UnreadPage(url, "timeout", message)
        response = _RESPONSE.get()
        return replace(unread, status=response.status, final_url=response.url) if response else unread

    async def _read_page(self, url: str, seconds: float, *, only_main_content: bool) -> WebPage:
        """Read one page, with at most so many seconds for each time that it is parsed."""
        fetched = await self._fetch(url)
        return await self._read_fetched(url, fetched, seconds, only_main_content=only_main_content)

    async def _read_fetched(
        self, url: str, first: FetchResult, seconds: float, *, only_main_content: bool
    ) -> WebPage:
        extract = partial(self._extract, only_main_content=only_main_content)
        parse_time = _ParseTime(seconds, MAX_PARSES * seconds)
        fetched, reading = await self._follow_refreshes(first, partial(extract, parse_time=parse_time))
        detail = ""
        if reading.needs_scripts and not reading.blocked:
            own_time = partial(extract, parse_time=_ParseTime(seconds, seconds))
            fetched, reading, detail = await self._render(fetched, reading, own_time)
        if reading.blocked:
            raise self._page_error(
                "blocked", f"{_host_of(fetched.url)} returned a bot check instead of the page"
            )
        if not reading.markdown.strip():
            raise self._page_error("failed", f"the page at {_host_of(fetched.url)} has no text{detail}")
        page = _build_page(url, fetched, reading)
        # the version of a page that leads elsewhere says nothing of the page there
        return replace(page, validators=fetched.validators if fetched is first else None)

    async def _follow_refreshes(
        self, fetched: FetchResult, extract: Callable[[FetchResult], Awaitable[ExtractedPage]]
    ) -> tuple[FetchResult, ExtractedPage]:
        """Return the page that refreshes lead to, at most as many of them and of redirects as are followed.

        A page that refreshes itself is the page; a longer circle is none.
        """
        seen, redirects = [fetched.url], fetched.redirects
        reading = await extract(fetched)
        while (target := _find_refresh_target(fetched, reading)) and not reading.blocked:
            host = _host_of(fetched.url)
            if target in seen:
                raise self._page_error("failed", f"the page at {host} leads back to one that led to it")
            if redirects >= MAX_REDIRECTS:
                raise self._page_error("failed", f"{host} redirects more than {MAX_REDIRECTS} times")
            fetched = await self._fetch(target, max_redirects=MAX_REDIRECTS - redirects - 1)
            redirects += 1 + fetched.redirects
            seen += [target, fetched.url]
            reading = await extract(fetched)
        return fetched, reading

    async def _fetch(
        self, url: str, *, max_redirects: int = MAX_REDIRECTS, validators: Validators | None = None
    ) -> FetchResult:
        fetcher, seconds = self._server_resources.fetcher, self.remaining_seconds * FETCH_SHARE
        _RESPONSE.set(None)
        try:
            await self._check_robots(url)
            fetched = await fetcher.fetch(
                url,
                timeout=seconds,
                media_types=MEDIA_TYPES,
                max_redirects=max_redirects,
                validators=validators,
                check_redirect=check_redirects(url, self._check_robots),
            )
        except FetchFailed as failure:
            raise self._page_error(failure.reason, f"the page could not be read: {failure.message}") from None
        _RESPONSE.set(fetched)
        is_unchanged = validators is not None and fetched.status == NOT_MODIFIED
        if not is_unchanged and (error := self._status_error(fetched)):
            raise error
        return fetched

    async def _check_robots(self, url: str, result: str = "the page was not fetched") -> None:
        if self._respects_robots and (disallowed := await self._server_resources.robots.disallow_reason(url)):
            error = self._page_error(disallowed.reason, f"{result}: {disallowed.message}")
            error.is_temporary = disallowed.is_temporary
            raise error

    def _status_error(self, fetched: FetchResult) -> Exception | None:
        """Map the status of a failed response to an error; None for success."""
        status, host = fetched.status, _host_of(fetched.url)
        if 200 <= status < 300 and status != PARTIAL_CONTENT:  # which was not asked for
            return None
        reason = classify_status(status)
        if reason == "not_found":
            return self.no_data(f"no page at this address: {host} returned status {status}")
        if reason == "blocked" or (status >= 500 and is_challenge(fetched.body)):
            error = self._page_error("blocked", f"{host} refuses the page with status {status}")
            error.is_temporary = status == _TOO_MANY_REQUESTS
            return error
        return self._page_error("failed", f"{host} returned status {status} instead of the page")

    async def _extract(
        self, fetched: FetchResult, *, parse_time: _ParseTime, only_main_content: bool
    ) -> ExtractedPage:
        from centgate.web.extract.extract import extract_page  # late, see `runtime.LATE_MODULES`

        started, seconds = time.monotonic(), min(parse_time.limit, parse_time.left)
        run, host = self._server_resources.page_parsers.run_task, _host_of(fetched.url)
        site = await asyncio.to_thread(find_site, fetched.url)  # it reads the public suffix list once
        keys = WORK_KEYS.set((*WORK_KEYS.get(), f"site:{site}"))
        try:
            if seconds <= 0:
                raise TaskTimedOut("there is no time left")
            return await run(
                seconds,
                extract_page,
                fetched.body,
                fetched.content_type,
                fetched.url,
                only_main_content=only_main_content,
            )
        except (Unsupported, Unreadable) as unsupported:
            raise self._page_error(
                "unsupported", f"the response of {host} cannot be read: {unsupported}"
            ) from None
        except TaskTimedOut:
            message = f"the page at {host} could not be parsed within {max(0.0, seconds):.3g} s"
            raise self._page_error("failed", message) from None
        except TaskDied:
            message = f"the page at {host} exceeds the memory limit"
            raise self._page_error("too_large", message) from None
        except TaskFailed as failure:
            raise self._page_error("failed", f"the page at {host} could not be parsed: {failure}") from None
        except PARSER_ERRORS as error:
            raise self._page_error("failed", f"the page at {host} could not be parsed") from error
        finally:
            # it may have waited for a process, which is no fault of the page
            parse_time.left -= min(seconds, time.monotonic() - started)
            WORK_KEYS.reset(keys)

    async def _render(
        self,
        fetched: FetchResult,
        reading: ExtractedPage,
        extract: Callable[[FetchResult], Awaitable[ExtractedPage]],
    ) -> tuple[FetchResult, ExtractedPage, str]:
        """Return the page rendered by a browser; if that fails, the page as read, with a warning.

        The text says what was tried, for a page that has no text even so. Raises PageUnread or NoData if the
        scripts lead to a page that may not be read, or to none.
        """
        detail = " without its scripts"
        renderer = self._server_resources.renderer
        if renderer is None:
            return fetched, reading, detail
        try:
            page = await renderer.render(fetched.url, self.remaining_seconds * RENDER_SHARE)
        except (FetchFailed, RenderFailed) as failure:
            warning = f"a browser could not read it either: {failure}"
            reading = replace(reading, warnings=(*reading.warnings, warning))
            return fetched, reading, f"{detail}, and {warning}"
        rendered = dataclasses.replace(
            fetched,
            url=page.url,
            status=page.status or fetched.status,
            content_type="text/html; charset=utf-8",
            body=page.html,
        )
        _RESPONSE.set(rendered)
        if page.source != fetched.url:  # `page.url` can be an address that a script only names
            await self._check_robots(page.source, _LED_AWAY)
        if error := self._status_error(rendered):
            raise error
        reading = await extract(rendered)
        reading = replace(reading, warnings=(_RENDERED_WARNING, *reading.warnings))
        return rendered, reading, ", also after a browser ran its scripts"

    def _page_error(self, reason: UnreadReason, message: str) -> PageUnread:
        return PageUnread(self.info.name, reason, message)


def _find_refresh_target(fetched: FetchResult, reading: ExtractedPage) -> str | None:
    """Return the other page that a page leads to by its `refresh` element or header; None without one."""
    target = reading.refresh_target
    if target is None and reading.length < MAX_SHELL_TEXT:
        target = parse_refresh(fetched.headers.get("Refresh"), fetched.url)
    address = urldefrag(target).url if target else None
    return address if address != fetched.url else None


def _build_page(url: str, fetched: FetchResult, reading: ExtractedPage) -> WebPage:
    metadata = reading.metadata
    return WebPage(
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
        content_type=clean_line(fetched.content_type, 100),
        final_url=fetched.url,
        image=metadata.image,
        site_name=metadata.site_name,
        keywords=metadata.keywords,
        is_indexable=metadata.is_indexable and permits_index(fetched.headers.get("X-Robots-Tag")),
        is_list=reading.is_list,
        warnings=reading.warnings,
    )


def _host_of(url: str) -> str:
    return urlsplit(url).netloc.lower()
