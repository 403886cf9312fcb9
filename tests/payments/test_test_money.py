"""Test money buys nothing on a deployment with real money, nor the reverse, whatever the journal contains."""

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

from centgate.payments.claim_values import StoredAnswer
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
        """Record a payment from before the switch, and its outcome."""
        terms = build_terms(phishing_check, self.before)
        await record_payment(
            self.before, header or encode_header(payload), int(time.time()), terms=terms, **came
        )

    def sign_before(self, buyer: Buyer) -> dict[str, Any]:
        """Sign a payment on the terms from before the switch."""
        return buyer.payload(encode_terms(self.before), now=int(time.time()))


@pytest.fixture(
    scope="module", params=[(BASE_SEPOLIA, BASE), (BASE, BASE_SEPOLIA)], ids=["test to main", "main to test"]
)
def switched_deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Switched]:
    """A deployment after the switch."""
    folder: Path = tmp_path_factory.mktemp("switched")
    before, after = request.param
    with open_stub_facilitator() as stub:
        was, now = (build_settings(folder, stub.url, network=network) for network in (before, after))
        with run_in_thread(now) as url, httpx.Client(base_url=url, timeout=30) as client:
            yield Switched(was, client, stub)


@pytest.mark.extended
async def test_settled_payment_of_other_network_kind_is_not_redeemed(
    switched_deployment: Switched, buyer: Buyer
) -> None:
    payload = switched_deployment.sign_before(buyer)
    await switched_deployment.record_earlier_payment(payload, transaction=HASH)

    response = pay(switched_deployment.client, encode_header(payload))

    assert response.status_code == 402
    assert response.json()["error"]["details"]["reason"] == "network_mismatch"
    assert payment_note(response) == {
        "state": "settled",
        "charged": True,
        "retry": "new_payment",
        "transaction": HASH,
    }
    assert "PAYMENT-REQUIRED" in response.headers


async def test_open_payment_of_other_network_kind_is_not_submitted(
    switched_deployment: Switched, buyer: Buyer
) -> None:
    payload = switched_deployment.sign_before(buyer)
    await switched_deployment.record_earlier_payment(payload)
    calls = switched_deployment.facilitator.settle_calls

    response = pay(switched_deployment.client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "network_mismatch"
    assert payment_note(response)["state"] == "in_flight"
    assert switched_deployment.facilitator.settle_calls == calls


async def test_key_of_other_network_kind_redeems_nothing(switched_deployment: Switched, buyer: Buyer) -> None:
    key = "a-key-from-before-the-switch"
    earlier = switched_deployment.sign_before(buyer)
    await switched_deployment.record_earlier_payment(earlier, with_identifier(earlier, key), transaction=HASH)
    calls = switched_deployment.facilitator.settle_calls

    response = pay(
        switched_deployment.client, with_identifier(sign_payload(switched_deployment.client, buyer), key)
    )

    assert (response.status_code, payment_note(response)["state"]) == (409, "unused")
    assert switched_deployment.facilitator.settle_calls == calls


@pytest.mark.extended
async def test_delivered_answer_is_replayed_on_other_network_kind(
    switched_deployment: Switched, buyer: Buyer
) -> None:
    payload = switched_deployment.sign_before(buyer)
    await switched_deployment.record_earlier_payment(payload, transaction=HASH, answer=ANSWER)

    response = pay(switched_deployment.client, encode_header(payload))

    assert (response.status_code, response.content) == (200, ANSWER.body)
