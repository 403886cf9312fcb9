"""Outages through the paid API: no new payment is settled while all sources are known to be down."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
from buyer import ApiFactory, Buyer, pay, payment_note, sign_payment
from facilitators import StubFacilitator, refuse_with
from fake_upstreams import FakeUpstreams, RecordedRequest, configure_providers, send_paid
from pydantic import SecretStr
from small_site import HTML, SiteResponse, SmallSite, serve_small_site
from test_alternatives import serve_registries

from centgate.catalog import all_services
from centgate.circuit_breaker import CircuitBreaker
from centgate.fair_queue import FairQueue
from centgate.provider import Provider
from centgate.service import AnyService
from centgate.settings import ProviderSettings, Settings

SERVICES = {service.slug: service for service in all_services()}
UNUSED = {"state": "unused", "charged": False, "retry": "same_payment"}
TOKENS = [f"0x{number:040x}" for number in range(0x10000, 0x10040)]
ENOUGH = 3 * CircuitBreaker.FAILURE_LIMIT
"""Number of requests that open the circuit breakers of all sources of a service."""


@dataclass
class Clock:
    """Clock of the circuit breakers, which a test can advance."""

    ahead: float = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def end_pause(self) -> None:
        """Advance to the time of the next trial."""
        self.ahead += CircuitBreaker.PAUSE_SECONDS


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(
        CircuitBreaker, "PAUSE_SECONDS", 60.0
    )  # no trial is due before the test advances the clock
    clock = Clock()
    monkeypatch.setattr("centgate.circuit_breaker.time", clock)
    return clock


@dataclass
class Shop:
    """API with its facilitator and the fake upstreams of its sources."""

    client: httpx.Client
    facilitator: StubFacilitator
    upstreams: FakeUpstreams

    def buy(self, slug: str, body: Any) -> httpx.Response:
        return send_paid(self.client, SERVICES[slug].path, body)

    def sign(self, slug: str, body: Any) -> str:
        return sign_payment(self.client, Buyer(), SERVICES[slug].path, body)

    def send(self, slug: str, body: Any, payment: str) -> httpx.Response:
        return pay(self.client, payment, SERVICES[slug].path, body)

    def fail(self, *names: str) -> None:
        """Let these sources fail from now on."""
        self.upstreams.faults |= dict.fromkeys(names, "500")

    def buy_until_refused(self, slug: str, body: Any) -> httpx.Response:
        """Buy until a payment is refused before it is settled, and return that response."""
        for _ in range(ENOUGH):
            response = self.buy(slug, body)
            assert response.status_code == 502, response.text
            if not payment_note(response)["charged"]:
                return response
        raise AssertionError(f"{slug} charged {ENOUGH} buyers while its sources were down")


Open = Callable[..., Shop]


@pytest.fixture
def shop(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, upstreams: FakeUpstreams, clock: Clock
) -> Open:
    """Function that opens an API with fake upstreams and keys for these sources.

    `off` are disabled; `rates` are calls a minute of those that are limited.
    """

    def open_shop(
        *names: str,
        off: tuple[str, ...] = (),
        pinned: tuple[str, ...] = (),
        rates: Mapping[str, int] | None = None,
    ) -> Shop:
        key = SecretStr("a-secret-key")
        providers = upstreams.provider_settings(*names, key=key, timeout=5, per_minute=100_000)
        for name, calls in (rates or {}).items():
            providers[name] = replace(providers[name], per_minute=calls)
        switched_off = {name: ProviderSettings(enabled=False) for name in off}
        update = {"pinned": pinned}
        client = api(configure_providers(settings.model_copy(update=update), providers | switched_off))
        return Shop(client, facilitator, upstreams)

    return open_shop


def is_networked(provider: type[Provider]) -> bool:
    """Return True for a provider that calls a configured upstream, and not URLs from buyers."""
    about = provider.info
    return bool(about.url or about.part_urls or about.per_chain or about.key != "none")


def upstream_names(provider: type[Provider]) -> list[str]:
    """Return the names that a provider's addresses have in the settings."""
    about = provider.info
    return [f"{about.name}_{part}" for part, _ in about.part_urls] or [about.name]


