"""The process between us and a browser: what a page makes the browser say is read here, not in the server.

It is told what to do in lines of JSON. Of each page it says first what came of it, in a line of JSON with the
page's text after it, and then that it is closed. When its input ends, so do the browser and it.
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

from centgate.browser.flags import FLAGS, NOT_WANTED

MOST_CHARACTERS = 2_000_000
LONGEST_LINE = 1 << 20
LONGEST_URL = 8_000
START_SECONDS = 20.0
CLOSE_SECONDS = 3.0
END_SECONDS = 1.0
"""Between the end of a browser's pages and the word of its own end."""
QUIET_SECONDS = 2.0
"""For a page whose scripts go on asking after it has loaded."""
READ_TRIES = 4

# once more what the flags forbid: their names change from version to version
_LESS = "for (const n of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete self[n]"
_WHOLE = f"""({{
  url: location.href.slice(0, {LONGEST_URL}),
  html: (document.documentElement ? document.documentElement.outerHTML : "").slice(0, {MOST_CHARACTERS}),
}})"""


class Keeper:
    """A browser, and the pages that are open in it."""

    def __init__(self, browser: Browser, proxy: str, user_agent: str) -> None:
        self._browser, self._proxy, self._user_agent = browser, proxy, user_agent
        self.ended = asyncio.Event()
        """Set when the browser has ended."""
        browser.on("disconnected", lambda _: self.ended.set())
        self._pages: dict[int, asyncio.Task[None]] = {}

    def obey(self, order: dict[str, Any]) -> None:
        """Open a page, or give one up."""
        number = order["id"]
        if "url" not in order:
            if number in self._pages:
                self._pages[number].cancel()
            return
        task = asyncio.ensure_future(self._answer(number, order))
        self._pages[number] = task
        task.add_done_callback(lambda _: self._pages.pop(number, None))

    async def _answer(self, number: int, order: dict[str, Any]) -> None:
        """Say what comes of a page, and then that it is closed."""
        opening = asyncio.ensure_future(self._context(order))
        answer: dict[str, Any] = {}
        try:
            async with asyncio.timeout(order["seconds"]):
                answer = await self._page(await asyncio.shield(opening), order)
        except (TimeoutError, PlaywrightTimeout):
            answer = {"failed": "timeout"}
        except Error as error:
            answer = {"failed": _first_line(error)}
        finally:
            await self._say(number, answer)
            await _ended(_close(opening))
            await self._say(number, {"closed": True})

    async def _context(self, order: dict[str, Any]) -> BrowserContext:
        return await self._browser.new_context(
            user_agent=self._user_agent,
            proxy={"server": self._proxy, "username": order["username"], "password": order["password"]},
            accept_downloads=False,
            service_workers="block",
            permissions=[],
        )

    async def _page(self, context: BrowserContext, order: dict[str, Any]) -> dict[str, Any]:
        await context.add_init_script(_LESS)
        return await _Visit(await context.new_page(), order["seconds"]).read(order["url"])

    async def _say(self, number: int, answer: dict[str, Any]) -> None:
        """Answer, unless the browser has ended: then the end of the output is the answer to all pages."""
        if "has been closed" in answer.get("failed", ""):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), END_SECONDS)
        if not self.ended.is_set():
            _say({"id": number, **answer})


