"""Process between the server and a browser, so that untrusted browser output is not parsed in the server.

It receives commands as lines of JSON. For each page it writes a line of JSON with the result, then the page's
HTML, then a line that says that the page is closed. At the end of its input it stops, with the browser.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

from playwright.async_api import Browser, BrowserContext, Error, Page, Request, Response, async_playwright
from playwright.async_api import TimeoutError as PlaywrightTimeout

from centgate.web.browser.flags import FLAGS, IGNORED_DEFAULT_FLAGS

MAX_CHARACTERS = 2_000_000
MAX_LINE = 1 << 20
MAX_URL_LENGTH = 8_000
START_SECONDS = 20.0
CLOSE_SECONDS = 3.0
END_SECONDS = 1.0
"""Time between the end of a browser's pages and its `disconnected` event."""
QUIET_SECONDS = 2.0
"""Wait for a page whose scripts send requests after it has loaded."""
READ_TRIES = 4
MAX_NAVIGATIONS = 25
"""Documents and redirects of a page's own after which its scripts lead in a circle."""
ENDLESS = "the page keeps navigating"
DOM_QUIET_SECONDS = 0.5
"""Time without a change of the page's text after which it counts as complete."""
MAX_DOM_WAIT_SECONDS, POLL_SECONDS = 4.0, 0.1
MIN_TEXT, LATE_SECONDS, EMPTY_SECONDS = 200, 1.0, 3.0
"""Characters below which a page is waited for, as its text may still be made; how long for few, and for none
or while it waits for a request.
"""

# repeats what the flags disable, since flag names change between versions
_DISABLE_SCRIPT = (
    "for (const n of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete self[n]"
)
# a navigation to another program (mailto:, tel:) would end the parsing of the page, which then never loads
_STAY_SCRIPT = (
    "self.navigation?.addEventListener('navigate', event => "
    "{ if (!/^(https?|about|blob|data):/.test(event.destination.url)) event.preventDefault() })"
)
_PAGE_EXPRESSION = f"""(() => {{
  const page = document.documentElement, shadowRoots = []
  const collect = tree => tree.querySelectorAll("*").forEach(each => {{
    if (each.shadowRoot && shadowRoots.push(each.shadowRoot)) collect(each.shadowRoot)
  }})
  collect(document)
  const html = !page ? "" : !(shadowRoots.length && page.getHTML) ? page.outerHTML :
    page.cloneNode(false).outerHTML.replace(/<[/]html>$/, "") + page.getHTML({{shadowRoots}})
  return {{url: location.href.slice(0, {MAX_URL_LENGTH}), html: html.slice(0, {MAX_CHARACTERS})}}
}})()"""
"""`outerHTML` leaves out shadow roots, which the page shows; browsers before 2024 have no `getHTML`."""
_LENGTH_EXPRESSION = r"""(() => {
  const length = element => (element.innerText ?? "").replace(/\s+/g, "").length
  const menu = ":is(nav, :is(header, footer):not(:is(main, article, section) *))"
  const menus = [...document.querySelectorAll(`${menu}:not(${menu} *)`)]
  const shown = menus.filter(each => each.checkVisibility())
  return document.body ? length(document.body) - shown.reduce((sum, each) => sum + length(each), 0) : 0
})()"""
"""Menus are there before the text that they belong to; `innerText` of a hidden one is all its text."""