def list_networked_providers(service: AnyService) -> list[type[Provider]]:
    leads = [source.provider for source in service.sources if source.can_answer_alone]
    return [provider for provider in leads if is_networked(provider)]


NETWORKED = [service for service in SERVICES.values() if list_networked_providers(service)]


def test_networked_services_are_those_with_upstreams() -> None:
    samples = {"token-risk", "crawler-scrape", "phishing-check"}

    assert samples - {service.slug for service in NETWORKED} == {"phishing-check"}


@pytest.mark.extended
@pytest.mark.parametrize("service", NETWORKED, ids=lambda service: service.slug)
def test_new_payment_during_outage_is_not_settled(service: AnyService, shop: Open, clock: Clock) -> None:
    sources = [source.provider for source in service.sources]
    names = [name for each in sources if is_networked(each) for name in upstream_names(each)]
    open_shop = shop(*names, off=tuple(each.info.name for each in sources if not is_networked(each)))
    open_shop.fail(*names)
    first = open_shop.buy_until_refused(service.slug, service.input_example)
    charged = open_shop.facilitator.settle_calls
    payment = open_shop.sign(service.slug, service.input_example)

    response = open_shop.send(service.slug, service.input_example, payment)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (502, "provider_error")
    assert error["provider"] == list_networked_providers(service)[0].info.name
    assert payment_note(response) == payment_note(first) == UNUSED
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert open_shop.facilitator.settle_calls == charged

    open_shop.upstreams.faults.clear()
    clock.end_pause()
    after = open_shop.send(service.slug, service.input_example, payment)

    assert open_shop.facilitator.settle_calls == charged + 1
    assert after.status_code == 200 or payment_note(after)["charged"]


def safe_token_body() -> dict[str, Any]:
    """Return GoPlus's response for a token without findings."""
    flags = {"is_open_source": "1", "is_honeypot": "0", "buy_tax": "0", "sell_tax": "0"}
    return {"code": 1, "message": "OK", "result": {TOKENS[0]: flags}}


@pytest.mark.extended
def test_payment_refused_in_outage_is_accepted_afterwards(shop: Open, clock: Clock) -> None:
    open_shop = shop("goplus", "honeypotis", "dexscreener", "geckoterminal")
    body = {"chain": "base", "tokenAddress": TOKENS[0]}
    open_shop.fail("goplus")
    open_shop.buy_until_refused("token-risk", body)
    payment = open_shop.sign("token-risk", body)
    before = open_shop.send("token-risk", body, payment)
    charged = open_shop.facilitator.settle_calls

    open_shop.upstreams.faults.clear()
    open_shop.upstreams.set_response("goplus", "/api/v1/token_security/8453", safe_token_body())
    clock.end_pause()
    after = open_shop.send("token-risk", body, payment)

    assert payment_note(before) == UNUSED
    assert after.status_code == 200, after.text
    assert open_shop.facilitator.settle_calls == charged + 1


@pytest.mark.extended
def test_failed_enrichment_refuses_no_payment(shop: Open) -> None:
    open_shop = shop("goplus", "honeypotis", "dexscreener", "geckoterminal")
    open_shop.fail("honeypotis", "dexscreener", "geckoterminal")
    for token in TOKENS[:ENOUGH]:
        answer = {"code": 1, "message": "OK", "result": {token: {"is_open_source": "1"}}}
        open_shop.upstreams.set_response("goplus", "/api/v1/token_security/8453", answer)

        response = open_shop.buy("token-risk", {"chain": "base", "tokenAddress": token})

        assert response.status_code == 200, response.text
    assert len(open_shop.upstreams.requests_of("dexscreener")) == CircuitBreaker.FAILURE_LIMIT


def serve_pools(upstreams: FakeUpstreams, *tokens: str) -> None:
    """Let GeckoTerminal know a pool of each token."""
    for token in tokens:
        ids = {"base_token": f"base_{token}", "quote_token": f"base_{TOKENS[-1]}", "dex": "aerodrome"}
        row = {
            "attributes": {"address": TOKENS[-2], "base_token_price_usd": "1", "reserve_in_usd": "1000000"},
            "relationships": {name: {"data": {"id": each}} for name, each in ids.items()},
        }
        upstreams.set_response(
            "geckoterminal", f"/api/v2/networks/base/tokens/{token}/pools", {"data": [row]}
        )


