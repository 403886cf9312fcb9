"""Rate limits by client address, payment and payer: unpaid and refused work is limited, paid work is not."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from buyer import (
    PHISHING,
    QUESTION,
    ApiFactory,
    Buyer,
    encode_header,
    fetch_terms,
    pay,
    payment_note,
    sign_payload,
    sign_payment,
    with_identifier,
)
from facilitators import StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams, RecordedRequest

from centgate import client_limits
from centgate.catalog import all_services
from centgate.settings import Settings

BURST = 4
MANY_TOKENS = 500
"""More requests than an address has tokens where a test uses them up."""
POOL, TOKEN = "/services/pool-snapshot", {"chain": "base", "tokenAddress": "0x" + "a1" * 20}
OTHER = {"url": "https://example.org/"}
Start = Callable[..., httpx.Client]


@pytest.fixture
def start_limited(api: ApiFactory, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return a function that serves the API with three tokens a minute: none comes back during a test."""
    # a test sends these before a token comes back
    monkeypatch.setattr(client_limits, "WRONG_REQUESTS_BURST", 10)
    monkeypatch.setattr(client_limits, "RERUNS_BURST", 10)

    def start(**changes: Any) -> httpx.Client:
        given = {"free_per_minute": 3, "free_burst": BURST, "trusted_proxies": ("127.0.0.1",), **changes}
        return api(settings.model_copy(update=given))

    return start


def set_address(client: httpx.Client, address: str) -> None:
    client.headers["X-Forwarded-For"] = address


def use_up_tokens(client: httpx.Client) -> None:
    """Use up the tokens of the client's address; fails the test if there is no limit."""
    answers = (client.get("/services").status_code for _ in range(MANY_TOKENS))
    assert any(status != 200 for status in answers)


def read_code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def count_statuses(responses: list[httpx.Response]) -> dict[int, int]:
    return dict(Counter(response.status_code for response in responses))


def send_at_once(send: Callable[[int], httpx.Response], times: int) -> list[httpx.Response]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(send, range(times)))


def test_unpaid_requests_without_tokens_are_refused(start_limited: Start) -> None:
    client = start_limited()

    responses = [client.post(PHISHING, json=QUESTION) for _ in range(BURST + 1)]

    assert [response.status_code for response in responses] == [402] * BURST + [429]
    assert read_code(responses[-1]) == (429, "rate_limited")
    assert 15 <= int(responses[-1].headers["Retry-After"]) <= 20
    assert "details" not in responses[-1].json()["error"]


def test_limit_applies_before_body_is_read(start_limited: Start) -> None:
    client = start_limited()
    use_up_tokens(client)

    assert read_code(client.post(PHISHING, content=b"{nonsense")) == (429, "rate_limited")


def test_invalid_requests_and_unknown_routes_count(start_limited: Start) -> None:
    client = start_limited()

    assert client.post(PHISHING, content=b"{nonsense").status_code == 400
    assert client.get("/nowhere").status_code == 404
    assert client.delete(PHISHING).status_code == 405
    assert client.get("/services").status_code == 200
    assert [client.get(path).status_code for path in ("/services", PHISHING, "/nowhere")] == [429] * 3


def test_concurrent_requests_are_limited(start_limited: Start) -> None:
    client = start_limited()

    responses = send_at_once(lambda _: client.post(PHISHING, json=QUESTION), 24)

    assert count_statuses(responses) == {402: BURST, 429: 24 - BURST}


def test_each_address_has_its_own_tokens(start_limited: Start) -> None:
    client = start_limited()
    use_up_tokens(client)

    for address, status in [
        ("192.0.2.1", 402),
        ("::ffff:127.0.0.1", 429),
        ("2001:db8::1", 402),
    ]:
        set_address(client, address)
        assert client.post(PHISHING, json=QUESTION).status_code == status
    use_up_tokens(client)
    set_address(client, "2001:db8::ffff:1")
    assert client.post(PHISHING, json=QUESTION).status_code == 429
    set_address(client, "2001:db8:0:1::1")
    assert client.post(PHISHING, json=QUESTION).status_code == 402


def test_forwarded_address_needs_trusted_proxy(start_limited: Start) -> None:
    client = start_limited(trusted_proxies=())
    use_up_tokens(client)

    set_address(client, "192.0.2.1")

    assert client.get("/services").status_code == 429


def test_health_is_never_limited(start_limited: Start) -> None:
    client = start_limited()
    use_up_tokens(client)

    for path in ("/health", "/livez", "/readyz"):
        assert {client.get(path).status_code for _ in range(10)} == {200}


