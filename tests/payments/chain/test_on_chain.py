"""Resolution by the chain: a node tells the outcome of a payment that the facilitator left open."""

# eth-account and web3 are typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest
from buyer import (
    ApiFactory,
    Buyer,
    decode_header,
    encode_header,
    fetch_terms,
    pay,
    payment_note,
    sign_payload,
    with_identifier,
)
from chain_actions import cancel_authorization, pay_other_recipient, send_reverted_transfer, settle_then_reply
from facilitators import StubFacilitator, refuse_with, reply_with
from fake_upstreams import FakeUpstreams
from seeded_journals import record_payment

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.devchain.token import TOKEN_ADDRESS
from centgate.settings import ProviderSettings, Settings

Payload = dict[str, Any]
HASH = "0x" + "ab" * 32
LOST = "invalid_transaction_state"
EXPIRED = "invalid_exact_evm_payload_authorization_valid_before"


def get_nonce(payload: Payload) -> str:
    return payload["payload"]["authorization"]["nonce"]


def test_payment_on_chain_is_served_despite_facilitator_error(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, reply_with(502, "")))
    before = devchain.token_balance(buyer.address)

    open_ended = pay(client, encode_header(payload))
    served = pay(client, encode_header(payload))

    assert (open_ended.status_code, served.status_code) == (502, 200)
    assert devchain.token_balance(buyer.address) == before - 10_000
    assert facilitator.settle_calls == 1


def test_receipt_names_real_transaction(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, reply_with(502, "")))
    pay(client, encode_header(payload))

    served = pay(client, encode_header(payload))

    transaction = decode_header(served.headers["PAYMENT-RESPONSE"])["transaction"]
    mined = call_rpc(devchain.rpc_url, "eth_getTransactionReceipt", transaction)
    assert mined["status"] == "0x1"
    assert any(get_nonce(payload) in log["topics"] for log in mined["logs"])


@pytest.mark.extended
def test_resolution_does_not_need_facilitator(
    api: ApiFactory,
    chain_settings: Settings,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
) -> None:
    first = api(stubbed)
    payment = encode_header(sign_payload(first, buyer))
    facilitator.next.append(settle_then_reply(devchain, reply_with(502, "")))
    pay(first, payment)
    alone = api(stubbed.model_copy(update={"facilitator_url": "http://127.0.0.1:9"}))

    assert pay(alone, payment).status_code == 200


