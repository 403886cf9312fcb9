"""Token buckets: burst, refill, and removal of full buckets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from centgate.client_limits import TokenBuckets


@dataclass
class Clock:
    now: float = 1_234_567.891

    def __call__(self) -> float:
        return self.now


def take_tokens(buckets: TokenBuckets[str], key: str, tries: int) -> int:
    return sum(buckets.take_token(key) for _ in range(tries))


@pytest.mark.parametrize("burst", [1, 3, 300])
def test_take_stops_after_burst(burst: int) -> None:
    buckets = TokenBuckets[str](600, burst, clock=Clock())

    assert take_tokens(buckets, "a", burst + 5) == burst
    assert buckets.take_token("b")


def test_tokens_return_with_time() -> None:
    clock = Clock()
    buckets = TokenBuckets[str](600, 5, clock=clock)
    take_tokens(buckets, "a", 5)

    assert buckets.seconds_until("a") == pytest.approx(0.1, abs=1e-4)
    clock.now += 0.3
    assert take_tokens(buckets, "a", 10) == 3
    clock.now += 3600
    assert take_tokens(buckets, "a", 10) == 5


def test_give_back_is_limited_to_burst() -> None:
    buckets = TokenBuckets[str](60, 3, clock=Clock())
    take_tokens(buckets, "a", 2)

    buckets.return_tokens("a", 10)

    assert (take_tokens(buckets, "a", 10), len(buckets)) == (3, 1)


def test_spend_may_exceed_the_tokens() -> None:
    buckets = TokenBuckets[str](60, 2, clock=Clock())
    for _ in range(5):
        buckets.spend_tokens("a")

    assert buckets.seconds_until("a") == pytest.approx(4, abs=1e-3)
    assert not buckets.has_tokens("a")


def test_zero_per_minute_means_unlimited() -> None:
    buckets = TokenBuckets[str](0, 1)

    assert take_tokens(buckets, "a", 1000) == 1000
    buckets.spend_tokens("a")
    assert (buckets.has_tokens("a", 100), len(buckets)) == (True, 0)


def test_full_bucket_is_removed() -> None:
    clock = Clock()
    buckets = TokenBuckets[str](60, 5, clock=clock)
    for number in range(10):
        buckets.take_token(str(number))

    clock.now += 60
    for number in range(10, 20):
        buckets.take_token(str(number))

    assert len(buckets) == 10


def test_many_keys_do_not_increase_memory() -> None:
    buckets = TokenBuckets[str](1, 5, max_keys=100, clock=Clock())

    for number in range(1000):
        buckets.take_token(str(number))

    assert len(buckets) == 100


def test_limited_key_is_kept_beyond_number_of_others() -> None:
    clock = Clock()
    buckets = TokenBuckets[str](600, 5, max_keys=100, clock=clock)
    take_tokens(buckets, "attacker", 5)

    for number in range(99):
        buckets.take_token(str(number))

    assert not buckets.take_token("attacker")
