"""Limits of concurrent fetches, and clean-up after each fetch."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pytest
from hostile_site import FORBIDDEN, Web, format_head, format_response, send_all, send_endlessly, stay_silent

from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fetcher import (
    MAX_PER_HOST,
    MAX_TOTAL,
    MAX_WAITING,
    Fetcher,
    FetchResult,
    HostLimiter,
    open_fetcher,
)

pytestmark = pytest.mark.extended


class Gate:
    """Handler of a path that completes requests one by one."""

    def __init__(self) -> None:
        self.arrived = Queue[int]()
        self.let_out = threading.Semaphore(0)
        self.inside = 0
        self._lock = threading.Lock()

    def __call__(self, connection: socket.socket) -> None:
        with self._lock:
            self.inside += 1
            self.arrived.put(self.inside)
        self.let_out.acquire(timeout=20)
        with self._lock:
            self.inside -= 1
        send_all(connection, [format_response(b"out")])

    async def wait_for_arrivals(self, count: int) -> list[int]:
        """Wait for requests; return for each the number of concurrent ones."""
        return [await asyncio.to_thread(self.arrived.get, timeout=10) for _ in range(count)]


def start_fetches(fetcher: Fetcher, url: str, count: int) -> list[asyncio.Task[FetchResult]]:
    """Start fetches."""
    return [asyncio.create_task(fetcher.fetch(url, timeout=20)) for _ in range(count)]


async def test_host_gets_two_concurrent_fetches(web: Web) -> None:
    door = Gate()
    web.site.set_handler("/", door)

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        tasks = start_fetches(fetcher, web.url(), 6)
        inside = await door.wait_for_arrivals(2)
        for _ in range(4):
            door.let_out.release()
            inside += await door.wait_for_arrivals(1)
        door.let_out.release(2)
        answers = await asyncio.gather(*tasks)

    assert [answer.body for answer in answers] == [b"out"] * 6
    assert max(inside) == MAX_PER_HOST


async def test_eleventh_fetch_of_host_is_refused(web: Web) -> None:
    door = Gate()
    web.site.set_handler("/", door)
    web.other.set_response("/", format_response(b"free"))

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        tasks = start_fetches(fetcher, web.url(), MAX_PER_HOST + MAX_WAITING)
        await door.wait_for_arrivals(2)
        with pytest.raises(FetchFailed) as failed:
            await fetcher.fetch(web.url(), timeout=20)
        free = await fetcher.fetch(web.url(host="other.test"), timeout=20)
        door.let_out.release(MAX_PER_HOST + MAX_WAITING)
        answers = await asyncio.gather(*tasks)

    assert (failed.value.reason, failed.value.message) == (
        "failed",
        "too many concurrent requests for site.test",
    )
    assert free.body == b"free"
    assert len(answers) == MAX_PER_HOST + MAX_WAITING


async def test_waiting_counts_towards_deadline(web: Web) -> None:
    door = Gate()
    web.site.set_handler("/", door)

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        tasks = start_fetches(fetcher, web.url(), 2)
        await door.wait_for_arrivals(2)
        with pytest.raises(FetchFailed) as failed:
            await fetcher.fetch(web.url(), timeout=0.2)
        door.let_out.release(2)
        await asyncio.gather(*tasks)

    assert failed.value.reason == "timeout"


async def test_cancelled_fetch_releases_its_slot(web: Web) -> None:
    door = Gate()
    web.site.set_handler("/", door)
    web.site.set_response("/page", format_response(b"here"))

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        tasks = start_fetches(fetcher, web.url(), MAX_PER_HOST + MAX_WAITING)
        await door.wait_for_arrivals(2)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        fetched = await fetcher.fetch(web.url("/page"), timeout=20)
        door.let_out.release(2)

    assert all(isinstance(each, asyncio.CancelledError) for each in ended)
    assert fetched.body == b"here"


async def test_failed_fetch_releases_its_slot(web: Web) -> None:
    web.site.set_response("/", b"broken")

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        for _ in range(3 * (MAX_PER_HOST + MAX_WAITING)):
            with pytest.raises(FetchFailed):
                await fetcher.fetch(web.url(), timeout=20)


async def test_total_is_limited_and_idle_hosts_are_removed() -> None:
    politeness = HostLimiter()
    go_on = asyncio.Event()
    inside: list[str] = []

    async def work(host: str) -> None:
        async with politeness.acquire_slot(host, label=host):
            inside.append(host)
            await go_on.wait()

    tasks = [asyncio.create_task(work(f"{number}.test")) for number in range(MAX_TOTAL + 5)]
    await asyncio.wait(tasks, timeout=0.01)
    within, known = len(inside), politeness.active_hosts
    tasks[0].cancel()
    tasks[-1].cancel()
    go_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert (within, known) == (MAX_TOTAL, MAX_TOTAL + 5)
    assert len(inside) == MAX_TOTAL + 4
    assert politeness.active_hosts == 0


async def test_hanging_lookup_is_abandoned(web: Web) -> None:
    async def never(_host: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async with open_fetcher(web.policy, "Tester/1", resolve=never) as fetcher:
        with pytest.raises(FetchFailed) as failed:
            await fetcher.fetch(web.url(), timeout=20)

    assert (failed.value.reason, failed.value.message) == (
        "dns",
        "site.test could not be resolved within 3 s",
    )


async def test_failures_leave_no_open_sockets(web: Web) -> None:
    web.site.set_response("/broken", b"broken")
    web.site.set_response("/short", format_head({"Content-Length": "10"}))
    web.site.set_handler("/endless", send_endlessly(format_head({}), then=b"x" * 65536))
    web.site.set_handler("/silent", stay_silent)
    web.site.set_redirect("/private", web.url("/", FORBIDDEN))
    paths = ["/broken", "/short", "/endless", "/silent", "/private"]
    before = _open_sockets()

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        for number in range(160):
            path = paths[number % len(paths)]
            with pytest.raises(FetchFailed):
                await fetcher.fetch(web.url(path), timeout=0.05 if path == "/silent" else 20)
        for number in range(20):
            with pytest.raises(FetchFailed):  # the site waits for a request that the TLS client never sends
                await fetcher.fetch(web.url(scheme="https"), timeout=5)
            tasks = start_fetches(fetcher, web.url("/silent"), 1 + number % 3)
            await asyncio.wait(tasks, timeout=0.002 * number)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    for _ in range(500):  # the site's threads close their own sockets
        if len(_open_sockets() - before) == 0:
            break
        await asyncio.sleep(0.01)

    assert not _open_sockets() - before
    assert len(asyncio.all_tasks()) <= 2  # this process's socket, and at most that of the test runner


def _open_sockets() -> set[str]:
    """Return the open sockets of this process."""
    found: set[str] = set()
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed after it was listed
            found.add(str(file.readlink()))
    return {name for name in found if name.startswith("socket:")}
