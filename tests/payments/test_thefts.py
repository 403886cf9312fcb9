"""Attempts to get an answer without payment, by nonces that were used before, here or elsewhere."""

from __future__ import annotations

import secrets
import time
from typing import Any

import orjson
import pytest
from buyer import ApiFactory, Buyer, encode_header, fetch_terms, pay, payment_note, sign_payload, sign_payment
from chain_actions import send_reverted_transfer, settle_elsewhere, settle_then_reply
from facilitators import Reply, StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams
from tampering_proxy import forward_to_node, start_proxy

from centgate.devchain.devnet import DevChain
from centgate.devchain.token import TOKEN_ADDRESS
from centgate.payments.chain import chain_client
from centgate.settings import ProviderSettings, Settings

Payload = dict[str, Any]
NONCE_USED = "invalid_exact_evm_nonce_already_used"
OTHER = {"url": "https://example.com/"}
JUNK = "0x" + "5a" * 66


@pytest.fixture(autouse=True)
def patient_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the block of each claim: without one, time decides, and these tests change it."""
    monkeypatch.setattr(chain_client, "BLOCK_WAIT", 10)


@pytest.fixture
def without_node(stubbed: Settings) -> Settings:
    """The same deployment without a node."""
    return stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(enabled=False)}})


def reply_strictly(body: dict[str, Any]) -> Any:
    """Reply as a facilitator that checks its input: 400 without a version, else the nonce is used."""
    complete = body["paymentPayload"].get("x402Version") == 2
    return (refuse_with(NONCE_USED) if complete else reply_with(400, {}))(body)


FIRST: dict[str, Reply] = {
    "a 400": reply_with(400, {}),
    "a 429": reply_with(429, {}),
    "a 500": reply_with(500, ""),
    "a nonce that is used": refuse_with(NONCE_USED),
    "no version": reply_strictly,
}
each_first = pytest.mark.parametrize("first", FIRST.values(), ids=FIRST.keys())


@each_first
@pytest.mark.parametrize("node", ["node", pytest.param("no node", marks=pytest.mark.extended)])
def test_nonce_spent_before_claim_buys_nothing(
    api: ApiFactory,
    stubbed: Settings,
    without_node: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
    first: Reply,
    node: str,
) -> None:
    client = api(stubbed if node == "node" else without_node)
    payload = sign_payload(client, buyer)
    settle_elsewhere(devchain, payload)
    facilitator.next.append(first)
    facilitator.usually = refuse_with(NONCE_USED)
    del payload["x402Version"]

    responses = [pay(client, encode_header(payload)) for _ in range(3)]

    assert 200 not in [response.status_code for response in responses]
    if node == "node":
        assert payment_note(responses[-1])["state"] == "refused"


@pytest.mark.extended
@pytest.mark.parametrize("node", ["node", "no node"])
def test_junk_signature_for_used_contract_nonce_buys_nothing(
    api: ApiFactory, stubbed: Settings, without_node: Settings, facilitator: StubFacilitator, node: str
) -> None:
    client = api(stubbed if node == "node" else without_node)
    payload = sign_payload(client, Buyer(), **{"from": TOKEN_ADDRESS})
    payload["payload"]["signature"] = JUNK
    facilitator.next.append(reply_with(500, ""))
    facilitator.usually = refuse_with(NONCE_USED)

    responses = [pay(client, encode_header(payload)) for _ in range(3)]

    assert 200 not in [response.status_code for response in responses]


def test_long_signature_of_plain_account_is_refused_here(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, Buyer(), **{"from": Buyer(1).address})
    payload["payload"]["signature"] = JUNK

    response = pay(client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "invalid_exact_evm_payload_signature"
    assert facilitator.settle_calls == 0


def test_long_signature_of_undeployed_wallet_is_left_to_facilitator(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, Buyer(), **{"from": Buyer(1).address})
    wrapper = f"{1:064x}{96:064x}{128:064x}{0:064x}{65:064x}" + ("5a" * 65).ljust(192, "0")
    payload["payload"]["signature"] = "0x" + wrapper + "6492" * 16

    pay(client, encode_header(payload))

    assert facilitator.settle_calls == 1


def test_payment_of_another_deployment_is_not_served_on_revert(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    settle_elsewhere(devchain, payload)
    reverted = {"success": False, "errorReason": "transaction_failed", "network": "eip155:84532"}
    nonce = payload["payload"]["authorization"]["nonce"]
    facilitator.usually = reply_with(200, reverted | {"transaction": send_reverted_transfer(devchain, nonce)})

    responses = [pay(client, encode_header(payload)) for _ in range(2)]

    assert [response.status_code for response in responses] == [402, 402]


def test_payment_made_after_claim_is_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """The facilitator broadcasts, and a proxy in front of it repeats the request."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, refuse_with(NONCE_USED)))

    response = pay(client, encode_header(payload))

    assert response.status_code == 200


@pytest.mark.extended
@pytest.mark.parametrize("ahead", [-600, 600])
def test_server_clock_does_not_decide_block_order(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    ahead: int,
) -> None:
    """Blocks are ten minutes younger or older than the server's clock says."""
    client = api(
        stubbed.model_copy(
            update={"providers": {"rpc_84532": _shift_block_times(upstreams, devchain, ahead)}}
        )
    )
    early, honest = sign_payload(client, buyer), sign_payload(client, buyer)
    settle_elsewhere(devchain, early)
    facilitator.next += [refuse_with(NONCE_USED), settle_then_reply(devchain, refuse_with(NONCE_USED))]

    stolen, served = pay(client, encode_header(early)), pay(client, encode_header(honest))

    assert (stolen.status_code, served.status_code) == (402, 200)


