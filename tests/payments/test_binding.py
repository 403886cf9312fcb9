"""Request binding: a payment buys one request only; another request with it is refused and not charged."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from buyer import QUESTION, Buyer, encode_header, pay, payment_note, sign_payload, sign_payment
from facilitators import refuse_with
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from served_api import ServedApi, serve_api

from centgate.catalog import all_services
from centgate.pipeline import request_digest
from centgate.services.phishing_check import PhishingCheckRequest

OTHER = {"url": "https://example.com/"}


@pytest.fixture(scope="module")
def failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service that counts its requests."""
    with install_failing_service() as failures:
        yield failures


@pytest.fixture(scope="module")
def served_api(failures: ServiceFailures, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API with that service."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


def is_payment_used(response: httpx.Response) -> bool:
    details = response.json()["error"]["details"]
    return response.status_code == 402 and details["reason"] == "payment_already_used"


def test_payment_does_not_buy_another_body(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    pay(served_api.client, payment)
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, payment, body=OTHER)

    assert is_payment_used(response)
    assert served_api.facilitator.settle_calls == calls


def test_payment_does_not_buy_another_route(
    served_api: ServedApi, buyer: Buyer, failures: ServiceFailures
) -> None:
    payment = sign_payment(served_api.client, buyer)
    pay(served_api.client, payment)
    asked, served = served_api.facilitator.settle_calls, len(failures.questions)

    response = pay(served_api.client, payment, FAILING_SERVICE, FAILING_QUERY)

    assert is_payment_used(response)
    assert (served_api.facilitator.settle_calls, len(failures.questions)) == (asked, served)


def test_same_body_for_another_route_is_refused() -> None:
    request = PhishingCheckRequest(**QUESTION)

    assert len({request_digest(service, request) for service in all_services()}) == len(all_services())


def test_refusal_of_used_payment_states_its_outcome(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    pay(served_api.client, encode_header(payload))

    response = pay(served_api.client, encode_header(payload), body=OTHER)

    assert payment_note(response) == {
        "state": "delivered",
        "charged": True,
        "retry": "new_payment",
        "transaction": payload["payload"]["authorization"]["nonce"],
    }


def test_refusal_of_used_payment_offers_fresh_terms(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    pay(served_api.client, payment)

    response = pay(served_api.client, payment, body=OTHER)

    fresh = buyer.payload(response.headers["PAYMENT-REQUIRED"], now=int(time.time()))
    assert pay(served_api.client, encode_header(fresh), body=OTHER).status_code == 200


def test_first_request_keeps_answer_after_refused_reuse(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    first = pay(served_api.client, payment)
    pay(served_api.client, payment, body=OTHER)

    assert pay(served_api.client, payment).content == first.content


# equivalent spellings of one request to FAILING_SERVICE
SAME: dict[str, tuple[bytes, bytes]] = {
    "order of keys": (b'{"question":"a","patience":2}', b'{"patience":2,"question":"a"}'),
    "white space": (b'{"question":"b"}', b'\n{ "question" :\t"b" }  '),
    "a default said or not": (b'{"question":"c"}', b'{"question":"c","patience":3}'),
    "escapes": (b'{"question":"d"}', b'{"question":"\\u0064"}'),
    "a number with a point": (b'{"question":"e","patience":5}', b'{"question":"e","patience":5.0}'),
    "a key that is ignored": (b'{"question":"f"}', b'{"question":"f","extra":1}'),
}


@pytest.mark.parametrize(("first", "second"), SAME.values(), ids=SAME.keys())
def test_equivalent_spellings_are_one_request(
    served_api: ServedApi, buyer: Buyer, first: bytes, second: bytes
) -> None:
    payment = sign_payment(served_api.client, buyer, FAILING_SERVICE, FAILING_QUERY)
    headers = {"PAYMENT-SIGNATURE": payment}

    answers = [
        served_api.client.post(FAILING_SERVICE, content=body, headers=headers) for body in (first, second)
    ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "another value": ({"question": "a"}, {"question": "b"}),
    "another value for a default": ({"question": "a"}, {"question": "a", "patience": 4}),
    "other letters": ({"question": "a"}, {"question": "A"}),
    "a space": ({"question": "a"}, {"question": "a "}),
}


@pytest.mark.parametrize(("first", "second"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_any_difference_is_another_request(
    served_api: ServedApi, buyer: Buyer, first: Any, second: Any
) -> None:
    payment = sign_payment(served_api.client, buyer, FAILING_SERVICE, FAILING_QUERY)
    pay(served_api.client, payment, FAILING_SERVICE, first)

    assert is_payment_used(pay(served_api.client, payment, FAILING_SERVICE, second))


def test_one_of_two_concurrent_requests_is_served(
    served_api: ServedApi, buyer: Buyer, failures: ServiceFailures
) -> None:
    payment = sign_payment(served_api.client, buyer, FAILING_SERVICE, FAILING_QUERY)
    served, asked = len(failures.questions), served_api.facilitator.settle_calls
    bodies = [{"question": f"which of {number % 2}"} for number in range(20)]

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(partial(_ask, served_api.client, payment), bodies))

    assert sorted(response.status_code for response in responses) == [200] * 10 + [402] * 10
    assert len(failures.questions) == served + 1
    assert served_api.facilitator.settle_calls == asked + 1


def test_another_request_is_refused_without_waiting(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    arrived, release = threading.Event(), threading.Event()
    served_api.facilitator.next.append(served_api.facilitator.reply_when_released(arrived, release))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(pay, served_api.client, payment)
        arrived.wait(10)
        second = pay(served_api.client, payment, body=OTHER)
        release.set()

    assert is_payment_used(second)
    assert payment_note(second) == {"state": "in_flight", "charged": False, "retry": "new_payment"}
    assert first.result().status_code == 200


def test_refused_payment_may_buy_another_request(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))
    pay(served_api.client, payment)

    response = pay(served_api.client, payment, body=OTHER)

    assert response.status_code == 200


def test_two_payments_buy_two_answers(served_api: ServedApi, buyer: Buyer) -> None:
    payments = [sign_payment(served_api.client, buyer, FAILING_SERVICE, FAILING_QUERY) for _ in range(2)]

    first, second = [pay(served_api.client, payment, FAILING_SERVICE, FAILING_QUERY) for payment in payments]

    assert first.json()["requestId"] != second.json()["requestId"]
    assert first.json()["data"] != second.json()["data"]


def test_same_nonce_of_another_payer_is_another_payment(served_api: ServedApi) -> None:
    nonce = "0x" + "42" * 32
    payments = [
        encode_header(sign_payload(served_api.client, Buyer(number), nonce=nonce)) for number in (0, 1)
    ]

    first, second = [pay(served_api.client, payment) for payment in payments]

    assert first.json()["requestId"] != second.json()["requestId"]
    assert "Idempotent-Replayed" not in second.headers


@pytest.mark.extended
def test_disconnected_buyer_gets_answer_later(
    served_api: ServedApi, buyer: Buyer, failures: ServiceFailures
) -> None:
    payment = sign_payment(served_api.client, buyer, FAILING_SERVICE, FAILING_QUERY)
    served = len(failures.questions)
    arrived, release = threading.Event(), threading.Event()
    served_api.facilitator.next.append(served_api.facilitator.reply_when_released(arrived, release))
    calls = served_api.facilitator.settle_calls

    with pytest.raises(httpx.ReadTimeout):
        served_api.client.post(
            FAILING_SERVICE, json=FAILING_QUERY, headers={"PAYMENT-SIGNATURE": payment}, timeout=0.3
        )
    arrived.wait(10)
    release.set()

    assert pay(served_api.client, payment, FAILING_SERVICE, FAILING_QUERY).status_code == 200
    assert (served_api.facilitator.settle_calls, len(failures.questions)) == (calls + 1, served + 1)


def _ask(client: httpx.Client, payment: str, body: Any) -> httpx.Response:
    return pay(client, payment, FAILING_SERVICE, body)
