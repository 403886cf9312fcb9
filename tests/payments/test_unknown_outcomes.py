"""Unknown outcomes: the buyer is asked to resend the same payment, and the payment is resolved."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import httpx
import pytest
from buyer import Buyer, encode_header, pay, payment_note, sign_payload, sign_payment
from facilitators import Reply, StubFacilitator, refuse_with, reply_with
from served_api import ServedApi, serve_api
from starlette.responses import Response

from centgate.payments.settlement import Settler

HASH = "0x" + "ab" * 32
OPEN = {"state": "in_flight", "charged": False, "retry": "same_payment"}
NONCE_USED = "invalid_exact_evm_nonce_already_used"


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments and has no node."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


@pytest.fixture(scope="module")
def impatient_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that waits half a second for its facilitator."""
    with serve_api(tmp_path_factory.mktemp("impatient_api"), facilitator_timeout=0.5) as served_api:
        yield served_api


def build_reply(**changes: Any) -> dict[str, Any]:
    """Return a reply of the facilitator, a success for another transaction by default."""
    return {"success": True, "transaction": HASH, "network": "eip155:84532"} | changes


def refuse_openly(reason: str, **more: Any) -> Reply:
    return reply_with(200, build_reply(success=False, errorReason=reason, transaction="") | more)


def cut_connection(_body: dict[str, Any]) -> Any:
    """Reply with a body that ends before its announced length."""

    async def reply(_body: dict[str, Any]) -> Response:
        return Response(b'{"success": tr', headers={"content-length": "500"}, media_type="application/json")

    return reply(_body)


FUNDS = "insufficient_funds"

# replies of the facilitator that leave the outcome open
REPLIES: dict[str, Reply] = {
    "status 500": reply_with(500, ""),
    "status 502 and a page": reply_with(502, "<html><body>Bad Gateway</body></html>"),
    "status 503 and a success": reply_with(503, build_reply()),
    "status 403 and a success in text": reply_with(403, {"success": "true"}),
    "status 404 and a transaction inside": reply_with(404, {"error": {"txHash": HASH}}),
    "status 401 and a hash in its text": reply_with(401, {"message": f"expired; sent as {HASH}"}),
    "status 400": reply_with(400, {"error": "invalid_payload"}),
    "status 500 and a success": reply_with(500, build_reply()),
    "a redirect": reply_with(307, "", Location="/settle"),
    "a page": reply_with(200, "<html>welcome</html>"),
    "nothing": reply_with(200, ""),
    "null": reply_with(200, "null"),
    "a list": reply_with(200, [build_reply()]),
    "an empty object": reply_with(200, {}),
    "an answer cut off": cut_connection,
    "an answer without end": reply_with(200, build_reply(extra={"padding": "x" * 1_000_000})),
    "success in a word": reply_with(200, build_reply(success="true")),
    "success in a number": reply_with(200, build_reply(success=1)),
    "success without a transaction": reply_with(200, build_reply(transaction="")),
    "success with null for a transaction": reply_with(200, build_reply(transaction=None)),
    "success with a tale for a transaction": reply_with(200, build_reply(transaction="it is on its way")),
    "success of another payer": reply_with(200, build_reply(payer="0x" + "11" * 20)),
    "success on another network": reply_with(200, build_reply(network="eip155:8453")),
    "success on no network": reply_with(200, build_reply(network="")),
    "success of another amount": reply_with(200, build_reply(amount="1")),
    "success with zeros for a transaction": reply_with(200, build_reply(transaction="0x" + "00" * 32)),
    "success with 0x for a transaction": reply_with(200, build_reply(transaction="0x")),
    "success and a reason": reply_with(200, build_reply(errorReason="settlement_pending")),
    "success that is not valid": reply_with(200, build_reply(isValid=False)),
    "a certain reason under status 500": reply_with(
        500, build_reply(success=False, errorReason=FUNDS, transaction="")
    ),
    "a certain reason under status 504": reply_with(
        504, build_reply(success=False, errorReason=FUNDS, transaction="")
    ),
    "a certain reason of another payer": refuse_openly(FUNDS, payer="0x" + "11" * 20),
    "a certain reason on another network": refuse_openly(FUNDS, network="eip155:1"),
    "a certain reason with an id of the facilitator's": refuse_openly(FUNDS, transaction="settlement_01JABC"),
    "a certain reason with a hash without 0x": refuse_openly(FUNDS, transaction="ab" * 32),
    "a certain reason with a short hash": refuse_openly(FUNDS, transaction="0xabc123"),
    "a certain reason with txHash": refuse_openly(FUNDS, transaction="", txHash=HASH),
    "failure without a reason": reply_with(200, {"success": False}),
    "a refusal without end": refuse_openly("invalid_" + "x" * 200),
    "failure in other words": refuse_openly("something went wrong"),
    "settlement_pending": refuse_openly("settlement_pending"),
    "settlement_pending with a hash": refuse_openly("settlement_pending", transaction=HASH),
    "invalid_transaction_state": refuse_openly("invalid_transaction_state"),
    "unexpected_settle_error": refuse_openly("unexpected_settle_error"),
    "transaction_failed before it was sent": refuse_openly("transaction_failed"),
    "transaction_failed with a hash": refuse_openly("transaction_failed", transaction=HASH),
    "a nonce that is used": refuse_openly(NONCE_USED),
    "a certain reason with a hash": refuse_openly("invalid_exact_evm_payload_signature", transaction=HASH),
    "failed_to_get_receipt": refuse_openly("invalid_exact_evm_failed_to_get_receipt", transaction=HASH),
    "failed_to_execute_transfer": refuse_openly("invalid_exact_evm_failed_to_execute_transfer"),
    "transfer_event_mismatch": refuse_openly("invalid_exact_evm_transfer_event_mismatch"),
    "settle_exact_failed_onchain": refuse_openly("settle_exact_failed_onchain"),
}
ESSENTIAL = {
    "status 500",
    "status 503 and a success",
    "status 400",
    "a page",
    "an answer cut off",
    "success without a transaction",
    "success of another payer",
    "a certain reason under status 500",
    "a certain reason with a hash without 0x",
    "settlement_pending with a hash",
    "transaction_failed before it was sent",
    "a nonce that is used",
}
"""Replies after which `make test` sends the same payment again: one of each kind."""
each_reply = pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
each_kind_of_reply = pytest.mark.parametrize(
    "reply",
    [
        pytest.param(reply, id=name, marks=[] if name in ESSENTIAL else [pytest.mark.extended])
        for name, reply in REPLIES.items()
    ],
)


