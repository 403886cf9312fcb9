"""Rate limiter: one rule in one process and over Redis; more of it in cache/test_redis_rate_limiter.py."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack
from itertools import cycle, islice
from uuid import uuid4

import pytest
from databases import Redis, connect_redis, redis_server
from hypothesis import given
from hypothesis import strategies as st

from centgate.cache.redis_rate_limiter import RedisRateLimiter
from centgate.rate_limiter import RateLimit, RateLimiter, SlidingWindow

OpenLimiters = Callable[[RateLimit], Sequence[RateLimiter]]


class Clock:
    """Clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def redis() -> Generator[Redis]:
    """A Redis server for all tests of this module."""
    with redis_server() as server:
        yield server


@pytest.fixture(params=["one process", "two servers over Redis"])
async def open_limiters(request: pytest.FixtureRequest, redis: Redis) -> AsyncGenerator[OpenLimiters]:
    """Function that opens the limiters of every server for one upstream; all keep to one rate together."""
    if request.param == "one process":
        yield lambda rate: [RateLimiter(rate)]
        return
    name = uuid4().hex
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(connect_redis(redis)) for _ in range(2)]
        yield lambda rate: [RateLimiter(rate, 1, RedisRateLimiter(each, name, rate)) for each in connections]


async def acquire_in_turn(limiters: Sequence[RateLimiter], calls: int, max_wait: float = 1000) -> list[float]:
    """Return the seconds that each call has to wait; the servers call in turn."""
    return [await each.acquire(max_wait) for each in islice(cycle(limiters), calls)]


async def test_half_of_long_limit_is_a_burst(open_limiters: OpenLimiters) -> None:
    waits = await acquire_in_turn(open_limiters(RateLimit(6, 60)), 9)

    assert waits == pytest.approx([0, 0, 0, 20, 40, 60, 80, 100, 120], abs=0.5)


async def test_short_limit_goes_at_once(open_limiters: OpenLimiters) -> None:
    waits = await acquire_in_turn(open_limiters(RateLimit(3, 10)), 7)

    assert waits == pytest.approx([0, 0, 0, 10, 10, 10, 20], abs=0.5)


async def test_call_with_too_long_wait_reserves_nothing(open_limiters: OpenLimiters) -> None:
    limiters = open_limiters(RateLimit(1, 60))
    await acquire_in_turn(limiters, 1)

    waits = await acquire_in_turn(limiters, 3, max_wait=5)

    assert waits == pytest.approx([60, 60, 60], abs=0.5)


@given(
    st.integers(1, 40),
    st.sampled_from([1.0, 10.0, 60.0]),
    st.lists(st.floats(0, 30), min_size=1, max_size=150),
)
def test_no_span_has_more_calls_than_rate(calls: int, seconds: float, pauses: list[float]) -> None:
    clock = Clock()
    pace, sent = SlidingWindow(RateLimit(calls, seconds), clock), list[float]()
    for pause in pauses:
        clock.now += pause
        if (wait := pace.acquire(20)) <= 20:
            sent.append(clock.now + wait)

    for first, later in zip(sent, sent[calls:], strict=False):
        assert later - first >= seconds * (1 - 1e-9)


def test_several_processes_share_a_rate() -> None:
    shares = [RateLimit(30).split_among(processes) for processes in (1, 4, 60)]

    assert shares == [RateLimit(30), RateLimit(7), RateLimit(1, 120)]
