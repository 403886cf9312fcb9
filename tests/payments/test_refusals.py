"""Refusals of invalid payments: x402's reason in a 402, and no call of the facilitator."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Generator
from copy import deepcopy
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, Buyer, decode_header, encode_header, pay, payment_note, sign_payload
from served_api import ServedApi, serve_api

Payload = dict[str, Any]
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
ELSEWHERE = "0x1111111111111111111111111111111111111111"

INVALID = "invalid_payload"
OTHER_TERMS = "invalid_payment_requirements"
RECIPIENT = "invalid_exact_evm_payload_recipient_mismatch"
VALUE = "invalid_exact_evm_payload_authorization_value_mismatch"
TOO_EARLY = "invalid_exact_evm_payload_authorization_valid_after"
TOO_LATE = "invalid_exact_evm_payload_authorization_valid_before"
SIGNATURE = "invalid_exact_evm_payload_signature"
WINDOW = "invalid_exact_evm_payload_authorization_valid_before"


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


def encode_text(content: str) -> bytes:
    return b64encode(content.encode())


# content of the header, and the reason
MALFORMED = {
    "empty": (b"", INVALID),
    "not base64": (b"!!!", INVALID),
    "base64 without its padding": (encode_text("{}").rstrip(b"="), INVALID),
    "base64 with too much padding": (encode_text('{"x402Version": 3}') + b"=", INVALID),
    "not json": (encode_text("{"), INVALID),
    "not utf-8": (b64encode(b"\xff\xfe"), INVALID),
    "null": (encode_text("null"), INVALID),
    "a number": (encode_text("7"), INVALID),
    "a list": (encode_text("[]"), INVALID),
    "a list of payments": (encode_text('[{"x402Version": 2}]'), INVALID),
    "an empty object": (encode_text("{}"), INVALID),
    "only a version": (encode_text('{"x402Version": 2}'), INVALID),
    "version 1": (encode_text('{"x402Version": 1, "scheme": "exact"}'), "invalid_x402_version"),
    "version 3": (encode_text('{"x402Version": 3}'), "invalid_x402_version"),
    "a version of another kind": (encode_text('{"x402Version": {"a": []}}'), "invalid_x402_version"),
    "brackets without end": (encode_text("[" * 6000), INVALID),
    "objects without end": (encode_text('{"a":' * 2000 + "1" + "}" * 2000), INVALID),
    "20 KB": (b64encode(b" " * 15_000), INVALID),
    "20 KB of a payment": (
        encode_text('{"x402Version": 2, "extensions": {"a": "' + "a" * 15_000 + '"}}'),
        INVALID,
    ),
    "bytes beyond ascii": (b"\xff\xfe\xc3\xa4", INVALID),
}


@pytest.mark.parametrize(("header", "reason"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_header_is_402(served_api: ServedApi, header: bytes, reason: str) -> None:
    calls = served_api.facilitator.settle_calls

    response = _post(served_api.client, header)

    _check_refused(response, reason)
    assert served_api.facilitator.settle_calls == calls


def set_accepted(name: str, value: Any) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        payload["accepted"][name] = value

    return change


def set_extra(name: str, value: Any) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        payload["accepted"]["extra"][name] = value

    return change


def remove_extra(payload: Payload) -> None:
    del payload["accepted"]["extra"]


def set_authorization(name: str, value: Any) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        payload["payload"]["authorization"][name] = value

    return change


def remove_signature(payload: Payload) -> None:
    del payload["payload"]["signature"]


def change_signature(payload: Payload) -> None:
    signature = payload["payload"]["signature"]
    payload["payload"]["signature"] = signature[:10] + ("0" if signature[10] != "0" else "1") + signature[11:]


def mirror_signature(payload: Payload) -> None:
    signature = bytes.fromhex(payload["payload"]["signature"][2:])
    high = ORDER - int.from_bytes(signature[32:64], "big")
    mirror = signature[:32] + high.to_bytes(32, "big") + bytes([55 - signature[64]])
    payload["payload"]["signature"] = "0x" + mirror.hex()


def sign_by_another_key(payload: Payload) -> None:
    authorization = payload["payload"]["authorization"]
    payload["payload"]["signature"] = Buyer(1).signature(payload["accepted"], authorization)


def sign_for_another_domain(payload: Payload) -> None:
    domain = deepcopy(payload["accepted"])
    domain["extra"]["name"] = "USD Coin"
    payload["payload"]["signature"] = Buyer().signature(domain, payload["payload"]["authorization"])


def replace_by_permit2(payload: Payload) -> None:
    permit: dict[str, Any] = {
        "from": Buyer().address,
        "permitted": {},
        "spender": ELSEWHERE,
        "nonce": "1",
        "deadline": "1",
    }
    payload["payload"] = {
        "signature": payload["payload"]["signature"],
        "permit2Authorization": permit,
    }


def set_identifier(length: int) -> Callable[[Payload], None]:
    def change(payload: Payload) -> None:
        payload["extensions"] = {"payment-identifier": {"info": {"required": False, "id": "a" * length}}}

    return change


# the change of a valid payment after it was signed, and the reason
ALTERED: dict[str, tuple[Callable[[Payload], None], str]] = {
    "scheme": (set_accepted("scheme", "upto"), "unsupported_scheme"),
    "network": (set_accepted("network", "eip155:8453"), "network_mismatch"),
    "another chain's family": (set_accepted("network", "solana:mainnet"), "network_mismatch"),
    "asset": (set_accepted("asset", ELSEWHERE), OTHER_TERMS),
    "a smaller amount": (set_accepted("amount", "1"), OTHER_TERMS),
    "a larger amount": (set_accepted("amount", "20000"), OTHER_TERMS),
    "the amount in another spelling": (set_accepted("amount", "010000"), OTHER_TERMS),
    "payTo": (set_accepted("payTo", ELSEWHERE), OTHER_TERMS),
    "maxTimeoutSeconds": (set_accepted("maxTimeoutSeconds", 60), OTHER_TERMS),
    "the token's name": (set_extra("name", "USD Coin"), OTHER_TERMS),
    "the token's version": (set_extra("version", "1"), OTHER_TERMS),
    "the flow": (set_extra("paymentFlow", "authorization"), OTHER_TERMS),
    "no extra": (remove_extra, OTHER_TERMS),
    "no accepted terms": (lambda payload: payload.pop("accepted"), INVALID),
    "accepted terms that are a list": (lambda payload: payload.update(accepted=[]), INVALID),
    "no signature": (remove_signature, INVALID),
    "a signature that is no hex": (lambda payload: payload["payload"].update(signature="0xzz"), INVALID),
    "half a byte of signature": (lambda payload: payload["payload"].update(signature="0x123"), INVALID),
    "an empty signature": (lambda payload: payload["payload"].update(signature="0x"), INVALID),
    "no authorization": (lambda payload: payload["payload"].pop("authorization"), INVALID),
    "permit2": (replace_by_permit2, INVALID),
    "a value that is a number": (set_authorization("value", 10000), INVALID),
    "a value in words": (set_authorization("value", "abc"), INVALID),
    "a negative value": (set_authorization("value", "-10000"), INVALID),
    "a value in hexadecimal": (set_authorization("value", "0x2710"), INVALID),
    "a value over 256 bits": (set_authorization("value", str(2**256)), INVALID),
    "an end over 256 bits": (set_authorization("validBefore", str(2**256)), INVALID),
    "a beginning over 256 bits": (set_authorization("validAfter", str(2**256)), INVALID),
    "a nonce too short": (set_authorization("nonce", "0x1234"), INVALID),
    "a payer that is no address": (set_authorization("from", "0x1234"), INVALID),
    "another payer": (set_authorization("from", Buyer(1).address), SIGNATURE),
    "another recipient": (set_authorization("to", ELSEWHERE), RECIPIENT),
    "another value": (set_authorization("value", "9999"), VALUE),
    # the time is that of the test, not of the import
    "another end": (
        lambda payload: set_authorization("validBefore", str(int(time.time()) + 300))(payload),
        SIGNATURE,
    ),
    "an end that is too late": (set_authorization("validBefore", str(2**255)), WINDOW),
    "another nonce": (set_authorization("nonce", "0x" + "11" * 32), SIGNATURE),
    "one digit of the signature": (change_signature, SIGNATURE),
    "the signature's mirror image": (mirror_signature, SIGNATURE),
    "a signature by another key": (sign_by_another_key, SIGNATURE),
    "a signature for another token": (sign_for_another_domain, SIGNATURE),
    "an idempotency key too short": (set_identifier(15), INVALID),
    "an idempotency key too long": (set_identifier(129), INVALID),
}


@pytest.mark.parametrize(("change", "reason"), ALTERED.values(), ids=ALTERED.keys())
def test_payment_altered_after_signing_is_refused(
    served_api: ServedApi, change: Callable[[Payload], object], reason: str
) -> None:
    payload = sign_payload(served_api.client, Buyer())
    change(payload)
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, encode_header(payload))

    _check_refused(response, reason)
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_accepted("asset", ELSEWHERE), "asset"),
        (set_accepted("payTo", ELSEWHERE), "payTo"),
        (set_accepted("maxTimeoutSeconds", 60), "maxTimeoutSeconds"),
        (set_extra("version", "1"), "extra"),
    ],
    ids=["asset", "payTo", "maxTimeoutSeconds", "extra"],
)
def test_refusal_names_terms_that_differ(
    served_api: ServedApi, change: Callable[[Payload], None], named: str
) -> None:
    payload = sign_payload(served_api.client, Buyer())
    change(payload)

    error = pay(served_api.client, encode_header(payload)).json()["error"]

    assert error["message"].endswith(f"the accepted terms are not this service's terms: {named}")


# the change of a valid payment, and how the message goes on after saying that it is none
NAMED_MEMBERS: dict[str, tuple[Callable[[Payload], object], str]] = {
    "a time that is a number": (set_authorization("validBefore", 1), "payload.authorization.validBefore: "),
    "a value in words": (set_authorization("value", "abc"), "payload.authorization.value: "),
    "no payer": (
        lambda payload: payload["payload"]["authorization"].pop("from"),
        "payload.authorization: Object missing required field `from`",
    ),
    "permit2": (replace_by_permit2, "payload: Object missing required field `authorization`"),
    "an amount that is a number": (set_accepted("amount", 10000), "accepted.amount: "),
    "no accepted terms": (lambda payload: payload.pop("accepted"), "accepted: Field required"),
    "a resource that is no object": (
        lambda payload: payload.update(resource="x"),
        "resource: Input should be a valid dictionary",
    ),
}


@pytest.mark.parametrize(("change", "named"), NAMED_MEMBERS.values(), ids=NAMED_MEMBERS.keys())
def test_refusal_names_malformed_member(
    served_api: ServedApi, change: Callable[[Payload], object], named: str
) -> None:
    payload = sign_payload(served_api.client, Buyer())
    change(payload)

    message = pay(served_api.client, encode_header(payload)).json()["error"]["message"]

    assert f"scheme exact: {named}" in message
    assert "_Lenient" not in message


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"!!!", "it is not standard base64 with padding"),
        (encode_text("{"), "the decoded text is not JSON"),
        (encode_text("[]"), "the decoded text is not a JSON object"),
    ],
    ids=["not base64", "not json", "a list"],
)
def test_refusal_says_how_far_header_was_read(served_api: ServedApi, header: bytes, problem: str) -> None:
    message = _post(served_api.client, header).json()["error"]["message"]

    assert message.endswith(problem)


# the change of a payment before it is signed, and the reason
SIGNED = {
    "to another address": ({"to": ELSEWHERE}, RECIPIENT),
    "less": ({"value": "9999"}, VALUE),
    "more": ({"value": "10001"}, VALUE),
    "nothing": ({"value": "0"}, VALUE),
    "for later": ({"validAfter": str(int(time.time()) + 3600)}, TOO_EARLY),
    "for the end of time": ({"validAfter": str(2**256 - 1)}, TOO_EARLY),
    "for the past": ({"validBefore": "1"}, TOO_LATE),
    "with too little time left to settle": ({"validBefore": str(int(time.time()) + 5)}, TOO_LATE),
}


@pytest.mark.extended
@pytest.mark.parametrize(("signed", "reason"), SIGNED.values(), ids=SIGNED.keys())
def test_payment_signed_for_other_terms_is_refused(
    served_api: ServedApi, signed: dict[str, str], reason: str
) -> None:
    payload = sign_payload(served_api.client, Buyer(), **signed)
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, encode_header(payload))

    _check_refused(response, reason)
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize(
    ("seconds", "message"),
    [(-1, "the payment has expired"), (90, "the payment expires within 100 seconds, too soon to settle it")],
)
def test_refusal_tells_expired_from_expiring(
    served_api: ServedApi, monkeypatch: pytest.MonkeyPatch, seconds: int, message: str
) -> None:
    monkeypatch.setattr("centgate.payments.authorization.MIN_REMAINING_SECONDS", 100)
    end = str(int(time.time()) + seconds)
    payload = sign_payload(served_api.client, Buyer(), validBefore=end)

    error = pay(served_api.client, encode_header(payload)).json()["error"]

    assert error["message"] == message


def _post(client: httpx.Client, header: bytes) -> httpx.Response:
    return client.post(PHISHING, json=QUESTION, headers=[(b"PAYMENT-SIGNATURE", header)])


def _check_refused(response: httpx.Response, reason: str) -> None:
    """Check for a 402 with the reason and fresh terms, and an unused payment."""
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (402, "payment_required")
    assert error["details"]["reason"] == reason
    offer = decode_header(response.headers["PAYMENT-REQUIRED"])
    assert offer["error"] == reason
    assert error["details"]["accepts"] == offer["accepts"]
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "new_payment"}
    assert "PAYMENT-RESPONSE" not in response.headers