@each_reply
def test_buyer_is_asked_for_same_payment(served_api: ServedApi, buyer: Buyer, reply: Reply) -> None:
    served_api.facilitator.next.append(reply)

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    _check_open(response, 502, "provider_error")


def test_reason_of_facilitator_is_one_visible_line(served_api: ServedApi, buyer: Buyer) -> None:
    served_api.facilitator.next = [refuse_openly("odd\r\n\x1b[31m\u202ereason " + "x" * 500)]

    message = pay(served_api.client, sign_payment(served_api.client, buyer)).json()["error"]["message"]

    assert message.isprintable()
    assert message.isascii() or "\u2026" in message
    assert "odd [31mreason" in message
    assert len(message) < 250


@each_kind_of_reply
def test_settled_payment_is_served_once(served_api: ServedApi, buyer: Buyer, reply: Reply) -> None:
    payload = sign_payload(served_api.client, buyer)
    served_api.facilitator.next.append(served_api.facilitator.move_then_reply(reply))
    pay(served_api.client, encode_header(payload))

    first, again = (pay(served_api.client, encode_header(payload)) for _ in range(2))

    assert (first.status_code, again.content) == (200, first.content)
    assert _count_transfers(served_api.facilitator, payload) == 1


@each_kind_of_reply
def test_unsettled_payment_is_served_once(served_api: ServedApi, buyer: Buyer, reply: Reply) -> None:
    payload = sign_payload(served_api.client, buyer)
    served_api.facilitator.next.append(reply)
    pay(served_api.client, encode_header(payload))

    first, again = (pay(served_api.client, encode_header(payload)) for _ in range(2))

    assert (first.status_code, again.content) == (200, first.content)
    assert _count_transfers(served_api.facilitator, payload) == 1


@pytest.mark.extended
@each_reply
def test_payment_stays_open_without_certain_reply(served_api: ServedApi, buyer: Buyer, reply: Reply) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next += [reply] * 3

    responses = [pay(served_api.client, payment) for _ in range(3)]

    assert [response.status_code for response in responses] == [502] * 3
    assert pay(served_api.client, payment).status_code == 200


def test_unexpected_error_while_settling_leaves_payment_open(
    served_api: ServedApi, buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    payload = sign_payload(served_api.client, buyer)
    with monkeypatch.context() as patch:  # only a patch can cause an error in our own code
        patch.setattr(Settler, "settle", fail)
        failed = pay(served_api.client, encode_header(payload))

    served = pay(served_api.client, encode_header(payload))

    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "internal_error")
    assert payment_note(failed) == OPEN
    assert served.status_code == 200
    assert _count_transfers(served_api.facilitator, payload) == 1


