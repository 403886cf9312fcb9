"""Test money buys nothing where real money is asked for, nor the reverse, whatever the journal has."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import Buyer, encode_header, pay, payment_note, sign_payload, with_identifier
from facilitators import StubFacilitator, build_settings, open_stub_facilitator
from seeded_journals import encode_terms, record_payment

from centgate.payments.claims import StoredAnswer
from centgate.payments.terms import build_terms
from centgate.server import run_in_thread
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

HASH = "0x" + "ab" * 32
ANSWER = StoredAnswer(200, b'{"as it":"was"}', "req_0123456789abcdef01234567", "e30=")
BASE, BASE_SEPOLIA = "eip155:8453", "eip155:84532"


@dataclass(frozen=True)
class Switched:
    """A deployment that was switched from one network to another, with one journal."""

    before: Settings
    client: httpx.Client
    facilitator: StubFacilitator

    async def record_earlier_payment(self, payload: dict[str, Any], header: str = "", **came: Any) -> None:
        """Enter a payment from before the switch, and what came of it."""
        terms = build_terms(phishing_check, self.before)
        await record_payment(
            self.before, header or encode_header(payload), int(time.time()), terms=terms, **came
        )

    def payload_before(self, buyer: Buyer) -> dict[str, Any]:
        """A payment on the terms from before the switch."""
        return buyer.payload(encode_terms(self.before), now=int(time.time()))


@pytest.fixture(
    scope="module", params=[(BASE_SEPOLIA, BASE), (BASE, BASE_SEPOLIA)], ids=["test to main", "main to test"]
)
def switched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Switched]:
    """A deployment after the switch."""
    folder: Path = tmp_path_factory.mktemp("switched")
    before, after = request.param
    with open_stub_facilitator() as stub:
        was, now = (build_settings(folder, stub.url, network=network) for network in (before, after))
        with run_in_thread(now) as url, httpx.Client(base_url=url, timeout=30) as client:
            yield Switched(was, client, stub)


@pytest.mark.extended
async def test_a_settled_payment_of_the_other_kind_of_network_is_not_redeemed(
    switched: Switched, buyer: Buyer
) -> None:
    payload = switched.payload_before(buyer)
    await switched.record_earlier_payment(payload, transaction=HASH)

    response = pay(switched.client, encode_header(payload))

    assert response.status_code == 402
    assert response.json()["error"]["details"]["reason"] == "network_mismatch"
    assert payment_note(response) == {
        "state": "settled",
        "charged": True,
        "retry": "new_payment",
        "transaction": HASH,
    }
    assert "PAYMENT-REQUIRED" in response.headers


async def test_an_open_payment_of_the_other_kind_of_network_is_not_taken(
    switched: Switched, buyer: Buyer
) -> None:
    payload = switched.payload_before(buyer)
    await switched.record_earlier_payment(payload)
    asked = switched.facilitator.asked

    response = pay(switched.client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "network_mismatch"
    assert payment_note(response)["state"] == "in_flight"
    assert switched.facilitator.asked == asked


async def test_a_key_of_the_other_kind_of_network_redeems_nothing(switched: Switched, buyer: Buyer) -> None:
    key = "a-key-from-before-the-switch"
    earlier = switched.payload_before(buyer)
    await switched.record_earlier_payment(earlier, with_identifier(earlier, key), transaction=HASH)
    asked = switched.facilitator.asked

    response = pay(switched.client, with_identifier(sign_payload(switched.client, buyer), key))

    assert (response.status_code, payment_note(response)["state"]) == (409, "unused")
    assert switched.facilitator.asked == asked


async def test_a_delivered_answer_is_repeated_on_the_other_kind_of_network(
    switched: Switched, buyer: Buyer
) -> None:
    payload = switched.payload_before(buyer)
    await switched.record_earlier_payment(payload, transaction=HASH, answer=ANSWER)

    response = pay(switched.client, encode_header(payload))

    assert (response.status_code, response.content) == (200, ANSWER.body)
