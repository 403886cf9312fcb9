"""Refusals during or after sending: an honest buyer never pays twice for one answer."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import (
    ApiFactory,
    Buyer,
    decode_header,
    encode_header,
    pay,
    payment_note,
    sign_payload,
    sign_payment,
)
from cdp_facilitator import (
    CdpFacilitator,
    cdp_error,
    cdp_settle_rejection,
    cdp_settlement_pending,
    cdp_verify_rejection,
    open_cdp_facilitator,
)
from chain_actions import cancel_authorization, send_reverted_transfer, settle_then_reply
from crash_test import read_block_number
from facilitators import Reply, StubFacilitator, build_settings, refuse_with, reply_with
from fake_upstreams import FakeUpstreams
from go_replies import (
    go_failed_to_execute_transfer,
    go_failed_to_get_receipt,
    go_settlement_pending,
    go_transaction_failed,
    go_transfer_event_mismatch,
)
from seeded_journals import read_row
from tampering_proxy import forward_to_node, start_proxy

from centgate.devchain.devnet import DevChain
from centgate.settings import ProviderSettings, Settings

WRONG_HASH = "0x" + "ab" * 32


def refuse_naming(reason: str, transaction: str) -> Reply:
    """Return a refusal that names a transaction."""
    return reply_with(
        200, {"success": False, "errorReason": reason, "transaction": transaction, "network": "eip155:84532"}
    )


AFTER_SENDING: dict[str, Reply] = {
    "Go: failed to get the receipt": go_failed_to_get_receipt(),
    "Go: failed to execute": go_failed_to_execute_transfer(),
    "Go: transaction failed": go_transaction_failed(),
    "Go: pending": go_settlement_pending(),
    "Go: event mismatch": go_transfer_event_mismatch(),
    "Python, TypeScript: event mismatch": refuse_naming(
        "invalid_exact_evm_transfer_event_mismatch", WRONG_HASH
    ),
    "transaction failed while pending": refuse_naming("transaction_failed", WRONG_HASH),
    "nonce used, by a repeating proxy": refuse_with("invalid_exact_evm_nonce_already_used"),
    "balance gone, by a repeating proxy": refuse_with("insufficient_funds"),
    "simulation failed, by a repeating proxy": refuse_with("invalid_exact_evm_transaction_simulation_failed"),
    "CDP: pending": cdp_settlement_pending(),
    "CDP: nonce used": cdp_verify_rejection("invalid_exact_evm_nonce_already_used"),
    "CDP: failed on chain": cdp_settle_rejection("settle_exact_failed_onchain", transaction="hash"),
    "CDP: a certain reason with a hash": cdp_settle_rejection("invalid_payload", transaction="hash"),
}


@pytest.mark.extended
@pytest.mark.parametrize("reply", AFTER_SENDING.values(), ids=AFTER_SENDING.keys())
def test_refusal_after_sending_charges_one_cent(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    buyer: Buyer,
    reply: Reply,
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    facilitator.next.append(settle_then_reply(devchain, reply))
    before = devchain.token_balance(buyer.address)

    response = pay(client, encode_header(payload))

    assert response.status_code == 200, response.text
    assert devchain.token_balance(buyer.address) == before - 10_000
    transaction = decode_header(response.headers["PAYMENT-RESPONSE"])["transaction"]
    assert transaction not in ("", WRONG_HASH)


IN_DOUBT = [name for name in AFTER_SENDING if "balance" not in name and "simulation" not in name]


@pytest.mark.parametrize("name", IN_DOUBT)
def test_refusal_without_node_asks_for_same_payment(
    client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer, name: str
) -> None:
    payment = sign_payment(client, buyer)
    facilitator.next.append(facilitator.move_then_reply(AFTER_SENDING[name]))

    open_ended, served = pay(client, payment), pay(client, payment)

    assert (open_ended.status_code, payment_note(open_ended)["retry"]) == (502, "same_payment")
    assert served.status_code == 200
    assert sum(facilitator.moved.values()) == 1


def test_named_transaction_without_receipt_is_not_doubled(
    api: ApiFactory, stubbed: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payment = sign_payment(client, buyer)
    facilitator.usually = refuse_naming("transaction_failed", WRONG_HASH)

    responses = [pay(client, payment) for _ in range(2)]

    assert [response.status_code for response in responses] == [502, 502]
    assert payment_note(responses[1])["transaction"] == WRONG_HASH
    assert facilitator.settle_calls == 1


def test_reverted_transaction_and_nonce_spent_elsewhere_is_refused(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    nonce = payload["payload"]["authorization"]["nonce"]
    cancel_authorization(devchain, buyer, nonce)
    facilitator.next.append(refuse_naming("transaction_failed", send_reverted_transfer(devchain, nonce)))

    response = pay(client, encode_header(payload))

    assert (response.status_code, payment_note(response)["state"]) == (402, "refused")


def test_revert_of_another_payment_is_no_refusal(
    api: ApiFactory, stubbed: Settings, devchain: DevChain, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """The facilitator names a wrong hash while the transfer that it has sent is not mined yet."""
    client = api(stubbed)
    payload = sign_payload(client, buyer)
    of_another = send_reverted_transfer(devchain, "0x" + secrets.token_hex(32))
    facilitator.usually = refuse_naming("settlement_pending", of_another)

    responses = [pay(client, encode_header(payload)) for _ in range(2)]

    assert [response.status_code for response in responses] == [502, 502]
    assert payment_note(responses[-1])["retry"] == "same_payment"
    assert facilitator.settle_calls == 1


@pytest.mark.extended
def test_revert_after_nonce_lookup_is_no_refusal(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
) -> None:
    """A proxy repeats the request, and both transactions are mined between two calls of the node."""
    held_back: list[int] = []

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == "eth_getTransactionReceipt":
            held_back.clear()
        if request["method"] != "eth_call" or not held_back:
            return None
        call, _ = request["params"]
        return 200, forward_to_node(devchain.rpc_url, request | {"params": [call, hex(held_back[0])]})

    node = start_proxy(upstreams, "node", devchain.rpc_url, change) + "/"
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=node)}}))
    payload = sign_payload(client, buyer)

    async def repeat_reply(body: dict[str, Any]) -> Any:
        held_back.append(read_block_number(devchain))
        await settle_then_reply(devchain, reply_with(200, {}))(body)
        second = send_reverted_transfer(devchain, payload["payload"]["authorization"]["nonce"])
        return await refuse_naming("transaction_failed", second)(body)

    facilitator.next.append(repeat_reply)

    first, second = (pay(client, encode_header(payload)) for _ in range(2))

    assert (first.status_code, payment_note(first)["retry"]) == (502, "same_payment")
    assert second.status_code == 200


async def test_refusal_is_recorded_as_event(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings)
    payload = sign_payload(client, buyer)
    facilitator.next += [refuse_with("insufficient_funds"), refuse_naming("settlement_pending", WRONG_HASH)]
    pay(client, encode_header(payload))
    pay(client, encode_header(payload))

    events = (await read_row(settings, payload))["events"]

    assert [(each["event"], each["reason"], each["transaction"]) for each in events] == [
        ("refused", "insufficient_funds", None),
        ("in_doubt", "settlement_pending", WRONG_HASH),
    ]


@pytest.fixture(scope="module")
def cdp() -> Generator[CdpFacilitator]:
    with open_cdp_facilitator() as simulator:
        yield simulator


@pytest.fixture
def cdp_client(api: ApiFactory, cdp: CdpFacilitator, tmp_path: Path) -> httpx.Client:
    """A client of an API that is paid through CDP's facilitator."""
    return api(build_settings(tmp_path, **cdp.settings))


