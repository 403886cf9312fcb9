"""Stale-while-revalidate cache of one value: TTL, single refresh in flight, and use of old values."""

from __future__ import annotations

import asyncio

import pytest

from centgate.cache.stale_while_revalidate import (
    FRESH_SECONDS,
    RETRY_SECONDS,
    STALE_SECONDS,
    StaleWhileRevalidate,
)
from centgate.errors import ProviderError


class Source:
    """Source of values that counts its fetches, and fails or hangs as a test sets it."""

    def __init__(self) -> None:
        self.calls = 0
        self.failure: Exception | None = None
        self.hold: asyncio.Event | None = None
        self.now = 1000.0

    async def fetch(self) -> object:
        self.calls += 1
        if self.hold:
            await self.hold.wait()
        await asyncio.sleep(0)
        if self.failure:
            raise self.failure
        return object()

    def open_cache(self) -> StaleWhileRevalidate[object]:
        return StaleWhileRevalidate(self.fetch, clock=lambda: self.now)


async def test_concurrent_requests_fetch_once_until_expiry() -> None:
    source = Source()
    cache = source.open_cache()

    together = await asyncio.gather(*(cache.get(1) for _ in range(50)))
    source.now += FRESH_SECONDS - 1
    later = await cache.get(1)

    assert source.calls == 1
    assert {id(kept.value) for kept in (*together, later)} == {id(later.value)}
    assert not later.is_stale


async def test_expired_value_is_fetched_again() -> None:
    source = Source()
    cache = source.open_cache()
    first = await cache.get(1)
    source.now += FRESH_SECONDS

    second = await cache.get(1)

    assert source.calls == 2
    assert second.value is not first.value
    assert not second.is_stale


@pytest.mark.parametrize("failure", [ProviderError("defillama", "down"), ValueError("odd"), TimeoutError()])
async def test_stale_value_is_used_if_refresh_fails(failure: Exception) -> None:
    source = Source()
    cache = source.open_cache()
    first = await cache.get(1)
    source.failure = failure
    source.now += FRESH_SECONDS

    entry, again = await cache.get(1), await cache.get(1)

    assert (entry.is_stale, again.is_stale) == (True, True)
    assert entry.value is first.value
    assert source.calls == 2, "a failure is not repeated at once"


async def test_failed_refresh_is_retried_after_a_pause() -> None:
    source = Source()
    cache = source.open_cache()
    await cache.get(1)
    source.failure = ProviderError("defillama", "down")
    source.now += FRESH_SECONDS
    await cache.get(1)
    source.failure = None
    source.now += RETRY_SECONDS

    entry = await cache.get(1)

    assert not entry.is_stale
    assert source.calls == 3


async def test_stale_value_is_used_during_slow_refresh() -> None:
    source = Source()
    cache = source.open_cache()
    await cache.get(1)
    source.hold = asyncio.Event()
    source.now += FRESH_SECONDS

    slow = await cache.get(0.01)
    source.hold.set()
    fast = await cache.get(1)

    assert (slow.is_stale, fast.is_stale) == (True, False)
    assert source.calls == 2


async def test_too_old_value_is_not_used() -> None:
    source = Source()
    cache = source.open_cache()
    await cache.get(1)
    source.failure = ProviderError("defillama", "down")
    source.now += STALE_SECONDS + 1

    with pytest.raises(ProviderError, match="down"):
        await cache.get(1)


async def test_fetch_continues_after_its_caller_gives_up() -> None:
    source = Source()
    source.hold = asyncio.Event()
    cache = source.open_cache()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await cache.get(1)
    source.hold.set()
    entry = await cache.get(1)

    assert source.calls == 1
    assert not entry.is_stale


async def test_first_failure_reaches_all_callers_and_is_not_stored() -> None:
    source = Source()
    source.failure = ProviderError("defillama", "down", retry_after=7)
    cache = source.open_cache()

    failures = await asyncio.gather(*(cache.get(1) for _ in range(3)), return_exceptions=True)
    source.failure = None
    entry = await cache.get(1)

    assert [str(failure) for failure in failures] == ["down"] * 3
    assert len({id(failure) for failure in failures}) == 3, "each caller needs an error object of its own"
    assert {getattr(failure, "retry_after", None) for failure in failures} == {7}
    assert source.calls == 2
    assert not entry.is_stale
