"""Response cache: TTLs, single flight of concurrent requests, eviction, and failures that are not stored."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from centgate.cache.response_cache import MAX_DEGRADED_TTL, MemoryCache, ResponseCache
from centgate.envelope import ServiceResult
from centgate.errors import NoData, ProviderError, ProviderRateLimited

FRESH = timedelta(minutes=5)


def build_result(data: str = '{"sky":"blue"}', status: str = "ok") -> ServiceResult:
    """Return a result whose only provider has this status."""
    return ServiceResult(data.encode(), [{"name": "oracle", "status": status}], ["it is late"])


class Work:
    """Computation that counts its runs."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.done = 0

    async def __call__(self) -> ServiceResult:
        self.done += 1
        await asyncio.sleep(0)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class RecordingCache(MemoryCache):
    """Cache that records the TTL of each stored entry."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def put(self, key: str, content: bytes, ttl_seconds: float) -> None:
        self.seconds.append(ttl_seconds)
        super().put(key, content, ttl_seconds)


@pytest.fixture
def cache() -> ResponseCache:
    return ResponseCache(MemoryCache())


async def test_second_request_is_served_from_cache(cache: ResponseCache) -> None:
    work = Work(build_result())

    first, second = [await cache.get_or_compute("k", FRESH, work) for _ in range(2)]

    assert (first, second) == ((build_result(), False), (build_result(), True))
    assert work.done == 1


async def test_keys_have_separate_results(cache: ResponseCache) -> None:
    work = Work(build_result("1"), build_result("2"))

    first, _ = await cache.get_or_compute("a", FRESH, work)
    second, _ = await cache.get_or_compute("b", FRESH, work)

    assert (first.data, second.data) == (b"1", b"2")


async def test_concurrent_requests_compute_once(cache: ResponseCache) -> None:
    work = Work(build_result())

    results = await asyncio.gather(*(cache.get_or_compute("k", FRESH, work) for _ in range(1000)))

    assert work.done == 1
    assert {answer.data for answer, _ in results} == {build_result().data}


@pytest.mark.parametrize("error", [NoData("nothing"), ProviderError("oracle", "down"), ZeroDivisionError()])
async def test_failure_reaches_all_waiting_requests_and_is_not_stored(
    cache: ResponseCache, error: Exception
) -> None:
    work = Work(error, build_result())

    failures = await asyncio.gather(
        *(cache.get_or_compute("k", FRESH, work) for _ in range(10)), return_exceptions=True
    )
    after = await cache.get_or_compute("k", FRESH, work)

    assert {(type(failure), str(failure)) for failure in failures} == {(type(error), str(error))}
    assert after == (build_result(), False)


async def test_waiting_requests_get_separate_error_objects(cache: ResponseCache) -> None:
    work = Work(ProviderRateLimited("oracle", "slow down", retry_after=7))

    async def fetch_error() -> ProviderRateLimited:
        with pytest.raises(ProviderRateLimited) as failed:
            await cache.get_or_compute("k", FRESH, work)
        return failed.value

    errors = await asyncio.gather(*(fetch_error() for _ in range(3)))

    assert len({id(error) for error in errors}) == 3
    assert {(error.provider, error.message, error.retry_after) for error in errors} == {
        ("oracle", "slow down", 7)
    }


async def test_has_fresh_is_true_until_expiry(cache: ResponseCache) -> None:
    before = await cache.has_fresh("k", FRESH)
    await cache.get_or_compute("k", FRESH, Work(build_result()))

    assert (before, await cache.has_fresh("k", FRESH), await cache.has_fresh("k", timedelta(0))) == (
        False,
        True,
        False,
    )


async def test_zero_ttl_computes_each_time(cache: ResponseCache) -> None:
    work = Work(build_result(), build_result())

    hits = [(await cache.get_or_compute("k", timedelta(0), work))[1] for _ in range(2)]

    assert (hits, work.done) == ([False, False], 2)


@pytest.mark.parametrize("status", ["error", "timeout", "rate_limited"])
async def test_incomplete_result_has_short_ttl(status: str) -> None:
    cache = RecordingCache()

    await ResponseCache(cache).get_or_compute("k", FRESH, Work(build_result(status=status)))

    assert cache.seconds == [MAX_DEGRADED_TTL]


async def test_provisional_result_has_short_ttl() -> None:
    cache = RecordingCache()

    await ResponseCache(cache).get_or_compute("k", FRESH, Work(replace(build_result(), is_provisional=True)))

    assert cache.seconds == [MAX_DEGRADED_TTL]


@pytest.mark.parametrize("status", ["ok", "no_data", "skipped", "unconfigured"])
async def test_complete_result_has_full_ttl(status: str) -> None:
    cache = RecordingCache()

    await ResponseCache(cache).get_or_compute("k", FRESH, Work(build_result(status=status)))

    assert cache.seconds == [FRESH.total_seconds()]


async def test_cancelled_request_does_not_cancel_computation(cache: ResponseCache) -> None:
    release = asyncio.Event()

    async def work() -> ServiceResult:
        await release.wait()
        return build_result()

    impatient = asyncio.create_task(cache.get_or_compute("k", FRESH, work))
    patient = asyncio.create_task(cache.get_or_compute("k", FRESH, work))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.sleep(0)
    release.set()

    assert (await patient)[0] == build_result()


def test_expired_result_is_computed_again() -> None:
    cache = MemoryCache()

    cache.put("k", b"v", 0)

    assert cache.get("k") is None


def test_least_recently_used_result_is_evicted() -> None:
    cache = MemoryCache(max_bytes=2 * 600)
    for key in ("a", "b"):
        cache.put(key, b"x" * 80, 60)
    cache.get("a")

    cache.put("c", b"x" * 80, 60)

    assert [cache.get(key) is not None for key in "abc"] == [True, False, True]


def test_result_larger_than_cache_is_not_stored() -> None:
    cache = MemoryCache(max_bytes=1000)

    cache.put("k", b"x" * 1000, 60)

    assert cache.get("k") is None
