"""Providers that are queried concurrently or in order, and their entries in the request trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, open_provider
from pydantic import SecretStr

from centgate.errors import NoData, ProviderError, ProviderFailure, ProviderTimeout, ProviderUnconfigured
from centgate.fallback import (
    attempt,
    first_concurrent,
    first_of,
    found_or_none,
    open_task_group,
    require_any,
)
from centgate.instrumentation import NullMeter
from centgate.provider import Provider, ProviderInfo, RequestTrace, instrumented


class Oracle(Provider):
    """Provider of colours."""

    info = ProviderInfo("oracle", "The Oracle", docs_url="https://oracle.example")

    @instrumented
    async def colour(self, of: str) -> str:
        """Return the colour of a thing."""
        facts = (await self.upstream.get(self.url("/facts"))).parse_json()
        if of not in facts:
            raise self.no_data(f"nothing of {of}")
        return facts[of]["colour"]


class Sibyl(Oracle):
    info = ProviderInfo("sibyl", "The Sibyl", docs_url="https://sibyl.example", key="required")


class CallMeter(NullMeter):
    """Meter that keeps the outcomes of provider calls."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def record_provider_call(self, provider: str, outcome: str, seconds: float) -> None:
        self.outcomes.append(outcome)


FACTS = {"sky": {"colour": "blue"}, "void": None, "riddle": {}}


@pytest.fixture
def record() -> RequestTrace:
    return RequestTrace()


async def test_answer_is_recorded_with_time(
    upstreams: FakeUpstreams, tmp_path: Path, record: RequestTrace
) -> None:
    upstreams.set_response("oracle", "/facts", FACTS)

    async with open_provider(Oracle, tmp_path, url=upstreams.url_of("oracle")) as oracle:
        colour = await oracle.bind(record).colour("sky")

    assert colour == "blue"
    assert record.providers["oracle"]["status"] == "ok"
    assert record.providers["oracle"]["fetchedAt"].endswith("Z")
    assert record.warnings == []


async def test_no_data_is_recorded_without_warning(
    upstreams: FakeUpstreams, tmp_path: Path, record: RequestTrace
) -> None:
    upstreams.set_response("oracle", "/facts", FACTS)

    async with open_provider(Oracle, tmp_path, url=upstreams.url_of("oracle")) as oracle:
        with pytest.raises(NoData, match="The Oracle knows nothing of love"):
            await oracle.bind(record).colour("love")

    assert (record.providers["oracle"]["status"], record.warnings) == ("no_data", [])


@pytest.mark.extended
@pytest.mark.parametrize("fault", list(FAULTS))
async def test_failure_is_recorded_with_warning(
    upstreams: FakeUpstreams, tmp_path: Path, record: RequestTrace, fault: Fault
) -> None:
    upstreams.faults["oracle"] = fault

    async with open_provider(Oracle, tmp_path, url=upstreams.url_of("oracle"), timeout=3) as oracle:
        missing = await attempt(oracle.bind(record).colour, "sky")

    status = FAULTS[fault][1].removeprefix("provider_")
    if fault == "wrong types":  # valid JSON without an entry for the sky
        assert isinstance(missing, NoData)
    else:
        assert isinstance(missing, ProviderFailure)
        assert record.providers["oracle"]["status"] == status
        assert record.warnings == [missing.message]


