"""Response cache shared by servers through Redis: shared results, leases, and operation without Redis."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import redis as clients
from buyer import Buyer
from databases import Redis, redis_server
from facilitators import StubFacilitator, build_settings, open_stub_facilitator
from fake_upstreams import FakeUpstreams, fake_upstreams, send_paid
from payments.served_api import ApiProcess, run_api_process
from structlog.testing import capture_logs
from structlog.typing import EventDict

from centgate.cache import redis as shared_cache
from centgate.cache.redis import SharedRedis, open_redis
from centgate.cache.redis_responses import LEASE_SECONDS, MAX_RESPONSE_BYTES, SharedResponses
from centgate.cache.response_cache import MAX_DEGRADED_TTL, MemoryCache, ResponseCache
from centgate.envelope import ServiceResult
from centgate.errors import NoData
from centgate.log import configure_logging
from centgate.runtime import validate_startup
from centgate.settings import Settings

FRESH = timedelta(minutes=5)
PATIENCE = 30.0
SEARCH = "/services/neuralweb/search"
OTHER_SEARCH = "/services/crawler/search"
FOUND = {
    "requestId": "r",
    "results": [{"id": "https://a.example/", "url": "https://a.example/", "title": "A"}],
}


def build_result(data: str = '{"sky":"blue"}', status: str = "ok") -> ServiceResult:
    return ServiceResult(data.encode(), [{"name": "oracle", "status": status}], ["it is late"])


class Work:
    """Computation that takes some time and counts its runs."""

    def __init__(self, *outcomes: Any, seconds: float = 0.3) -> None:
        self.outcomes = list(outcomes) or [build_result()]
        self.seconds = seconds
        self.done = 0

    async def __call__(self) -> ServiceResult:
        outcome = self.outcomes[min(self.done, len(self.outcomes) - 1)]
        self.done += 1
        await asyncio.sleep(self.seconds)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@dataclass(frozen=True)
class Replica:
    """Response cache of one server, and its connection to Redis."""

    answers: ResponseCache
    shared: SharedRedis

    async def get(self, key: str, work: Work) -> tuple[ServiceResult, bool]:
        return await self.answers.get_or_compute(key, FRESH, work)


@asynccontextmanager
async def open_replica(
    url: str, lease: float = LEASE_SECONDS, *, patience: float = PATIENCE
) -> AsyncGenerator[Replica]:
    """Open a server's cache once Redis is usable; `patience` is its timeout for a command."""
    async with open_redis(url, patience) as shared:
        await wait_until(lambda: shared.is_up)
        yield Replica(ResponseCache(MemoryCache(), SharedResponses(shared, lease)), shared)