class _Visit:
    """One page, from its address to its text."""

    def __init__(self, page: Page, seconds: float) -> None:
        self._page = page
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._at = ""
        self._answered: Response | None = None
        page.on("request", self._note_request)
        page.on("response", self._note_response)

    async def read(self, url: str) -> dict[str, Any]:
        """What the page is once it has loaded and gone quiet, or where it failed."""
        try:
            await self._page.goto(url, wait_until="domcontentloaded", timeout=self._left())
            await self._settle()
            seen = await _seen(self._page)
        except PlaywrightTimeout:
            raise
        except Error as error:
            return {"failed": _first_line(error), "at": self._at[:LONGEST_URL]}
        status, kind = await self._said()
        return {**seen, "at": self._at[:LONGEST_URL], "status": status, "type": kind}

    async def _settle(self) -> None:
        """Wait for what the page loads, within its time: what it waits for in vain is left out."""
        with suppress(PlaywrightTimeout):
            await self._page.wait_for_load_state("load", timeout=self._left() / 2)
            quiet = min(QUIET_SECONDS * 1000, self._left() / 2)
            await self._page.wait_for_load_state("networkidle", timeout=quiet)

    def _left(self) -> float:
        """Milliseconds that are left of its time; at least one, since 0 stands for no limit."""
        return max((self._deadline - asyncio.get_running_loop().time()) * 1000, 1)

    async def _said(self) -> tuple[int | None, str]:
        if self._answered is None:
            return None, ""
        kind = await self._answered.header_value("content-type") or ""
        return self._answered.status, kind[:200]

    def _note_request(self, request: Request) -> None:
        if self._of_main_frame(request):
            self._at = request.url

    def _note_response(self, response: Response) -> None:
        if self._of_main_frame(response.request) and not 300 <= response.status < 400:
            self._answered = response

    def _of_main_frame(self, request: Request) -> bool:
        try:
            return request.is_navigation_request() and request.frame == self._page.main_frame
        except Error:  # of a frame that is not there yet, so not of the main one
            return False


async def _seen(page: Page) -> dict[str, Any]:
    """Address and text at the same moment, read where the page's own scripts have no say."""
    session = await page.context.new_cdp_session(page)
    send = cast("Callable[..., Awaitable[dict[str, Any]]]", session.send)  # its dictionaries are untyped
    for _ in range(READ_TRIES):
        try:
            return await _whole(send)
        except (Error, KeyError):  # it went elsewhere in the middle
            await page.wait_for_load_state("domcontentloaded")
    raise Error("it does not stay at one address")


async def _whole(send: Callable[..., Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    tree = await send("Page.getFrameTree")
    world = await send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
    context = world["executionContextId"]
    result = await send(
        "Runtime.evaluate", {"expression": _WHOLE, "contextId": context, "returnByValue": True}
    )
    return result["result"]["value"]


async def _close(opening: Awaitable[BrowserContext]) -> None:
    await (await opening).close()


async def _ended(closing: Awaitable[None]) -> None:
    """Wait until a page is closed; with a page that does not close, the whole browser ends."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await closing
    except TimeoutError:
        os._exit(1)
    except Error:
        pass


def _first_line(error: Error) -> str:
    return error.message.partition("\n")[0][:300]


def _say(answer: dict[str, Any]) -> None:
    html = answer.pop("html", "").encode(errors="replace")[:MOST_CHARACTERS]
    html = html.decode(errors="ignore").encode()
    line = json.dumps({**answer, "bytes": len(html)}).encode()
    sys.stdout.buffer.write(line + b"\n" + html)
    sys.stdout.buffer.flush()


async def keep() -> None:
    """Start the browser that the first line describes, and serve until the input ends or the browser does."""
    orders = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    start = json.loads(await orders.readline())
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=start["program"],
                chromium_sandbox=True,
                proxy={"server": start["proxy"]},
                args=FLAGS,
                ignore_default_args=NOT_WANTED,
                timeout=START_SECONDS * 1000,
                handle_sighup=False,
                handle_sigint=False,
                handle_sigterm=False,
            )
        except Error as error:
            _say({"failed": error.message[-20_000:]})
            return
        _say({"version": browser.version})
        keeper = Keeper(browser, start["proxy"], start["user_agent"])
        serving = asyncio.ensure_future(_serve(keeper, orders))
        await asyncio.wait(
            {serving, asyncio.ensure_future(keeper.ended.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        await _ended(browser.close())


async def _serve(keeper: Keeper, orders: asyncio.StreamReader) -> None:
    while line := await orders.readline():
        keeper.obey(json.loads(line))


if __name__ == "__main__":
    asyncio.run(keep())
