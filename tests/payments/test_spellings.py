"""Equivalent spellings of one payment are the same payment."""

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
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


def test_payment_refused_as_altered_is_still_valid(
    served_api: ServedApi,
) -> None:
    payload = sign_payload(served_api.client, Buyer())
    altered = deepcopy(payload)
    altered["accepted"]["amount"] = "1"

    pay(served_api.client, encode_header(altered))
    response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 200


def test_recovery_id_0_or_1_equals_27_or_28(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    signature = payload["payload"]["signature"]
    payload["payload"]["signature"] = signature[:-2] + {"1b": "00", "1c": "01"}[signature[-2:]]

    assert pay(served_api.client, encode_header(payload)).status_code == 200


def test_other_letter_case_is_same_payment(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    first = pay(served_api.client, encode_header(payload))
    calls = served_api.facilitator.settle_calls

    again = pay(served_api.client, encode_header(_upper_case(payload)))

    assert again.content == first.content
    assert served_api.facilitator.settle_calls == calls


def test_lower_case_addresses_are_same_terms(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    for name in ("asset", "payTo"):
        payload["accepted"][name] = payload["accepted"][name].lower()

    assert pay(served_api.client, encode_header(payload)).status_code == 200


def test_additional_members_are_ignored(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    payload["resource"] = {"url": "https://elsewhere.test/"}
    payload["memo"] = payload["payload"]["memo"] = {"a": [1, 2]}

    assert pay(served_api.client, encode_header(payload)).status_code == 200


@pytest.mark.extended
@pytest.mark.parametrize("depth", [200, 252, 253, 254, 900])
def test_deeply_nested_junk_causes_no_server_error(served_api: ServedApi, depth: int) -> None:
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
