"""Facilitators of the official SDKs settle on the development chain; replies of the Go SDK can be read."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import go_replies
import httpx
import pytest
from buyer import ApiFactory, Buyer, decode_header, pay, sign_payload, sign_payment
from facilitators import Reply, StubFacilitator
from msgspec.structs import replace
from sdk_facilitators import open_python_facilitator, open_typescript_facilitator
from x402.schemas import SettleResponse

from centgate.devchain.devnet import DevChain
from centgate.payments.facilitator.settle_reasons import classify_reason
from centgate.settings import Settings

pytestmark = pytest.mark.extended

CENT = 10_000
"""The price of a call in base units."""

GO_REPLIES: tuple[Callable[[], Reply], ...] = (
    go_replies.go_failed_to_execute_transfer,
    go_replies.go_failed_to_get_receipt,
    go_replies.go_settlement_pending,
    go_replies.go_transaction_failed,
    go_replies.go_transfer_event_mismatch,
    go_replies.go_transaction_state,
    go_replies.go_invalid_payload_of_simulation,
)


@pytest.fixture(params=["python", "typescript"])
def sdk_url(request: pytest.FixtureRequest, devchain: DevChain) -> Generator[str]:
    """The URL of each SDK's facilitator on the development chain."""
    with _facilitator(request, devchain) as url:
        yield url


@contextmanager
def _facilitator(request: pytest.FixtureRequest, devchain: DevChain) -> Generator[str]:
    if request.param == "python":
        with open_python_facilitator(devchain) as url:
            yield url
    else:
        packages: Path = request.getfixturevalue("typescript_sdk")
        with open_typescript_facilitator(packages, devchain) as url:
            yield url


def test_payment_moves_one_cent_by_sdk_facilitator(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer, sdk_url: str
) -> None:
    settings = chain_settings.model_copy(update={"facilitator_url": sdk_url})
    client = api(settings)
    before = devchain.token_balance(buyer.address), devchain.token_balance(settings.pay_to or "")

    response = pay(client, sign_payment(client, buyer))

    after = devchain.token_balance(buyer.address), devchain.token_balance(settings.pay_to or "")
    receipt = decode_header(response.headers["PAYMENT-RESPONSE"])
    assert response.status_code == 200, response.text
    assert (receipt["success"], len(receipt["transaction"])) == (True, 66)
    assert (before[0] - after[0], after[1] - before[1]) == (CENT, CENT)


def test_second_settlement_by_sdk_facilitator_is_in_doubt(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer, sdk_url: str
) -> None:
    payload = sign_payload(api(chain_settings), buyer)
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}
    with httpx.Client(base_url=sdk_url, timeout=30) as client:
        first = client.post("/settle", json=body).json()

        second = client.post("/settle", json=body).json()

    assert (first["success"], second["success"]) == (True, False)
    assert classify_reason(second["errorReason"]) == "in_doubt"


def test_typescript_facilitator_without_node_reports_wrong_signature(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer, typescript_sdk: Path
) -> None:
    payload = sign_payload(api(chain_settings), buyer)
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}
    without_node = replace(devchain, rpc_url="http://127.0.0.1:9")

    with open_typescript_facilitator(typescript_sdk, without_node) as url:
        answer = httpx.post(f"{url}/settle", json=body, timeout=30).json()

    assert (answer["success"], answer["errorReason"]) == (False, "invalid_exact_evm_signature")
    assert classify_reason("invalid_exact_evm_signature") == "chain_state"


def test_typescript_facilitator_reports_failed_simulation_for_settled_payment(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain, buyer: Buyer, typescript_sdk: Path
) -> None:
    payload = sign_payload(api(chain_settings), buyer)
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}

    with (
        open_typescript_facilitator(typescript_sdk, devchain, simulate_in_settle=True) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        first, second = (client.post("/settle", json=body).json() for _ in range(2))

    assert (first["success"], second["success"]) == (True, False)
    assert second["errorReason"] == "invalid_exact_evm_transaction_simulation_failed"
    assert classify_reason(second["errorReason"]) == "chain_state"


@pytest.mark.parametrize("make", GO_REPLIES)
async def test_go_reply_is_settlement_in_doubt(
    client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer, make: Callable[[], Reply]
) -> None:
    payload = sign_payload(client, buyer)
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}

    reply = await make()(body)

    answer = SettleResponse.model_validate_json(bytes(reply.body))
    assert (reply.status_code, answer.success, answer.payer) == (200, False, buyer.address)
    assert answer.transaction in ("", facilitator.move(body)["transaction"])
    assert classify_reason(answer.error_reason or "") == "in_doubt"