def test_transfer_in_older_block_is_no_proof(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    """After a reorganisation the transfer is in a block below the claim's: the remaining risk of a buyer."""
    node = _simulate_reorganisation(upstreams, devchain)
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": node}}))
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, refuse_with(NONCE_USED)))

    response = pay(client, encode_header(payload))

    assert (response.status_code, payment_note(response)["state"]) == (402, "refused")


def test_nonce_spent_shortly_before_claim_buys_nothing(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """The server has read the newest block for another payment, just before the transfer."""
    client = api(stubbed)
    pay(client, sign_payment(client, buyer))
    payload = sign_payload(client, buyer)
    settle_elsewhere(devchain, payload)
    facilitator.next.append(refuse_with(NONCE_USED))
    time.sleep(0.25)  # the age of a block number that decision 2 states

    response = pay(client, encode_header(payload))

    assert response.status_code == 402, response.text
    assert payment_note(response)["charged"] is False


def test_unanswered_read_of_newest_block_is_not_repeated_at_once(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, upstreams: FakeUpstreams, buyer: Buyer
) -> None:
    reads: list[str] = []

    def refuse_read(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != "eth_blockNumber":
            return None
        reads.append(request["method"])
        return 503, {}

    node = start_proxy(upstreams, "node", devchain.rpc_url, refuse_read) + "/"
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=node)}}))

    responses = [pay(client, sign_payment(client, buyer)) for _ in range(3)]

    assert [response.status_code for response in responses] == [200] * 3
    assert len(reads) == 1


@pytest.mark.extended
def test_resubmitted_payment_keeps_block_of_first_claim(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    """It comes to a server that could not learn the newest block yet."""
    node = start_proxy(upstreams, "node", devchain.rpc_url, _hide_newest_block) + "/"
    restarted = stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=node)}})
    client, later = api(stubbed), api(restarted)
    payload = sign_payload(client, buyer)
    settle_elsewhere(devchain, payload)
    facilitator.usually = refuse_with(NONCE_USED)

    responses = [pay(each, encode_header(payload)) for each in (client, later)]

    assert [response.status_code for response in responses] == [402, 402]


def test_buyers_additions_are_not_relayed(
    api: ApiFactory, without_node: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(without_node)
    payload = sign_payload(client, buyer)
    payload["resource"] = {"url": "https://elsewhere.example/", "note": "planted"}
    payload["accepted"] = payload["accepted"] | {"planted": True}
    payload["planted"] = "planted"
    payload["payload"]["planted"] = "planted"
    payload["payload"]["authorization"]["planted"] = "planted"
    payload["extensions"] = {"planted": {"info": "planted"}, "bazaar": {"info": "planted"}}

    pay(client, encode_header(payload))

    sent = facilitator.contents[-1]
    relayed = orjson.loads(sent)["paymentPayload"]
    assert b"planted" not in sent
    assert relayed["resource"]["url"].endswith("/services/phishing-check")
    assert relayed["x402Version"] == 2
    assert "info" in relayed["extensions"]["bazaar"]


@pytest.mark.parametrize("echoes", [True, False], ids=["extensions echoed", "no extensions"])
def test_all_submissions_send_same_bytes(
    api: ApiFactory, without_node: Settings, facilitator: StubFacilitator, buyer: Buyer, *, echoes: bool
) -> None:
    client = api(without_node)
    payload = sign_payload(client, buyer)
    if echoes:
        identifier = {"info": {"required": False, "id": "an-identifier-" + secrets.token_hex(8)}}
        payload["extensions"] = {"bazaar": {}, "payment-identifier": identifier}
    facilitator.next += [reply_with(500, "")] * 2

    responses = [pay(client, encode_header(payload)) for _ in range(3)]

    assert responses[-1].status_code == 200
    assert len(set(facilitator.contents)) == 1


def test_too_long_authorization_is_refused_here(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = buyer.payload(fetch_terms(client), now=int(time.time()), seconds=120 + 660)

    response = pay(client, encode_header(payload))

    reason = "invalid_exact_evm_payload_authorization_valid_before"
    assert response.json()["error"]["details"]["reason"] == reason
    assert facilitator.settle_calls == 0


def _shift_block_times(upstreams: FakeUpstreams, devchain: DevChain, ahead: int) -> ProviderSettings:
    """Return a node whose blocks have other times."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != "eth_getBlockByNumber":
            return None
        answer = forward_to_node(devchain.rpc_url, request)
        block = answer["result"]
        return 200, answer | {"result": {**block, "timestamp": hex(int(block["timestamp"], 16) + ahead)}}

    return ProviderSettings(url=start_proxy(upstreams, "node", devchain.rpc_url, change) + "/")


def _hide_newest_block(request: dict[str, Any]) -> tuple[int, Any] | None:
    return (503, {}) if request["method"] == "eth_blockNumber" else None


def _simulate_reorganisation(upstreams: FakeUpstreams, devchain: DevChain) -> ProviderSettings:
    """Return a node whose newest block was far higher when the payment was claimed."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_blockNumber":
            answer = forward_to_node(devchain.rpc_url, request)
            return 200, answer | {"result": hex(int(answer["result"], 16) + 1_000)}
        if request["method"] == "eth_call":  # also for blocks of the abandoned branch
            call, _ = request["params"]
            return 200, forward_to_node(devchain.rpc_url, request | {"params": [call, "latest"]})
        return None

    return ProviderSettings(url=start_proxy(upstreams, "node", devchain.rpc_url, change) + "/")
