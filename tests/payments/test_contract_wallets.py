"""Signatures longer than a key's own: only the facilitator can tell what they are worth."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from buyer import Buyer, encoded, note, pay, payload_for
from facilitators import refused, said
from houses import House, open_house

OTHER = {"url": "https://example.com/"}
SIGNATURE = "invalid_exact_evm_payload_signature"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """An API that takes payments."""
    with open_house(tmp_path_factory.mktemp("house")) as house:
        yield house


def by_contract(payload: dict[str, Any], fill: str = "ab") -> str:
    """The payment with a signature that a contract may or may not accept."""
    return encoded({**payload, "payload": {**payload["payload"], "signature": "0x" + fill * 96}})


def test_a_long_signature_is_left_to_the_facilitator(house: House, buyer: Buyer) -> None:
    asked = house.facilitator.asked

    response = pay(house.client, by_contract(payload_for(house.client, buyer)))

    assert response.status_code == 200
    assert house.facilitator.asked == asked + 1


def test_one_the_facilitator_refuses_buys_nothing(house: House, buyer: Buyer) -> None:
    house.facilitator.next.append(refused(SIGNATURE))

    response = pay(house.client, by_contract(payload_for(house.client, buyer)))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, SIGNATURE)
    assert note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}


def test_its_answer_is_delivered_again_to_who_has_the_signature(house: House, buyer: Buyer) -> None:
    payment = by_contract(payload_for(house.client, buyer))
    first = pay(house.client, payment)

    assert pay(house.client, payment).content == first.content


@pytest.mark.parametrize("fill", ["cd", "AB", "aB"])
def test_its_answer_is_kept_from_who_has_another(house: House, buyer: Buyer, fill: str) -> None:
    payload = payload_for(house.client, buyer)
    first = pay(house.client, by_contract(payload))
    asked = house.facilitator.asked

    response = pay(house.client, by_contract(payload, fill))

    assert (response.content == first.content) is (fill.lower() == "ab")
    assert response.status_code == (200 if fill.lower() == "ab" else 402)
    assert house.facilitator.asked == asked


def test_who_has_another_signature_learns_nothing_of_the_payment(house: House, buyer: Buyer) -> None:
    payload = payload_for(house.client, buyer)
    pay(house.client, by_contract(payload))

    response = pay(house.client, by_contract(payload, "cd"))

    assert response.json()["error"]["details"]["reason"] == SIGNATURE
    assert note(response) == {"state": "unused", "charged": False, "retry": "new_payment"}


def test_who_has_another_signature_does_not_get_the_answer_in_flight(house: House, buyer: Buyer) -> None:
    payload = payload_for(house.client, buyer)
    arrived, release = threading.Event(), threading.Event()
    house.facilitator.next.append(house.facilitator.held(arrived, release))

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(pay, house.client, by_contract(payload))
        arrived.wait(10)
        second = pay(house.client, by_contract(payload, "cd"))
        release.set()

    assert (second.status_code, first.result().status_code) == (402, 200)


def test_what_is_open_stays_open_for_who_has_another_signature(house: House, buyer: Buyer) -> None:
    payload = payload_for(house.client, buyer)
    house.facilitator.next.append(house.facilitator.then(said(500, "")))
    pay(house.client, by_contract(payload))
    asked = house.facilitator.asked

    stranger = pay(house.client, by_contract(payload, "cd"))
    owner = pay(house.client, by_contract(payload))

    assert (stranger.status_code, owner.status_code) == (402, 200)
    assert house.facilitator.asked == asked + 1


def test_a_stranger_who_was_refused_first_does_not_stand_in_the_payers_way(
    house: House, buyer: Buyer
) -> None:
    payload = payload_for(house.client, buyer)
    house.facilitator.next.append(refused(SIGNATURE))
    pay(house.client, by_contract(payload), body=OTHER)

    response = pay(house.client, encoded(payload))

    assert response.status_code == 200


def test_the_payers_own_signature_fetches_what_was_paid_with_another(house: House, buyer: Buyer) -> None:
    payload = payload_for(house.client, buyer)
    first = pay(house.client, by_contract(payload))

    assert pay(house.client, encoded(payload)).content == first.content


def test_a_bad_signature_of_a_keys_own_length_is_refused_here(house: House, buyer: Buyer) -> None:
    payload = payload_for(house.client, buyer)
    payload["payload"]["signature"] = "0x" + "ab" * 65
    asked = house.facilitator.asked

    response = pay(house.client, encoded(payload))

    assert response.json()["error"]["details"]["reason"] == SIGNATURE
    assert house.facilitator.asked == asked