def test_cdp_settles(cdp_client: httpx.Client, buyer: Buyer) -> None:
    assert pay(cdp_client, sign_payment(cdp_client, buyer)).status_code == 200


@pytest.mark.extended
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (cdp_settle_rejection("insufficient_funds"), "insufficient_funds"),
        (cdp_settle_rejection("insufficient_funds", transaction="empty"), "insufficient_funds"),
        (cdp_verify_rejection("insufficient_funds"), "insufficient_funds"),
        (cdp_settle_rejection("kyt_risk_detected"), "kyt_risk_detected"),
        (cdp_verify_rejection("request_blocked_by_location"), "request_blocked_by_location"),
    ],
    ids=["settle", "settle, empty transaction", "verify", "risk", "location"],
)
def test_cdp_refusal_under_status_400_is_402_with_reason(
    cdp_client: httpx.Client, cdp: CdpFacilitator, buyer: Buyer, reply: Reply, reason: str
) -> None:
    cdp.next.append(reply)

    response = pay(cdp_client, sign_payment(cdp_client, buyer))

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (402, reason)
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}


def test_cdp_pending_under_status_500_keeps_hash(
    cdp_client: httpx.Client, cdp: CdpFacilitator, buyer: Buyer
) -> None:
    payment = sign_payment(cdp_client, buyer)
    cdp.next.append(cdp.move_then_reply(cdp_settlement_pending()))

    pending, served = pay(cdp_client, payment), pay(cdp_client, payment)

    assert payment_note(pending)["state"] == "in_flight"
    assert payment_note(pending)["transaction"].startswith("0x")
    assert served.status_code == 200


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("unauthorized", "unused"),
        ("forbidden", "unused"),
        ("rate_limit_exceeded", "unused"),
        ("invalid_request", "in_flight"),
        ("payment_method_required", "in_flight"),
        ("internal_server_error", "in_flight"),
        ("service_unavailable", "in_flight"),
        ("timed_out", "in_flight"),
    ],
)
def test_cdp_error_says_if_it_was_sent(
    cdp_client: httpx.Client, cdp: CdpFacilitator, buyer: Buyer, name: Any, state: str
) -> None:
    cdp.next.append(cdp_error(name))

    response = pay(cdp_client, sign_payment(cdp_client, buyer))

    assert (response.status_code, payment_note(response)["state"]) == (502, state)
    assert payment_note(response)["retry"] == "same_payment"


@pytest.mark.parametrize("result", [{}, {"result": None}], ids=["error", "error beside null"])
def test_named_transaction_with_unreadable_receipt_is_not_doubled(
    api: ApiFactory,
    stubbed: Settings,
    devchain: DevChain,
    facilitator: StubFacilitator,
    upstreams: FakeUpstreams,
    buyer: Buyer,
    result: dict[str, Any],
) -> None:
    def remove_receipts(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != "eth_getTransactionReceipt":
            return None
        error = {"code": -32000, "message": "transaction indexing is in progress"}
        return 200, {"jsonrpc": "2.0", "id": request["id"], "error": error} | result

    node = start_proxy(upstreams, "node", devchain.rpc_url, remove_receipts) + "/"
    client = api(stubbed.model_copy(update={"providers": {"rpc_84532": ProviderSettings(url=node)}}))
    payment = sign_payment(client, buyer)
    facilitator.usually = refuse_naming("transaction_failed", WRONG_HASH)

    responses = [pay(client, payment) for _ in range(2)]

    assert [response.status_code for response in responses] == [502, 502]
    assert facilitator.settle_calls == 1
