"""Certain refusals of the facilitator: the buyer gets the reason, and may try again."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from buyer import Buyer, decode_header, encode_header, pay, payment_note, sign_payload, sign_payment
from facilitators import refuse_with, reply_with
from served_api import ServedApi, serve_api


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments and has no node."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


CERTAIN = (
    "insufficient_funds",
    "invalid_payload",
    "invalid_exact_evm_payload_signature",
    "invalid_exact_evm_insufficient_balance",
    "invalid_exact_evm_payload_authorization_valid_before",
    "invalid_exact_evm_transaction_simulation_failed",
    "invalid_exact_evm_failed_to_verify_signature",
    "invalid_x402_version",
    "unsupported_scheme",
    "network_mismatch",
    "missing_eip712_domain",
    "asset_not_deployed_contract",
    "eip6492_factory_not_allowed",
    "kyt_risk_detected",
    "request_blocked_by_location",
)


@pytest.mark.parametrize("reason", CERTAIN)
def test_certain_refusal_is_402_with_reason(served_api: ServedApi, buyer: Buyer, reason: str) -> None:
    served_api.facilitator.next.append(refuse_with(reason))

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, reason)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert decode_header(response.headers["PAYMENT-REQUIRED"])["error"] == reason


def test_refusal_has_failure_receipt(served_api: ServedApi, buyer: Buyer) -> None:
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    assert decode_header(response.headers["PAYMENT-RESPONSE"]) == {
        "success": False,
        "errorReason": "insufficient_funds",
        "payer": buyer.address.lower(),
        "transaction": "",
        "network": "eip155:84532",
    }


def test_refused_payment_may_be_sent_again(served_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(served_api.client, buyer)
    nonce = payload["payload"]["authorization"]["nonce"]
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))
    pay(served_api.client, encode_header(payload))

    response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 200
    assert served_api.facilitator.moved[buyer.address.lower(), nonce] == 1


@pytest.mark.extended
def test_refused_then_open_payment_stays_open(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next += [
        refuse_with("insufficient_funds"),
        reply_with(500, ""),
        refuse_with("insufficient_funds"),
    ]
    pay(served_api.client, payment)

    responses = [pay(served_api.client, payment) for _ in range(2)]

    assert [response.status_code for response in responses] == [502, 502]
