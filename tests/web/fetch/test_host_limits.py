"""Limits of concurrent fetches, and clean-up after each fetch."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Queue

import pytest
from hostile_site import FORBIDDEN, Web, format_head, format_response, send_all, send_endlessly, stay_silent

from centgate.sandbox import WORK_KEYS
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fetcher import Fetcher, FetchResult, open_fetcher
from centgate.web.fetch.host_limiter import (
    FIRST_ESTIMATE,
    HEAVY_SECONDS,
    MAX_HEAVY,
    MAX_PER_HOST,
    MAX_TOTAL,
    MAX_UNPAID,
    SENDER,
    HostLimiter,
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


async def test_host_with_many_fetches_keeps_no_other_waiting(web: Web) -> None:
    door = Gate()
    web.site.set_handler("/", door)
    web.other.set_response("/", format_response(b"free"))

    async with open_fetcher(web.policy, "Tester/1", resolve=web.resolver) as fetcher:
        tasks = start_fetches(fetcher, web.url(), 30)
        await door.wait_for_arrivals(2)
        free = await fetcher.fetch(web.url(host="other.test"), timeout=20)
        door.let_out.release(30)
        answers = await asyncio.gather(*tasks)

    assert free.body == b"free"
    assert [answer.body for answer in answers] == [b"out"] * 30


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
        tasks = start_fetches(fetcher, web.url(), 10)
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
        for _ in range(3 * (10)):
            with pytest.raises(FetchFailed):
                await fetcher.fetch(web.url(), timeout=20)


async def test_total_is_limited_and_idle_hosts_are_removed() -> None:
    politeness = HostLimiter()
    go_on = asyncio.Event()
    inside: list[str] = []

    async def work(host: str) -> None:
        async with politeness.acquire_slot(host):
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


async def test_slow_fetches_of_one_payer_keep_no_other_waiting() -> None:
    limited = Limited()
    go_on = asyncio.Event()
    inside: list[str] = []

    async def wait_at(host: str) -> None:
        async with limited.limiter.acquire_slot(host):
            inside.append(host)
            await go_on.wait()

    WORK_KEYS.set(("payer:slow",))
    await limited.fetch("slow.test", HEAVY_SECONDS)
    tasks = [asyncio.create_task(wait_at(f"{number}.test")) for number in range(MAX_TOTAL + 5)]
    await asyncio.wait(tasks, timeout=0.01)
    WORK_KEYS.set(("payer:other",))
    async with asyncio.timeout(5):
        await limited.fetch("other.test", 0.1)
    at_once = len(inside)
    go_on.set()
    await asyncio.gather(*tasks)

    assert (at_once, len(inside)) == (MAX_HEAVY, MAX_TOTAL + 5)


async def test_payer_is_heavy_only_for_a_while() -> None:
    limited = Limited()
    go_on = asyncio.Event()

    async def wait_at(host: str) -> None:
        async with limited.limiter.acquire_slot(host):
            await go_on.wait()

    WORK_KEYS.set(("payer:slow",))
    await limited.fetch("slow.test", HEAVY_SECONDS)
    limited.now += 0.1
    tasks = [asyncio.create_task(wait_at(f"{number}.test")) for number in range(MAX_TOTAL - 1)]
    await asyncio.wait(tasks, timeout=0.01)
    async with asyncio.timeout(5):
        await limited.fetch("another.test", 0.1)
    go_on.set()
    await asyncio.gather(*tasks)


class Limited:
    """Limiter with a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.limiter = HostLimiter(clock=lambda: self.now)

    async def fetch(self, host: str, seconds: float) -> None:
        """Hold a slot for so long."""
        async with self.limiter.acquire_slot(host):
            self.now += seconds

    def wait_for(self, *hosts: str, key: str = "new") -> float:
        return self.limiter.estimate_wait(hosts, key)


def test_idle_host_has_no_wait() -> None:
    limited = Limited()

    with limited.limiter.announce(["a.test"], "one"):
        assert limited.wait_for("a.test") == limited.wait_for("b.test") == 0


def test_announced_requests_count_in_wait() -> None:
    limited = Limited()

    with ExitStack() as requests:
        for number in range(6):
            requests.enter_context(limited.limiter.announce(["a.test"], number))
        waits = [limited.wait_for("a.test"), limited.wait_for("b.test"), limited.wait_for("b.test", "a.test")]
    after = limited.wait_for("a.test")

    assert waits == [6 / MAX_PER_HOST * FIRST_ESTIMATE, 0, 6 / MAX_PER_HOST * FIRST_ESTIMATE]
    assert after == 0


def test_equal_requests_count_once() -> None:
    limited = Limited()

    with ExitStack() as requests:
        for _ in range(50):
            requests.enter_context(limited.limiter.announce(["a.test"], "same"))
        other, equal = limited.wait_for("a.test"), limited.wait_for("a.test", key="same")

    assert (other, equal) == (0, 0)


async def test_unpaid_requests_of_one_sender_count_little_for_others() -> None:
    limited = Limited()
    SENDER.set("stranger")

    with limited.limiter.announce(["a.test"] * 5, "one"), limited.limiter.announce(["a.test"] * 5, "two"):
        own = limited.wait_for("a.test")
        SENDER.set("buyer")
        unpaid = limited.wait_for("a.test")
        with limited.limiter.reserve(["a.test"] * 5, "one"):
            half_paid = limited.wait_for("a.test")
        after = limited.wait_for("a.test")
    ended = limited.wait_for("a.test")

    assert (own, unpaid) == (5 * FIRST_ESTIMATE, MAX_UNPAID / MAX_PER_HOST * FIRST_ESTIMATE)
    assert half_paid == after == 3 * FIRST_ESTIMATE
    assert ended == 0


async def test_wait_follows_durations_of_host() -> None:
    limited = Limited()
    for _ in range(20):
        await limited.fetch("slow.test", 4)
        await limited.fetch("quick.test", 0.1)

    with limited.limiter.announce(["slow.test"] * 2 + ["quick.test"] * 8, "others"):
        waits = [limited.wait_for("slow.test"), limited.wait_for("quick.test")]

    assert waits == [pytest.approx(4, rel=0.1), pytest.approx(0.4, rel=0.1)]


async def test_begun_fetch_is_not_counted_twice() -> None:
    limited = Limited()

    with limited.limiter.announce(["a.test", "a.test"], "one"):
        async with limited.limiter.acquire_slot("a.test"), limited.limiter.acquire_slot("a.test"):
            waiting = limited.wait_for("a.test")
            limited.now += 5
            later = limited.wait_for("a.test")

    assert (waiting, later) == (FIRST_ESTIMATE, 5)


async def test_fetch_after_end_of_request_is_no_credit() -> None:
    limited = Limited()

    with limited.limiter.announce(["a.test"] * 2, "one"):
        work = asyncio.create_task(limited.fetch("a.test", 1))
    await work
    with limited.limiter.announce(["a.test"] * 4, "two"):
        wait = limited.wait_for("a.test")

    assert wait == 2 * FIRST_ESTIMATE


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
