"""Life cycle of one Chromium with its host process and its folder: start, open pages, stop."""

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

from centgate.web.browser.executable import RenderFailed, create_browser_folder, find_executable

START_SECONDS = 25.0
END_SECONDS = 4.0
GRACE_SECONDS = 5.0
"""Time for a page to close after its own time is over."""
MEGABYTES = 2048
"""Megabytes that all processes of a browser and its host may use, private and shared, without files."""
MAX_LINE = 64 * 1024
MAX_PAGE = 4 << 20
_ENVIRONMENT_VARIABLES = ("PATH", "LANG", "TZ")


class BrowserEnded(Exception):
    """The browser ended while it had a page open."""


class OpenPage:
    """Page that a browser was asked to open."""

    def __init__(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.response: asyncio.Future[dict[str, Any]] = loop.create_future()
        """Response of the host; BrowserEnded if the browser ended before it."""
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the browser has closed the page completely."""

    def handle_response(self, response: dict[str, Any]) -> None:
        """Process a response of the host."""
        if not self.response.done():
            self.response.set_result(response)
        if "closed" in response and not self.closed.done():
            self.closed.set_result(None)

    def mark_lost(self) -> None:
        """Fail the page because the browser ended."""
        if not self.response.done():
            self.response.set_exception(BrowserEnded())
            self.response.exception()  # marks it as retrieved: the caller may have stopped waiting
        if not self.closed.done():
            self.closed.set_result(None)


class Browser:
    """Running browser; its responses are those of `browser_host`, with the page under `html`.

    Chromium's own sandbox is always on. It cannot run as root, so a server that runs as root starts Chromium
    as the user `nobody`.
    """

    def __init__(self, folder: Path, keeper: asyncio.subprocess.Process) -> None:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        self._folder, self._host = folder, keeper
        self._commands, self._responses = keeper.stdin, keeper.stdout
        self._pages: dict[int, OpenPage] = {}
        self.page_count = 0
        self.exceeded_memory = False
        """True if it was stopped because it used too much memory."""
        self._reader: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._shutdown: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, chromium: Path | None, proxy: str, user_agent: str) -> Browser:
        """Start a browser and wait until it is ready. Raises RenderFailed if it cannot be started."""
        program = find_executable(chromium)
        folder = await asyncio.to_thread(create_browser_folder, program)
        try:
            browser = cls(folder, await _start_host(folder))
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        try:
            await browser._launch(folder / "chromium", proxy, user_agent)
        except BaseException:
            await browser.stop()
            raise
        return browser

    @property
    def is_running(self) -> bool:
        """True if it accepts further pages."""
        return self._shutdown is None

    @property
    def has_ended(self) -> bool:
        """True if all its processes and its folder are gone."""
        return self._shutdown is not None and self._shutdown.done()

    @property
    def open_pages(self) -> int:
        """Number of open pages, including cancelled ones."""
        return len(self._pages)

    def open_page(self, url: str, timeout: float, *, username: str, password: str) -> OpenPage:
        """Open a page with its credentials for the proxy."""
        self.page_count += 1
        page = OpenPage(self.page_count)
        if not self.is_running:
            page.mark_lost()
            return page
        self._pages[page.number] = page
        overdue = asyncio.get_running_loop().call_later(timeout + GRACE_SECONDS, self.stop)
        page.closed.add_done_callback(lambda _: (overdue.cancel(), self._pages.pop(page.number, None)))
        self._send_command(id=page.number, url=url, seconds=timeout, username=username, password=password)
        return page

    def cancel_page(self, page: OpenPage) -> None:
        """Close a page whose result is no longer needed."""
        if not page.response.done():
            self._send_command(id=page.number)

    def stop(self) -> asyncio.Task[None]:
        """Stop all its processes and remove its folder; the task is done when both are gone."""
        if self._shutdown is None:
            self._shutdown = asyncio.ensure_future(self._shut_down())
        return self._shutdown

    async def _launch(self, program: Path, proxy: str, user_agent: str) -> None:
        self._send_command(program=str(program), proxy=proxy, user_agent=user_agent)
        try:
            async with asyncio.timeout(START_SECONDS):
                response = await self._read_response()
        except (TimeoutError, EOFError, OSError, ValueError):
            raise RenderFailed("the browser did not start") from None
        if "failed" in response:
            raise RenderFailed(_describe_start_failure(str(response["failed"])))
        self._reader = asyncio.ensure_future(self._read_responses())
        self._watcher = asyncio.ensure_future(self._watch_memory())

    def _send_command(self, **command: Any) -> None:
        with suppress(OSError, RuntimeError):  # the reader notices that the host has ended
            self._commands.write(json.dumps(command).encode() + b"\n")

    async def _read_responses(self) -> None:
        try:
            while True:
                response = await self._read_response()
                if page := self._pages.get(response["id"]):
                    page.handle_response(response)
        except (EOFError, OSError, ValueError, LookupError, TypeError):
            self.stop()

    async def _read_response(self) -> dict[str, Any]:
        line = await self._responses.readuntil(b"\n")
        response = cast(dict[str, Any], json.loads(line))
        size = int(response["bytes"])
        if not 0 <= size <= MAX_PAGE:
            raise ValueError("page exceeds the size limit")
        response["html"] = await self._responses.readexactly(size)
        return response

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(1)
            groups = {self._process_group(), self._host.pid}
            if self._pages and await asyncio.to_thread(_measure_kilobytes, groups) > MEGABYTES << 10:
                self.exceeded_memory = True
                self.stop()

    async def _shut_down(self) -> None:
        for task in (self._reader, self._watcher):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        idle = not self._pages
        for page in list(self._pages.values()):
            page.mark_lost()
        try:
            if idle:
                await self._request_exit()
        finally:  # also if this is cancelled: uvloop is not closed before its processes have ended
            self._kill_processes()
        await self._host.wait()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _request_exit(self) -> None:
        self._commands.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._host.wait()

    def _kill_processes(self) -> None:
        """Kill host and browser with all their processes, even after a normal exit."""
        for group in (self._process_group(), self._host.pid):
            if group:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)

    def _process_group(self) -> int:
        """Return the browser's process group, written by its start script; 0 before that."""
        try:
            return int((self._folder / "pid").read_text())
        except (OSError, ValueError):
            return 0


async def _start_host(folder: Path) -> asyncio.subprocess.Process:
    # the server's environment contains its keys, so only these variables are passed on
    environment = {name: os.environ[name] for name in _ENVIRONMENT_VARIABLES if name in os.environ}
    home = str(folder / "keeper")
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "centgate.web.browser.browser_host",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={
            **environment,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HOME": home,
            "TMPDIR": home,
        },
        cwd="/",
        start_new_session=True,
        limit=MAX_LINE,
    )


def _describe_start_failure(message: str) -> str:
    if "sandbox" in message and "No usable sandbox" in message:
        return (
            "Chromium's sandbox cannot run here: it needs user namespaces, which this system does not allow"
        )
    return f"the browser did not start: {message.partition(chr(10))[0][:200]}"


def _measure_kilobytes(groups: Collection[int]) -> int:
    """Return the private and shared memory of process groups, without files, in kilobytes."""
    return sum(
        _read_memory(each) for each in Path("/proc").glob("[0-9]*") if _read_process_group(each) in groups
    )


def _read_process_group(process: Path) -> int:
    try:
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[2])
    except (OSError, IndexError):
        return 0


def _read_memory(process: Path) -> int:
    try:
        status = (process / "status").read_text(errors="replace")
    except OSError:
        return 0
    return sum(
        int(line.split()[1]) for line in status.splitlines() if line.startswith(("RssAnon", "RssShmem"))
    )