async def wait_until(condition: Callable[[], Any]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        await asyncio.sleep(0.01)


@contextmanager
def record_logs() -> Generator[list[EventDict]]:
    """Record the log events of the block."""
    configure_logging("info")
    try:
        with capture_logs() as lines:
            yield lines
    finally:
        configure_logging("error")


@pytest.fixture(scope="module")
def server() -> Generator[Redis]:
    """A shared Redis server that no test stops."""
    with redis_server() as server:
        yield server


@pytest.fixture
async def replicas(server: Redis) -> AsyncGenerator[tuple[Replica, Replica]]:
    """Two servers that share the Redis server."""
    async with open_replica(server.url) as one, open_replica(server.url) as other:
        yield one, other


@pytest.fixture
def key() -> str:
    """A cache key that no other test uses."""
    return uuid4().hex


def open_client(server: Redis) -> Any:
    """Return a client of the Redis server."""
    return clients.Redis(port=server.port)


def find_entry(server: Redis, key: str) -> tuple[Any, bytes]:
    """Return a client of the Redis server, and the name of a response in it."""
    client = open_client(server)
    (name,) = client.keys(f"centgate:1:answer:*:{key}")
    return client, name


async def test_result_is_shared_between_servers(replicas: tuple[Replica, Replica], key: str) -> None:
    one, other = replicas
    work = Work()

    results = [await one.get(key, work), await other.get(key, work), await other.get(key, work)]

    assert results == [(build_result(), False), (build_result(), True), (build_result(), True)]
    assert work.done == 1


async def test_shared_result_is_reported_and_cached_locally(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    one, other = replicas
    before = await other.answers.has_fresh(key, FRESH)
    await one.get(key, Work(seconds=0))

    after = await other.answers.has_fresh(key, FRESH)

    client, name = find_entry(server, key)
    client.delete(name)
    assert (before, after) == (False, True)
    assert await other.get(key, Work()) == (build_result(), True)


@pytest.mark.extended
async def test_concurrent_misses_on_two_servers_compute_once(
    replicas: tuple[Replica, Replica], key: str
) -> None:
    work = Work()

    results = await asyncio.gather(*(each.get(key, work) for each in replicas * 50))

    assert work.done == 1
    assert [answer for answer, _ in results] == [build_result()] * 100


@pytest.mark.extended
async def test_computation_longer_than_its_lease_runs_once(server: Redis, key: str) -> None:
    work = Work(seconds=4)
    async with open_replica(server.url, lease=2) as one, open_replica(server.url, lease=2) as other:
        await asyncio.gather(one.get(key, work), other.get(key, work))

    assert work.done == 1


@pytest.mark.extended
async def test_waiting_server_computes_after_a_failure(replicas: tuple[Replica, Replica], key: str) -> None:
    work = Work(NoData("nothing"), build_result())

    results = await asyncio.gather(*(each.get(key, work) for each in replicas), return_exceptions=True)

    assert work.done == 2
    assert sorted(type(each).__name__ for each in results) == ["NoData", "tuple"]
    assert (build_result(), False) in results


async def test_failed_computation_releases_waiting_servers(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    with pytest.raises(NoData):
        await replicas[0].get(key, Work(NoData("nothing"), seconds=0))

    assert not open_client(server).keys(f"*{key}*")


@pytest.mark.extended
async def test_lease_of_dead_server_expires(server: Redis, key: str) -> None:
    hanging, work = Work(seconds=PATIENCE), Work()
    async with open_replica(server.url, lease=1) as dying, open_replica(server.url, lease=1) as other:
        lost = asyncio.create_task(dying.get(key, hanging))
        await wait_until(lambda: hanging.done)
        await dying.shared.close()

        asked = asyncio.create_task(other.get(key, work))
        await wait_until(lambda: work.done)
        leases = open_client(server).keys(f"*{key}:lease")
        lost.cancel()

        assert await asked == (build_result(), False)

    assert leases  # its own, which it got while it waited


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00", b"[]", b'{"sky":"blue"}', b'[{"sky":"blue"},[],[', b'[1,["x"],[]]']
)
async def test_unreadable_entry_is_replaced(server: Redis, key: str, content: bytes) -> None:
    work = Work(seconds=0)
    async with open_replica(server.url) as one:
        await one.get(key, work)
    client, name = find_entry(server, key)
    good = client.get(name)
    client.set(name, content)

    async with open_replica(server.url) as other:
        results = await other.get(key, work)

    assert results == (build_result(), False)
    assert client.get(name) == good


@pytest.mark.extended
async def test_local_copy_expires_with_the_shared_one(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    one, other = replicas
    work = Work(seconds=0)
    await one.get(key, work)
    client, name = find_entry(server, key)
    client.pexpire(name, 400)
    _, first = await other.get(key, work)
    await wait_until(lambda: not client.exists(name))

    _, second = await other.get(key, work)

    assert (first, second) == (True, False)


@pytest.mark.parametrize(("status", "seconds"), [("ok", FRESH.total_seconds()), ("error", MAX_DEGRADED_TTL)])
async def test_shared_entry_has_the_local_ttl(server: Redis, key: str, status: str, seconds: float) -> None:
    async with open_replica(server.url) as one:
        await one.get(key, Work(build_result(status=status), seconds=0))

    client, name = find_entry(server, key)

    assert seconds - PATIENCE / 2 < client.pttl(name) / 1000 <= seconds


async def test_too_long_result_is_not_shared(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    long = build_result('"' + "x" * MAX_RESPONSE_BYTES + '"')
    work = Work(long)

    results = await asyncio.gather(*(each.get(key, work) for each in replicas))

    assert results == [(long, False)] * 2
    assert not open_client(server).keys(f"*{key}*")


async def test_result_without_ttl_is_not_shared(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    work = Work(seconds=0)

    for each in replicas:
        await each.answers.get_or_compute(key, timedelta(0), work)

    assert work.done == 2
    assert not open_client(server).keys(f"*{key}*")


def stop(redis: Redis) -> None:
    assert redis.process
    redis.process.send_signal(signal.SIGSTOP)


def resume(redis: Redis) -> None:
    assert redis.process
    redis.process.send_signal(signal.SIGCONT)


def run_on_redis(*command: str) -> Callable[[Redis], None]:
    """Return a function that runs a command on a Redis server."""

    def do(redis: Redis) -> None:
        open_client(redis).execute_command(*command)

    return do


TROUBLE = {
    "killed": (Redis.kill, Redis.start),
    "stalled": (stop, resume),
    "read-only": (run_on_redis("REPLICAOF", "127.0.0.1", "1"), run_on_redis("REPLICAOF", "NO", "ONE")),
    "full": (
        run_on_redis("CONFIG", "SET", "maxmemory", "1"),
        run_on_redis("CONFIG", "SET", "maxmemory", "0"),
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("trouble", TROUBLE)
async def test_servers_use_local_caches_during_redis_outage(redis: Redis, trouble: str) -> None:
    harm, heal = TROUBLE[trouble]
    work, numbers = Work(seconds=0.01), count()
    quick = partial(open_replica, redis.url, patience=shared_cache.COMMAND_TIMEOUT)
    async with quick() as one, quick() as other:
        with record_logs() as lines:

            async def request_until(ended: Callable[[], bool]) -> None:
                while not ended():
                    await one.get(f"new {next(numbers)}", work)
                    await one.get("old", work)

            def down() -> bool:
                return one.shared.is_up is False

            def up() -> bool:
                return one.shared.is_up is True

            await one.get("old", work)
            harm(redis)
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(request_until(down) for _ in range(20)))
                mine, others = await one.get("mine", work), await other.get("mine", work)
                await wait_until(lambda: other.shared.is_up is False)
                heal(redis)
                await asyncio.gather(*(request_until(up) for _ in range(20)))
                await wait_until(lambda: other.shared.is_up)
            again = [await each.get("again", work) for each in (one, other)]

    assert [hit for _, hit in (mine, others)] == [False, False]
    assert [hit for _, hit in again] == [False, True]
    assert {(line["log_level"], line["event"]) for line in lines} == {
        ("warning", "the shared cache cannot be used; this server has its own"),
        ("info", "the cache is shared"),
    }
    assert len(lines) == 4  # twice for each server
    assert one.shared.failures


async def test_failing_commands_are_not_retried_at_every_request(redis: Redis) -> None:
    run_on_redis("ACL", "SETUSER", "default", "-getex", "-get")(redis)
    work = Work(seconds=0)
    async with open_replica(redis.url) as one:
        for number in range(50):
            await one.get(f"k{number}", work)
            await asyncio.sleep(0)

        assert one.shared.failures <= 3
        assert work.done == 50


async def test_password_in_url_is_not_logged(redis: Redis) -> None:
    run_on_redis("ACL", "SETUSER", "hunter", "on", ">right", "allkeys", "allcommands")(redis)
    secret = "redis://hunter:p%40ssw0rd@" + redis.url.removeprefix("redis://")

    with record_logs() as lines:
        async with open_redis(secret) as shared:
            await wait_until(lambda: shared.is_up is not None)

    (line,) = lines
    assert line["log_level"] == "warning"
    assert "WRONGPASS" in line["error"] or "Authentication" in line["error"]
    assert not [word for word in ("p%40ssw0rd", "p@ssw0rd", "hunter") if word in str(line)]


@pytest.mark.parametrize(
    "address",
    [
        "redis://user:hunter2/x@host:6379",
        "redis://:hunter2@host:port",
        "redis://:hunter2@host?nonsense=1",
        "rediss://:hunter2@host?ssl_cert_reqs=hunter2",
    ],
)
def test_invalid_url_is_refused_at_start(settings: Settings, address: str) -> None:
    wrong = settings.model_copy(update={"cache_url": address})

    with pytest.raises(ValueError, match=r"^CENTGATE_CACHE_URL: not a valid Redis URL") as error:
        validate_startup(wrong)

    assert "hunter2" not in str(error.value)


@pytest.mark.extended
def test_redis_client_is_imported_only_if_configured(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from centgate.runtime import open_runtime\n"
        "from centgate.settings import Settings\n"
        "async def main():\n"
        "    async with open_runtime(Settings()):\n"
        "        print('redis' in sys.modules)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "False\n"


@dataclass(frozen=True)
class Cluster:
    """Two server processes that share one Redis server and its fake upstreams."""

    redis: Redis
    upstreams: FakeUpstreams
    processes: tuple[ApiProcess, ApiProcess]
    client: httpx.Client

    def buy(self, query: str, number: int = 0, *, path: str = SEARCH) -> httpx.Response:
        """Buy an answer from one of the servers: the first for even numbers, else the second."""
        url = self.processes[number % 2].url + path
        return send_paid(self.client, url, {"query": query}, Buyer(number % 10))

    def caches(self) -> list[str]:
        """Return the state of each server's cache, as `/readyz` gives it."""
        responses = [self.client.get(process.url + "/readyz") for process in self.processes]
        assert {each.status_code for each in responses} == {200}
        return [each.json()["cache"] for each in responses]

    def wait_for_caches(self, *words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.caches() != [*words]:
            assert time.monotonic() < deadline, self.caches()
            time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """Two server processes with fake upstreams."""
    folder = tmp_path_factory.mktemp("cluster")
    with redis_server() as redis, open_stub_facilitator() as facilitator, fake_upstreams() as upstreams:
        upstreams.set_response("exa", "/search", FOUND, method="POST")
        row = {"url": "https://a.example/", "title": "A", "content": "B"}
        upstreams.set_response("searxng", "/search", {"results": [row]})
        settings = build_settings(folder, facilitator.url)
        more: dict[str, Any] = {
            "CACHE_URL": redis.url,
            "EXA_URL": upstreams.url_of("exa"),
            "EXA_KEY": "exa-key",
            "EXA_PER_MINUTE": "1000000",
            "SEARXNG_URL": upstreams.url_of("searxng"),
            "SEARXNG_PER_MINUTE": "10",
        }
        with ThreadPoolExecutor(2) as pool, httpx.Client(timeout=PATIENCE) as client:
            starts = [pool.submit(lambda: ApiProcess(settings, **more)) for _ in range(2)]
            processes = (starts[0].result(), starts[1].result())
            try:
                yield Cluster(redis, upstreams, processes, client)
            finally:
                for process in processes:
                    process.stop()


@pytest.mark.extended
def test_concurrent_buyers_on_two_servers_cause_one_query(cluster: Cluster) -> None:
    cluster.wait_for_caches("shared", "shared")
    before = len(cluster.upstreams.requests_of("exa"))
    cluster.upstreams.delay = 0.3

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(partial(cluster.buy, "the same"), range(20)))
    cluster.upstreams.delay = 0

    assert {response.status_code for response in responses} == {200}
    assert len({str(response.json()["data"]) for response in responses}) == 1
    assert len(cluster.upstreams.requests_of("exa")) == before + 1


@pytest.mark.extended
def test_two_servers_share_a_rate_limit(cluster: Cluster) -> None:
    cluster.wait_for_caches("shared", "shared")

    def buy_answer(number: int) -> int:
        return cluster.buy(f"question {number}", number, path=OTHER_SEARCH).status_code

    with ThreadPoolExecutor(10) as pool:
        statuses = list(pool.map(buy_answer, range(16)))

    # of ten a minute five may go at once; the wait for the next exceeds a call's longest wait
    assert statuses.count(429) == 11
    assert len(cluster.upstreams.requests_of("searxng")) == 5


@pytest.mark.extended
def test_requests_succeed_during_redis_outages(cluster: Cluster) -> None:
    cluster.wait_for_caches("shared", "shared")
    ended, statuses = threading.Event(), list[int]()

    def buy_repeatedly(lane: int) -> None:
        for number in count(lane, 8):
            if ended.is_set():
                return
            query = f"under load {number}" if number % 3 else "under load"
            statuses.append(cluster.buy(query, lane).status_code)

    with ThreadPoolExecutor(8) as pool:
        lanes = [pool.submit(buy_repeatedly, lane) for lane in range(8)]
        try:
            for harm, heal in (TROUBLE["killed"], TROUBLE["stalled"]):
                harm(cluster.redis)
                cluster.wait_for_caches("local", "local")
                heal(cluster.redis)
                cluster.wait_for_caches("shared", "shared")
        finally:
            ended.set()
        for lane in lanes:
            lane.result()
    before = len(cluster.upstreams.requests_of("exa"))
    hits = [cluster.buy("after all", number).json()["cache"]["hit"] for number in range(2)]

    assert set(statuses) == {200}
    assert hits == [False, True]
    assert len(cluster.upstreams.requests_of("exa")) == before + 1


@pytest.mark.extended
def test_server_starts_without_its_redis(
    settings: Settings, facilitator: StubFacilitator, client: httpx.Client
) -> None:
    assert facilitator.url
    with run_api_process(settings, CACHE_URL="redis://127.0.0.1:9/0") as process:
        alone = client.get(process.url + "/readyz")
    without = client.get("/readyz")

    assert (alone.status_code, alone.json()) == (200, {"status": "ready", "cache": "local"})
    assert without.json() == {"status": "ready"}
