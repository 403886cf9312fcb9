"""One Chromium with its keeper and its folder: started, asked for pages, ended for certain."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from centgate.browser.program import RenderFailed, find_program, make_folder

START_SECONDS = 25.0
END_SECONDS = 4.0
GRACE_SECONDS = 5.0
"""After the time of a page, for it to be closed."""
MEGABYTES = 2048
"""Of memory of their own for all processes of a browser and its keeper."""
MOST_LINE = 64 * 1024
MOST_PAGE = 4 << 20
_KEPT_VARIABLES = ("PATH", "LANG", "TZ")


class BrowserEnded(Exception):
    """The browser ended while it had a page open."""


class OpenPage:
    """A page that a browser was asked for."""

    def __init__(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        """What came of it; BrowserEnded when the browser ended before."""
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when nothing of it is left in the browser."""

    def hear(self, answer: dict[str, Any]) -> None:
        """Take in what the keeper says of it."""
        if not self.answer.done():
            self.answer.set_result(answer)
        if "closed" in answer and not self.closed.done():
            self.closed.set_result(None)

    def lose(self) -> None:
        """The browser has ended."""
        if not self.answer.done():
            self.answer.set_exception(BrowserEnded())
            self.answer.exception()  # nobody may be waiting for it any more
        if not self.closed.done():
            self.closed.set_result(None)


class Browser:
    """A running browser; what it answers is `keeper`'s, with the page under `html`.

    Chromium's own sandbox is always on. It cannot run as root, so a server that does starts it as nobody.
    """

    def __init__(self, folder: Path, keeper: asyncio.subprocess.Process) -> None:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        self._folder, self._keeper = folder, keeper
        self._orders, self._answers = keeper.stdin, keeper.stdout
        self._pages: dict[int, OpenPage] = {}
        self.asked = 0
        self.overgrown = False
        """Whether it was ended because it took too much memory."""
        self._reading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, chromium: Path | None, proxy: str, user_agent: str) -> Browser:
        """A browser that is ready; RenderFailed when none can be started."""
        program = find_program(chromium)
        folder = await asyncio.to_thread(make_folder, program)
        try:
            browser = cls(folder, await _started_keeper(folder))
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        try:
            await browser._begin(folder / "chromium", proxy, user_agent)
        except BaseException:
            await browser.end()
            raise
        return browser

    @property
    def alive(self) -> bool:
        """Whether it takes further pages."""
        return self._ending is None

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._ending is not None and self._ending.done()

    @property
    def open_pages(self) -> int:
        """Pages that are open, those that nobody waits for any more included."""
        return len(self._pages)

    def open(self, url: str, seconds: float, *, username: str, password: str) -> OpenPage:
        """Ask for a page, with what it needs to pass the proxy."""
        self.asked += 1
        page = OpenPage(self.asked)
        if not self.alive:
            page.lose()
            return page
        self._pages[page.number] = page
        overdue = asyncio.get_running_loop().call_later(seconds + GRACE_SECONDS, self.end)
        page.closed.add_done_callback(lambda _: (overdue.cancel(), self._pages.pop(page.number, None)))
        self._order(id=page.number, url=url, seconds=seconds, username=username, password=password)
        return page

    def give_up(self, page: OpenPage) -> None:
        """Have a page closed that nobody waits for any more."""
        if not page.answer.done():
            self._order(id=page.number)

    def end(self) -> asyncio.Task[None]:
        """End all its processes and remove its folder; the task is done when nothing is left."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        return self._ending

    async def _begin(self, program: Path, proxy: str, user_agent: str) -> None:
        self._order(program=str(program), proxy=proxy, user_agent=user_agent)
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await self._answer()
        except (TimeoutError, EOFError, OSError, ValueError):
            raise RenderFailed("the browser did not start") from None
        if "failed" in answer:
            raise RenderFailed(_why_not_started(str(answer["failed"])))
        self._reading = asyncio.ensure_future(self._read())
        self._watching = asyncio.ensure_future(self._watch())

    def _order(self, **order: Any) -> None:
        with suppress(OSError, RuntimeError):  # what has ended is noticed by reading
            self._orders.write(json.dumps(order).encode() + b"\n")

    async def _read(self) -> None:
        try:
            while True:
                answer = await self._answer()
                if page := self._pages.get(answer["id"]):
                    page.hear(answer)
        except (EOFError, OSError, ValueError, LookupError, TypeError):
            self.end()

    async def _answer(self) -> dict[str, Any]:
        line = await self._answers.readuntil(b"\n")
        answer = cast(dict[str, Any], json.loads(line))
        size = int(answer["bytes"])
        if not 0 <= size <= MOST_PAGE:
            raise ValueError("a page larger than agreed")
        answer["html"] = await self._answers.readexactly(size)
        return answer

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(1)
            groups = {self._group(), self._keeper.pid}
            if self._pages and await asyncio.to_thread(_kilobytes, groups) > MEGABYTES << 10:
                self.overgrown = True
                self.end()

    async def _end(self) -> None:
        for task in (self._reading, self._watching):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        idle = not self._pages
        for page in list(self._pages.values()):
            page.lose()
        if idle:
            await self._ask_to_end()
        await asyncio.to_thread(self._kill)
        await self._keeper.wait()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _ask_to_end(self) -> None:
        self._orders.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._keeper.wait()

    def _kill(self) -> None:
        """Kill keeper and browser with all their processes, also when they have ended themselves."""
        for group in (self._group(), self._keeper.pid):
            if group:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)

    def _group(self) -> int:
        """The process group of the browser, as its starter has left it; 0 before it has one."""
        try:
            return int((self._folder / "pid").read_text())
        except (OSError, ValueError):
            return 0


async def _started_keeper(folder: Path) -> asyncio.subprocess.Process:
    # no variable of ours goes with it: the environment of a server has its keys
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    own = str(folder / "keeper")
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "centgate.browser.keeper",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": own, "TMPDIR": own},
        cwd="/",
        start_new_session=True,
        limit=MOST_LINE,
    )


def _why_not_started(message: str) -> str:
    if "sandbox" in message and "No usable sandbox" in message:
        return "Chromium's sandbox cannot run here: it needs user namespaces, which this system denies it"
    return f"the browser did not start: {message.partition(chr(10))[0][:200]}"


def _kilobytes(groups: Collection[int]) -> int:
    """Memory of their own that process groups have, shared memory included."""
    return sum(_own_memory(each) for each in Path("/proc").glob("[0-9]*") if _group_of(each) in groups)


def _group_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[2])
    except (OSError, IndexError):
        return 0


def _own_memory(process: Path) -> int:
    try:
        status = (process / "status").read_text(errors="replace")
    except OSError:
        return 0
    return sum(
        int(line.split()[1]) for line in status.splitlines() if line.startswith(("RssAnon", "RssShmem"))
    )