@pytest.mark.extended
def test_default_limits_allow_ten_catalogue_reads(start_limited: Start) -> None:
    usual = Settings.model_fields
    client = start_limited(
        free_per_minute=usual["free_per_minute"].default, free_burst=usual["free_burst"].default
    )
    paths = ["/", "/services", "/openapi.json", "/.well-known/x402"]
    paths += [f"/services/{service.slug}" for service in all_services()]

    read = [client.get(path).status_code for path in paths * 10]

    assert set(read) == {200}


def test_limited_response_is_readable_cross_origin(start_limited: Start) -> None:
    client = start_limited()
    use_up_tokens(client)

    response = client.post(PHISHING, json=QUESTION, headers={"Origin": "https://shop.example"})

    assert response.status_code == 429
    assert response.headers["Access-Control-Allow-Origin"] == "*"


def test_new_payment_of_limited_address_stays_unused(
    start_limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = start_limited()
    payment = sign_payment(client, buyer)
    use_up_tokens(client)

    response = pay(client, payment)

    assert read_code(response) == (429, "rate_limited")
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert facilitator.settle_calls == 0
    set_address(client, "192.0.2.1")
    assert pay(client, payment).status_code == 200


@pytest.mark.parametrize("header", ["nonsense", "e30="])
def test_unreadable_payment_of_limited_address_is_not_parsed(start_limited: Start, header: str) -> None:
    client = start_limited()
    use_up_tokens(client)

    assert read_code(pay(client, header)) == (429, "rate_limited")


@pytest.mark.extended
def test_repeated_payment_is_never_limited(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited()
    payment = sign_payment(client, buyer)
    first = pay(client, payment)
    use_up_tokens(client)

    again = [pay(client, payment) for _ in range(15)] + send_at_once(lambda _: pay(client, payment), 15)

    assert {response.content for response in again} == {first.content}


@pytest.mark.extended
def test_open_payment_is_never_limited(
    start_limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = start_limited()
    payment = sign_payment(client, buyer)
    facilitator.usually = reply_with(500, "down")
    assert pay(client, payment).status_code == 502
    use_up_tokens(client)

    doubtful = [pay(client, payment).status_code for _ in range(12)]
    facilitator.usually = facilitator.settle

    assert (set(doubtful), pay(client, payment).status_code) == ({502}, 200)


def test_refused_payment_of_limited_address_is_not_resubmitted(
    start_limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = start_limited()
    payment = sign_payment(client, buyer)
    facilitator.next = [refuse_with("insufficient_funds")]
    assert pay(client, payment).status_code == 402
    use_up_tokens(client)

    assert read_code(pay(client, payment)) == (429, "rate_limited")
    assert facilitator.settle_calls == 1


@pytest.mark.extended
def test_purchases_use_no_tokens(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_burst=2)

    bought = [pay(client, sign_payment(client, buyer)).status_code for _ in range(8)]

    assert bought == [200] * 8


@pytest.mark.extended
def test_replays_return_no_tokens(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited()
    payment = sign_payment(client, buyer)
    pay(client, payment)
    use_up_tokens(client)

    for _ in range(5):
        assert pay(client, payment).status_code == 200

    assert client.get("/services").status_code == 429


def test_settled_payment_returns_its_token(
    start_limited: Start, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    arrived, release = threading.Event(), threading.Event()

    def answer(_request: RecordedRequest) -> tuple[int, Any]:
        arrived.set()
        release.wait(10)
        return 200, []

    upstreams.set_response_function("dexscreener", f"/token-pairs/v1/base/{TOKEN['tokenAddress']}", answer)
    providers = upstreams.provider_settings("dexscreener")
    client = start_limited(free_burst=2, providers=providers, pinned=("pool-snapshot=dexscreener",))
    payment = sign_payment(client, buyer, POOL, TOKEN)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pay, client, payment, POOL, TOKEN)
        assert arrived.wait(10)
        read = [client.get("/services").status_code for _ in range(3)]
        release.set()

    assert (read, waiting.result().status_code) == ([200, 200, 429], 404)


@pytest.mark.parametrize("free", [3, 0], ids=["limited", "free requests unlimited"])
def test_runs_of_settled_payment_are_limited(
    start_limited: Start, upstreams: FakeUpstreams, buyer: Buyer, free: int
) -> None:
    path = f"/token-pairs/v1/base/{TOKEN['tokenAddress']}"
    upstreams.set_response("dexscreener", path, {}, status=500)
    providers = upstreams.provider_settings("dexscreener")
    client = start_limited(providers=providers, pinned=("pool-snapshot=dexscreener",), free_per_minute=free)
    payment = sign_payment(client, buyer, POOL, TOKEN)

    responses = [pay(client, payment, POOL, TOKEN) for _ in range(13)]

    assert [response.status_code for response in responses] == [502] * 11 + [429] * 2
    note = payment_note(responses[-1])
    assert (note["state"], note["charged"], note["retry"]) == ("settled", True, "same_payment")
    assert int(responses[-1].headers["Retry-After"]) <= 300


def test_buyer_can_retry_often_while_source_fails(
    api: ApiFactory, settings: Settings, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    path = f"/token-pairs/v1/base/{TOKEN['tokenAddress']}"
    upstreams.set_response("dexscreener", path, {}, status=500)
    providers = upstreams.provider_settings("dexscreener")
    changes = {"providers": providers, "pinned": ("pool-snapshot=dexscreener",)}
    client = api(settings.model_copy(update=changes))
    payment = sign_payment(client, buyer, POOL, TOKEN)

    responses = [pay(client, payment, POOL, TOKEN) for _ in range(50)]

    assert {response.status_code for response in responses} == {502}


def send_wrong_requests(client: httpx.Client, payment: str, count: int) -> list[Callable[[], httpx.Response]]:
    bodies = [{"url": f"https://guess-{number}.example/"} for number in range(count)]
    return [partial(pay, client, payment, body=body) for body in bodies]


def test_payment_is_refused_on_all_other_routes(api: ApiFactory, settings: Settings, buyer: Buyer) -> None:
    """A buyer that tries every route, and many requests together, is told each time what is wrong."""
    defaults = Settings()
    limits = {"free_per_minute": defaults.free_per_minute, "free_burst": defaults.free_burst}
    client = api(settings.model_copy(update=limits))
    payment = sign_payment(client, buyer)
    first = pay(client, payment)
    others = [service for service in all_services() if service.path != PHISHING]

    alone = [pay(client, payment, service.path, service.input_example) for service in others]
    sent = send_wrong_requests(client, payment, 40)
    together = send_at_once(lambda number: sent[number](), 40)

    assert {response.status_code for response in (*alone, *together)} == {402}
    assert pay(client, payment).content == first.content


def test_wrong_requests_for_payment_are_limited(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_burst=1000)
    payment = sign_payment(client, buyer)
    assert pay(client, payment).status_code == 200

    responses = [guess() for guess in send_wrong_requests(client, payment, 12)]
    right = pay(client, payment)

    assert [response.status_code for response in responses] == [402] * 10 + [429] * 2
    assert {response.json()["error"]["details"].get("reason") for response in responses[:10]} == {
        "payment_already_used"
    }
    assert read_code(right) == (429, "rate_limited")
    assert {**payment_note(right), "transaction": ""} == {
        "state": "delivered",
        "charged": True,
        "retry": "same_payment",
        "transaction": "",
    }
    assert 1 <= int(right.headers["Retry-After"]) <= 6


def test_wrong_requests_do_not_block_buyer_at_another_address(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_burst=1000)
    payment = sign_payment(client, buyer)
    first = pay(client, payment)
    for guess in send_wrong_requests(client, payment, 12):
        guess()

    set_address(client, "192.0.2.1")

    assert pay(client, payment).content == first.content


def test_concurrent_wrong_requests_are_limited(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_burst=1000)
    payment = sign_payment(client, buyer)
    pay(client, payment)
    sent = send_wrong_requests(client, payment, 30)

    responses = send_at_once(lambda number: sent[number](), 30)

    assert count_statuses(responses) == {402: 10, 429: 20}


def test_wrong_requests_are_counted_by_payment_not_header(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_burst=1000)
    payload = sign_payload(client, buyer)
    pay(client, encode_header(payload))
    headers = [encode_header({**payload, "extensions": {"n": {"info": number}}}) for number in range(12)]

    responses = [pay(client, header, body=OTHER).status_code for header in headers]

    assert responses == [402] * 10 + [429] * 2


def test_wrong_requests_for_idempotency_key_are_limited(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_burst=1000)
    pay(client, with_identifier(sign_payload(client, buyer), "the-key-of-one-request"))
    another = with_identifier(sign_payload(client, buyer), "the-key-of-one-request")

    responses = [pay(client, another, body=OTHER) for _ in range(12)]

    assert [response.status_code for response in responses] == [409] * 10 + [429] * 2
    assert payment_note(responses[-1])["state"] == "unused"


def test_known_payment_does_not_bypass_invalid_request_limit(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited()
    payment = sign_payment(client, buyer)
    pay(client, payment)
    use_up_tokens(client)

    responses = [pay(client, payment, body={"url": 1}).status_code for _ in range(12)]

    assert responses == [400] * 10 + [429] * 2


def test_refused_settlements_are_limited_by_payer(
    start_limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = start_limited(free_burst=1000, refused_per_minute=3)
    bought = sign_payment(client, buyer)
    first = pay(client, bought)
    facilitator.usually = refuse_with("insufficient_funds")

    responses = [pay(client, sign_payment(client, buyer)) for _ in range(5)]
    facilitator.usually = facilitator.settle

    assert [response.status_code for response in responses] == [402] * 3 + [429] * 2
    assert payment_note(responses[-1]) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert facilitator.settle_calls == 4
    assert pay(client, sign_payment(client, Buyer(1))).status_code == 200
    set_address(client, "192.0.2.1")
    assert read_code(pay(client, sign_payment(client, buyer))) == (429, "rate_limited")
    assert pay(client, bought).content == first.content


def test_signatures_of_strangers_do_not_limit_payer(
    start_limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = start_limited(free_burst=1000, refused_per_minute=3)
    facilitator.usually = refuse_with("invalid_exact_evm_payload_signature")
    for _ in range(5):
        payload = sign_payload(client, buyer)
        payload["payload"]["signature"] = (
            "0x" + "5e" * 90
        )  # as of a wallet whose signature only the facilitator can check
        assert pay(client, encode_header(payload)).status_code == 402
    assert facilitator.settle_calls == 5

    facilitator.usually = facilitator.settle

    assert pay(client, sign_payment(client, buyer)).status_code == 200


def test_wrong_signatures_count_ten_times(start_limited: Start, buyer: Buyer) -> None:
    """Each may make nodes look for a contract at an address that a stranger chose."""
    client = start_limited(free_per_minute=1, free_burst=25)
    terms = fetch_terms(client)
    payloads = [buyer.payload(terms, now=int(time.time())) for _ in range(4)]
    for number, payload in enumerate(payloads):
        payload["payload"]["authorization"]["from"] = "0x" + f"{number + 1:040x}"

    statuses = [pay(client, encode_header(payload)).status_code for payload in payloads]

    assert statuses == [402, 402, 402, 429]


def test_slow_clock_does_not_limit_known_payment(
    start_limited: Start, buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, right = start_limited(), time.time
    now = int(right())
    payment = encode_header(buyer.payload(fetch_terms(client), now=now, validAfter=str(now - 60)))
    first = pay(client, payment)
    use_up_tokens(client)
    monkeypatch.setattr(time, "time", lambda: right() - 3600)

    assert pay(client, payment).content == first.content


def test_zero_per_minute_disables_limits(start_limited: Start, buyer: Buyer) -> None:
    client = start_limited(free_per_minute=0, free_burst=1)
    payment = sign_payment(client, buyer)
    pay(client, payment)

    assert {guess().status_code for guess in send_wrong_requests(client, payment, 15)} == {402}
    assert {fetch_terms(client) for _ in range(15)}


def test_refused_payments_of_many_payers_count_ten_times(
    start_limited: Start, facilitator: StubFacilitator
) -> None:
    client = start_limited(free_per_minute=1, free_burst=25)
    terms = fetch_terms(client)
    facilitator.usually = refuse_with("insufficient_funds")
    payments = [encode_header(Buyer(number).payload(terms, now=int(time.time()))) for number in range(4)]

    statuses = [pay(client, payment).status_code for payment in payments]

    assert statuses == [402, 402, 402, 429]


@pytest.mark.parametrize("at_once", [1, 8])
def test_guesses_with_payments_of_others_are_limited_by_address(start_limited: Start, at_once: int) -> None:
    client = start_limited()
    payments: list[str] = []
    for number in range(BURST + client_limits.WRONG_REQUESTS_BURST + 6):
        set_address(client, f"198.51.100.{number}")
        payments.append(sign_payment(client, Buyer()))
        assert pay(client, payments[-1]).status_code == 200
    set_address(client, "203.0.113.9")

    with ThreadPoolExecutor(at_once) as pool:
        guesses = list(pool.map(partial(pay, client, path=PHISHING, body=OTHER), payments))

    refused = [each for each in guesses if each.status_code == 429]
    assert {each.status_code for each in guesses} == {402, 429}
    assert len(refused) == len(payments) - BURST - client_limits.WRONG_REQUESTS_BURST
    assert {payment_note(each)["retry"] for each in refused} == {"same_payment"}
    set_address(client, "198.51.100.1")
    assert pay(client, payments[-1]).status_code == 200, "its buyer's address is not limited"


@pytest.mark.extended
def test_many_guesses_with_each_payment_of_others_are_limited_together(start_limited: Start) -> None:
    client = start_limited()
    payments: list[str] = []
    for number in range(3):
        set_address(client, f"198.51.100.{number}")
        payments.append(sign_payment(client, Buyer()))
        pay(client, payments[-1])
    set_address(client, "203.0.113.9")
    use_up_tokens(client)

    def guess(number: int) -> httpx.Response:
        body = {"url": f"https://guess-{number}.example/"}
        return pay(client, payments[number % 3], path=PHISHING, body=body)

    guesses = send_at_once(guess, 3 * client_limits.WRONG_REQUESTS_BURST)

    answered = [each for each in guesses if each.status_code == 402]
    assert {each.status_code for each in guesses} == {402, 429}
    assert len(answered) <= client_limits.WRONG_REQUESTS_BURST
