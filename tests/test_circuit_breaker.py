"""Circuit breaker of an upstream."""

from __future__ import annotations

import pytest

from centgate.circuit_breaker import CircuitBreaker


def test_repeated_failures_open_until_a_trial_succeeds() -> None:
    breaker = CircuitBreaker()
    breaker.PAUSE_SECONDS = 0.0  # ends the pause at once
    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        assert breaker.allow_call()
        breaker.record_outcome(failure=True)
    breaker.PAUSE_SECONDS = 60

    tried = [breaker.allow_call() for _ in range(3)]
    breaker.record_outcome(failure=False)

    assert tried == [True, False, False]
    assert breaker.allow_call()


def open_breaker() -> CircuitBreaker:
    """Return a breaker that has just opened."""
    breaker = CircuitBreaker()
    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        breaker.record_outcome(failure=True)
    return breaker


def test_closed_breaker_has_no_wait() -> None:
    breaker = CircuitBreaker()

    for _ in range(CircuitBreaker.FAILURE_LIMIT - 1):
        breaker.record_outcome(failure=True)

    assert (breaker.is_open, breaker.seconds_until_trial) == (False, 0)


def test_open_breaker_has_remaining_pause() -> None:
    assert 0 < open_breaker().seconds_until_trial <= CircuitBreaker.PAUSE_SECONDS


def test_breaker_after_pause_stays_open_until_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 0.0)
    breaker = open_breaker()

    due = breaker.is_open, breaker.seconds_until_trial
    breaker.record_outcome(failure=False)

    assert due == (True, 0)
    assert not breaker.is_open


def test_trial_is_reserved_once_and_then_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 0.0)
    breaker = open_breaker()
    breaker.PAUSE_SECONDS = 60
    breaker.reserve_trial()
    reserved = breaker.seconds_until_trial

    breaker.PAUSE_SECONDS = 600
    breaker.reserve_trial()

    assert 0 < breaker.seconds_until_trial <= reserved
    assert breaker.allow_call()


def test_looking_at_breaker_starts_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_breaker().is_paused
    monkeypatch.setattr(CircuitBreaker, "PAUSE_SECONDS", 0.0)
    breaker = open_breaker()
    breaker.PAUSE_SECONDS = 60

    assert [breaker.is_paused, breaker.is_paused] == [False, False]
    assert breaker.allow_call()
    assert breaker.is_paused