def of_token(token: str) -> dict[str, Any]:
    return {"chain": "base", "tokenAddress": token}


@pytest.mark.extended
def test_available_fallback_answers_while_primary_is_down(shop: Open) -> None:
    open_shop = shop("dexscreener", "geckoterminal")
    open_shop.fail("dexscreener")
    serve_pools(open_shop.upstreams, *TOKENS[:ENOUGH])

    responses = [open_shop.buy("pool-snapshot", of_token(token)) for token in TOKENS[:ENOUGH]]

    assert {response.status_code for response in responses} == {200}
    assert len(open_shop.upstreams.requests_of("dexscreener")) == CircuitBreaker.FAILURE_LIMIT


def test_cached_answer_is_sold_during_outage(shop: Open) -> None:
    open_shop = shop("dexscreener", "geckoterminal")
    serve_pools(open_shop.upstreams, TOKENS[0])
    open_shop.upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{TOKENS[0]}", [])
    open_shop.upstreams.set_response("dexscreener", f"/latest/dex/pairs/base/{TOKENS[0]}", {"pairs": None})
    open_shop.buy("pool-snapshot", of_token(TOKENS[0]))
    open_shop.fail("dexscreener", "geckoterminal")
    open_shop.buy_until_refused("pool-snapshot", of_token(TOKENS[1]))
    charged = open_shop.facilitator.settle_calls

    response = open_shop.buy("pool-snapshot", of_token(TOKENS[0]))

    assert response.status_code == 200, response.text
    assert response.json()["cache"] == {"hit": True}
    assert open_shop.facilitator.settle_calls == charged + 1


@pytest.mark.extended
def test_settled_payment_runs_during_outage(shop: Open, clock: Clock) -> None:
    open_shop = shop("dexscreener", "geckoterminal")
    open_shop.fail("dexscreener", "geckoterminal")
    payment = open_shop.sign("pool-snapshot", of_token(TOKENS[0]))
    open_shop.send("pool-snapshot", of_token(TOKENS[0]), payment)
    open_shop.buy_until_refused("pool-snapshot", of_token(TOKENS[0]))

    during = open_shop.send("pool-snapshot", of_token(TOKENS[0]), payment)
    open_shop.upstreams.faults.clear()
    serve_pools(open_shop.upstreams, TOKENS[0])
    clock.end_pause()
    after = open_shop.send("pool-snapshot", of_token(TOKENS[0]), payment)

    assert (payment_note(during)["state"], payment_note(during)["charged"]) == ("settled", True)
    assert after.status_code == 200, after.text


def test_delivered_payment_is_replayed_during_outage(shop: Open) -> None:
    open_shop = shop("phishinglist", "exa", off=("searxng", "brave"))
    body = {"query": "kumquat"}
    found = {"results": [{"id": "1", "url": "https://a.test/1", "title": "A"}]}
    open_shop.upstreams.set_response("exa", "/search", found, method="POST")
    payment = open_shop.sign("neuralweb-search", body)
    delivered = open_shop.send("neuralweb-search", body, payment)
    open_shop.fail("exa")
    open_shop.buy_until_refused("neuralweb-search", {"query": "another"})

    response = open_shop.send("neuralweb-search", body, payment)

    assert delivered.status_code == 200, delivered.text
    assert response.headers["Idempotent-Replayed"] == "true"
    assert response.content == delivered.content


@pytest.mark.extended
def test_payment_refused_by_facilitator_counts_as_new(shop: Open) -> None:
    open_shop = shop("exa", off=("searxng", "brave"))
    open_shop.fail("exa")
    payment = open_shop.sign("neuralweb-search", {"query": "kumquat"})
    open_shop.facilitator.next.append(refuse_with("insufficient_funds"))
    open_shop.send("neuralweb-search", {"query": "kumquat"}, payment)
    open_shop.buy_until_refused("neuralweb-search", {"query": "kumquat"})
    charged = open_shop.facilitator.settle_calls

    response = open_shop.send("neuralweb-search", {"query": "kumquat"}, payment)

    assert payment_note(response) == UNUSED
    assert open_shop.facilitator.settle_calls == charged


