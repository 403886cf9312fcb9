"""Idempotence: a payment is charged once and delivered once, however often it is submitted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from buyer import ApiFactory, Buyer, decode_header, encode_header, pay, sign_payload, sign_payment
from facilitators import Reply, StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams, configure_providers, send_paid

from centgate.settings import Settings


def test_paid_request_gets_verdict_and_receipt(client: httpx.Client, buyer: Buyer) -> None:
    response = pay(client, sign_payment(client, buyer))

    assert response.status_code == 200
    assert response.json()["data"]["status"] == "blocked"
    receipt = decode_header(response.headers["PAYMENT-RESPONSE"])
    assert receipt["success"] is True
    assert receipt["payer"] == buyer.address.lower()


def test_same_payment_gets_same_bytes_without_charge(
    client: httpx.Client, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    payment = sign_payment(client, buyer)
    first = pay(client, payment)

    again = pay(client, payment)

    assert again.content == first.content
    assert again.headers["X-Request-Id"] == first.headers["X-Request-Id"] == first.json()["requestId"]
    assert again.headers["PAYMENT-RESPONSE"] == first.headers["PAYMENT-RESPONSE"]
    assert (first.headers.get("Idempotent-Replayed"), again.headers["Idempotent-Replayed"]) == (None, "true")
    assert facilitator.settle_calls == 1


def test_hundred_concurrent_requests_with_one_payment_get_one_answer(
    client: httpx.Client, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    payment = sign_payment(client, buyer)

    with ThreadPoolExecutor(50) as pool:
        responses = list(pool.map(pay, [client] * 100, [payment] * 100))

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert facilitator.settle_calls == 1


def test_same_nonce_on_another_network_is_another_payment(
    api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    deployments = [settings.model_copy(update={"network": each}) for each in ("eip155:84532", "eip155:8453")]
    clients = [api(each) for each in deployments]  # both use one journal
    nonce = "0x" + "ab" * 32

    responses = [pay(each, encode_header(sign_payload(each, buyer, nonce=nonce))) for each in clients]

    assert [response.status_code for response in responses] == [200, 200]
    assert [response.headers.get("Idempotent-Replayed") for response in responses] == [None, None]
    assert facilitator.settle_calls == 2


@pytest.mark.parametrize(
    ("reply", "status"),
    [(refuse_with("insufficient_funds"), 402), (reply_with(500, "no answer"), 502)],
    ids=["refused", "unknown"],
)
def test_service_runs_only_after_settlement(
    api: ApiFactory,
    settings: Settings,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    reply: Reply,
    status: int,
) -> None:
    client = api(configure_providers(settings, upstreams.provider_settings("dexscreener", "geckoterminal")))
    path, body = "/services/pool-snapshot", {"chain": "base", "tokenAddress": "0x" + "11" * 20}
    facilitator.next.append(reply)

    unsettled = send_paid(client, path, body)
    before = list(upstreams.requests)
    send_paid(client, path, body)

    assert unsettled.status_code == status
    assert before == []
    assert upstreams.requests != []
