"""Unpaid and refused work is bounded by client address, payment and payer; what was paid for never is."""

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

from centgate.catalog import all_services
from centgate.settings import Settings

BURST = 4
POOL, TOKEN = "/services/pool-snapshot", {"chain": "base", "tokenAddress": "0x" + "a1" * 20}
OTHER = {"url": "https://example.org/"}
Start = Callable[..., httpx.Client]


@pytest.fixture
def limited(api: ApiFactory, settings: Settings) -> Start:
    """Serves the API with limits: three tokens a minute, so that none comes back while a test runs."""

    def start(**changes: Any) -> httpx.Client:
        given = {"free_per_minute": 3, "free_burst": BURST, "trusted_proxies": ("127.0.0.1",), **changes}
        return api(settings.model_copy(update=given))

    return start


def come_from(client: httpx.Client, address: str) -> None:
    client.headers["X-Forwarded-For"] = address


def used_up(client: httpx.Client) -> None:
    """Use up what the client's address has."""
    while client.get("/services").status_code == 200:
        pass


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def statuses(responses: list[httpx.Response]) -> dict[int, int]:
    return dict(Counter(response.status_code for response in responses))


def at_once(send: Callable[[int], httpx.Response], times: int) -> list[httpx.Response]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(send, range(times)))


def test_unpaid_requests_are_refused_when_the_tokens_are_used_up(limited: Start) -> None:
    client = limited()

    responses = [client.post(PHISHING, json=QUESTION) for _ in range(BURST + 1)]

    assert [response.status_code for response in responses] == [402] * BURST + [429]
    assert code(responses[-1]) == (429, "rate_limited")
    assert 15 <= int(responses[-1].headers["Retry-After"]) <= 20
    assert "details" not in responses[-1].json()["error"]


def test_an_unpaid_request_is_refused_before_its_body_is_read(limited: Start) -> None:
    client = limited()
    used_up(client)

    assert code(client.post(PHISHING, content=b"{nonsense")) == (429, "rate_limited")


def test_invalid_requests_and_unknown_routes_count(limited: Start) -> None:
    client = limited()

    assert client.post(PHISHING, content=b"{nonsense").status_code == 400
    assert client.get("/nowhere").status_code == 404
    assert client.delete(PHISHING).status_code == 405
    assert client.get("/services").status_code == 200
    assert [client.get(path).status_code for path in ("/services", PHISHING, "/nowhere")] == [429] * 3


def test_requests_at_once_are_bounded_as_well(limited: Start) -> None:
    client = limited()

    responses = at_once(lambda _: client.post(PHISHING, json=QUESTION), 24)

    assert statuses(responses) == {402: BURST, 429: 24 - BURST}


def test_an_address_has_tokens_of_its_own(limited: Start) -> None:
    client = limited()
    used_up(client)

    for address, status in [
        ("192.0.2.1", 402),
        ("::ffff:127.0.0.1", 429),
        ("2001:db8::1", 402),
    ]:
        come_from(client, address)
        assert client.post(PHISHING, json=QUESTION).status_code == status
    used_up(client)
    come_from(client, "2001:db8::ffff:1")
    assert client.post(PHISHING, json=QUESTION).status_code == 429
    come_from(client, "2001:db8:0:1::1")
    assert client.post(PHISHING, json=QUESTION).status_code == 402


def test_a_client_does_not_choose_its_address_without_a_trusted_proxy(limited: Start) -> None:
    client = limited(trusted_proxies=())
    used_up(client)

    come_from(client, "192.0.2.1")

    assert client.get("/services").status_code == 429


def test_health_is_never_limited(limited: Start) -> None:
    client = limited()
    used_up(client)

    for path in ("/health", "/livez", "/readyz"):
        assert {client.get(path).status_code for _ in range(10)} == {200}


def test_the_catalogue_can_be_read_ten_times_with_the_usual_limits(limited: Start) -> None:
    usual = Settings.model_fields
    client = limited(free_per_minute=usual["free_per_minute"].default, free_burst=usual["free_burst"].default)
    paths = ["/", "/services", "/openapi.json", "/.well-known/x402"]
    paths += [f"/services/{service.slug}" for service in all_services()]

    read = [client.get(path).status_code for path in paths * 10]

    assert set(read) == {200}


def test_a_limited_answer_can_be_read_by_pages_of_other_origins(limited: Start) -> None:
    client = limited()
    used_up(client)

    response = client.post(PHISHING, json=QUESTION, headers={"Origin": "https://shop.example"})

    assert response.status_code == 429
    assert response.headers["Access-Control-Allow-Origin"] == "*"