class BrowserHost:
    """Owner of a browser and its open pages."""

    def __init__(self, browser: Browser, proxy: str, user_agent: str) -> None:
        self._browser, self._proxy, self._user_agent = browser, proxy, user_agent
        self.ended = asyncio.Event()
        """Set when the browser has disconnected."""
        browser.on("disconnected", lambda _: self.ended.set())
        self._pages: dict[int, asyncio.Task[None]] = {}

    def handle(self, command: dict[str, Any]) -> None:
        """Execute a command: open a page, or cancel one."""
        number = command["id"]
        if "url" not in command:
            if number in self._pages:
                self._pages[number].cancel()
            return
        task = asyncio.ensure_future(self._serve_page(number, command))
        self._pages[number] = task
        task.add_done_callback(lambda _: self._pages.pop(number, None))

    async def _serve_page(self, number: int, command: dict[str, Any]) -> None:
        """Load a page, send its result, close it and report that."""
        opening = asyncio.ensure_future(self._create_context(command))
        answer: dict[str, Any] = {}
        try:
            async with asyncio.timeout(command["seconds"]):
                answer = await self._load_page(await asyncio.shield(opening), command)
        except (TimeoutError, PlaywrightTimeout):
            answer = {"failed": "timeout"}
        except Error as error:
            answer = {"failed": _first_line(error)}
        finally:
            await self._send_response(number, answer)
            await _wait_closed(_close_context(opening))
            await self._send_response(number, {"closed": True})

    async def _create_context(self, command: dict[str, Any]) -> BrowserContext:
        username, password = command["username"], command["password"]
        try:
            return await self._browser.new_context(
                user_agent=self._user_agent,
                proxy={"server": self._proxy, "username": username, "password": password},
                accept_downloads=False,
                service_workers="block",
                permissions=[],
            )
        except Error:  # the browser has ended, or Playwright's driver, of which no event tells
            self.ended.set()
            raise

    async def _load_page(self, context: BrowserContext, command: dict[str, Any]) -> dict[str, Any]:
        await context.add_init_script(f"{_DISABLE_SCRIPT}; {_STAY_SCRIPT}")
        return await _PageVisit(await context.new_page(), command["seconds"]).load(command["url"])

    async def _send_response(self, number: int, answer: dict[str, Any]) -> None:
        """Send a response, unless the browser has ended: then the end of the output fails all pages."""
        if "has been closed" in answer.get("failed", ""):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), END_SECONDS)
        if not self.ended.is_set():
            _write_response({"id": number, **answer})


class _PageVisit:
    """Visit of one page: load it, wait and read it."""

    def __init__(self, page: Page, seconds: float) -> None:
        self._page = page
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._requested_url = ""
        self._response: Response | None = None
        self._navigations = 0
        self._closing: asyncio.Task[None] | None = None
        self._has_requests = True
        page.on("request", self._note_request)
        page.on("response", self._note_response)

    async def load(self, url: str) -> dict[str, Any]:
        """Return the page after it has loaded and gone quiet, or the failure with its URL."""
        try:
            await self._page.goto(url, wait_until="domcontentloaded", timeout=self._remaining_ms())
            await self._wait_until_quiet()
            page = await _read_page(self._page)
        except PlaywrightTimeout:
            raise
        except Error as error:
            failed = _first_line(error) if self._closing is None else ENDLESS
            return {"failed": failed, "at": self._requested_url[:MAX_URL_LENGTH]}
        return {**page, "at": self._requested_url[:MAX_URL_LENGTH], **await self._read_response()}

    async def _wait_until_quiet(self) -> None:
        """Wait until the page has loaded its resources, or most of its time is over."""
        with suppress(PlaywrightTimeout):
            await self._page.wait_for_load_state("load", timeout=self._remaining_ms() / 2)
            quiet = min(QUIET_SECONDS * 1000, self._remaining_ms() / 2)
            await self._page.wait_for_load_state("networkidle", timeout=quiet)
            self._has_requests = False
        await self._wait_for_text()

    async def _wait_for_text(self) -> None:
        """Wait until the page's text does not change any more; longer if there is hardly any."""
        loop = asyncio.get_running_loop()
        end = loop.time() + min(MAX_DOM_WAIT_SECONDS, self._remaining_ms() / 2000)
        start = changed = loop.time()
        length = -1
        with suppress(Error, KeyError, TimeoutError):
            async with asyncio.timeout_at(end):
                session = await self._page.context.new_cdp_session(self._page)
                send = cast(
                    "Callable[..., Awaitable[dict[str, Any]]]", session.send
                )  # its results are untyped
                while loop.time() - changed < DOM_QUIET_SECONDS or (
                    loop.time() - start < self._late_seconds(length)
                ):
                    before, length = length, await _measure_text(send)
                    changed = changed if length == before else loop.time()
                    await asyncio.sleep(POLL_SECONDS)

    def _late_seconds(self, length: int) -> float:
        """Return the time for which this many characters are waited for, even if nothing changes."""
        if length >= MIN_TEXT:
            return 0.0
        return EMPTY_SECONDS if length <= 0 or self._has_requests else LATE_SECONDS

    def _remaining_ms(self) -> float:
        """Return the remaining milliseconds, at least one, since Playwright takes 0 as no limit."""
        return max((self._deadline - asyncio.get_running_loop().time()) * 1000, 1)

    async def _read_response(self) -> dict[str, Any]:
        if self._response is None:
            return {}
        content_type = await self._response.header_value("content-type") or ""
        return {
            "source": self._response.url[:MAX_URL_LENGTH],
            "status": self._response.status,
            "type": content_type[:200],
        }

    def _note_request(self, request: Request) -> None:
        if self._of_main_frame(request):
            self._requested_url = request.url
            self._navigations += 1
            if self._navigations > MAX_NAVIGATIONS and self._closing is None:
                self._closing = asyncio.ensure_future(self._page.close())

    def _note_response(self, response: Response) -> None:
        if self._of_main_frame(response.request) and not 300 <= response.status < 400:
            self._response = response

    def _of_main_frame(self, request: Request) -> bool:
        try:
            return request.is_navigation_request() and request.frame == self._page.main_frame
        except Error:  # the frame does not exist yet, so it is not the main one
            return False


