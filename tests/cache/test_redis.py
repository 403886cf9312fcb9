"""Several servers on one Redis: what one has made all have, and nobody fails because Redis does."""

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


def answered(data: str = '{"sky":"blue"}', status: str = "ok") -> ServiceResult:
    return ServiceResult(data.encode(), [{"name": "oracle", "status": status}], ["it is late"])


class Work:
    """Work that takes a while, and counts how often it is done."""

    def __init__(self, *outcomes: Any, seconds: float = 0.3) -> None:
        self.outcomes = list(outcomes) or [answered()]
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
    """What a server has of answers."""

    answers: ResponseCache
    shared: SharedRedis

    async def get(self, key: str, work: Work) -> tuple[ServiceResult, bool]:
        return await self.answers.get_or_compute(key, FRESH, work)


@asynccontextmanager
async def replica(
    url: str, lease: float = LEASE_SECONDS, *, patience: float = PATIENCE
) -> AsyncGenerator[Replica]:
    """A server that has found the Redis usable; it has patience, where that is not what is tested."""
    async with open_redis(url, patience) as shared:
        await turned(lambda: shared.is_up)
        yield Replica(ResponseCache(MemoryCache(), SharedResponses(shared, lease)), shared)


async def turned(seen: Callable[[], Any]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < deadline, "it never came to be"
        await asyncio.sleep(0.01)


@contextmanager
def logged() -> Generator[list[EventDict]]:
    """The lines that are written meanwhile."""
    configure_logging("info")
    try:
        with capture_logs() as lines:
            yield lines
    finally:
        configure_logging("error")


@pytest.fixture(scope="module")
def server() -> Generator[Redis]:
    """A Redis that nobody harms."""
    with redis_server() as server:
        yield server


@pytest.fixture
async def replicas(server: Redis) -> AsyncGenerator[tuple[Replica, Replica]]:
    """Two servers on it."""
    async with replica(server.url) as one, replica(server.url) as other:
        yield one, other


@pytest.fixture
def key() -> str:
    """A question that nobody has asked."""
    return uuid4().hex


def client_of(server: Redis) -> Any:
    """A client of the Redis itself."""
    return clients.Redis(port=server.port)


def kept(server: Redis, key: str) -> tuple[Any, bytes]:
    """A client of the Redis, and the name of an answer in it."""
    client = client_of(server)
    (name,) = client.keys(f"centgate:1:answer:*:{key}")
    return client, name


async def test_what_one_server_made_the_other_has(replicas: tuple[Replica, Replica], key: str) -> None:
    one, other = replicas
    work = Work()

    got = [await one.get(key, work), await other.get(key, work), await other.get(key, work)]

    assert got == [(answered(), False), (answered(), True), (answered(), True)]
    assert work.done == 1


async def test_answer_another_server_made_is_reported_and_kept_here(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    one, other = replicas
    before = await other.answers.has_fresh(key, FRESH)
    await one.get(key, Work(seconds=0))

    after = await other.answers.has_fresh(key, FRESH)

    client, name = kept(server, key)
    client.delete(name)
    assert (before, after) == (False, True)
    assert await other.get(key, Work()) == (answered(), True)


async def test_servers_that_ask_at_once_do_the_work_once(replicas: tuple[Replica, Replica], key: str) -> None:
    work = Work()

    got = await asyncio.gather(*(each.get(key, work) for each in replicas * 50))

    assert work.done == 1
    assert [answer for answer, _ in got] == [answered()] * 100


@pytest.mark.extended
async def test_work_that_outlasts_its_lease_is_done_once(server: Redis, key: str) -> None:
    work = Work(seconds=4)
    async with replica(server.url, lease=2) as one, replica(server.url, lease=2) as other:
        await asyncio.gather(one.get(key, work), other.get(key, work))

    assert work.done == 1


async def test_who_waits_for_work_that_fails_does_it_anew(
    replicas: tuple[Replica, Replica], key: str
) -> None:
    work = Work(NoData("nothing"), answered())

    got = await asyncio.gather(*(each.get(key, work) for each in replicas), return_exceptions=True)

    assert work.done == 2
    assert sorted(type(each).__name__ for each in got) == ["NoData", "tuple"]
    assert (answered(), False) in got


async def test_work_that_fails_leaves_nobody_waiting(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    with pytest.raises(NoData):
        await replicas[0].get(key, Work(NoData("nothing"), seconds=0))

    assert not client_of(server).keys(f"*{key}*")


@pytest.mark.extended
async def test_a_server_that_died_at_work_is_waited_for_as_long_as_its_lease(server: Redis, key: str) -> None:
    hanging, work = Work(seconds=PATIENCE), Work()
    async with replica(server.url, lease=1) as dying, replica(server.url, lease=1) as other:
        lost = asyncio.create_task(dying.get(key, hanging))
        await turned(lambda: hanging.done)
        await dying.shared.close()

        asked = asyncio.create_task(other.get(key, work))
        await turned(lambda: work.done)
        leases = client_of(server).keys(f"*{key}:lease")
        lost.cancel()

        assert await asked == (answered(), False)

    assert leases  # its own, which it got while it waited


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00", b"[]", b'{"sky":"blue"}', b'[{"sky":"blue"},[],[', b'[1,["x"],[]]']
)
async def test_what_cannot_be_read_is_made_anew(server: Redis, key: str, content: bytes) -> None:
    work = Work(seconds=0)
    async with replica(server.url) as one:
        await one.get(key, work)
    client, name = kept(server, key)
    good = client.get(name)
    client.set(name, content)

    async with replica(server.url) as other:
        got = await other.get(key, work)

    assert got == (answered(), False)
    assert client.get(name) == good


async def test_nothing_is_kept_here_for_longer_than_there(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    one, other = replicas
    work = Work(seconds=0)
    await one.get(key, work)
    client, name = kept(server, key)
    client.pexpire(name, 400)
    _, first = await other.get(key, work)
    await turned(lambda: not client.exists(name))

    _, second = await other.get(key, work)

    assert (first, second) == (True, False)


@pytest.mark.parametrize(("status", "seconds"), [("ok", FRESH.total_seconds()), ("error", MAX_DEGRADED_TTL)])
async def test_an_answer_is_kept_there_for_as_long_as_here(
    server: Redis, key: str, status: str, seconds: float
) -> None:
    async with replica(server.url) as one:
        await one.get(key, Work(answered(status=status), seconds=0))

    client, name = kept(server, key)

    assert seconds - PATIENCE / 2 < client.pttl(name) / 1000 <= seconds


async def test_an_answer_that_is_too_long_is_not_shared(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    long = answered('"' + "x" * MAX_RESPONSE_BYTES + '"')
    work = Work(long)

    got = await asyncio.gather(*(each.get(key, work) for each in replicas))

    assert got == [(long, False)] * 2
    assert not client_of(server).keys(f"*{key}*")


async def test_an_answer_that_is_never_fresh_is_not_shared(
    server: Redis, replicas: tuple[Replica, Replica], key: str
) -> None:
    work = Work(seconds=0)

    for each in replicas:
        await each.answers.get_or_compute(key, timedelta(0), work)

    assert work.done == 2
    assert not client_of(server).keys(f"*{key}*")


def stop(redis: Redis) -> None:
    assert redis.process
    redis.process.send_signal(signal.SIGSTOP)


def go_on(redis: Redis) -> None:
    assert redis.process
    redis.process.send_signal(signal.SIGCONT)


def ask(*command: str) -> Callable[[Redis], None]:
    """Something that an operator does to a Redis."""

    def do(redis: Redis) -> None:
        client_of(redis).execute_command(*command)

    return do


TROUBLE = {
    "killed": (Redis.kill, Redis.start),
    "stalled": (stop, go_on),
    "read-only": (ask("REPLICAOF", "127.0.0.1", "1"), ask("REPLICAOF", "NO", "ONE")),
    "full": (ask("CONFIG", "SET", "maxmemory", "1"), ask("CONFIG", "SET", "maxmemory", "0")),
}


@pytest.mark.extended
@pytest.mark.parametrize("trouble", TROUBLE)
async def test_while_redis_cannot_be_used_each_server_has_its_own_answers(redis: Redis, trouble: str) -> None:
    harm, heal = TROUBLE[trouble]
    work, numbers = Work(seconds=0.01), count()
    quick = partial(replica, redis.url, patience=shared_cache.COMMAND_TIMEOUT)
    async with quick() as one, quick() as other:
        with logged() as lines:

            async def asked(ended: Callable[[], bool]) -> None:
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
                await asyncio.gather(*(asked(down) for _ in range(20)))
                mine, others = await one.get("mine", work), await other.get("mine", work)
                await turned(lambda: other.shared.is_up is False)
                heal(redis)
                await asyncio.gather(*(asked(up) for _ in range(20)))
                await turned(lambda: other.shared.is_up)
            again = [await each.get("again", work) for each in (one, other)]

    assert [hit for _, hit in (mine, others)] == [False, False]
    assert [hit for _, hit in again] == [False, True]
    assert {(line["log_level"], line["event"]) for line in lines} == {
        ("warning", "the shared cache cannot be used; this server has its own"),
        ("info", "the cache is shared"),
    }
    assert len(lines) == 4  # twice for each server
    assert one.shared.failures


async def test_commands_that_always_fail_are_not_tried_at_every_request(redis: Redis) -> None:
    ask("ACL", "SETUSER", "default", "-getex", "-get")(redis)
    work = Work(seconds=0)
    async with replica(redis.url) as one:
        for number in range(50):
            await one.get(f"k{number}", work)
            await asyncio.sleep(0)

        assert one.shared.failures <= 3
        assert work.done == 50


async def test_what_is_secret_in_the_address_is_not_logged(redis: Redis) -> None:
    ask("ACL", "SETUSER", "hunter", "on", ">right", "allkeys", "allcommands")(redis)
    secret = "redis://hunter:p%40ssw0rd@" + redis.url.removeprefix("redis://")

    with logged() as lines:
        async with open_redis(secret) as shared:
            await turned(lambda: shared.is_up is not None)

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
def test_an_address_that_is_none_stops_the_start_in_words(settings: Settings, address: str) -> None:
    wrong = settings.model_copy(update={"cache_url": address})

    with pytest.raises(ValueError, match=r"^CENTGATE_CACHE_URL: not a valid Redis URL") as said:
        validate_startup(wrong)

    assert "hunter2" not in str(said.value)


@pytest.mark.extended
def test_its_client_is_loaded_only_where_it_is_set_up(tmp_path: Path) -> None:
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
class Town:
    """Two servers as operators run them, on one Redis."""

    redis: Redis
    upstreams: FakeUpstreams
    processes: tuple[ApiProcess, ApiProcess]
    client: httpx.Client

    def buy(self, query: str, number: int = 0, *, path: str = SEARCH) -> httpx.Response:
        """The answer that one of the servers gives; which of them goes by the number."""
        url = self.processes[number % 2].url + path
        return send_paid(self.client, url, {"query": query}, Buyer(number % 10))

    def caches(self) -> list[str]:
        """What the servers say of their caches."""
        said = [self.client.get(process.url + "/readyz") for process in self.processes]
        assert {each.status_code for each in said} == {200}
        return [each.json()["cache"] for each in said]

    def until_caches_are(self, *words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.caches() != [*words]:
            assert time.monotonic() < deadline, self.caches()
            time.sleep(0.05)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Generator[Town]:
    """Two servers; their sources are stand-ins."""
    folder = tmp_path_factory.mktemp("town")
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
                yield Town(redis, upstreams, processes, client)
            finally:
                for process in processes:
                    process.stop()


def test_two_servers_ask_a_source_once_for_all_their_buyers(town: Town) -> None:
    town.until_caches_are("shared", "shared")
    before = len(town.upstreams.requests_of("exa"))
    town.upstreams.delay = 0.3

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(partial(town.buy, "the same"), range(20)))
    town.upstreams.delay = 0

    assert {response.status_code for response in responses} == {200}
    assert len({str(response.json()["data"]) for response in responses}) == 1
    assert len(town.upstreams.requests_of("exa")) == before + 1


def test_two_servers_keep_to_a_rate_together(town: Town) -> None:
    town.until_caches_are("shared", "shared")

    def bought_by(number: int) -> int:
        return town.buy(f"question {number}", number, path=OTHER_SEARCH).status_code

    with ThreadPoolExecutor(10) as pool:
        statuses = list(pool.map(bought_by, range(16)))

    # of ten a minute five may go at once, the next is further off than the patience of a call
    assert statuses.count(429) == 11
    assert len(town.upstreams.requests_of("searxng")) == 5


@pytest.mark.extended
def test_no_request_fails_because_redis_does(town: Town) -> None:
    town.until_caches_are("shared", "shared")
    ended, statuses = threading.Event(), list[int]()

    def buying(lane: int) -> None:
        for number in count(lane, 8):
            if ended.is_set():
                return
            query = f"under load {number}" if number % 3 else "under load"
            statuses.append(town.buy(query, lane).status_code)

    with ThreadPoolExecutor(8) as pool:
        lanes = [pool.submit(buying, lane) for lane in range(8)]
        try:
            for harm, heal in (TROUBLE["killed"], TROUBLE["stalled"]):
                harm(town.redis)
                town.until_caches_are("local", "local")
                heal(town.redis)
                town.until_caches_are("shared", "shared")
        finally:
            ended.set()
        for lane in lanes:
            lane.result()
    before = len(town.upstreams.requests_of("exa"))
    hits = [town.buy("after all", number).json()["cache"]["hit"] for number in range(2)]

    assert set(statuses) == {200}
    assert hits == [False, True]
    assert len(town.upstreams.requests_of("exa")) == before + 1


@pytest.mark.extended
def test_a_server_starts_without_the_redis_it_is_to_share(
    settings: Settings, facilitator: StubFacilitator, client: httpx.Client
) -> None:
    assert facilitator.url
    with run_api_process(settings, CACHE_URL="redis://127.0.0.1:9/0") as process:
        alone = client.get(process.url + "/readyz")
    without = client.get("/readyz")

    assert (alone.status_code, alone.json()) == (200, {"status": "ready", "cache": "local"})
    assert without.json() == {"status": "ready"}
