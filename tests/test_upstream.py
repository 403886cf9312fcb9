"""Upstream client: results for every response and failure of an upstream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault

from centgate.circuit_breaker import CircuitBreaker
from centgate.errors import (
    AnswerTooLong,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
)
from centgate.rate_limiter import RateLimit, RateLimiter
from centgate.upstream import Upstream, UpstreamResponse, join_url, open_session


@pytest.fixture
async def upstream() -> AsyncGenerator[Upstream]:
    """An upstream client without limits that matter."""
    async with open_session() as session:
        yield Upstream("oracle", "The Oracle", session, max_bytes=1 << 20, max_wait=1)


async def test_response_is_returned_completely(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"sky": "blue"})

    reply = await upstream.get(
        upstreams.url_of("oracle") + "/facts", params={"of": "sky"}, headers={"X-Key": "k"}
    )

    (request,) = upstreams.requests
    assert (reply.status, reply.parse_json()) == (200, {"sky": "blue"})
    assert (request.params, request.headers["x-key"]) == ({"of": "sky"}, "k")


async def test_one_response_can_have_lower_limit(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"sky": "blue" * 100})
    url = upstreams.url_of("oracle") + "/facts"

    with pytest.raises(AnswerTooLong, match="The Oracle answered with more than"):
        await upstream.get(url, max_bytes=100)

    assert await upstream.get(url, max_bytes=1_000)


async def test_user_agent_names_the_software(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {})

    await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert upstreams.requests[0].headers["user-agent"].startswith("Mozilla/5.0 (compatible; Centgate/")


async def test_body_is_posted_as_json(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/ask", {}, method="POST")

    await upstream.post(upstreams.url_of("oracle") + "/ask", {"why": [1, None]})

    assert upstreams.requests[0].body == {"why": [1, None]}


@pytest.mark.extended
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("timeout", "wrong types")])
async def test_each_fault_has_its_error(upstreams: FakeUpstreams, upstream: Upstream, fault: Fault) -> None:
    upstreams.faults["oracle"] = fault

    with pytest.raises(ProviderFailure) as failed:
        (await upstream.get(upstreams.url_of("oracle") + "/facts")).parse_json()

    assert failed.value.code == FAULTS[fault][1]
    assert failed.value.provider == "oracle"
    assert "The Oracle" in failed.value.message
    assert upstreams.url not in failed.value.message


@pytest.mark.extended
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, ProviderError),
        (400, ProviderError),
        (401, ProviderRefused),
        (402, ProviderRefused),
        (403, ProviderRefused),
        (404, ProviderError),
        (408, ProviderTimeout),
        (429, ProviderRateLimited),
        (500, ProviderError),
        (502, ProviderError),
        (504, ProviderTimeout),
    ],
)
async def test_each_status_has_its_error(
    upstreams: FakeUpstreams, upstream: Upstream, status: int, kind: type[ProviderFailure]
) -> None:
    upstreams.set_response("oracle", "/facts", {"why": "not"}, status=status)

    with pytest.raises(kind) as failed:
        await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert type(failed.value) is kind


async def test_accepted_status_is_no_error(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"error": "unknown"}, status=404)

    reply = await upstream.get(upstreams.url_of("oracle") + "/facts", accept=(404,))

    assert (reply.status, reply.parse_json()) == (404, {"error": "unknown"})


async def test_failed_connection_is_retried_once(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.faults["oracle"] = "reset"

    with pytest.raises(ProviderError, match="could not be reached"):
        await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert len(upstreams.requests) == 2


@pytest.mark.parametrize("fault", ["500", "429", "403 page", "200 page", "empty"])
async def test_response_is_not_requested_twice(
    upstreams: FakeUpstreams, upstream: Upstream, fault: Fault
) -> None:
    upstreams.faults["oracle"] = fault

    with pytest.raises(ProviderFailure):
        (await upstream.get(upstreams.url_of("oracle") + "/facts")).parse_json()

    assert len(upstreams.requests) == 1


async def test_unreachable_upstream_is_named_without_url(upstream: Upstream) -> None:
    with pytest.raises(ProviderError, match=r"^The Oracle could not be reached$"):
        await upstream.get("http://127.0.0.1:9/s3cret-key")


async def test_response_size_limit_is_exact(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/long", '"' + "x" * ((1 << 20) - 2) + '"')
    upstreams.set_response("oracle", "/longer", '"' + "x" * ((1 << 20) - 1) + '"')

    assert len((await upstream.get(upstreams.url_of("oracle") + "/long")).body) == 1 << 20
    with pytest.raises(ProviderError, match="more than 1 MB"):
        await upstream.get(upstreams.url_of("oracle") + "/longer")


@pytest.mark.parametrize(
    ("header", "understood"),
    [
        ("7", 7),
        ("9" * 5_000, 3600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("soon", None),
        ("-1", None),
        ("\u00b2", None),
    ],
)
async def test_retry_after_is_passed_on(upstream: Upstream, header: str, understood: int | None) -> None:
    reply = UpstreamResponse("oracle", "The Oracle", 429, b"", {"Retry-After": header})

    assert upstream.error_for_status(reply).retry_after == understood


async def test_too_long_wait_raises_rate_limit_with_retry_after(upstreams: FakeUpstreams) -> None:
    upstreams.set_response("oracle", "/facts", {})
    async with open_session() as session:
        upstream = Upstream(
            "oracle", "The Oracle", session, rate_limiter=RateLimiter(RateLimit(1)), max_bytes=9, max_wait=1
        )
        await upstream.get(upstreams.url_of("oracle") + "/facts")

        with pytest.raises(ProviderRateLimited) as limited:
            await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert limited.value.retry_after == 60
    assert len(upstreams.requests) == 1


async def test_failing_upstream_is_not_called_for_a_while(
    upstreams: FakeUpstreams, upstream: Upstream
) -> None:
    upstreams.faults["oracle"] = "500"

    for _ in range(CircuitBreaker.FAILURE_LIMIT + 5):
        with pytest.raises(ProviderError):
            await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert len(upstreams.requests) == CircuitBreaker.FAILURE_LIMIT


async def test_open_circuit_takes_no_place_of_rate_limit(upstreams: FakeUpstreams) -> None:
    upstreams.faults["oracle"] = "500"
    limiter = RateLimiter(RateLimit(CircuitBreaker.FAILURE_LIMIT + 1, 10))
    async with open_session() as session:
        upstream = Upstream(
            "oracle", "The Oracle", session, rate_limiter=limiter, max_bytes=99_999, max_wait=1
        )
        for _ in range(CircuitBreaker.FAILURE_LIMIT + 5):
            with pytest.raises(ProviderError):
                await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert await limiter.acquire(0) == 0


async def test_accepted_error_status_counts_as_failure_if_reported(
    upstreams: FakeUpstreams, upstream: Upstream
) -> None:
    upstreams.set_response("oracle", "/facts", "down", status=503)

    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        upstream.error_for_status(await upstream.get(upstreams.url_of("oracle") + "/facts", accept=(503,)))

    with pytest.raises(ProviderError, match="circuit open"):
        await upstream.get(upstreams.url_of("oracle") + "/facts", accept=(503,))


@pytest.mark.extended
async def test_repeatedly_slow_upstream_is_not_called(upstreams: FakeUpstreams) -> None:
    upstreams.faults["oracle"] = "timeout"
    async with open_session() as session:
        upstream = Upstream("oracle", "The Oracle", session, max_bytes=9, max_wait=0.1)
        for _ in range(CircuitBreaker.FAILURE_LIMIT):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(upstream.get(upstreams.url_of("oracle") + "/facts"), 0.1)

        with pytest.raises(ProviderError, match="circuit open"):
            await upstream.get(upstreams.url_of("oracle") + "/facts")


@pytest.mark.extended
async def test_early_cancellation_does_not_count(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.delay = 0.2
    upstreams.set_response("oracle", "/facts", {})

    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstream.get(upstreams.url_of("oracle") + "/facts"), 0.02)

    assert (await upstream.get(upstreams.url_of("oracle") + "/facts")).status == 200


async def test_refusals_do_not_count_as_failures(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {}, status=429)

    for _ in range(CircuitBreaker.FAILURE_LIMIT + 5):
        with pytest.raises(ProviderRateLimited):
            await upstream.get(upstreams.url_of("oracle") + "/facts")

    assert len(upstreams.requests) == CircuitBreaker.FAILURE_LIMIT + 5


async def test_requests_run_concurrently(upstreams: FakeUpstreams, upstream: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"sky": "blue"})

    replies = await asyncio.gather(*(upstream.get(upstreams.url_of("oracle") + "/facts") for _ in range(50)))

    assert [reply.parse_json() for reply in replies] == [{"sky": "blue"}] * 50


@pytest.mark.parametrize(
    ("base", "path", "address"),
    [
        ("https://a.example", "/v2/api", "https://a.example/v2/api"),
        ("https://a.example/", "/v2/api", "https://a.example/v2/api"),
        ("https://a.example/v2", "/v2/api", "https://a.example/v2/api"),
        ("https://a.example/v2/api", "/v2/api", "https://a.example/v2/api"),
        ("https://a.example/v2/api/", "/v2/api", "https://a.example/v2/api"),
        ("https://proxy.example/etherscan", "/v2/api", "https://proxy.example/etherscan/v2/api"),
        ("https://a.example/v", "/v2/api", "https://a.example/v/v2/api"),
    ],
)
def test_base_url_with_path_is_not_extended(base: str, path: str, address: str) -> None:
    assert join_url(base, path) == address