def test_unpaid_request_gets_terms_during_outage(shop: Open) -> None:
    open_shop = shop("exa", off=("searxng", "brave"))
    open_shop.fail("exa")
    open_shop.buy_until_refused("neuralweb-search", {"query": "kumquat"})

    response = open_shop.client.post(SERVICES["neuralweb-search"].path, json={"query": "kumquat"})

    assert response.status_code == 402


@pytest.mark.extended
def test_pinned_source_that_is_down_refuses_payment(shop: Open) -> None:
    open_shop = shop("exa", "searxng", pinned=("neuralweb-search=exa",))
    open_shop.fail("exa")

    response = open_shop.buy_until_refused("neuralweb-search", {"query": "kumquat"})

    assert response.json()["error"]["provider"] == "exa"


@pytest.mark.extended
def test_source_without_requested_option_does_not_count(shop: Open) -> None:
    open_shop = shop("exa", "searxng", off=("brave",))
    open_shop.fail("exa")
    found = {"results": [{"url": "https://a.test/1", "title": "A"}]}
    open_shop.upstreams.set_response("searxng", "/search", found)
    open_shop.buy_until_refused("neuralweb-search", {"query": "kumquat", "category": "company"})

    response = open_shop.buy("neuralweb-search", {"query": "kumquat"})

    assert response.status_code == 200, response.text


@pytest.mark.extended
def test_built_in_reader_answers_while_keyed_source_is_down(shop: Open) -> None:
    open_shop = shop("firecrawl")
    open_shop.fail("firecrawl")

    responses = [
        open_shop.buy("crawler-scrape", {"url": f"https://site.invalid/{number}"})
        for number in range(CircuitBreaker.FAILURE_LIMIT + 2)
    ]

    assert len(open_shop.upstreams.requests_of("firecrawl")) == CircuitBreaker.FAILURE_LIMIT
    assert {payment_note(response)["charged"] for response in responses} == {True}


def serve_safe_tokens(upstreams: FakeUpstreams) -> None:
    """Let GoPlus know all of TOKENS, without findings."""
    flags = safe_token_body()["result"][TOKENS[0]]
    answer = {"code": 1, "message": "OK", "result": dict.fromkeys(TOKENS, flags)}
    upstreams.set_response("goplus", "/api/v1/token_security/8453", answer)


def test_reached_rate_limit_refuses_before_payment(shop: Open) -> None:
    open_shop = shop("goplus", off=("rpc",), rates={"goplus": 4})
    serve_safe_tokens(open_shop.upstreams)
    responses = [open_shop.buy("token-risk", of_token(token)) for token in TOKENS[:6]]
    calls = len(open_shop.upstreams.requests_of("goplus"))

    sold = [each for each in responses if each.status_code == 200]
    refused = responses[len(sold) :]
    assert 1 <= len(sold) == open_shop.facilitator.settle_calls <= 4, "no buyer was charged for a refusal"
    for response in refused:
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (429, "provider_rate_limited")
        assert (error["provider"], payment_note(response)) == ("goplus", UNUSED)
        assert 5 < int(response.headers["Retry-After"]) <= 60
    again = open_shop.buy("token-risk", of_token(TOKENS[0]))
    assert again.json()["cache"] == {"hit": True}, "answers in the cache are sold"
    assert len(open_shop.upstreams.requests_of("goplus")) == calls


