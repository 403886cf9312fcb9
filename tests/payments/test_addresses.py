"""Address normalization: the facilitator gets checksummed addresses, however a wallet spells them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from buyer import ApiFactory, Buyer, encode_header, pay, payment_note, sign_payload
from facilitators import StubFacilitator

from centgate.settings import Settings


def to_upper_case(address: str) -> str:
    return "0x" + address[2:].upper()


@pytest.mark.extended
@pytest.mark.parametrize("spelled", [str.lower, to_upper_case])
def test_single_case_addresses_settle_onchain(
    spelled: Callable[[str], str], api: ApiFactory, chain_settings: Settings, buyer: Buyer
) -> None:
    client = api(chain_settings)
    payload = sign_payload(client, buyer)
    authorization = payload["payload"]["authorization"]
    authorization |= {"from": spelled(authorization["from"]), "to": spelled(authorization["to"])}

    response = pay(client, encode_header(payload))

    assert response.status_code == 200, response.text


@pytest.mark.parametrize("signature", ["0x12", "0x" + "11" * 64])
def test_too_short_signature_is_refused_here(
    signature: str, api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings)
    payload = sign_payload(client, buyer)
    payload["payload"]["signature"] = signature

    response = pay(client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "invalid_exact_evm_payload_signature"
    assert payment_note(response)["state"] == "unused"
    assert facilitator.settle_calls == 0
