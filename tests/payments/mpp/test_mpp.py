"""MPP beside x402: the same payments by `Authorization: Payment`, charged once and delivered once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory, Buyer, decode_header, encode_header, pay, payment_note
from facilitators import StubFacilitator, build_settings, refuse_with, reply_with
from failing_service import FAILING_QUERY, FAILING_SERVICE, install_failing_service
from mpp import Challenge as ReferenceChallenge
from mpp import Receipt as ReferenceReceipt
from mpp_buyer import (
    MPP_SECRET,
    MPP_SETTINGS,
    Challenge,
    answer_challenge,
    buy_challenge,
    encode_base64url,
    fetch_challenge,
    joined_nonce,
    json_nonce,
    parse_challenge,
    pay_by_mpp,
)
from served_api import ServedApi, serve_api

from centgate.errors import NoData
from centgate.payments.mpp.challenge import create_issuer
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

OTHER_QUESTION = {"url": "https://example.org"}
OTHER_ROUTE = "/services/crawler/map"


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts MPP."""
    with serve_api(tmp_path_factory.mktemp("served_api"), **MPP_SETTINGS) as served_api:
        yield served_api


@pytest.fixture
def shop(served_api: ServedApi) -> httpx.Client:
    """A client of that API."""
    return served_api.client


@pytest.fixture
def facilitator(served_api: ServedApi) -> StubFacilitator:
    """The facilitator of that API, with counters at zero."""
    served_api.facilitator.settle_calls = 0
    served_api.facilitator.moved.clear()
    return served_api.facilitator


def read_reason(response: httpx.Response) -> str:
    """Return x402's reason of a refused payment, which PAYMENT-REQUIRED repeats."""
    assert response.status_code == 402, response.text
    reason = response.json()["error"]["details"]["reason"]
    assert decode_header(response.headers["PAYMENT-REQUIRED"])["error"] == reason
    return reason


def test_402_has_both_sets_of_terms(shop: httpx.Client) -> None:
    response = shop.post(PHISHING)
    offer = decode_header(response.headers["PAYMENT-REQUIRED"])
    accepted = offer["accepts"][0]
    challenge = ReferenceChallenge.from_www_authenticate(response.headers["WWW-Authenticate"])
    assert (challenge.method, challenge.intent, challenge.realm) == ("evm", "charge", "127.0.0.1")
    assert challenge.request == {
        "amount": accepted["amount"],
        "currency": accepted["asset"],
        "recipient": accepted["payTo"],
        "methodDetails": {"chainId": 84532, "credentialTypes": ["authorization"], "decimals": 6},
    }
    assert challenge.opaque is not None
    assert challenge.opaque["resource"] == offer["resource"]["url"]
    assert challenge.verify(MPP_SECRET, "127.0.0.1")


def test_mpp_is_off_by_default(client: httpx.Client, facilitator: StubFacilitator, buyer: Buyer) -> None:
    unpaid = client.post(PHISHING)
    assert "WWW-Authenticate" not in unpaid.headers
    refused = pay_by_mpp(client, "abc")
    assert refused.json()["error"] == client.post(PHISHING, json=QUESTION).json()["error"]
    assert (
        client.get("/", headers={"Origin": "https://a.example"})
        .headers["Access-Control-Expose-Headers"]
        .count("Authenticate")
        == 0
    )


@pytest.mark.parametrize("derive", [json_nonce, joined_nonce])
def test_credential_buys_answer(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer, derive: Callable[[Challenge], str]
) -> None:
    challenge = fetch_challenge(shop)
    credential = answer_challenge(buyer, challenge, nonce=derive(challenge))
    response = pay_by_mpp(shop, encode_base64url(credential))
    assert response.status_code == 200, response.text
    receipt = ReferenceReceipt.from_payment_receipt(response.headers["Payment-Receipt"])
    assert receipt.reference == decode_header(response.headers["PAYMENT-RESPONSE"])["transaction"]
    assert receipt.method == "evm"
    assert abs(receipt.timestamp.timestamp() - time.time()) < 60
    assert facilitator.moved == {(buyer.address.lower(), derive(challenge)): 1}
    sent = facilitator.body["paymentPayload"]
    assert sent["payload"]["signature"] == credential["payload"]["signature"]
    assert sent["accepted"]["payTo"] == credential["payload"]["to"]


def test_error_has_no_receipt(tmp_path: Path, buyer: Buyer) -> None:
    with (
        install_failing_service() as failures,
        serve_api(tmp_path, **MPP_SETTINGS) as served_api,
    ):
        failures.raise_next(lambda: NoData("nothing is known"))
        challenge = fetch_challenge(served_api.client, FAILING_SERVICE)
        credential = encode_base64url(answer_challenge(buyer, challenge))
        response = pay_by_mpp(served_api.client, credential, FAILING_SERVICE, FAILING_QUERY)
    assert (response.status_code, "PAYMENT-RESPONSE" in response.headers) == (404, True)
    assert "Payment-Receipt" not in response.headers


