"""Changed terms: payments on earlier terms redeem what they paid for, and buy nothing new."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from buyer import (
    ApiFactory,
    Buyer,
    decode_header,
    encode_header,
    pay,
    payment_note,
    sign_payment,
    with_identifier,
)
from facilitators import StubFacilitator, build_settings, reply_with
from msgspec.structs import replace
from seeded_journals import encode_terms, read_row, record_open_payment, record_payment
from served_api import ServedApi, serve_api

from centgate.payments.claim_values import StoredAnswer
from centgate.payments.reconciler import reconcile_all
from centgate.payments.terms import RouteTerms, build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

HASH = "0x" + "ab" * 32
ELSEWHERE = "0x1111111111111111111111111111111111111111"
ANSWER = StoredAnswer(200, b'{"as it":"was"}', "req_0123456789abcdef01234567", "e30=")
Payload = dict[str, Any]


def raise_price(settings: Settings) -> RouteTerms:
    terms = build_terms(phishing_check, settings)
    return replace(terms, tokens=(replace(terms.first, amount=25_000),))


def lower_version(settings: Settings) -> RouteTerms:
    terms = build_terms(phishing_check, settings)
    older = replace(terms.first, asset=dataclasses.replace(terms.first.asset, version="1"))
    return replace(terms, tokens=(older,))


def change_settings(**changes: Any) -> Callable[[Settings], RouteTerms]:
    def build_changed_terms(settings: Settings) -> RouteTerms:
        return build_terms(phishing_check, Settings(**{**settings.model_dump(), **changes}))

    return build_changed_terms


# the terms in force when the payment was made
EARLIER: dict[str, Callable[[Settings], RouteTerms]] = {
    "recipient": change_settings(pay_to=ELSEWHERE),
    "price": raise_price,
    "window": change_settings(payment_window=300),
    "token": change_settings(asset=ELSEWHERE, asset_name="Another Dollar"),
    "token's version": lower_version,
    "network": change_settings(network="eip155:31337", asset=ELSEWHERE, asset_name="Another Dollar"),
    "public address": change_settings(public_url="https://old.example"),
}
each_change = pytest.mark.parametrize("earlier", EARLIER.values(), ids=EARLIER.keys())


def sign_on_terms(terms: RouteTerms, buyer: Buyer, **changes: Any) -> Payload:
    return buyer.payload(terms.header, now=int(time.time()), **changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the API's journal."""
    return tmp_path_factory.mktemp("served_api")


@pytest.fixture(scope="module")
def served_api(folder: Path) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(folder) as served_api:
        yield served_api


@pytest.fixture
def home_settings(served_api: ServedApi, folder: Path) -> Settings:
    """Settings of that API."""
    return build_settings(folder, served_api.facilitator.url)


@pytest.mark.extended
@each_change
async def test_settled_on_earlier_terms_is_redeemed_with_its_receipt(
    served_api: ServedApi,
    home_settings: Settings,
    buyer: Buyer,
    earlier: Callable[[Settings], RouteTerms],
) -> None:
    terms = earlier(home_settings)
    calls = served_api.facilitator.settle_calls
    payment = encode_header(sign_on_terms(terms, buyer))
    await record_payment(home_settings, payment, int(time.time()), transaction=HASH, terms=terms)

    first, again = (pay(served_api.client, payment) for _ in range(2))

    assert (first.status_code, again.content) == (200, first.content)
    receipt = decode_header(first.headers["PAYMENT-RESPONSE"])
    assert receipt["success"] is True
    assert (receipt["network"], receipt["amount"]) == (terms.first.network, str(terms.first.amount))
    assert (receipt["transaction"], receipt["payer"]) == (HASH, buyer.address.lower())
    assert served_api.facilitator.settle_calls == calls


