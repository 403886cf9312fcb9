"""How long a thing is kept, who fetches it, and what is used when it cannot be fetched."""

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
    """Gives a new thing each time: counts how often it is asked, and fails or hangs when told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.failure: Exception | None = None
        self.hold: asyncio.Event | None = None
        self.now = 1000.0

    async def fetch(self) -> object:
        self.asked += 1
        if self.hold:
            await self.hold.wait()
        await asyncio.sleep(0)
        if self.failure:
            raise self.failure
        return object()

    def shelf(self) -> StaleWhileRevalidate[object]:
        return StaleWhileRevalidate(self.fetch, clock=lambda: self.now)


async def test_a_thing_is_fetched_once_for_all_who_ask_and_kept_while_fresh() -> None:
    source = Source()
    shelf = source.shelf()

    together = await asyncio.gather(*(shelf.get(1) for _ in range(50)))
    source.now += FRESH_SECONDS - 1
    later = await shelf.get(1)

    assert source.asked == 1
    assert {id(kept.value) for kept in (*together, later)} == {id(later.value)}
    assert not later.is_stale


async def test_an_old_thing_is_fetched_again() -> None:
    source = Source()
    shelf = source.shelf()
    first = await shelf.get(1)
    source.now += FRESH_SECONDS

    second = await shelf.get(1)

    assert source.asked == 2
    assert second.value is not first.value
    assert not second.is_stale


@pytest.mark.parametrize("failure", [ProviderError("defillama", "down"), ValueError("odd"), TimeoutError()])
async def test_an_old_thing_is_used_when_no_newer_one_can_be_had(failure: Exception) -> None:
    source = Source()
    shelf = source.shelf()
    first = await shelf.get(1)
    source.failure = failure
    source.now += FRESH_SECONDS

    kept, again = await shelf.get(1), await shelf.get(1)

    assert (kept.is_stale, again.is_stale) == (True, True)
    assert kept.value is first.value
    assert source.asked == 2, "a failure is not repeated at once"


async def test_a_newer_thing_is_tried_for_again_after_a_while() -> None:
    source = Source()
    shelf = source.shelf()
    await shelf.get(1)
    source.failure = ProviderError("defillama", "down")
    source.now += FRESH_SECONDS
    await shelf.get(1)
    source.failure = None
    source.now += RETRY_SECONDS

    kept = await shelf.get(1)

    assert not kept.is_stale
    assert source.asked == 3


async def test_an_old_thing_is_used_while_a_newer_one_is_slow() -> None:
    source = Source()
    shelf = source.shelf()
    await shelf.get(1)
    source.hold = asyncio.Event()
    source.now += FRESH_SECONDS

    slow = await shelf.get(0.01)
    source.hold.set()
    fast = await shelf.get(1)

    assert (slow.is_stale, fast.is_stale) == (True, False)
    assert source.asked == 2


async def test_a_thing_of_long_ago_is_not_used() -> None:
    source = Source()
    shelf = source.shelf()
    await shelf.get(1)
    source.failure = ProviderError("defillama", "down")
    source.now += STALE_SECONDS + 1

    with pytest.raises(ProviderError, match="down"):
        await shelf.get(1)


async def test_a_fetch_goes_on_when_the_one_who_asked_gives_up() -> None:
    source = Source()
    source.hold = asyncio.Event()
    shelf = source.shelf()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await shelf.get(1)
    source.hold.set()
    kept = await shelf.get(1)

    assert source.asked == 1
    assert not kept.is_stale


async def test_a_first_fetch_that_fails_is_everybodys_failure_and_not_remembered() -> None:
    source = Source()
    source.failure = ProviderError("defillama", "down", retry_after=7)
    shelf = source.shelf()

    failures = await asyncio.gather(*(shelf.get(1) for _ in range(3)), return_exceptions=True)
    source.failure = None
    kept = await shelf.get(1)

    assert [str(failure) for failure in failures] == ["down"] * 3
    assert len({id(failure) for failure in failures}) == 3, "each carries the word on a payment of its own"
    assert {getattr(failure, "retry_after", None) for failure in failures} == {7}
    assert source.asked == 2
    assert not kept.is_stale