def test_repeated_credential_gets_stored_answer(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    credential = buy_challenge(shop, buyer)
    first, second = (pay_by_mpp(shop, credential) for _ in range(2))
    assert first.status_code == 200
    assert first.content == second.content
    names = ("X-Request-Id", "PAYMENT-RESPONSE", "Payment-Receipt")
    assert [first.headers[name] for name in names] == [second.headers[name] for name in names]
    assert second.headers["Idempotent-Replayed"] == "true"
    assert facilitator.settle_calls == 1


def test_another_request_with_same_credential_is_refused(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    credential = buy_challenge(shop, buyer)
    assert pay_by_mpp(shop, credential).status_code == 200
    other = pay_by_mpp(shop, credential, body=OTHER_QUESTION)
    assert read_reason(other) == "payment_already_used"
    assert "WWW-Authenticate" in other.headers
    elsewhere = pay_by_mpp(shop, credential, path=OTHER_ROUTE)
    assert read_reason(elsewhere) == "payment_already_used"
    assert facilitator.settle_calls == 1


def test_same_authorization_in_both_headers_is_one_payment(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """It is sent by both protocols at the same time, settled once, and both get the same answer."""
    challenge = fetch_challenge(shop)
    credential = answer_challenge(buyer, challenge)
    payload = convert_to_x402(shop, credential)
    with ThreadPoolExecutor(8) as pool:
        by_mpp = [pool.submit(pay_by_mpp, shop, encode_base64url(credential)) for _ in range(4)]
        by_x402 = [pool.submit(pay, shop, encode_header(payload)) for _ in range(4)]
        responses = [each.result() for each in (*by_mpp, *by_x402)]
    assert {response.status_code for response in responses} == {200}
    assert len({(response.content, response.headers["PAYMENT-RESPONSE"]) for response in responses}) == 1
    assert ["Payment-Receipt" in each.headers for each in responses] == [True] * 4 + [False] * 4
    assert facilitator.moved.total() == facilitator.settle_calls == 1


def convert_to_x402(shop: httpx.Client, credential: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of `PAYMENT-SIGNATURE` with a credential's authorization."""
    offer = decode_header(shop.post(PHISHING).headers["PAYMENT-REQUIRED"])
    fields = dict(credential["payload"])
    signature = fields.pop("signature")
    del fields["type"]
    return {
        "x402Version": 2,
        "accepted": offer["accepts"][0],
        "payload": {"signature": signature, "authorization": fields},
    }


def test_two_payments_in_one_request_are_refused_unused(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    credential = answer_challenge(buyer, fetch_challenge(shop))
    signature = encode_header(convert_to_x402(shop, credential))
    both = pay_by_mpp(shop, encode_base64url(credential), **{"PAYMENT-SIGNATURE": signature})
    assert both.status_code == 400
    assert both.json()["error"]["code"] == "validation_error"
    assert facilitator.settle_calls == 0
    assert pay_by_mpp(shop, encode_base64url(credential)).status_code == 200


def test_other_schemes_of_authorization_are_not_payments(shop: httpx.Client, buyer: Buyer) -> None:
    for header in ("Bearer abc", "Basic eDp5", "", "Paymentx abc"):
        response = shop.post(PHISHING, json=QUESTION, headers={"Authorization": header})
        assert response.json()["error"]["details"].get("reason") is None, header
    credential = buy_challenge(shop, buyer)
    listed = {"Authorization": f"Bearer abc, pAyMeNt {credential}"}
    assert shop.post(PHISHING, json=QUESTION, headers=listed).status_code == 200


def test_idempotency_key_holds_for_both_protocols(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    key = {"Idempotency-Key": "a-key-of-both-protocols"}
    first = pay_by_mpp(shop, buy_challenge(shop, buyer), **key)
    second = pay_by_mpp(shop, buy_challenge(shop, buyer), **key)
    assert first.status_code == second.status_code == 200
    assert first.content == second.content
    assert facilitator.settle_calls == 1


def test_unknown_outcome_is_never_new_challenge(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    credential = buy_challenge(shop, buyer)
    facilitator.next = [facilitator.move_then_reply(reply_with(500, "a proxy's page"))]
    unknown = pay_by_mpp(shop, credential)
    assert unknown.status_code == 502
    assert "WWW-Authenticate" not in unknown.headers
    assert payment_note(unknown)["retry"] == "same_payment"
    assert pay_by_mpp(shop, credential).status_code == 200
    assert facilitator.moved.total() == 1


def test_refused_settlement_has_new_challenge(
    shop: httpx.Client, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    facilitator.next = [refuse_with("insufficient_funds")]
    refused = pay_by_mpp(shop, buy_challenge(shop, buyer))
    assert read_reason(refused) == "insufficient_funds"
    assert decode_header(refused.headers["PAYMENT-RESPONSE"])["success"] is False
    assert "Payment-Receipt" not in refused.headers
    assert "WWW-Authenticate" in refused.headers


def test_cross_origin_pages_can_pay(shop: httpx.Client) -> None:
    headers = {
        "Origin": "https://page.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    preflight = shop.options(PHISHING, headers=headers)
    assert "authorization" in preflight.headers["Access-Control-Allow-Headers"].lower()
    exposed = shop.post(PHISHING, headers={"Origin": "https://page.example"}).headers[
        "Access-Control-Expose-Headers"
    ]
    assert {"WWW-Authenticate", "Payment-Receipt"} <= {name.strip() for name in exposed.split(",")}


def test_payment_outlives_its_challenge(
    tmp_path: Path, api: ApiFactory, facilitators: Callable[[], StubFacilitator], buyer: Buyer
) -> None:
    """A redeploy with another secret and another price: the journal knows the payment."""
    stub = facilitators()
    settings = build_settings(tmp_path, stub.url, **MPP_SETTINGS, public_url="https://shop.example")
    credential = buy_challenge(api(settings), buyer)
    paid = pay_by_mpp(api(settings), credential)
    assert paid.status_code == 200
    changes: dict[str, Any] = {
        "mpp_secret": "another-secret-just-as-long-as-the-first",
        "pay_to": "0x" + "11" * 20,
    }
    changed = api(Settings(**{**settings.model_dump(), **changes}))
    replayed = pay_by_mpp(changed, credential)
    assert replayed.content == paid.content
    assert replayed.headers["Payment-Receipt"] == paid.headers["Payment-Receipt"]
    fresh = buy_challenge(api(settings), buyer)
    assert read_reason(pay_by_mpp(changed, fresh)) == "invalid_challenge"
    assert stub.settle_calls == 1


def test_payment_stays_valid_after_mpp_is_switched_off(
    tmp_path: Path, api: ApiFactory, facilitators: Callable[[], StubFacilitator], buyer: Buyer
) -> None:
    """The buyer of an open payment must not be asked for another one."""
    stub = facilitators()
    settings = build_settings(tmp_path, stub.url, **MPP_SETTINGS, public_url="https://shop.example")
    credential = buy_challenge(api(settings), buyer)
    stub.next = [stub.move_then_reply(reply_with(500, "a proxy's page"))]
    assert pay_by_mpp(api(settings), credential).status_code == 502
    changes: dict[str, Any] = {"mpp_enabled": False}
    disabled = api(Settings(**{**settings.model_dump(), **changes}))

    answer = pay_by_mpp(disabled, credential)

    assert answer.status_code == 200, answer.text
    assert "Payment-Receipt" in answer.headers
    assert "WWW-Authenticate" not in disabled.post(PHISHING).headers
    assert stub.moved.total() == 1


def test_servers_with_one_secret_accept_each_others_challenges(
    tmp_path: Path, api: ApiFactory, facilitators: Callable[[], StubFacilitator], buyer: Buyer
) -> None:
    stub = facilitators()
    settings = build_settings(tmp_path, stub.url, **MPP_SETTINGS, public_url="https://shop.example")
    credential = buy_challenge(api(settings), buyer)
    assert pay_by_mpp(api(settings), credential).status_code == 200


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_wrong_clock_issues_payable_challenges(shop: httpx.Client, buyer: Buyer, seconds: int) -> None:
    """Challenge times are those of the database, as payment times are."""
    right = time.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: right() + seconds)
        challenge = fetch_challenge(shop)

    response = pay_by_mpp(shop, encode_base64url(answer_challenge(buyer, challenge)))

    assert response.status_code == 200, response.text


def test_expired_challenge_is_refused_for_new_payment(
    tmp_path: Path, api: ApiFactory, facilitators: Callable[[], StubFacilitator], buyer: Buyer
) -> None:
    """Although the authorization that answers it is still valid."""
    stub = facilitators()
    settings = build_settings(tmp_path, stub.url, **MPP_SETTINGS, public_url="https://shop.example")
    shop, issuer = api(settings), create_issuer(settings)
    assert issuer is not None
    old = parse_challenge(issuer.issue(build_terms(phishing_check, settings).first, time.time() - 200))
    later = str(int(time.time()) + settings.payment_window)
    refused = pay_by_mpp(shop, encode_base64url(answer_challenge(buyer, old, validBefore=later)))
    assert read_reason(refused) == "invalid_exact_evm_payload_authorization_valid_before"
    assert stub.settle_calls == 0
    fresh = parse_challenge(refused.headers["WWW-Authenticate"])
    assert pay_by_mpp(shop, encode_base64url(answer_challenge(buyer, fresh))).status_code == 200