async def test_query_gets_remaining_time_of_request(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    upstreams.faults["oracle"] = "timeout"
    late = RequestTrace(until=time.monotonic() + 0.2)

    async with open_provider(Oracle, tmp_path, url=upstreams.url_of("oracle"), timeout=10) as oracle:
        oracle.meter = calls = CallMeter()
        first = await attempt(oracle.bind(late).colour, "sky")
        second = await attempt(oracle.bind(late).colour, "sky")

    assert isinstance(first, ProviderTimeout)
    assert isinstance(second, ProviderTimeout)
    assert late.remaining(10) == 0
    assert calls.outcomes == ["timeout"]  # the second was not made


@pytest.mark.parametrize("thing", ["void", "riddle"])
async def test_invalid_response_is_failure_of_upstream(
    upstreams: FakeUpstreams, tmp_path: Path, record: RequestTrace, thing: str
) -> None:
    upstreams.set_response("oracle", "/facts", FACTS)

    async with open_provider(Oracle, tmp_path, url=upstreams.url_of("oracle")) as oracle:
        with pytest.raises(ProviderError, match="in an unknown format"):
            await oracle.bind(record).colour(thing)

    assert record.providers["oracle"]["status"] == "error"


class Parrot(Oracle):
    """Provider that repeats its key in its errors."""

    info = ProviderInfo("parrot", "The Parrot", docs_url="https://parrot.example", key="optional")

    @instrumented
    async def colour(self, of: str) -> str:
        raise self.invalid_response(f"does not know {of} for {self.key}")


async def test_key_of_operator_is_removed_from_errors(
    tmp_path: Path, record: RequestTrace, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_provider(Parrot, tmp_path, key=SecretStr("app-key:app-secret")) as parrot:
        missing = await attempt(parrot.bind(record).colour, "sky")

    assert isinstance(missing, ProviderError)
    assert missing.message == "The Parrot does not know sky for \u2026:\u2026"
    assert record.warnings == [missing.message]
    assert "app-" not in capsys.readouterr().err


async def test_too_deeply_nested_answer_is_failure_of_upstream(tmp_path: Path, record: RequestTrace) -> None:
    class Deep(Oracle):
        @instrumented
        async def colour(self, of: str) -> str:
            raise RecursionError(of)

    async with open_provider(Deep, tmp_path) as deep:
        with pytest.raises(ProviderError, match="in an unknown format"):
            await deep.bind(record).colour("sky")


async def test_time_of_provider_is_that_of_oldest_part(record: RequestTrace) -> None:
    for moment in ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"):
        record.record("oracle", "ok", fetchedAt=moment)

    assert record.providers["oracle"]["fetchedAt"] == "2026-01-01T00:00:00Z"


async def test_provider_without_required_key_is_not_called(
    upstreams: FakeUpstreams, tmp_path: Path, record: RequestTrace
) -> None:
    async with open_provider(Sibyl, tmp_path, url=upstreams.url_of("sibyl")) as sibyl:
        with pytest.raises(ProviderUnconfigured):
            await sibyl.bind(record).colour("sky")

    assert (record.providers["sibyl"]["status"], record.warnings, upstreams.requests) == (
        "unconfigured",
        [],
        [],
    )


async def test_disabled_provider_is_not_called(
    upstreams: FakeUpstreams, tmp_path: Path, record: RequestTrace
) -> None:
    async with open_provider(Oracle, tmp_path, url=upstreams.url_of("oracle"), enabled=False) as oracle:
        with pytest.raises(ProviderUnconfigured):
            await oracle.bind(record).colour("sky")

    assert upstreams.requests == []


def test_worst_of_several_calls_is_recorded(record: RequestTrace) -> None:
    for status in ("no_data", "ok", "timeout", "ok"):
        record.record("oracle", status)

    assert record.providers["oracle"]["status"] == "timeout"


def test_warning_is_recorded_once(record: RequestTrace) -> None:
    record.add_warning("it is late")
    record.add_warning("it is late")

    assert record.warnings == ["it is late"]


async def _raise_error(error: Exception) -> str:
    raise error


async def _return_answer(answer: str) -> str:
    return answer


async def test_task_group_runs_tasks_concurrently() -> None:
    met = asyncio.Barrier(3)

    async def meet() -> str:
        await met.wait()
        return "met"

    async with open_task_group() as group:
        tasks = [group.create_task(meet()) for _ in range(3)]

    assert [task.result() for task in tasks] == ["met"] * 3


async def test_failed_task_cancels_others() -> None:
    ended = asyncio.Event()

    async def wait_long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def run_group() -> None:
        async with open_task_group() as group:
            group.create_task(wait_long())
            group.create_task(_raise_error(ProviderError("oracle", "down")))

    with pytest.raises(ProviderError, match="down"):
        await run_group()

    assert ended.is_set()


async def test_own_errors_are_not_hidden() -> None:
    async def run_group() -> None:
        async with open_task_group() as group:
            group.create_task(_raise_error(ZeroDivisionError()))

    with pytest.raises(ZeroDivisionError):
        await run_group()


@pytest.mark.parametrize("missing", [NoData("nothing"), ProviderTimeout("oracle", "late")])
async def test_attempt_returns_failure(missing: Exception) -> None:
    assert await attempt(_raise_error, missing) is missing


async def test_first_answer_is_returned() -> None:
    down, empty = ProviderError("oracle", "down"), NoData("nothing")

    answer = await first_of(
        lambda: _raise_error(down), lambda: _raise_error(empty), lambda: _return_answer("blue")
    )()

    assert answer == "blue"


DOWN, EMPTY = ProviderError("oracle", "down"), NoData("nothing")
AWAY = ProviderUnconfigured("sibyl", "not set up")
MISSING: tuple[tuple[list[Exception], Exception], ...] = (
    ([DOWN, EMPTY], DOWN),
    ([EMPTY, DOWN], DOWN),
    ([EMPTY, NoData("nothing either")], EMPTY),
    ([AWAY, EMPTY], EMPTY),
    ([EMPTY, AWAY], EMPTY),
    ([AWAY, EMPTY, DOWN], DOWN),
    ([AWAY, ProviderUnconfigured("oracle", "nor this one")], AWAY),
)


@pytest.mark.parametrize(("missing", "expected"), MISSING)
@pytest.mark.parametrize("combine", [first_of, first_concurrent])
async def test_no_data_requires_all_configured_providers(
    combine: Callable[..., Callable[[], Awaitable[str]]], missing: list[Exception], expected: Exception
) -> None:
    with pytest.raises(type(expected)) as caught:
        await combine(*(partial(_raise_error, each) for each in missing))()

    assert caught.value is expected


@pytest.mark.parametrize(("missing", "expected"), MISSING)
def test_all_missing_answers_raise_error_of_first_of(missing: list[Exception], expected: Exception) -> None:
    with pytest.raises(type(expected)) as caught:
        require_any(*missing)

    assert caught.value is expected


def test_one_answer_is_enough() -> None:
    require_any(DOWN, "blue", EMPTY)
    require_any(0)

    assert [found_or_none(each) for each in (DOWN, EMPTY, "blue")] == [None, None, "blue"]


async def test_first_concurrent_prefers_order_and_cancels_later_ones() -> None:
    met, ended = asyncio.Barrier(3), asyncio.Event()

    async def fail() -> str:
        await met.wait()
        raise NoData("nothing")

    async def answer() -> str:
        await met.wait()
        return "blue"

    async def wait_long() -> str:
        try:
            await met.wait()
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "late"

    async with asyncio.timeout(5):
        assert await first_concurrent(fail, answer, wait_long)() == "blue"

    assert ended.is_set()


async def test_first_failure_is_raised_if_all_fail() -> None:
    first, second = ProviderError("oracle", "down"), ProviderTimeout("sibyl", "late")

    with pytest.raises(ProviderError, match="down"):
        await first_of(lambda: _raise_error(first), lambda: _raise_error(second))()


async def test_first_failure_lists_other_failures() -> None:
    async def fail_late(_what: str) -> str:
        raise ProviderTimeout("oracle", "The Oracle did not answer within 8 s")

    async def fail_with_status(_what: str) -> str:
        raise ProviderError("sibyl", "The Sibyl answered with status 500")

    async def fail_unconfigured(_what: str) -> str:
        raise ProviderUnconfigured("parrot", "The Parrot is not configured on this deployment")

    with pytest.raises(ProviderTimeout) as raised:
        await first_of(fail_unconfigured, fail_late, fail_with_status)("sky")

    message = "The Oracle did not answer within 8 s; The Sibyl answered with status 500"
    assert (raised.value.provider, raised.value.message) == ("oracle", message)


async def test_timeout_after_failed_queries_stays_timeout() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise NoData("nothing")

    async def fail_then_hang() -> None:
        async with asyncio.timeout(0.02):
            with suppress(NoData):
                async with open_task_group() as group:
                    group.create_task(fail())
            await asyncio.sleep(1)

    with pytest.raises(TimeoutError):
        await fail_then_hang()