@pytest.mark.extended
def test_unsettled_payment_is_settled_on_resubmission(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next += [reply_with(502, ""), settle_then_reply(devchain, facilitator.settle)]
    pay(client, encode_header(payload))

    served = pay(client, encode_header(payload))

    assert served.status_code == 200
    assert devchain.is_authorization_used(buyer.address, get_nonce(payload))


def test_payment_broadcast_by_others_is_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """The facilitator's own transaction then fails, although the money has moved."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    failed = {"success": False, "errorReason": "transaction_failed", "transaction": HASH, "network": ""}
    facilitator.next.append(settle_then_reply(devchain, reply_with(200, failed)))

    served = pay(client, encode_header(payload))

    assert served.status_code == 200
    assert decode_header(served.headers["PAYMENT-RESPONSE"])["transaction"] != HASH


def test_reverted_transaction_is_refusal(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    failed = {"success": False, "errorReason": "transaction_failed", "network": ""}
    reverted = send_reverted_transfer(devchain, get_nonce(payload))
    facilitator.next.append(reply_with(200, failed | {"transaction": reverted}))

    response = pay(client, encode_header(payload))

    assert (response.status_code, payment_note(response)["state"]) == (402, "refused")


@pytest.mark.parametrize("reason", ["invalid_exact_evm_nonce_already_used", "insufficient_funds"])
def test_refusal_is_uncertain_for_unused_nonce(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator, buyer: Buyer, reason: str
) -> None:
    client = api(stubbed)
    payment = encode_header(sign_payload(client, buyer))
    facilitator.next += [reply_with(502, ""), refuse_with(reason)]
    pay(client, payment)

    response = pay(client, payment)

    assert response.status_code == 502
    assert payment_note(response)["state"] == "in_flight"


def test_cancelled_payment_is_refused_and_never_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(reply_with(502, ""))
    pay(client, encode_header(payload))
    cancel_authorization(devchain, buyer, get_nonce(payload))

    response = pay(client, encode_header(payload))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, LOST)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert facilitator.settle_calls == 1


def test_nonce_spent_elsewhere_is_refused_and_never_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(reply_with(502, ""))
    pay(client, encode_header(payload))
    pay_other_recipient(devchain, fetch_terms(client), buyer, get_nonce(payload))

    response = pay(client, encode_header(payload))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, LOST)


async def test_expired_unused_payment_is_refused_for_good(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    an_hour_ago = int(time.time()) - 3600
    payment = encode_header(buyer.payload(fetch_terms(client), now=an_hour_ago))
    await record_payment(stubbed, payment, an_hour_ago)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))  # a block after its end

    response = pay(client, payment)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, EXPIRED)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert facilitator.settle_calls == 0


@pytest.mark.extended
def test_expired_payment_that_was_settled_is_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = buyer.payload(fetch_terms(client), now=int(time.time()), seconds=8)
    facilitator.next.append(settle_then_reply(devchain, reply_with(502, "")))
    pay(client, encode_header(payload))
    while int(payload["payload"]["authorization"]["validBefore"]) > time.time() + 5:
        time.sleep(0.1)  # until it is too late to settle it

    served = pay(client, encode_header(payload))

    assert served.status_code == 200


@pytest.mark.extended
def test_older_payment_of_key_is_resolved(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    key = "the-key-of-" + secrets.token_hex(8)
    older = sign_payload(client, buyer)
    facilitator.next += [reply_with(502, ""), settle_then_reply(devchain, facilitator.settle)]
    pay(client, with_identifier(older, key))
    newer = buyer.payload(fetch_terms(client), now=int(time.time()) - 3600)

    response = pay(client, with_identifier(newer, key))

    assert response.status_code == 200
    assert devchain.is_authorization_used(buyer.address, get_nonce(older))
    assert not devchain.is_authorization_used(buyer.address, get_nonce(newer))


@pytest.mark.parametrize("rpc", ["http://127.0.0.1:9", "stub"], ids=["unreachable", "talking nonsense"])
def test_unanswered_node_leaves_outcome_open(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator, buyer: Buyer, rpc: str
) -> None:
    node = ProviderSettings(url=facilitator.url + "/settle" if rpc == "stub" else rpc)
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": node}}))
    payment = encode_header(sign_payload(client, buyer))
    facilitator.usually = reply_with(200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000}})
    pay(client, payment)

    response = pay(client, payment)

    assert (response.status_code, payment_note(response)["retry"]) == (502, "same_payment")


NODES: dict[str, tuple[int, Any]] = {
    "light": (200, {"jsonrpc": "2.0", "id": 1, "result": None}),
    "odd": (200, {"jsonrpc": "2.0", "id": 1, "result": [{}]}),
    "elsewhere": (307, {"jsonrpc": "2.0", "id": 1, "result": "0x"}),
    "endless": (200, {"jsonrpc": "2.0", "id": 1, "result": "x" * 5_000_000}),
}


@pytest.mark.extended
@pytest.mark.parametrize("answer", NODES.values(), ids=NODES.keys())
def test_unusable_node_answer_leaves_outcome_open(
    api: ApiFactory,
    stubbed: Settings,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    answer: tuple[int, Any],
) -> None:
    upstreams.set_response_function("node", "/", lambda _asked: answer, method="POST")
    node = ProviderSettings(url=upstreams.url_of("node") + "/")
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": node}}))
    payment = encode_header(sign_payload(client, buyer))
    facilitator.usually = reply_with(502, "")
    pay(client, payment)

    response = pay(client, payment)

    assert (response.status_code, payment_note(response)["retry"]) == (502, "same_payment")
    assert payment_note(response)["state"] == "in_flight"


def test_wrong_signature_of_contract_payer_is_left_to_facilitator(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, Buyer(), **{"from": TOKEN_ADDRESS})  # surely a contract

    pay(client, encode_header(payload))

    assert facilitator.settle_calls == 1


def test_wrong_signature_of_plain_payer_is_refused_here(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, Buyer(), **{"from": Buyer(1).address})

    response = pay(client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "invalid_exact_evm_payload_signature"
    assert facilitator.settle_calls == 0


def test_open_contract_payment_stays_open_without_node(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator, upstreams: FakeUpstreams
) -> None:
    up = [(200, {"jsonrpc": "2.0", "id": 1, "result": result}) for result in (hex(84532), "0x6001")]
    upstreams.set_response_function("node", "/", lambda _asked: up.pop(0) if up else (503, ""), method="POST")
    node = ProviderSettings(url=upstreams.url_of("node") + "/")
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": node}}))
    payment = encode_header(sign_payload(client, Buyer(), **{"from": Buyer(1).address}))
    facilitator.usually = reply_with(502, "")
    pay(client, payment)

    response = pay(client, payment)

    assert (response.status_code, payment_note(response)["retry"]) == (502, "same_payment")
