"""Attacks on payments by MPP: forged, foreign, extended and malformed credentials are refused, uncharged."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator
from typing import Any

import httpx
import hypothesis
import pytest
from buyer import PHISHING, QUESTION, Buyer, payment_note
from facilitators import StubFacilitator
from hypothesis import strategies
from mpp_buyer import (
    MPP_SETTINGS,
    answer_challenge,
    decode_base64url,
    encode_base64url,
    fetch_challenge,
    json_nonce,
    pay_by_mpp,
)
from served_api import ServedApi, serve_api

Credential = dict[str, Any]
OTHER_ROUTE = "/services/crawler/map"
MALFORMED, INVALID = "invalid_payload", "invalid_challenge"


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts MPP."""
    with serve_api(tmp_path_factory.mktemp("served_api"), **MPP_SETTINGS) as served_api:
        yield served_api


@pytest.fixture
def shop(served_api: ServedApi) -> httpx.Client:
    """A client of that API."""
    return served_api.client


@pytest.fixture(autouse=True)
def facilitator(served_api: ServedApi) -> Generator[StubFacilitator]:
    """The facilitator of that API, which no attack must reach."""
    served_api.facilitator.settle_calls = 0
    yield served_api.facilitator
    assert served_api.facilitator.settle_calls == 0


def require_refusal(response: httpx.Response, reason: str) -> None:
    """Check that a response is a 402 with this reason, new terms, and nothing charged."""
    assert response.status_code == 402, response.text
    assert response.json()["error"]["details"]["reason"] == reason, response.text
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "new_payment"}
    assert response.headers["WWW-Authenticate"].startswith('Payment id="')
    assert "Payment-Receipt" not in response.headers


def change_challenge(**changes: str) -> Callable[[Credential], None]:
    """Return a change of a challenge's parameters, signed or not."""

    def change(credential: Credential) -> None:
        credential["challenge"] |= changes

    return change


def change_request(**changes: Any) -> Callable[[Credential], None]:
    """Return a change of a challenge's request."""

    def change(credential: Credential) -> None:
        challenge = credential["challenge"]
        challenge["request"] = encode_base64url(decode_base64url(challenge["request"]) | changes)

    return change


def lengthen(credential: Credential) -> None:
    """Move the end of a challenge into the future."""
    credential["challenge"]["expires"] = "2099-01-01T00:00:00Z"


def rename_route(credential: Credential) -> None:
    """Name another route in a challenge."""
    opaque = decode_base64url(credential["challenge"]["opaque"])
    credential["challenge"]["opaque"] = encode_base64url(opaque | {"resource": opaque["resource"] + "s"})