def test_equal_request_joins_call_that_reached_rate_limit(shop: Open) -> None:
    open_shop = shop("goplus", off=("rpc",), rates={"goplus": 2})
    serve_safe_tokens(open_shop.upstreams)
    open_shop.upstreams.delay = 1.5
    payment = open_shop.sign("token-risk", of_token(TOKENS[0]))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(open_shop.buy, "token-risk", of_token(TOKENS[0]))
        while not (open_shop.upstreams.requests_of("goplus") or first.done()):
            time.sleep(0.01)
        other = open_shop.buy("token-risk", of_token(TOKENS[1]))
        equal = open_shop.send("token-risk", of_token(TOKENS[0]), payment)

    assert (other.status_code, payment_note(other)) == (429, UNUSED)
    assert {first.result().status_code, equal.status_code} == {200}
    assert len(open_shop.upstreams.requests_of("goplus")) == 1


@pytest.mark.extended
def test_fallback_answers_while_rate_limit_of_primary_is_reached(shop: Open) -> None:
    open_shop = shop("dexscreener", "geckoterminal", rates={"dexscreener": 2})
    serve_pools(open_shop.upstreams, *TOKENS[:6])

    responses = [open_shop.buy("pool-snapshot", of_token(token)) for token in TOKENS[:6]]

    assert {response.status_code for response in responses} == {200}
    assert len(open_shop.upstreams.requests_of("dexscreener")) <= 2


