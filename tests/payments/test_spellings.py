"""One payment can be written in many ways: what makes no difference makes none here."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Generator
from copy import deepcopy
from typing import Any

import pytest
from buyer import Buyer, encode_header, pay, sign_payload
from served_api import ServedApi, serve_api

Payload = dict[str, Any]


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that takes payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


def test_a_payment_refused_here_is_as_good_as_before_for_what_it_was_signed_for(
    served_api: ServedApi,
) -> None:
    payload = sign_payload(served_api.client, Buyer())
    altered = deepcopy(payload)
    altered["accepted"]["amount"] = "1"

    pay(served_api.client, encode_header(altered))
    response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 200


def test_a_recovery_number_of_0_or_1_is_as_good_as_27_or_28(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    signature = payload["payload"]["signature"]
    payload["payload"]["signature"] = signature[:-2] + {"1b": "00", "1c": "01"}[signature[-2:]]

    assert pay(served_api.client, encode_header(payload)).status_code == 200


def test_the_same_payment_in_other_letters_is_the_same_payment(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    first = pay(served_api.client, encode_header(payload))
    asked = served_api.facilitator.asked

    again = pay(served_api.client, encode_header(_upper_case(payload)))

    assert again.content == first.content
    assert served_api.facilitator.asked == asked


def test_accepted_addresses_in_lower_case_are_the_same_terms(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    for name in ("asset", "payTo"):
        payload["accepted"][name] = payload["accepted"][name].lower()

    assert pay(served_api.client, encode_header(payload)).status_code == 200


def test_what_a_buyer_adds_to_a_payment_does_no_harm(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    payload["resource"] = {"url": "https://elsewhere.test/"}
    payload["memo"] = payload["payload"]["memo"] = {"a": [1, 2]}

    assert pay(served_api.client, encode_header(payload)).status_code == 200


@pytest.mark.parametrize("depth", [200, 252, 253, 254, 900])
def test_a_payment_with_junk_nested_deeply_is_taken_or_refused_but_never_a_failure(
    served_api: ServedApi, depth: int
) -> None:
    payload = sign_payload(served_api.client, Buyer())
    written = json.dumps(payload | {"extensions": {"junk": 0}}).replace(
        "0}}", "[" * depth + "]" * depth + "}}"
    )

    response = pay(served_api.client, b64encode(written.encode()).decode())

    assert response.status_code in (200, 402)


def _upper_case(payload: Payload) -> Payload:
    changed = deepcopy(payload)
    inner = changed["payload"]
    inner["signature"] = "0x" + inner["signature"][2:].upper()
    for name in ("from", "to", "nonce"):
        inner["authorization"][name] = "0x" + inner["authorization"][name][2:].upper()
    return changed