FORGERIES: dict[str, Callable[[Credential], None]] = {
    "another id": change_challenge(id="A" * 43),
    "an id that is not ASCII": change_challenge(id="é" * 43),
    "an empty id": change_challenge(id=""),
    "another realm": change_challenge(realm="other.example"),
    "another method": change_challenge(method="tempo"),
    "another intent": change_challenge(intent="session"),
    "slots moved in the hashed text": change_challenge(realm="127.0.0.1|evm", method="charge", intent=""),
    "a later end": lengthen,
    "an end before the calendar": change_challenge(expires="0001-01-01T00:00:00+23:59"),
    "another route's name": rename_route,
    "a digest of a body": change_challenge(digest="sha-256=:AAAA:"),
    "a header": change_challenge(header="Payment-Authorization"),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_forged_challenge_is_refused(
    shop: httpx.Client, buyer: Buyer, forge: Callable[[Credential], None]
) -> None:
    """The signature is valid and bound to the forged challenge, so that only the challenge is wrong."""
    genuine = answer_challenge(buyer, fetch_challenge(shop))
    forge(genuine)
    challenge = genuine["challenge"]
    signed = answer_challenge(buyer, challenge, validBefore=str(int(time.time()) + 60))
    require_refusal(pay_by_mpp(shop, encode_base64url(signed)), INVALID)


def test_challenge_for_less_money_is_refused(shop: httpx.Client, buyer: Buyer) -> None:
    for changes in ({"amount": "1"}, {"recipient": buyer.address}, {"currency": "0x" + "11" * 20}):
        credential = answer_challenge(buyer, fetch_challenge(shop))
        change_request(**changes)(credential)
        signed = answer_challenge(buyer, credential["challenge"])
        require_refusal(pay_by_mpp(shop, encode_base64url(signed)), INVALID)


def test_challenge_of_another_route_is_refused(shop: httpx.Client, buyer: Buyer) -> None:
    credential = encode_base64url(answer_challenge(buyer, fetch_challenge(shop, OTHER_ROUTE)))
    require_refusal(pay_by_mpp(shop, credential), INVALID)


def test_nonce_must_be_that_of_challenge(shop: httpx.Client, buyer: Buyer) -> None:
    other = fetch_challenge(shop)
    for nonce in ("0x" + "ab" * 32, json_nonce(other)):
        credential = answer_challenge(buyer, fetch_challenge(shop), nonce=nonce)
        require_refusal(pay_by_mpp(shop, encode_base64url(credential)), INVALID)


MISMATCHES = {
    "less": ({"value": "1"}, "invalid_exact_evm_payload_authorization_value_mismatch"),
    "to the payer": (
        {"to": "0x" + "22" * 20},
        "invalid_exact_evm_payload_recipient_mismatch",
    ),
    "not yet": ({"validAfter": "9999999999"}, "invalid_exact_evm_payload_authorization_valid_after"),
    "too late": ({"validBefore": "1"}, "invalid_exact_evm_payload_authorization_valid_before"),
    "for ever": ({"validBefore": "9999999999"}, "invalid_exact_evm_payload_authorization_valid_before"),
}


@pytest.mark.parametrize(("changes", "reason"), MISMATCHES.values(), ids=MISMATCHES)
def test_authorization_must_be_for_challenge(
    shop: httpx.Client, buyer: Buyer, changes: dict[str, str], reason: str
) -> None:
    credential = answer_challenge(buyer, fetch_challenge(shop), **changes)
    require_refusal(pay_by_mpp(shop, encode_base64url(credential)), reason)


def test_payer_needs_its_own_signature(shop: httpx.Client, buyer: Buyer) -> None:
    credential = answer_challenge(Buyer(1), fetch_challenge(shop))
    credential["payload"]["from"] = buyer.address
    credential["source"] = None
    response = pay_by_mpp(shop, encode_base64url(credential))
    require_refusal(response, "invalid_exact_evm_payload_signature")


def change_payload(**changes: Any) -> Callable[[Credential], None]:
    """Return a change of the signed part."""

    def change(credential: Credential) -> None:
        credential["payload"] |= changes

    return change


def deepen(credential: Credential) -> None:
    """Nest the request of a challenge deeply."""
    text = '{"a":' * 900 + "1" + "}" * 900
    credential["challenge"]["request"] = urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


MALFORMATIONS: dict[str, Callable[[Credential], Any]] = {
    "a hash of a transfer": change_payload(type="hash", hash="0x" + "00" * 32),
    "a permit": change_payload(type="permit2"),
    "a number": change_payload(value=10_000),
    "a negative number": change_payload(value="-1"),
    "a number of 257 bits": change_payload(validBefore=str(2**256)),
    "no signature": change_payload(signature=None),
    "a short signature": change_payload(signature="0x1"),
    "another payer's name": lambda credential: credential.update(
        source=f"did:pkh:eip155:84532:{Buyer(1).address}"
    ),
    "a name on another chain": lambda credential: credential.update(
        source=credential["source"].replace("84532", "8453")
    ),
    "a number as name": lambda credential: credential.update(source=7),
    "no challenge": lambda credential: credential.pop("challenge"),
    "a list as challenge": lambda credential: credential.update(challenge=[]),
    "no payload": lambda credential: credential.pop("payload"),
    "an unreadable end": change_challenge(expires="soon"),
    "an end without a zone": change_challenge(expires="2099-01-01T00:00:00"),
    "a request that is not base64": change_challenge(request="%%%"),
    "a request that is no object": change_challenge(request="W10"),
    "a deep request": deepen,
    "no opaque part": lambda credential: credential["challenge"].pop("opaque"),
    "a chain as text": change_request(methodDetails={"chainId": "84532"}),
    "a chain without number": change_request(methodDetails={"chainId": 0}),
    "a huge chain": change_request(methodDetails={"chainId": 10**30}),
}


@pytest.mark.parametrize("change", MALFORMATIONS.values(), ids=MALFORMATIONS)
def test_malformed_credential_is_refused(
    shop: httpx.Client, buyer: Buyer, change: Callable[[Credential], Any]
) -> None:
    credential = answer_challenge(buyer, fetch_challenge(shop))
    change(credential)
    require_refusal(pay_by_mpp(shop, encode_base64url(credential)), MALFORMED)


HEADERS = {
    "no credential": "Payment",
    "spaces": "Payment a b c",
    "not base64": "Payment %%%",
    "one character": "Payment a",
    "only padding": "Payment ====",
    "not JSON": "Payment " + urlsafe_b64encode(b"\xff\xfe{").decode(),
    "a number": "Payment NQ",
    "nothing": "Payment bnVsbA",
    "deep JSON": "Payment " + urlsafe_b64encode(b"[" * 4000).decode(),
    "half a character": "Payment " + urlsafe_b64encode(b'{"challenge":{"id":"\\ud800"}}').decode(),
    "two": "Payment e30, Payment e30",
    "parameters": 'Payment id="a", realm="b"',
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_unreadable_header_is_refused(shop: httpx.Client, header: str) -> None:
    response = shop.post(PHISHING, json=QUESTION, headers={"Authorization": header})
    require_refusal(response, MALFORMED)


@pytest.mark.extended
def test_two_credentials_in_two_headers_are_refused(shop: httpx.Client, buyer: Buyer) -> None:
    values = [encode_base64url(answer_challenge(buyer, fetch_challenge(shop))) for _ in range(2)]
    headers = [("Authorization", f"Payment {value}") for value in values]
    require_refusal(shop.post(PHISHING, json=QUESTION, headers=headers), MALFORMED)


def test_long_header_is_refused(shop: httpx.Client, buyer: Buyer) -> None:
    credential = answer_challenge(buyer, fetch_challenge(shop)) | {"padding": "x" * 15_000}
    require_refusal(pay_by_mpp(shop, encode_base64url(credential)), MALFORMED)
    assert pay_by_mpp(shop, "x" * 200_000).status_code in (400, 402, 431)


def test_list_of_many_schemes_is_read_once(shop: httpx.Client) -> None:
    header = ", ".join(["Bearer a", 'Digest b="c, \\"d"'] * 900)
    response = shop.post(PHISHING, json=QUESTION, headers={"Authorization": header})
    assert response.status_code == 402
    assert "reason" not in response.json()["error"]["details"]


@pytest.mark.extended
def test_input_is_checked_before_credential(shop: httpx.Client) -> None:
    assert pay_by_mpp(shop, "abc", body={"url": 7}).status_code == 400
    assert pay_by_mpp(shop, "abc", body={}).status_code == 400


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.text(max_size=20),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(strategies.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = (
    *(("challenge", name) for name in ("id", "realm", "method", "intent", "request", "expires", "opaque")),
    *(("payload", name) for name in ("type", "from", "to", "value", "validAfter", "validBefore", "nonce")),
    ("payload", "signature"),
)


@pytest.mark.extended
@hypothesis.settings(max_examples=100, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(field=strategies.sampled_from(FIELDS), value=JSON)
def test_malformed_credential_is_no_server_error(
    shop: httpx.Client, field: tuple[str, str], value: Any
) -> None:
    """Sent to another route, so that a credential that is still valid is refused too."""
    credential = answer_challenge(Buyer(), fetch_challenge(shop))
    part, name = field
    credential[part][name] = value
    assert pay_by_mpp(shop, encode_base64url(credential), path=OTHER_ROUTE).status_code == 402