def set_wait(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let every queue estimate this wait."""

    def estimate_wait(_queue: FairQueue, _keys: Sequence[str]) -> float:
        return seconds

    monkeypatch.setattr(FairQueue, "estimate_wait", estimate_wait)


def test_long_queue_of_page_reader_refuses_before_payment(
    shop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_shop, body = shop(off=("firecrawl",)), {"url": "https://site.invalid/"}
    signed = open_shop.sign("crawler-scrape", body)
    set_wait(monkeypatch, 7.2)

    refused = open_shop.send("crawler-scrape", body, signed)
    monkeypatch.undo()
    accepted = open_shop.send("crawler-scrape", body, signed)

    error = refused.json()["error"]
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "8")
    assert (error["code"], error["provider"]) == ("provider_rate_limited", "pagereader")
    assert payment_note(refused) == UNUSED
    assert payment_note(accepted)["charged"]


def test_short_queue_of_page_reader_is_accepted(shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    set_wait(monkeypatch, 1.0)

    response = shop(off=("firecrawl",)).buy("crawler-scrape", {"url": "https://site.invalid/"})

    assert payment_note(response)["charged"]


@pytest.mark.parametrize("state", ["in settlement", "settled"])
def test_settled_request_counts_in_queue_of_page_reader(
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
) -> None:
    """A payment without money, which is refused when it is settled, keeps nobody out."""
    monkeypatch.setattr("centgate.outage.MAX_WAIT_SHARE", 0.001)
    off = {"firecrawl": ProviderSettings(enabled=False)}
    changes = {"providers": off, "page_processes": 1, "fetch_allowed": (urlsplit(upstreams.url).netloc,)}
    open_shop = Shop(api(settings.model_copy(update=changes)), facilitator, upstreams)
    bodies = [{"url": f"{upstreams.url}/site/{number}"} for number in range(2)]
    first, second = (open_shop.sign("crawler-scrape", body) for body in bodies)
    in_settlement = state == "in settlement"
    if in_settlement:
        facilitator.usually = facilitator.reply_slowly(1.5)
    else:
        upstreams.delay = 1.5

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(open_shop.send, "crawler-scrape", bodies[0], first)
        while not ((facilitator.settle_calls if in_settlement else upstreams.requests) or answer.done()):
            time.sleep(0.01)
        other = open_shop.send("crawler-scrape", bodies[1], second)
        assert payment_note(answer.result())["charged"]

    assert payment_note(other)["state"] == ("delivered" if in_settlement else "unused")


PAGE_SERVICES: dict[str, Callable[[str], Any]] = {
    "crawler-scrape": lambda url: {"url": url},
    "crawler-map": lambda url: {"url": url},
    "neuralweb-contents": lambda url: {"urls": [url]},
}
"""Request for a page, by service."""


class SlowSite(SmallSite):
    """Site of pages with some text, which takes a while for each."""

    def response_for(self, path: str) -> SiteResponse:
        time.sleep(0.8)
        return SiteResponse(200, {"Content-Type": HTML}, b"<p>A page with a sentence of some words.</p>")


@pytest.fixture
def slow_site() -> Generator[SmallSite]:
    with serve_small_site(SlowSite()) as site:
        yield site


@pytest.fixture
def slow_shop(
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    slow_site: SmallSite,
) -> Shop:
    """API that may read pages of the slow site."""
    off = {name: ProviderSettings(enabled=False) for name in ("firecrawl", "exa")}
    changes = {"providers": off, "fetch_allowed": (slow_site.address,), "fetch_robots": False}
    return Shop(api(settings.model_copy(update=changes)), facilitator, upstreams)


def buy_at_once(shop: Shop, slug: str, urls: Sequence[str]) -> list[httpx.Response]:
    """Send a request for each page at the same time, each with a payment of its own."""
    bodies = [PAGE_SERVICES[slug](url) for url in urls]
    payments = [shop.sign(slug, body) for body in bodies]
    with ThreadPoolExecutor(len(urls)) as pool:
        return list(pool.map(partial(shop.send, slug), bodies, payments))


@pytest.mark.extended
@pytest.mark.parametrize("slug", PAGE_SERVICES)
def test_long_queue_of_host_refuses_before_payment(slow_shop: Shop, slow_site: SmallSite, slug: str) -> None:
    urls = [f"{slow_site.url}/{number}" for number in range(30)]

    responses = buy_at_once(slow_shop, slug, urls)

    refused = [each for each in responses if each.status_code == 429]
    assert len(refused) >= 10
    for response in refused:
        error = response.json()["error"]
        assert (error["code"], payment_note(response)) == ("provider_rate_limited", UNUSED)
        assert error["provider"] == ("sitemapper" if slug == "crawler-map" else "pagereader")
        assert 1 <= int(response.headers["Retry-After"]) <= 15
    assert {each.status_code for each in responses} == {200, 429}
    assert slow_shop.facilitator.settle_calls == len(responses) - len(refused)


@pytest.mark.extended
@pytest.mark.parametrize("slug", PAGE_SERVICES)
def test_equal_requests_for_slow_host_are_answered(slow_shop: Shop, slow_site: SmallSite, slug: str) -> None:
    responses = buy_at_once(slow_shop, slug, [f"{slow_site.url}/1"] * 30)

    assert {each.status_code for each in responses} == {200}


def test_single_requests_for_slow_host_are_answered(slow_shop: Shop, slow_site: SmallSite) -> None:
    urls = [f"{slow_site.url}/{number}" for number in range(3)]

    responses = [slow_shop.buy("crawler-scrape", {"url": url}) for url in urls]

    assert {each.status_code for each in responses} == {200}


def test_requests_for_cached_pages_keep_no_other_from_host(slow_shop: Shop, slow_site: SmallSite) -> None:
    bodies = [{"url": f"{slow_site.url}/{number}"} for number in range(12)]
    for body in bodies:
        assert slow_shop.buy("crawler-scrape", body).status_code == 200
    *payments, wanted = (slow_shop.sign("crawler-scrape", body) for body in [*bodies, {"url": slow_site.url}])
    facilitator = slow_shop.facilitator
    facilitator.usually, calls = facilitator.reply_slowly(2), facilitator.settle_calls

    with ThreadPoolExecutor(len(bodies)) as pool:
        cached = [
            pool.submit(slow_shop.send, "crawler-scrape", *each)
            for each in zip(bodies, payments, strict=True)
        ]
        while facilitator.settle_calls < calls + len(bodies):
            time.sleep(0.01)
        response = slow_shop.send("crawler-scrape", {"url": slow_site.url}, wanted)

    assert {each.result().status_code for each in cached} == {200}
    assert response.status_code == 200, response.text


def send_from(shop: Shop, address: str, slug: str, body: Any, payment: str) -> httpx.Response:
    """Send a paid request as the proxy forwards it for a client address."""
    headers = {"PAYMENT-SIGNATURE": payment, "X-Forwarded-For": address}
    return shop.client.post(SERVICES[slug].path, json=body, headers=headers)


def test_unpaid_requests_of_one_address_keep_no_other_from_host(
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    slow_site: SmallSite,
) -> None:
    off = {name: ProviderSettings(enabled=False) for name in ("firecrawl", "exa")}
    changes = {"providers": off, "fetch_allowed": (slow_site.address,), "fetch_robots": False}
    changes |= {"trusted_proxies": ("127.0.0.1",)}
    shop = Shop(api(settings.model_copy(update=changes)), facilitator, upstreams)
    pages = [[f"{slow_site.url}/{number}-{page}" for page in range(5)] for number in range(4)]
    empty = [(body, shop.sign("neuralweb-contents", body)) for body in ({"urls": urls} for urls in pages)]
    body = {"url": f"{slow_site.url}/wanted"}
    signed = shop.sign("crawler-scrape", body)
    facilitator.usually = facilitator.reply_slowly(2, refuse_with("insufficient_funds"))

    with ThreadPoolExecutor(len(empty)) as pool:
        stranger = partial(send_from, shop, "198.51.100.7", "neuralweb-contents")
        refused = [pool.submit(stranger, *each) for each in empty]
        while facilitator.settle_calls + sum(each.done() for each in refused) < len(empty):
            time.sleep(0.01)
        facilitator.usually = facilitator.settle
        response = send_from(shop, "203.0.113.9", "crawler-scrape", body, signed)

    assert {each.result().status_code for each in refused} <= {402, 429}
    assert response.status_code == 200, response.text


def empty_chain(asked: RecordedRequest) -> tuple[int, Any]:
    """Fake node of a chain without contents."""

    def result(request: Mapping[str, Any]) -> Any:
        empty = "0x" + "0" * 64 if request["method"] == "eth_getStorageAt" else "0x"
        return {"jsonrpc": "2.0", "id": request["id"], "result": empty}

    if isinstance(asked.body, dict):
        return 200, result(cast(Mapping[str, Any], asked.body))
    return 200, [result(each) for each in cast(list[Any], asked.body)]


def test_contract_explain_uses_chain_if_all_registries_are_down(shop: Open) -> None:
    open_shop = shop("etherscan", "sourcify", "blockscout", "rpc")
    open_shop.upstreams.set_response_function("rpc", "/", empty_chain, method="POST")
    open_shop.fail("etherscan", "sourcify", "blockscout")
    bodies = [{"chainId": 8453, "contractAddress": f"0x{number:040x}"} for number in range(16, 16 + ENOUGH)]

    statuses = {open_shop.buy("contract-explain", body).status_code for body in bodies}

    assert statuses == {200}


def test_contract_explain_is_refused_if_all_sources_are_down(shop: Open) -> None:
    open_shop = shop("etherscan", "sourcify", "blockscout", "rpc")
    open_shop.fail("etherscan", "sourcify", "blockscout", "rpc")

    response = open_shop.buy_until_refused(
        "contract-explain", {"chainId": 8453, "contractAddress": TOKENS[0]}
    )

    assert response.json()["error"]["provider"] == "etherscan"
    assert "Etherscan and Sourcify and Blockscout" in response.json()["error"]["message"]


def test_contract_explain_uses_chain_without_registries(shop: Open) -> None:
    open_shop = shop("rpc", off=("etherscan", "sourcify", "blockscout"))
    body = {"chainId": 8453, "contractAddress": TOKENS[0]}
    open_shop.fail("rpc")
    open_shop.buy_until_refused("contract-explain", body)
    open_shop.upstreams.faults.clear()
    open_shop.upstreams.set_response_function("rpc", "/", empty_chain, method="POST")

    other_chain = open_shop.buy("contract-explain", body | {"chainId": 10})
    same_chain = open_shop.buy("contract-explain", body)

    assert other_chain.status_code == 200, other_chain.text
    assert payment_note(same_chain) == UNUSED


def test_cached_directory_is_used_during_outage(shop: Open) -> None:
    open_shop = shop("defillama", off=("exa",))
    listed = [{"slug": name, "name": name, "category": "Lending", "tvl": 1} for name in ("aave", "lido")]
    open_shop.upstreams.set_response("defillama", "/protocols", listed)
    open_shop.buy("protocol-context", {"protocol": "aave"})
    open_shop.fail("defillama")
    for number in range(CircuitBreaker.FAILURE_LIMIT):
        open_shop.buy("protocol-context", {"protocol": f"unlisted-{number}"})

    response = open_shop.buy("protocol-context", {"protocol": "lido"})

    assert response.status_code == 200, response.text


def test_web_search_does_not_replace_directory_that_is_down(shop: Open) -> None:
    open_shop = shop("defillama", "exa")
    open_shop.fail("defillama")

    response = open_shop.buy_until_refused("protocol-context", {"protocol": "aave"})

    assert response.json()["error"]["provider"] == "defillama"


def test_package_of_available_registry_is_sold(shop: Open) -> None:
    open_shop = shop("packagedocs_pypi", "packagedocs_npm", off=("context7",))
    open_shop.fail("packagedocs_pypi")
    open_shop.buy_until_refused("libdocs-query-docs", {"libraryId": "/pypi/kumquat"})

    response = open_shop.buy("libdocs-query-docs", {"libraryId": "/npm/kumquat"})

    assert response.status_code == 404, response.text
    assert payment_note(response)["charged"]


def test_indexed_documentation_is_sold_during_outage(shop: Open) -> None:
    open_shop = shop("packagedocs_pypi", "packagedocs_npm", off=("context7",))
    serve_registries(open_shop.upstreams)
    open_shop.buy("libdocs-query-docs", {"libraryId": "/pypi/kumquat"})
    open_shop.fail("packagedocs_pypi", "packagedocs_npm")
    open_shop.buy_until_refused("libdocs-query-docs", {"libraryId": "/pypi/another"})

    response = open_shop.buy("libdocs-query-docs", {"libraryId": "/pypi/kumquat", "topic": "peel"})

    assert response.status_code == 200, response.text


@pytest.fixture
def down(shop: Open) -> Shop:
    """An API whose only source is down until the test repairs it."""
    open_shop = shop("exa", off=("searxng", "brave"))
    open_shop.fail("exa")
    open_shop.buy_until_refused("neuralweb-search", {"query": "kumquat"})
    return open_shop


def buy_concurrently(open_shop: Shop, payments: list[str], body: Any) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(payments)) as pool:
        return list(pool.map(partial(open_shop.send, "neuralweb-search", body), payments))


@pytest.mark.extended
def test_trial_is_given_to_one_buyer(down: Shop, clock: Clock) -> None:
    body = {"query": "kumquat"}
    payments = [down.sign("neuralweb-search", body) for _ in range(12)]
    charged = down.facilitator.settle_calls
    down.facilitator.usually = down.facilitator.reply_slowly(0.3)
    clock.end_pause()

    responses = buy_concurrently(down, payments, body)

    assert sorted(payment_note(response)["charged"] for response in responses) == [False] * 11 + [True]
    assert down.facilitator.settle_calls == charged + 1


@pytest.mark.extended
def test_trial_that_is_sent_twice_runs_once(down: Shop, clock: Clock) -> None:
    body = {"query": "kumquat"}
    payment = down.sign("neuralweb-search", body)
    down.upstreams.faults.clear()
    down.upstreams.set_response("exa", "/search", {"results": []}, method="POST")
    down.facilitator.usually = down.facilitator.reply_slowly(0.3)
    clock.end_pause()

    responses = buy_concurrently(down, [payment] * 4, body)

    assert {response.status_code for response in responses} == {200}


@pytest.mark.extended
def test_trial_with_failed_payment_delays_next_by_one_pause(down: Shop, clock: Clock) -> None:
    down.upstreams.faults.clear()
    down.upstreams.set_response("exa", "/search", {"results": []}, method="POST")
    broke = refuse_with("insufficient_funds")
    down.facilitator.next += [broke, broke]
    clock.end_pause()

    reserved = [down.buy("neuralweb-search", {"query": "kumquat"}).status_code for _ in range(2)]
    clock.end_pause()
    unreserved = [down.buy("neuralweb-search", {"query": "kumquat"}).status_code for _ in range(2)]

    assert (reserved, unreserved) == ([402, 502], [402, 200])
