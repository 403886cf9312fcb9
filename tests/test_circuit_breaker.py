"""Circuit breaker of an upstream."""

from __future__ import annotations

import pytest

from centgate.circuit_breaker import CircuitBreaker


def test_what_fails_again_and_again_is_left_alone_until_one_try_succeeds() -> None:
    breaker = CircuitBreaker()
    breaker.PAUSE_SECONDS = 0.0  # the pause is over at once
    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        assert breaker.allow_call()
        breaker.record_outcome(failure=True)
    breaker.PAUSE_SECONDS = 60

    tried = [breaker.allow_call() for _ in range(3)]
    breaker.record_outcome(failure=False)

    assert tried == [True, False, False]
    assert breaker.allow_call()


def opened() -> CircuitBreaker:
    """A breaker that has just opened."""
    breaker = CircuitBreaker()
    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        breaker.record_outcome(failure=True)
    return breaker


def test_breaker_that_is_closed_has_nothing_to_wait_for() -> None:
    breaker = CircuitBreaker()

    for _ in range(CircuitBreaker.FAILURE_LIMIT - 1):
        breaker.record_outcome(failure=True)

    assert (breaker.is_open, breaker.seconds_until_trial) == (False, 0)


def test_breaker_that_opens_tells_how_long_to_wait() -> None:
    assert 0 < opened().seconds_until_trial <= CircuitBreaker.PAUSE_SECONDS


def test_breaker_whose_pause_is_over_stays_open_until_a_call_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 0.0)
    breaker = opened()

    due = breaker.is_open, breaker.seconds_until_trial
    breaker.record_outcome(failure=False)

    assert due == (True, 0)
    assert not breaker.is_open


def test_trial_is_reserved_once_and_begins_in_spite_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 0.0)
    breaker = opened()
    breaker.PAUSE_SECONDS = 60
    breaker.reserve_trial()
    reserved = breaker.seconds_until_trial

    breaker.PAUSE_SECONDS = 600
    breaker.reserve_trial()

    assert 0 < breaker.seconds_until_trial <= reserved
    assert breaker.allow_call()
