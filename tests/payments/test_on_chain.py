"""With a node to ask, the chain says what became of a payment that the facilitator left open."""

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


def nonce_of(payload: Payload) -> str:
    return payload["payload"]["authorization"]["nonce"]


def test_what_was_paid_on_chain_is_served_though_the_facilitator_said_nothing(
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
    assert facilitator.asked == 1


def test_its_receipt_names_the_real_transaction(
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
    assert any(nonce_of(payload) in log["topics"] for log in mined["logs"])


def test_a_facilitator_that_then_disappears_is_not_needed(
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


def test_what_did_not_move_is_settled_when_it_is_sent_again(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next += [reply_with(502, ""), settle_then_reply(devchain, facilitator.settle)]
    pay(client, encode_header(payload))

    served = pay(client, encode_header(payload))

    assert served.status_code == 200
    assert devchain.is_authorization_used(buyer.address, nonce_of(payload))


def test_a_payment_that_somebody_else_broadcast_first_is_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """The facilitator's own transaction then fails, and the money has moved all the same."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    failed = {"success": False, "errorReason": "transaction_failed", "transaction": HASH, "network": ""}
    facilitator.next.append(settle_then_reply(devchain, reply_with(200, failed)))

    served = pay(client, encode_header(payload))

    assert served.status_code == 200
    assert decode_header(served.headers["PAYMENT-RESPONSE"])["transaction"] != HASH


def test_a_transaction_that_was_reverted_is_a_refusal(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    failed = {"success": False, "errorReason": "transaction_failed", "network": ""}
    reverted = send_reverted_transfer(devchain, nonce_of(payload))
    facilitator.next.append(reply_with(200, failed | {"transaction": reverted}))

    response = pay(client, encode_header(payload))

    assert (response.status_code, payment_note(response)["state"]) == (402, "refused")


@pytest.mark.parametrize("reason", ["invalid_exact_evm_nonce_already_used", "insufficient_funds"])
def test_a_refusal_is_not_believed_where_the_chain_says_unused(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator, buyer: Buyer, reason: str
) -> None:
    client = api(stubbed)
    payment = encode_header(sign_payload(client, buyer))
    facilitator.next += [reply_with(502, ""), refuse_with(reason)]
    pay(client, payment)

    response = pay(client, payment)

    assert response.status_code == 502
    assert payment_note(response)["state"] == "in_flight"


def test_what_its_payer_cancelled_is_refused_and_never_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(reply_with(502, ""))
    pay(client, encode_header(payload))
    cancel_authorization(devchain, buyer, nonce_of(payload))

    response = pay(client, encode_header(payload))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, LOST)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert facilitator.asked == 1


def test_a_nonce_spent_on_somebody_else_is_refused_and_never_served(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(reply_with(502, ""))
    pay(client, encode_header(payload))
    pay_other_recipient(devchain, fetch_terms(client), buyer, nonce_of(payload))

    response = pay(client, encode_header(payload))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, LOST)


async def test_what_expired_unused_is_refused_for_good(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    an_hour_ago = int(time.time()) - 3600
    payment = encode_header(buyer.payload(fetch_terms(client), now=an_hour_ago))
    await record_payment(stubbed, payment, an_hour_ago)
    cancel_authorization(devchain, Buyer(8), "0x" + secrets.token_hex(32))  # a block later than its end

    response = pay(client, payment)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, EXPIRED)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert facilitator.asked == 0


@pytest.mark.extended
def test_what_expired_after_it_had_moved_is_served(
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


def test_an_older_payment_under_a_key_is_what_is_resolved(
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
    assert devchain.is_authorization_used(buyer.address, nonce_of(older))
    assert not devchain.is_authorization_used(buyer.address, nonce_of(newer))


@pytest.mark.parametrize("rpc", ["http://127.0.0.1:9", "stub"], ids=["unreachable", "talking nonsense"])
def test_a_node_that_does_not_answer_leaves_the_outcome_open(
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
def test_a_node_that_answers_anything_but_the_fact_leaves_the_outcome_open(
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


def test_a_bad_signature_of_a_payer_with_code_is_left_to_the_facilitator(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, Buyer(), **{"from": TOKEN_ADDRESS})  # a contract for certain

    pay(client, encode_header(payload))

    assert facilitator.asked == 1


def test_a_bad_signature_of_a_payer_without_code_is_refused_here(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, Buyer(), **{"from": Buyer(1).address})

    response = pay(client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "invalid_exact_evm_payload_signature"
    assert facilitator.asked == 0


def test_an_open_payment_of_a_payer_with_code_stays_open_when_no_node_answers(
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
