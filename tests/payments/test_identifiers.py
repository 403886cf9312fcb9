"""Idempotency keys (x402's `payment-identifier`): one key, one request, one charge, for each payer."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import (
    PHISHING,
    QUESTION,
    SHARED,
    Buyer,
    decode_header,
    encode_header,
    pay,
    payment_note,
    sign_payload,
    with_identifier,
)
from facilitators import StubFacilitator, build_settings, refuse_with, reply_with
from served_api import ServedApi, run_api_process, serve_api

OTHER = {"url": "https://example.com/"}


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A new idempotency key for each test."""
    return request.node.name.replace("[", "-").rstrip("]")[:100]


def sign_with_key(served_api: ServedApi, buyer: Buyer, key: str) -> str:
    return with_identifier(sign_payload(served_api.client, buyer), key)


def test_retry_with_fresh_signature_gets_first_answer(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    first = pay(served_api.client, sign_with_key(served_api, buyer, key))
    calls = served_api.facilitator.settle_calls

    again = pay(served_api.client, sign_with_key(served_api, buyer, key))

    assert again.content == first.content
    assert again.headers["PAYMENT-RESPONSE"] == first.headers["PAYMENT-RESPONSE"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert served_api.facilitator.settle_calls == calls


def test_expired_retry_under_key_gets_first_answer_unsettled(
    served_api: ServedApi, buyer: Buyer, key: str
) -> None:
    first = pay(served_api.client, sign_with_key(served_api, buyer, key))
    calls = served_api.facilitator.settle_calls
    expired = sign_payload(served_api.client, buyer, validBefore="1")

    again = pay(served_api.client, with_identifier(expired, key))
    alone = pay(served_api.client, encode_header(expired))

    assert (again.content, served_api.facilitator.settle_calls) == (first.content, calls)
    assert (alone.status_code, payment_note(alone)["state"]) == (402, "unused")


def test_key_for_another_request_is_conflict(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    pay(served_api.client, sign_with_key(served_api, buyer, key))
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, sign_with_key(served_api, buyer, key), body=OTHER)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (409, "payment_conflict")
    assert error["message"].endswith("use another key")
    assert "PAYMENT-REQUIRED" not in response.headers
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert served_api.facilitator.settle_calls == calls


def test_payment_after_conflict_is_unspent(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    pay(served_api.client, sign_with_key(served_api, buyer, key))
    payload = sign_payload(served_api.client, buyer)
    pay(served_api.client, with_identifier(payload, key), body=OTHER)

    response = pay(served_api.client, encode_header(payload), body=OTHER)

    assert response.status_code == 200
    assert "Idempotent-Replayed" not in response.headers


def test_key_of_another_payer_is_another_key(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    first = pay(served_api.client, sign_with_key(served_api, buyer, key))

    second = pay(served_api.client, sign_with_key(served_api, Buyer(1), key))

    assert second.status_code == 200
    assert second.json()["requestId"] != first.json()["requestId"]
    assert "Idempotent-Replayed" not in second.headers


def test_key_returns_no_answer_of_another_payer(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    pay(served_api.client, sign_with_key(served_api, buyer, key))
    too_late = sign_payload(served_api.client, Buyer(1), validBefore="1")

    response = pay(served_api.client, with_identifier(too_late, key))

    assert response.status_code == 402


def test_concurrent_retries_under_key_settle_once(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    payments = [sign_with_key(served_api, buyer, key) for _ in range(20)]
    calls = served_api.facilitator.settle_calls

    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(pay, [served_api.client] * 20, payments))

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert served_api.facilitator.settle_calls == calls + 1


def test_running_key_for_another_request_is_conflict(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    arrived, release = threading.Event(), threading.Event()
    payments = [sign_with_key(served_api, buyer, key) for _ in range(2)]
    served_api.facilitator.next.append(served_api.facilitator.reply_when_released(arrived, release))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(pay, served_api.client, payments[0])
        arrived.wait(10)
        second = pay(served_api.client, payments[1], body=OTHER)
        release.set()

    assert second.status_code == 409
    assert first.result().status_code == 200


def test_retry_of_open_payment_resolves_first_one(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    first, second = sign_payload(served_api.client, buyer), sign_payload(served_api.client, buyer)
    served_api.facilitator.next += [
        served_api.facilitator.move_then_reply(reply_with(500, "")),
        reply_with(500, ""),
    ]
    open_ended = pay(served_api.client, with_identifier(first, key))

    fresh = pay(served_api.client, with_identifier(second, key))
    same = pay(served_api.client, with_identifier(first, key))

    assert (
        payment_note(open_ended)
        == payment_note(fresh)
        == {"state": "in_flight", "charged": False, "retry": "same_payment"}
    )
    assert same.status_code == 200
    assert _count_transfers(served_api, second) == 0
    assert pay(served_api.client, with_identifier(second, key)).content == same.content


def test_key_of_refused_payment_is_usable_again(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))
    pay(served_api.client, sign_with_key(served_api, buyer, key))

    response = pay(served_api.client, sign_with_key(served_api, buyer, key))

    assert response.status_code == 200


def test_resent_refused_payment_gets_answer_of_its_key(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    refused_one = sign_with_key(served_api, buyer, key)
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))
    pay(served_api.client, refused_one)
    bought = pay(served_api.client, sign_with_key(served_api, buyer, key))
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, refused_one)

    assert response.content == bought.content
    assert served_api.facilitator.settle_calls == calls


def test_key_added_later_changes_nothing(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    payload = sign_payload(served_api.client, buyer)
    first = pay(served_api.client, encode_header(payload))

    again = pay(served_api.client, with_identifier(payload, key))

    assert again.content == first.content


@pytest.mark.parametrize(
    "bad", ["short", "a" * 129, "white space in it", "späte-schlüssel-x", 1234567890123456]
)
def test_malformed_key_is_refused(served_api: ServedApi, buyer: Buyer, bad: object) -> None:
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, with_identifier(sign_payload(served_api.client, buyer), bad))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, "invalid_payload")
    assert served_api.facilitator.settle_calls == calls


def test_identifier_beside_too_large_number_is_refused(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    payload = decode_header(with_identifier(sign_payload(served_api.client, buyer), key))
    payload["extensions"]["payment-identifier"]["info"]["required"] = "large"
    header = b64encode(json.dumps(payload).replace('"large"', "1e400").encode()).decode()

    response = pay(served_api.client, header)

    assert response.status_code == 402
    assert "the extension payment-identifier cannot be decoded" in response.json()["error"]["message"]


@pytest.mark.parametrize("good", ["a" * 16, "A_9-" * 32])
def test_longest_and_shortest_keys_are_accepted(served_api: ServedApi, buyer: Buyer, good: str) -> None:
    assert (
        pay(served_api.client, with_identifier(sign_payload(served_api.client, buyer), good)).status_code
        == 200
    )


@pytest.mark.parametrize("echo", [{}, {"info": {}}, {"info": {"required": False}}, [], None, "x"], ids=str)
def test_extension_without_key_is_ignored(served_api: ServedApi, buyer: Buyer, echo: object) -> None:
    payload = sign_payload(served_api.client, buyer) | {"extensions": {"payment-identifier": echo}}

    assert pay(served_api.client, encode_header(payload)).status_code == 200


def send_under_header(served_api: ServedApi, payment: str, key: str, **more: Any) -> httpx.Response:
    """Send a request with a payment, and the key in the header `Idempotency-Key`."""
    headers = {"PAYMENT-SIGNATURE": payment, "Idempotency-Key": key}
    return served_api.client.post(PHISHING, json=more.get("body", QUESTION), headers=headers)


def test_header_and_extension_are_same_key(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    first = send_under_header(served_api, encode_header(sign_payload(served_api.client, buyer)), key)
    calls = served_api.facilitator.settle_calls

    by_header = send_under_header(served_api, encode_header(sign_payload(served_api.client, buyer)), key)
    by_extension = pay(served_api.client, sign_with_key(served_api, buyer, key))

    assert by_header.content == by_extension.content == first.content
    assert by_header.headers["Idempotent-Replayed"] == "true"
    assert served_api.facilitator.settle_calls == calls


def test_header_for_another_request_is_conflict(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    send_under_header(served_api, encode_header(sign_payload(served_api.client, buyer)), key)
    calls = served_api.facilitator.settle_calls

    response = send_under_header(
        served_api, encode_header(sign_payload(served_api.client, buyer)), key, body=OTHER
    )

    assert (response.status_code, response.json()["error"]["code"]) == (409, "payment_conflict")
    assert served_api.facilitator.settle_calls == calls


def test_both_spellings_of_key_are_accepted_together(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    assert send_under_header(served_api, sign_with_key(served_api, buyer, key), f'"{key}"').status_code == 200


def test_two_different_keys_are_refused(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    calls = served_api.facilitator.settle_calls

    response = send_under_header(served_api, sign_with_key(served_api, buyer, key), key + "2")

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, "invalid_payload")
    assert "differ" in response.json()["error"]["message"]
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize("bad", ["", '"', '""', "short", "a" * 129, "white space in it", "a,b" * 9])
def test_malformed_header_is_refused(served_api: ServedApi, buyer: Buyer, bad: str) -> None:
    calls = served_api.facilitator.settle_calls

    response = send_under_header(served_api, encode_header(sign_payload(served_api.client, buyer)), bad)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, "invalid_payload")
    assert "Idempotency-Key" in response.json()["error"]["message"]
    assert served_api.facilitator.settle_calls == calls


def test_malformed_header_keeps_settled_payment(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    """Otherwise its buyer would pay once more."""
    payment = sign_with_key(served_api, buyer, key)
    first, asked = pay(served_api.client, payment), served_api.facilitator.settle_calls

    repeated = [send_under_header(served_api, payment, wrong) for wrong in ("short", key + "2")]

    assert [response.content for response in repeated] == [first.content] * 2
    assert served_api.facilitator.settle_calls == asked


def test_two_headers_are_refused(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    payment = encode_header(sign_payload(served_api.client, buyer))
    headers = [("PAYMENT-SIGNATURE", payment), ("Idempotency-Key", key), ("Idempotency-Key", key)]

    response = served_api.client.post(PHISHING, json=QUESTION, headers=headers)

    assert response.status_code == 402


@pytest.mark.parametrize(
    "good", ["3f2b6a54-6f0c-4b1e-9a53-5a4de1f1c0de", '"3f2b6a54-6f0c-4b1e-9a53-5a4de1f1c0df"', "a" * 128]
)
def test_common_client_keys_are_accepted(served_api: ServedApi, good: str) -> None:
    assert (
        send_under_header(
            served_api, encode_header(sign_payload(served_api.client, Buyer(2))), good
        ).status_code
        == 200
    )


def test_header_without_payment_returns_nothing(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    send_under_header(served_api, encode_header(sign_payload(served_api.client, buyer)), key)

    response = served_api.client.post(PHISHING, json=QUESTION, headers={"Idempotency-Key": key})

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_required")


def test_header_returns_no_answer_of_another_payer(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    first = send_under_header(served_api, encode_header(sign_payload(served_api.client, buyer)), key)
    forged = sign_payload(served_api.client, Buyer(1))
    forged["payload"]["authorization"]["from"] = buyer.address

    stranger = send_under_header(served_api, encode_header(sign_payload(served_api.client, Buyer(1))), key)
    liar = send_under_header(served_api, encode_header(forged), key)

    assert (stranger.status_code, liar.status_code) == (200, 402)
    assert _request_id(stranger) != _request_id(first)


@pytest.mark.extended
def test_key_holds_across_servers(
    postgres_url: str, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer, key: str
) -> None:
    def ask(at: str, payment: str, body: Any) -> httpx.Response:
        headers = {"PAYMENT-SIGNATURE": payment, "Idempotency-Key": key}
        return httpx.post(at + PHISHING, json=body, headers=headers, timeout=30)

    settings = build_settings(tmp_path, facilitator.url, database_url=postgres_url)
    with (
        run_api_process(settings) as one,
        run_api_process(settings) as other,
        httpx.Client(base_url=one.url, limits=SHARED) as client,
        ThreadPoolExecutor(20) as pool,
    ):
        payments = [encode_header(sign_payload(client, buyer)) for _ in range(22)]
        same = list(pool.map(ask, [one.url, other.url] * 10, payments, [QUESTION] * 20))
        again = ask(other.url, payments[20], QUESTION)
        conflict = ask(other.url, payments[21], OTHER)

    assert {response.status_code for response in [*same, again]} == {200}
    assert len({response.content for response in [*same, again]}) == 1
    assert conflict.status_code == 409
    assert facilitator.settle_calls == 1


def _count_transfers(served_api: ServedApi, payload: dict[str, dict[str, dict[str, str]]]) -> int:
    authorization = payload["payload"]["authorization"]
    return served_api.facilitator.moved[authorization["from"].lower(), authorization["nonce"]]


@pytest.mark.extended
def test_unsigned_key_is_ignored(served_api: ServedApi, buyer: Buyer, key: str) -> None:
    """A long signature may be anybody's, so it must not fetch what another payment under the key bought."""
    first = pay(served_api.client, sign_with_key(served_api, buyer, key))
    payload = sign_payload(served_api.client, buyer)
    payload["payload"]["signature"] = "0x" + "ab" * 96

    response = pay(served_api.client, with_identifier(payload, key))

    assert _request_id(response) != _request_id(first)
    assert "Idempotent-Replayed" not in response.headers


def _request_id(response: httpx.Response) -> str:
    return response.json()["requestId"]