@each_change
async def test_delivered_on_earlier_terms_is_repeated(
    served_api: ServedApi,
    home_settings: Settings,
    buyer: Buyer,
    earlier: Callable[[Settings], RouteTerms],
) -> None:
    terms = earlier(home_settings)
    calls = served_api.facilitator.settle_calls
    payment = encode_header(sign_on_terms(terms, buyer))
    await record_payment(
        home_settings, payment, int(time.time()), transaction=HASH, answer=ANSWER, terms=terms
    )

    response = pay(served_api.client, payment)

    assert (response.status_code, response.content) == (200, ANSWER.body)
    assert response.headers["Idempotent-Replayed"] == "true"
    assert served_api.facilitator.settle_calls == calls


@each_change
async def test_earlier_terms_buy_no_other_request(
    served_api: ServedApi,
    home_settings: Settings,
    buyer: Buyer,
    earlier: Callable[[Settings], RouteTerms],
) -> None:
    terms = earlier(home_settings)
    calls = served_api.facilitator.settle_calls
    payment = encode_header(sign_on_terms(terms, buyer))
    await record_payment(home_settings, payment, int(time.time()), transaction=HASH, terms=terms)

    response = pay(served_api.client, payment, body={"url": "https://example.com/"})

    assert response.status_code == 402
    assert response.json()["error"]["details"]["reason"] == "payment_already_used"
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize("earlier", [name for name in EARLIER if name != "public address"])
def test_fresh_payment_on_earlier_terms_is_refused(
    served_api: ServedApi, home_settings: Settings, buyer: Buyer, earlier: str
) -> None:
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, encode_header(sign_on_terms(EARLIER[earlier](home_settings), buyer)))

    assert response.status_code == 402
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "new_payment"}
    assert "PAYMENT-REQUIRED" in response.headers
    assert served_api.facilitator.settle_calls == calls