async def _read_page(page: Page) -> dict[str, Any]:
    """Return URL and HTML of the same moment, read in a world that the page's scripts cannot change."""
    session = await page.context.new_cdp_session(page)
    send = cast("Callable[..., Awaitable[dict[str, Any]]]", session.send)  # its results are untyped
    for _ in range(READ_TRIES):
        try:
            return await _evaluate_page(send)
        except (Error, KeyError):  # the page navigated meanwhile
            await page.wait_for_load_state("domcontentloaded")
    raise Error(ENDLESS)


async def _evaluate_page(send: Callable[..., Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    return await _evaluate(send, _PAGE_EXPRESSION)


async def _measure_text(send: Callable[..., Awaitable[dict[str, Any]]]) -> int:
    """Return the characters of the page's visible text."""
    return int(await _evaluate(send, _LENGTH_EXPRESSION))


async def _evaluate(send: Callable[..., Awaitable[dict[str, Any]]], expression: str) -> Any:
    """Evaluate an expression in a world that the page's scripts cannot change."""
    tree = await send("Page.getFrameTree")
    world = await send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
    context = world["executionContextId"]
    result = await send(
        "Runtime.evaluate", {"expression": expression, "contextId": context, "returnByValue": True}
    )
    return result["result"]["value"]


async def _close_context(opening: Awaitable[BrowserContext]) -> None:
    await (await opening).close()


async def _wait_closed(closing: Awaitable[None]) -> None:
    """Wait until a page is closed; if it does not close, exit, which stops the whole browser."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await closing
    except TimeoutError:
        os._exit(1)
    except Error:
        pass


def _first_line(error: Error) -> str:
    return error.message.partition("\n")[0][:300]


def _write_response(answer: dict[str, Any]) -> None:
    html = answer.pop("html", "").encode(errors="replace")[:MAX_CHARACTERS]
    html = html.decode(errors="ignore").encode()
    line = json.dumps({**answer, "bytes": len(html)}).encode()
    sys.stdout.buffer.write(line + b"\n" + html)
    sys.stdout.buffer.flush()


async def run_host() -> None:
    """Start the browser that the first line describes; serve until the input or the browser ends."""
    commands = asyncio.StreamReader(limit=MAX_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    start = json.loads(await commands.readline())
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=start["program"],
                chromium_sandbox=True,
                proxy={"server": start["proxy"]},
                args=FLAGS,
                ignore_default_args=IGNORED_DEFAULT_FLAGS,
                timeout=START_SECONDS * 1000,
                handle_sighup=False,
                handle_sigint=False,
                handle_sigterm=False,
            )
        except Error as error:
            _write_response({"failed": error.message[-20_000:]})
            return
        _write_response({"version": browser.version})
        host = BrowserHost(browser, start["proxy"], start["user_agent"])
        handler = asyncio.ensure_future(_handle_commands(host, commands))
        await asyncio.wait(
            {handler, asyncio.ensure_future(host.ended.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        await _wait_closed(browser.close())
        os._exit(0)  # Playwright can wait for ever for its driver, which ends with its input


async def _handle_commands(host: BrowserHost, commands: asyncio.StreamReader) -> None:
    while line := await commands.readline():
        host.handle(json.loads(line))


if __name__ == "__main__":
    asyncio.run(run_host())
