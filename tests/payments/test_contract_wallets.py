"""Contract signatures: longer than 65 bytes, so that only the facilitator can check them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from buyer import Buyer, encode_header, pay, payment_note, sign_payload
from facilitators import refuse_with, reply_with
from served_api import ServedApi, serve_api

OTHER = {"url": "https://example.com/"}
SIGNATURE = "invalid_exact_evm_payload_signature"


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


def replace_signature(payload: dict[str, Any], fill: str = "ab") -> str:
    """Return the payment with a signature that a contract may or may not accept."""
    return encode_header({**payload, "payload": {**payload["payload"], "signature": "0x" + fill * 96}})


def test_long_signature_is_left_to_facilitator(served_api: ServedApi, buyer: Buyer) -> None:
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, replace_signature(sign_payload(served_api.client, buyer)))

    assert response.status_code == 200
    assert served_api.facilitator.settle_calls == calls + 1


def test_signature_refused_by_facilitator_buys_nothing(served_api: ServedApi, buyer: Buyer) -> None:
    served_api.facilitator.next.append(refuse_with(SIGNATURE))

    response = pay(served_api.client, replace_signature(sign_payload(served_api.client, buyer)))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, SIGNATURE)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}


def test_same_signature_gets_answer_again(served_api: ServedApi, buyer: Buyer) -> None:
    payment = replace_signature(sign_payload(served_api.client, buyer))
    first = pay(served_api.client, payment)

    assert pay(served_api.client, payment).content == first.content


@pytest.mark.parametrize("fill", ["cd", "AB", "aB"])
def test_another_signature_does_not_get_answer(served_api: ServedApi, buyer: Buyer, fill: str) -> None:
    payload = sign_payload(served_api.client, buyer)
    first = pay(served_api.client, replace_signature(payload))
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, replace_signature(payload, fill))

    assert (response.content == first.content) is (fill.lower() == "ab")
    assert response.status_code == (200 if fill.lower() == "ab" else 402)
    assert served_api.facilitator.settle_calls == calls


def test_another_signature_learns_nothing_of_payment(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    pay(served_api.client, replace_signature(payload))

    response = pay(served_api.client, replace_signature(payload, "cd"))

    assert response.json()["error"]["details"]["reason"] == SIGNATURE
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "new_payment"}


def test_another_signature_does_not_get_running_answer(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    arrived, release = threading.Event(), threading.Event()
    served_api.facilitator.next.append(served_api.facilitator.reply_when_released(arrived, release))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(pay, served_api.client, replace_signature(payload))
        arrived.wait(10)
        second = pay(served_api.client, replace_signature(payload, "cd"))
        release.set()

    assert (second.status_code, first.result().status_code) == (402, 200)


def test_open_payment_stays_open_for_another_signature(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    served_api.facilitator.next.append(served_api.facilitator.move_then_reply(reply_with(500, "")))
    pay(served_api.client, replace_signature(payload))
    calls = served_api.facilitator.settle_calls

    stranger = pay(served_api.client, replace_signature(payload, "cd"))
    owner = pay(served_api.client, replace_signature(payload))

    assert (stranger.status_code, owner.status_code) == (402, 200)
    assert served_api.facilitator.settle_calls == calls + 1


def test_refused_stranger_does_not_block_payer(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    served_api.facilitator.next.append(refuse_with(SIGNATURE))
    pay(served_api.client, replace_signature(payload), body=OTHER)

    response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 200


def test_payers_own_signature_gets_answer(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    first = pay(served_api.client, replace_signature(payload))

    assert pay(served_api.client, encode_header(payload)).content == first.content


@pytest.mark.extended
def test_wrong_65_byte_signature_is_refused_here(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    payload["payload"]["signature"] = "0x" + "ab" * 65
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == SIGNATURE
    assert served_api.facilitator.settle_calls == calls