ODD: dict[str, Payload] = {
    "amount of nothing": {"amount": "0"},
    "amount of all": {"amount": str(2**256 - 1)},
    "amount beyond": {"amount": "9" * 78},
    "amount with a sign": {"amount": "-1"},
    "amount in other digits": {"amount": "\u0661\u0660\u0660\u0660\u0660"},
    "network without a number": {"network": "eip155:"},
    "network of nothing": {"network": "eip155:0"},
    "network beyond": {"network": "eip155:" + "9" * 19},
    "network with a line": {"network": "eip155:8453\n"},
    "another kind of network": {"network": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"},
    "zero asset": {"asset": "0x" + "00" * 20},
    "asset that is none": {"asset": "0x\u0000"},
    "zero recipient": {"payTo": "0x" + "00" * 20},
    "a window beyond": {"maxTimeoutSeconds": 2**70},
    "a window before": {"maxTimeoutSeconds": -1},
    "no extra": {"extra": {}},
    "extra of its own": {"extra": {"name": "\u0000", "version": None, "paymentFlow": "authorization"}},
    "another scheme": {"scheme": "upto"},
}


@pytest.mark.parametrize("signs_for_it", [True, False], ids=["and signed", "and not signed"])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_fresh_payment_with_malformed_terms_is_refused(
    served_api: ServedApi,
    buyer: Buyer,
    odd: Payload,
    signs_for_it: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    payload = decode_header(sign_payment(served_api.client, buyer))
    payload["accepted"] |= odd
    if signs_for_it:
        signed = payload["payload"]["authorization"]
        signed["to"] = odd.get("payTo", signed["to"])
        signed["value"] = odd.get("amount", signed["value"])
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 402
    assert response.json()["error"]["code"] == "payment_required"
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize("money", [("to", ELSEWHERE), ("value", "1")], ids=["recipient", "amount"])
async def test_second_signature_over_other_money_is_refused(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer, money: tuple[str, str]
) -> None:
    first = await record_open_payment(settings, buyer, ago=1)
    nonce = first["payload"]["authorization"]["nonce"]
    name, value = money
    changes: dict[str, Any] = {"nonce": nonce, name: value}
    second = buyer.payload(encode_terms(settings), now=int(time.time()), **changes)
    second["accepted"] = second["accepted"] | {"to": {"payTo": value}, "value": {"amount": value}}[name]

    response = pay(api(settings), encode_header(second))

    assert response.status_code == 402
    assert payment_note(response)["state"] == "in_flight"
    assert facilitator.settle_calls == 0


async def test_earlier_payment_does_not_satisfy_new_terms(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    terms = EARLIER["recipient"](settings)
    first = sign_on_terms(terms, buyer)
    await record_payment(settings, encode_header(first), int(time.time()), transaction=HASH, terms=terms)
    nonce = first["payload"]["authorization"]["nonce"]

    response = pay(
        api(settings), encode_header(sign_on_terms(build_terms(phishing_check, settings), buyer, nonce=nonce))
    )

    assert response.status_code == 402
    assert response.json()["error"]["details"]["reason"] == "payment_already_used"
    assert facilitator.settle_calls == 0


async def test_open_payment_resubmits_first_signature(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """Otherwise the second could land after the first was found to have ended unused."""
    first = await record_open_payment(settings, buyer, ago=1)
    nonce = first["payload"]["authorization"]["nonce"]
    second = buyer.payload(encode_terms(settings), now=int(time.time()), seconds=300, nonce=nonce)

    response = pay(api(settings), encode_header(second))

    assert response.status_code == 200
    assert facilitator.body["paymentPayload"]["payload"] == first["payload"]


@pytest.mark.extended
def test_payment_elsewhere_redeems_nothing_by_key(served_api: ServedApi, buyer: Buyer) -> None:
    key = "a-key-that-was-used-elsewhere"
    bought = decode_header(sign_payment(served_api.client, buyer))
    assert pay(served_api.client, with_identifier(bought, key)).status_code == 200
    elsewhere = buyer.payload(
        encode_header(
            {"accepts": [bought["accepted"] | {"payTo": ELSEWHERE}], "resource": {"url": "https://x"}}
        ),
        now=int(time.time()),
    )

    response = pay(served_api.client, with_identifier(elsewhere, key))

    assert response.status_code == 402
    assert payment_note(response)["state"] == "unused"


async def test_open_payment_resubmits_its_own_terms(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    terms = EARLIER["recipient"](settings)
    payload = sign_on_terms(terms, buyer)
    await record_payment(settings, encode_header(payload), int(time.time()), terms=terms)
    facilitator.next.append(reply_with(502, ""))
    client = api(settings)

    unsure, served = (pay(client, encode_header(payload)) for _ in range(2))

    assert (unsure.status_code, served.status_code) == (502, 200)
    assert "PAYMENT-REQUIRED" not in unsure.headers
    assert facilitator.body["paymentRequirements"]["payTo"] == ELSEWHERE


@pytest.mark.parametrize("name", ["token", "network"])
async def test_open_payment_in_removed_token_is_submitted_again(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer, name: str
) -> None:
    """What was signed is stored with the payment, the token's name included."""
    terms = EARLIER[name](settings)
    payload = sign_on_terms(terms, buyer)
    await record_payment(settings, encode_header(payload), int(time.time()) - 1, terms=terms)

    response = pay(api(settings), encode_header(payload))

    assert response.status_code == 200, response.text
    assert facilitator.body["paymentPayload"]["payload"] == payload["payload"]
    assert facilitator.body["paymentRequirements"]["extra"]["name"] == "Another Dollar"


async def test_open_payment_is_resolved_after_sales_ended(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    payload = await record_open_payment(settings, buyer)

    await reconcile_all(settings.model_copy(update={"pay_to": None}))

    assert (await read_row(settings, payload))["state"] == "settled"
    assert facilitator.body["paymentRequirements"] == payload["accepted"]


async def test_open_payment_of_earlier_address_is_submitted_again(
    settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    """Its client echoed the discovery block, whose digest has the address."""
    terms = EARLIER["public address"](settings)
    payload = sign_on_terms(terms, buyer)
    payload["extensions"] = {"bazaar": terms.route.listing}
    await record_payment(settings, encode_header(payload), int(time.time()) - 60, terms=terms)

    await reconcile_all(settings)

    assert (await read_row(settings, payload))["state"] == "settled"
    assert facilitator.body["paymentPayload"]["resource"]["url"].startswith("https://old.example/")
