"""Rate limiter in one process; over Redis: cache/test_redis_rate_limiter.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.rate_limiter import RateLimit, SlidingWindow


class Clock:
    """Clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_half_of_long_limit_is_a_burst() -> None:
    pace = SlidingWindow(RateLimit(6, 60))

    waits = [pace.acquire(1000) for _ in range(9)]

    assert waits == pytest.approx([0, 0, 0, 20, 40, 60, 80, 100, 120], abs=0.5)


def test_short_limit_goes_at_once() -> None:
    pace = SlidingWindow(RateLimit(3, 1))

    assert [pace.acquire(1000) for _ in range(7)] == pytest.approx([0, 0, 0, 1, 1, 1, 2], abs=0.1)


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


def test_call_with_too_long_wait_reserves_nothing() -> None:
    pace = SlidingWindow(RateLimit(1, 60))
    pace.acquire(0)

    assert [round(pace.acquire(5)) for _ in range(3)] == [60, 60, 60]


def test_several_processes_share_a_rate() -> None:
    shares = [RateLimit(30).split_among(processes) for processes in (1, 4, 60)]

    assert shares == [RateLimit(30), RateLimit(7), RateLimit(1, 120)]