def test_an_unknown_payment_of_a_limited_address_is_untouched(
    limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = limited()
    payment = sign_payment(client, buyer)
    used_up(client)

    response = pay(client, payment)

    assert code(response) == (429, "rate_limited")
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert facilitator.asked == 0
    come_from(client, "192.0.2.1")
    assert pay(client, payment).status_code == 200


@pytest.mark.parametrize("header", ["nonsense", "e30="])
def test_an_unreadable_payment_of_a_limited_address_is_not_looked_at(limited: Start, header: str) -> None:
    client = limited()
    used_up(client)

    assert code(pay(client, header)) == (429, "rate_limited")


def test_a_repeated_payment_is_never_limited(limited: Start, buyer: Buyer) -> None:
    client = limited()
    payment = sign_payment(client, buyer)
    first = pay(client, payment)
    used_up(client)

    again = [pay(client, payment) for _ in range(15)] + at_once(lambda _: pay(client, payment), 15)

    assert {response.content for response in again} == {first.content}


def test_a_payment_in_doubt_is_never_limited(
    limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = limited()
    payment = sign_payment(client, buyer)
    facilitator.usually = reply_with(500, "down")
    assert pay(client, payment).status_code == 502
    used_up(client)

    doubtful = [pay(client, payment).status_code for _ in range(12)]
    facilitator.usually = facilitator.settle

    assert (set(doubtful), pay(client, payment).status_code) == ({502}, 200)


def test_a_refused_payment_of_a_limited_address_is_not_presented_again(
    limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = limited()
    payment = sign_payment(client, buyer)
    facilitator.next = [refuse_with("insufficient_funds")]
    assert pay(client, payment).status_code == 402
    used_up(client)

    assert code(pay(client, payment)) == (429, "rate_limited")
    assert facilitator.asked == 1


def test_purchases_use_up_no_tokens(limited: Start, buyer: Buyer) -> None:
    client = limited(free_burst=2)

    bought = [pay(client, sign_payment(client, buyer)).status_code for _ in range(8)]

    assert bought == [200] * 8


def test_repetitions_win_no_tokens(limited: Start, buyer: Buyer) -> None:
    client = limited()
    payment = sign_payment(client, buyer)
    pay(client, payment)
    used_up(client)

    for _ in range(5):
        assert pay(client, payment).status_code == 200

    assert client.get("/services").status_code == 429


def test_a_payment_frees_its_token_when_it_is_settled(
    limited: Start, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    arrived, release = threading.Event(), threading.Event()

    def answer(_asked: RecordedRequest) -> tuple[int, Any]:
        arrived.set()
        release.wait(10)
        return 200, []

    upstreams.set_response_function("dexscreener", f"/token-pairs/v1/base/{TOKEN['tokenAddress']}", answer)
    providers = upstreams.provider_settings("dexscreener")
    client = limited(free_burst=2, providers=providers, pinned=("pool-snapshot=dexscreener",))
    payment = sign_payment(client, buyer, POOL, TOKEN)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pay, client, payment, POOL, TOKEN)
        assert arrived.wait(10)
        read = [client.get("/services").status_code for _ in range(3)]
        release.set()

    assert (read, waiting.result().status_code) == ([200, 200, 429], 404)


@pytest.mark.parametrize("free", [3, 0], ids=["limited", "free requests unlimited"])
def test_runs_for_a_settled_payment_are_bounded(
    limited: Start, upstreams: FakeUpstreams, buyer: Buyer, free: int
) -> None:
    path = f"/token-pairs/v1/base/{TOKEN['tokenAddress']}"
    upstreams.set_response("dexscreener", path, {}, status=500)
    providers = upstreams.provider_settings("dexscreener")
    client = limited(providers=providers, pinned=("pool-snapshot=dexscreener",), free_per_minute=free)
    payment = sign_payment(client, buyer, POOL, TOKEN)

    responses = [pay(client, payment, POOL, TOKEN) for _ in range(33)]

    assert [response.status_code for response in responses] == [502] * 31 + [429] * 2
    note = payment_note(responses[-1])
    assert (note["state"], note["charged"], note["retry"]) == ("settled", True, "same_payment")
    assert int(responses[-1].headers["Retry-After"]) <= 10


def guesses(client: httpx.Client, payment: str, count: int) -> list[Callable[[], httpx.Response]]:
    bodies = [{"url": f"https://guess-{number}.example/"} for number in range(count)]
    return [partial(pay, client, payment, body=body) for body in bodies]


def test_wrong_requests_for_a_payment_are_bounded(limited: Start, buyer: Buyer) -> None:
    client = limited(free_burst=1000)
    payment = sign_payment(client, buyer)
    assert pay(client, payment).status_code == 200

    responses = [guess() for guess in guesses(client, payment, 12)]
    right = pay(client, payment)

    assert [response.status_code for response in responses] == [402] * 10 + [429] * 2
    assert {response.json()["error"]["details"].get("reason") for response in responses[:10]} == {
        "payment_already_used"
    }
    assert code(right) == (429, "rate_limited")
    assert {**payment_note(right), "transaction": ""} == {
        "state": "delivered",
        "charged": True,
        "retry": "same_payment",
        "transaction": "",
    }
    assert 1 <= int(right.headers["Retry-After"]) <= 6


def test_wrong_requests_do_not_lock_out_the_buyer_at_another_address(limited: Start, buyer: Buyer) -> None:
    client = limited(free_burst=1000)
    payment = sign_payment(client, buyer)
    first = pay(client, payment)
    for guess in guesses(client, payment, 12):
        guess()

    come_from(client, "192.0.2.1")

    assert pay(client, payment).content == first.content


def test_wrong_requests_at_once_are_bounded_as_well(limited: Start, buyer: Buyer) -> None:
    client = limited(free_burst=1000)
    payment = sign_payment(client, buyer)
    pay(client, payment)
    sent = guesses(client, payment, 30)

    responses = at_once(lambda number: sent[number](), 30)

    assert statuses(responses) == {402: 10, 429: 20}


def test_wrong_requests_with_another_header_are_of_the_same_payment(limited: Start, buyer: Buyer) -> None:
    client = limited(free_burst=1000)
    payload = sign_payload(client, buyer)
    pay(client, encode_header(payload))
    headers = [encode_header({**payload, "extensions": {"n": {"info": number}}}) for number in range(12)]

    responses = [pay(client, header, body=OTHER).status_code for header in headers]

    assert responses == [402] * 10 + [429] * 2


def test_wrong_requests_for_an_idempotency_key_are_bounded(limited: Start, buyer: Buyer) -> None:
    client = limited(free_burst=1000)
    pay(client, with_identifier(sign_payload(client, buyer), "the-key-of-one-request"))
    another = with_identifier(sign_payload(client, buyer), "the-key-of-one-request")

    responses = [pay(client, another, body=OTHER) for _ in range(12)]

    assert [response.status_code for response in responses] == [409] * 10 + [429] * 2
    assert payment_note(responses[-1])["state"] == "unused"


def test_a_known_payment_is_no_way_around_the_limit_for_invalid_requests(
    limited: Start, buyer: Buyer
) -> None:
    client = limited()
    payment = sign_payment(client, buyer)
    pay(client, payment)
    used_up(client)

    responses = [pay(client, payment, body={"url": 1}).status_code for _ in range(12)]

    assert responses == [400] * 10 + [429] * 2


def test_refused_settlements_are_bounded_by_payer(
    limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = limited(free_burst=1000, refused_per_minute=3)
    bought = sign_payment(client, buyer)
    first = pay(client, bought)
    facilitator.usually = refuse_with("insufficient_funds")

    responses = [pay(client, sign_payment(client, buyer)) for _ in range(5)]
    facilitator.usually = facilitator.settle

    assert [response.status_code for response in responses] == [402] * 3 + [429] * 2
    assert payment_note(responses[-1]) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert facilitator.asked == 4
    assert pay(client, sign_payment(client, Buyer(1))).status_code == 200
    come_from(client, "192.0.2.1")
    assert code(pay(client, sign_payment(client, buyer))) == (429, "rate_limited")
    assert pay(client, bought).content == first.content


def test_a_payer_is_not_limited_by_what_a_stranger_signs(
    limited: Start, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = limited(free_burst=1000, refused_per_minute=3)
    facilitator.usually = refuse_with("invalid_exact_evm_payload_signature")
    for _ in range(5):
        payload = sign_payload(client, buyer)
        payload["payload"]["signature"] = "0x" + "5e" * 90  # as of a wallet that only the facilitator can ask
        assert pay(client, encode_header(payload)).status_code == 402
    assert facilitator.asked == 5

    facilitator.usually = facilitator.settle

    assert pay(client, sign_payment(client, buyer)).status_code == 200


def test_signatures_that_are_not_the_payers_count_ten_times_against_their_address(
    limited: Start, buyer: Buyer
) -> None:
    """Each may make nodes look for a contract at an address that a stranger chose."""
    client = limited(free_per_minute=1, free_burst=25)
    terms = fetch_terms(client)
    payloads = [buyer.payload(terms, now=int(time.time())) for _ in range(4)]
    for number, payload in enumerate(payloads):
        payload["payload"]["authorization"]["from"] = "0x" + f"{number + 1:040x}"

    statuses = [pay(client, encode_header(payload)).status_code for payload in payloads]

    assert statuses == [402, 402, 402, 429]


def test_a_slow_clock_does_not_limit_a_known_payment(
    limited: Start, buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, right = limited(), time.time
    now = int(right())
    payment = encode_header(buyer.payload(fetch_terms(client), now=now, validAfter=str(now - 60)))
    first = pay(client, payment)
    used_up(client)
    monkeypatch.setattr(time, "time", lambda: right() - 3600)

    assert pay(client, payment).content == first.content


def test_nothing_is_limited_at_0_a_minute(limited: Start, buyer: Buyer) -> None:
    client = limited(free_per_minute=0, free_burst=1)
    payment = sign_payment(client, buyer)
    pay(client, payment)

    assert {guess().status_code for guess in guesses(client, payment, 15)} == {402}
    assert {fetch_terms(client) for _ in range(15)}


def test_refused_payments_of_many_payers_count_ten_times_against_their_address(
    limited: Start, facilitator: StubFacilitator
) -> None:
    client = limited(free_per_minute=1, free_burst=25)
    terms = fetch_terms(client)
    facilitator.usually = refuse_with("insufficient_funds")
    payments = [encode_header(Buyer(number).payload(terms, now=int(time.time()))) for number in range(4)]

    statuses = [pay(client, payment).status_code for payment in payments]

    assert statuses == [402, 402, 402, 429]
