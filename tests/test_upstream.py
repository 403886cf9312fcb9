"""The one way out: what becomes of everything that an upstream can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault

from centgate.circuit_breaker import CircuitBreaker
from centgate.errors import (
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
)
from centgate.rate_limiter import RateLimit, RateLimiter
from centgate.upstream import Upstream, UpstreamResponse, join_url, open_session


@pytest.fixture
async def way() -> AsyncGenerator[Upstream]:
    """A way out with nothing in its way."""
    async with open_session() as session:
        yield Upstream("oracle", "The Oracle", session, max_bytes=1 << 20, max_wait=1)


async def test_an_answer_comes_whole(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"sky": "blue"})

    reply = await way.get(upstreams.url_of("oracle") + "/facts", params={"of": "sky"}, headers={"X-Key": "k"})

    (asked,) = upstreams.requests
    assert (reply.status, reply.parse_json()) == (200, {"sky": "blue"})
    assert (asked.params, asked.headers["x-key"]) == ({"of": "sky"}, "k")


async def test_it_says_who_asks_in_a_way_that_hosts_let_pass(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {})

    await way.get(upstreams.url_of("oracle") + "/facts")

    assert upstreams.requests[0].headers["user-agent"].startswith("Mozilla/5.0 (compatible; Centgate/")


async def test_a_question_is_posted_as_json(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.set_response("oracle", "/ask", {}, method="POST")

    await way.post(upstreams.url_of("oracle") + "/ask", {"why": [1, None]})

    assert upstreams.requests[0].body == {"why": [1, None]}


@pytest.mark.extended
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("timeout", "wrong types")])
async def test_each_way_to_fail_has_its_error(upstreams: FakeUpstreams, way: Upstream, fault: Fault) -> None:
    upstreams.faults["oracle"] = fault

    with pytest.raises(ProviderFailure) as failed:
        (await way.get(upstreams.url_of("oracle") + "/facts")).parse_json()

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
    upstreams: FakeUpstreams, way: Upstream, status: int, kind: type[ProviderFailure]
) -> None:
    upstreams.set_response("oracle", "/facts", {"why": "not"}, status=status)

    with pytest.raises(kind) as failed:
        await way.get(upstreams.url_of("oracle") + "/facts")

    assert type(failed.value) is kind


async def test_a_status_that_the_asker_knows_is_no_error(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"error": "unknown"}, status=404)

    reply = await way.get(upstreams.url_of("oracle") + "/facts", accept=(404,))

    assert (reply.status, reply.parse_json()) == (404, {"error": "unknown"})


async def test_a_connection_that_fails_is_tried_once_more(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.faults["oracle"] = "reset"

    with pytest.raises(ProviderError, match="could not be reached"):
        await way.get(upstreams.url_of("oracle") + "/facts")

    assert len(upstreams.requests) == 2


@pytest.mark.parametrize("fault", ["500", "429", "403 page", "200 page", "empty"])
async def test_an_answer_is_not_asked_for_twice(
    upstreams: FakeUpstreams, way: Upstream, fault: Fault
) -> None:
    upstreams.faults["oracle"] = fault

    with pytest.raises(ProviderFailure):
        (await way.get(upstreams.url_of("oracle") + "/facts")).parse_json()

    assert len(upstreams.requests) == 1


async def test_a_place_where_nobody_listens_is_named_without_its_address(way: Upstream) -> None:
    with pytest.raises(ProviderError, match=r"^The Oracle could not be reached$"):
        await way.get("http://127.0.0.1:9/s3cret-key")


async def test_an_answer_as_long_as_allowed_is_read_and_a_byte_more_is_not(
    upstreams: FakeUpstreams, way: Upstream
) -> None:
    upstreams.set_response("oracle", "/long", '"' + "x" * ((1 << 20) - 2) + '"')
    upstreams.set_response("oracle", "/longer", '"' + "x" * ((1 << 20) - 1) + '"')

    assert len((await way.get(upstreams.url_of("oracle") + "/long")).body) == 1 << 20
    with pytest.raises(ProviderError, match="more than 1 MB"):
        await way.get(upstreams.url_of("oracle") + "/longer")


@pytest.mark.parametrize(("said", "understood"), [("7", 7), ("999999", 3600), ("soon", None), ("-1", None)])
async def test_how_long_to_wait_is_handed_on(way: Upstream, said: str, understood: int | None) -> None:
    reply = UpstreamResponse("oracle", "The Oracle", 429, b"", {"Retry-After": said})

    assert way.error_for_status(reply).retry_after == understood


async def test_who_would_wait_too_long_is_told_when_to_come_back(upstreams: FakeUpstreams) -> None:
    upstreams.set_response("oracle", "/facts", {})
    async with open_session() as session:
        way = Upstream(
            "oracle", "The Oracle", session, rate_limiter=RateLimiter(RateLimit(1)), max_bytes=9, max_wait=1
        )
        await way.get(upstreams.url_of("oracle") + "/facts")

        with pytest.raises(ProviderRateLimited) as limited:
            await way.get(upstreams.url_of("oracle") + "/facts")

    assert limited.value.retry_after == 60
    assert len(upstreams.requests) == 1


async def test_an_upstream_that_is_down_is_not_asked_for_a_while(
    upstreams: FakeUpstreams, way: Upstream
) -> None:
    upstreams.faults["oracle"] = "500"

    for _ in range(CircuitBreaker.FAILURE_LIMIT + 5):
        with pytest.raises(ProviderError):
            await way.get(upstreams.url_of("oracle") + "/facts")

    assert len(upstreams.requests) == CircuitBreaker.FAILURE_LIMIT


async def test_a_status_of_trouble_that_the_asker_reads_counts_once_it_says_so(
    upstreams: FakeUpstreams, way: Upstream
) -> None:
    upstreams.set_response("oracle", "/facts", "down", status=503)

    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        way.error_for_status(await way.get(upstreams.url_of("oracle") + "/facts", accept=(503,)))

    with pytest.raises(ProviderError, match="circuit open"):
        await way.get(upstreams.url_of("oracle") + "/facts", accept=(503,))


@pytest.mark.extended
async def test_what_is_too_slow_again_and_again_is_left_alone(upstreams: FakeUpstreams) -> None:
    upstreams.faults["oracle"] = "timeout"
    async with open_session() as session:
        way = Upstream("oracle", "The Oracle", session, max_bytes=9, max_wait=0.1)
        for _ in range(CircuitBreaker.FAILURE_LIMIT):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(way.get(upstreams.url_of("oracle") + "/facts"), 0.1)

        with pytest.raises(ProviderError, match="circuit open"):
            await way.get(upstreams.url_of("oracle") + "/facts")


async def test_who_is_cut_off_early_says_nothing_of_the_upstream(
    upstreams: FakeUpstreams, way: Upstream
) -> None:
    upstreams.delay = 0.2
    upstreams.set_response("oracle", "/facts", {})

    for _ in range(CircuitBreaker.FAILURE_LIMIT):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(way.get(upstreams.url_of("oracle") + "/facts"), 0.02)

    assert (await way.get(upstreams.url_of("oracle") + "/facts")).status == 200


async def test_refusals_do_not_count_as_being_down(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {}, status=429)

    for _ in range(CircuitBreaker.FAILURE_LIMIT + 5):
        with pytest.raises(ProviderRateLimited):
            await way.get(upstreams.url_of("oracle") + "/facts")

    assert len(upstreams.requests) == CircuitBreaker.FAILURE_LIMIT + 5


async def test_many_ask_at_the_same_time(upstreams: FakeUpstreams, way: Upstream) -> None:
    upstreams.set_response("oracle", "/facts", {"sky": "blue"})

    replies = await asyncio.gather(*(way.get(upstreams.url_of("oracle") + "/facts") for _ in range(50)))

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
def test_an_address_that_brings_the_path_along_is_taken_as_meant(base: str, path: str, address: str) -> None:
    assert join_url(base, path) == address
