"""Rate limiter over Redis: calls at the same time, failures of Redis, and its agreement with one process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis as clients
from databases import Redis, connect_redis, redis_server, wait_until_usable
from fake_upstreams import FakeUpstreams
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from centgate.cache.redis import SharedRedis
from centgate.cache.redis_rate_limiter import ACQUIRE_SCRIPT, RedisRateLimiter
from centgate.errors import ProviderRateLimited
from centgate.providers.exa import Exa
from centgate.rate_limiter import RateLimit, RateLimiter, SlidingWindow
from centgate.resources import open_resources
from centgate.settings import ProviderSettings, Settings

SECOND = 1_000_000
TEST_CLOCK_SUBSTITUTIONS = {
    "redis.call('TIME')": "{ARGV[7], ARGV[8]}",
    "redis.call('PEXPIRE', ": "tostring(",  # keys never expire during the examples
}


@pytest.fixture(scope="module")
def server() -> Generator[Redis]:
    """A shared Redis server that no test stops."""
    with redis_server() as server:
        yield server


@pytest.fixture
async def connections(redis: Redis) -> AsyncGenerator[list[SharedRedis]]:
    """The Redis connections of two servers."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect_redis(redis)) for _ in range(2)]


def open_limiter(
    connection: SharedRedis, rate: RateLimit, processes: int = 1, name: str = "oracle"
) -> RateLimiter:
    return RateLimiter(rate, processes, RedisRateLimiter(connection, name, rate))


@pytest.mark.extended
@effort(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.sampled_from([1.0, 10.0, 60.0]),
    st.lists(st.tuples(st.integers(0, 30 * SECOND), st.booleans()), min_size=1, max_size=100),
)
def test_redis_script_agrees_with_sliding_window(
    server: Redis, calls: int, seconds: float, asked: list[tuple[int, bool]]
) -> None:
    text = ACQUIRE_SCRIPT
    for asked_of_redis, told in TEST_CLOCK_SUBSTITUTIONS.items():
        assert text.count(asked_of_redis) == 1
        text = text.replace(asked_of_redis, told)
    with clients.Redis(port=server.port) as client:
        script = client.register_script(text)
        now, key, rate, sent = 1_800_000_000 * SECOND, uuid4().hex, RateLimit(calls, seconds), list[int]()
        pace = SlidingWindow(rate, lambda: now / SECOND)
        numbers = [calls, rate.burst, *(round(each * SECOND) for each in (seconds, rate.interval))]
        for pause, patient in asked:
            now += pause
            patience = 20 if patient else 0
            arguments = [*numbers, patience * SECOND, 0, *divmod(now, SECOND)]
            wait: Any = script([key], arguments)

            assert wait / SECOND == pytest.approx(pace.acquire(patience), abs=1e-3)

            if wait <= patience * SECOND:
                sent.append(now + wait)

    assert sent == sorted(sent)
    for first, later in zip(sent, sent[calls:], strict=False):
        assert later - first >= seconds * SECOND


@pytest.mark.parametrize("rate", [RateLimit(5, 1), RateLimit(9, 60)], ids=["a short span", "a long span"])
async def test_servers_together_keep_to_the_rate_in_every_span(
    connections: list[SharedRedis], rate: RateLimit
) -> None:
    seen = list[tuple[float, float]]()

    async def acquire_often(each: RateLimiter) -> None:
        for _ in range(15):
            before = time.monotonic()
            wait = await each.acquire(100_000)
            seen.append((before + wait, time.monotonic() + wait))

    await asyncio.gather(*(acquire_often(open_limiter(each, rate)) for each in connections * 3))

    # each call was sent at some time between the two measured ones
    soonest, latest = sorted(first for first, _ in seen), sorted(last for _, last in seen)
    for first, later in zip(soonest, latest[rate.calls :], strict=False):
        assert later - first >= rate.seconds - 1e-3


async def test_limits_are_separate_by_upstream_and_rate(connections: list[SharedRedis]) -> None:
    one, _ = connections
    different = [
        open_limiter(one, RateLimit(1, 60)),
        open_limiter(one, RateLimit(1, 60), name="oracle:2"),
        open_limiter(one, RateLimit(1, 61)),
    ]

    assert [await each.acquire(0) for each in different] == [0, 0, 0]


async def test_single_active_server_uses_the_whole_rate(connections: list[SharedRedis]) -> None:
    one, _ = connections
    several = open_limiter(one, RateLimit(8, 10), processes=4)

    waits = [await several.acquire(0) for _ in range(8)]

    assert waits == [0] * 8


async def test_processes_use_their_part_during_redis_outage(
    redis: Redis, connections: list[SharedRedis]
) -> None:
    one, other = (open_limiter(each, RateLimit(8, 10), processes=4) for each in connections)
    await one.acquire(0)
    redis.kill()

    waits = [[await each.acquire(0) for _ in range(3)] for each in (one, other)]

    # a part is two calls; calls that were made together count
    assert [[wait == 0 for wait in each] for each in waits] == [[True, False, False], [True, True, False]]


@pytest.mark.extended
async def test_rate_holds_after_redis_lost_its_data(redis: Redis, connections: list[SharedRedis]) -> None:
    one, other = (open_limiter(each, RateLimit(3, 10)) for each in connections)
    for _ in range(2):
        await one.acquire(0)
    redis.kill()
    await one.acquire(0)
    await wait_until_usable(connections[0], up=False)
    redis.start()
    for each in connections:
        await wait_until_usable(each)

    waits = [await each.acquire(0) for each in (one, other)]

    assert [wait == 0 for wait in waits] == [False, True]


async def test_clock_set_back_delays_nobody(redis: Redis, connections: list[SharedRedis]) -> None:
    one, _ = connections
    fresh = open_limiter(one, RateLimit(3, 10))
    await fresh.acquire(0)
    client: Any
    with clients.Redis(port=redis.port) as client:
        (key,) = client.keys("centgate:1:turns:*")
        client.rpush(key, *[int(time.time() + 3600) * SECOND] * 2)

    waits = [await open_limiter(one, RateLimit(3, 10)).acquire(0) for _ in range(3)]

    assert waits == [0, 0, 0]


async def test_keys_expire_when_calls_count_no_more(redis: Redis, connections: list[SharedRedis]) -> None:
    one, _ = connections
    await open_limiter(one, RateLimit(3, 1)).acquire(0)

    client: Any
    with clients.Redis(port=redis.port) as client:
        (key,) = client.keys("centgate:1:turns:*")
        left = client.pttl(key)

    assert 0 < left <= 1002


async def test_parts_of_a_provider_have_separate_limits(
    connections: list[SharedRedis], upstreams: FakeUpstreams, tmp_path: Path
) -> None:
    settings = Settings(providers={"exa": ProviderSettings(url=upstreams.url_of("exa"), per_minute=1)})
    upstreams.set_response("exa", "/facts", {})
    statuses = list[int]()
    for server in connections:
        async with open_resources(settings, server) as resources:
            provider = Exa(settings, resources)
            for part in ("", "10", "137"):
                way = provider.open_upstream(resources, settings, part=part)
                try:
                    statuses.append((await way.get(upstreams.url_of("exa") + "/facts")).status)
                except ProviderRateLimited:
                    statuses.append(429)

    assert statuses == [200, 200, 200, 429, 429, 429]