@pytest.mark.extended
@pytest.mark.parametrize("moves", [True, False], ids=["and settled", "and did not settle"])
def test_late_reply_is_timeout(
    impatient_api: ServedApi,
    buyer: Buyer,
    moves: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    payload = sign_payload(impatient_api.client, buyer)
    impatient_api.facilitator.next.append(
        impatient_api.facilitator.reply_slowly(1.0, None if moves else reply_with(500, ""))
    )

    late = pay(impatient_api.client, encode_header(payload))
    served = pay(impatient_api.client, encode_header(payload))

    _check_open(late, 504, "provider_timeout")
    assert served.status_code == 200
    assert _count_transfers(impatient_api.facilitator, payload) == 1


@pytest.mark.extended
def test_silent_facilitator_is_timeout(impatient_api: ServedApi, buyer: Buyer) -> None:
    payload = sign_payload(impatient_api.client, buyer)
    never, release = threading.Event(), threading.Event()
    impatient_api.facilitator.next += [
        impatient_api.facilitator.reply_when_released(never, release) for _ in range(2)
    ]

    unanswered = [pay(impatient_api.client, encode_header(payload)) for _ in range(2)]
    served = pay(impatient_api.client, encode_header(payload))
    release.set()

    for response in unanswered:
        _check_open(response, 504, "provider_timeout")
    assert served.status_code == 200


def test_redirect_is_not_followed(served_api: ServedApi, buyer: Buyer) -> None:
    calls = served_api.facilitator.settle_calls
    served_api.facilitator.next.append(reply_with(307, "", Location=served_api.facilitator.url + "/settle"))

    pay(served_api.client, sign_payment(served_api.client, buyer))

    assert served_api.facilitator.settle_calls == calls + 1


def test_pending_transaction_is_reported(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next += [
        refuse_openly("settlement_pending", transaction=HASH),
        reply_with(500, ""),
    ]

    responses = [pay(served_api.client, payment) for _ in range(2)]

    assert [payment_note(response)["transaction"] for response in responses] == [HASH, HASH]


def test_facilitators_text_is_not_relayed(served_api: ServedApi, buyer: Buyer) -> None:
    served_api.facilitator.next.append(reply_with(500, "<html>the key is hunter2</html>"))

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    assert "hunter2" not in response.text


def test_open_payment_buys_no_other_request(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next.append(reply_with(500, ""))
    pay(served_api.client, payment)
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, payment, body={"url": "https://example.com/"})

    assert response.json()["error"]["details"]["reason"] == "payment_already_used"
    assert payment_note(response)["state"] == "in_flight"
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize(
    "first",
    [reply_with(500, ""), reply_with(429, {}), refuse_with(NONCE_USED)],
    ids=["after an error", "after a refusal to read it", "at once"],
)
def test_used_nonce_without_node_serves_nothing(served_api: ServedApi, buyer: Buyer, first: Reply) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next += [first, *[refuse_with(NONCE_USED)] * 3]

    responses = [pay(served_api.client, payment) for _ in range(4)]

    assert [response.status_code for response in responses] == [502] * 4
    assert payment_note(responses[-1])["state"] == "in_flight"


@pytest.mark.extended
@pytest.mark.parametrize(
    "reason", ["insufficient_funds", "invalid_exact_evm_insufficient_balance", "unsupported_scheme"]
)
def test_later_refusal_is_no_evidence_of_first_attempt(
    served_api: ServedApi, buyer: Buyer, reason: str
) -> None:
    payment = sign_payment(served_api.client, buyer)
    served_api.facilitator.next += [reply_with(500, ""), refuse_with(reason)]
    pay(served_api.client, payment)

    response = pay(served_api.client, payment)

    _check_open(response, 502, "provider_error")
    assert pay(served_api.client, payment).status_code == 200


def _check_open(response: httpx.Response, status: int, code: str) -> None:
    """Check for an error of the facilitator that asks for the same payment and no other."""
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["provider"]) == (status, code, "facilitator")
    assert int(response.headers["Retry-After"]) > 0
    assert "PAYMENT-REQUIRED" not in response.headers
    assert "PAYMENT-RESPONSE" not in response.headers
    assert {name: payment_note(response)[name] for name in OPEN} == OPEN


def _count_transfers(facilitator: StubFacilitator, payload: dict[str, Any]) -> int:
    authorization = payload["payload"]["authorization"]
    return facilitator.moved[authorization["from"].lower(), authorization["nonce"]]
