"""Answers are kept while they are fresh, bought once by all who ask at once, and never when they are none."""

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


def answered(data: str = '{"sky":"blue"}', status: str = "ok") -> ServiceResult:
    """An answer whose only source has this status."""
    return ServiceResult(data.encode(), [{"name": "oracle", "status": status}], ["it is late"])


class Work:
    """Work that counts how often it is done."""

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


class Notes(MemoryCache):
    """A cache that remembers for how long it was asked to keep things."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    async def put(self, key: str, content: bytes, ttl_seconds: float) -> None:
        self.seconds.append(ttl_seconds)
        await super().put(key, content, ttl_seconds)


@pytest.fixture
def answers() -> ResponseCache:
    return ResponseCache(MemoryCache())


async def test_the_second_time_it_comes_from_the_cache_unchanged(answers: ResponseCache) -> None:
    work = Work(answered())

    first, second = [await answers.get_or_compute("k", FRESH, work) for _ in range(2)]

    assert (first, second) == ((answered(), False), (answered(), True))
    assert work.done == 1


async def test_another_question_is_another_answer(answers: ResponseCache) -> None:
    work = Work(answered("1"), answered("2"))

    first, _ = await answers.get_or_compute("a", FRESH, work)
    second, _ = await answers.get_or_compute("b", FRESH, work)

    assert (first.data, second.data) == (b"1", b"2")


async def test_all_who_ask_at_once_share_the_work(answers: ResponseCache) -> None:
    work = Work(answered())

    got = await asyncio.gather(*(answers.get_or_compute("k", FRESH, work) for _ in range(1000)))

    assert work.done == 1
    assert {answer.data for answer, _ in got} == {answered().data}


@pytest.mark.parametrize("error", [NoData("nothing"), ProviderError("oracle", "down"), ZeroDivisionError()])
async def test_what_is_no_answer_is_told_to_all_and_not_kept(
    answers: ResponseCache, error: Exception
) -> None:
    work = Work(error, answered())

    failures = await asyncio.gather(
        *(answers.get_or_compute("k", FRESH, work) for _ in range(10)), return_exceptions=True
    )
    after = await answers.get_or_compute("k", FRESH, work)

    assert {(type(failure), str(failure)) for failure in failures} == {(type(error), str(error))}
    assert after == (answered(), False)


async def test_each_who_is_told_of_a_failure_has_an_error_of_their_own(answers: ResponseCache) -> None:
    work = Work(ProviderRateLimited("oracle", "slow down", retry_after=7))

    async def told() -> ProviderRateLimited:
        with pytest.raises(ProviderRateLimited) as failed:
            await answers.get_or_compute("k", FRESH, work)
        return failed.value

    errors = await asyncio.gather(*(told() for _ in range(3)))

    assert len({id(error) for error in errors}) == 3
    assert {(error.provider, error.message, error.retry_after) for error in errors} == {
        ("oracle", "slow down", 7)
    }


async def test_answer_is_reported_only_while_it_is_kept(answers: ResponseCache) -> None:
    before = await answers.has_fresh("k", FRESH)
    await answers.get_or_compute("k", FRESH, Work(answered()))

    assert (before, await answers.has_fresh("k", FRESH), await answers.has_fresh("k", timedelta(0))) == (
        False,
        True,
        False,
    )


async def test_a_service_without_a_time_is_asked_each_time(answers: ResponseCache) -> None:
    work = Work(answered(), answered())

    hits = [(await answers.get_or_compute("k", timedelta(0), work))[1] for _ in range(2)]

    assert (hits, work.done) == ([False, False], 2)


@pytest.mark.parametrize("status", ["error", "timeout", "rate_limited"])
async def test_an_answer_that_lacks_a_source_is_kept_for_a_moment_only(status: str) -> None:
    cache = Notes()

    await ResponseCache(cache).get_or_compute("k", FRESH, Work(answered(status=status)))

    assert cache.seconds == [MAX_DEGRADED_TTL]


async def test_an_answer_to_which_more_will_be_known_is_kept_for_a_moment_only() -> None:
    cache = Notes()

    await ResponseCache(cache).get_or_compute("k", FRESH, Work(replace(answered(), is_provisional=True)))

    assert cache.seconds == [MAX_DEGRADED_TTL]


@pytest.mark.parametrize("status", ["ok", "no_data", "skipped", "unconfigured"])
async def test_an_answer_with_all_it_can_have_is_kept_its_whole_time(status: str) -> None:
    cache = Notes()

    await ResponseCache(cache).get_or_compute("k", FRESH, Work(answered(status=status)))

    assert cache.seconds == [FRESH.total_seconds()]


async def test_who_hangs_up_does_not_end_the_work_for_others(answers: ResponseCache) -> None:
    release = asyncio.Event()

    async def work() -> ServiceResult:
        await release.wait()
        return answered()

    impatient = asyncio.create_task(answers.get_or_compute("k", FRESH, work))
    patient = asyncio.create_task(answers.get_or_compute("k", FRESH, work))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.sleep(0)
    release.set()

    assert (await patient)[0] == answered()


async def test_what_is_too_old_is_gone() -> None:
    cache = MemoryCache()

    await cache.put("k", b"v", 0)

    assert await cache.get("k") is None


async def test_the_least_recently_used_goes_first_when_there_is_no_room() -> None:
    cache = MemoryCache(max_bytes=2 * 600)
    for key in ("a", "b"):
        await cache.put(key, b"x" * 80, 60)
    await cache.get("a")

    await cache.put("c", b"x" * 80, 60)

    assert [await cache.get(key) is not None for key in "abc"] == [True, False, True]


async def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = MemoryCache(max_bytes=1000)

    await cache.put("k", b"x" * 1000, 60)

    assert await cache.get("k") is None
