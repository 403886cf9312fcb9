"""Prices: payments at the operator's prices in every interface, and after a price change."""

from __future__ import annotations

import time
from collections.abc import Generator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from buyer import PHISHING, QUESTION, Buyer, decode_header, encode_header, pay, payment_note, sign_payment
from facilitators import build_settings
from seeded_journals import record_open_payment, record_payment
from served_api import ServedApi, serve_api

from centgate.catalog import all_services
from centgate.client import Caps, Centgate, Wallet
from centgate.client.errors import CapExceeded
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check

PRICES = {"price": "0.02", "service_prices": {"phishing-check": Decimal("0.015"), "token-risk": Decimal(1)}}
HASH = "0x" + "ab" * 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prices")


@pytest.fixture(scope="module")
def served_api(folder: Path) -> Generator[ServedApi]:
    """An API with three prices."""
    with serve_api(folder, **PRICES) as served_api:
        yield served_api


def open_client(served_api: ServedApi, **options: Any) -> Centgate:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[3].private_key)
    return Centgate(str(served_api.client.base_url), wallet=wallet, **options)


def test_every_interface_names_service_prices(served_api: ServedApi) -> None:
    http = served_api.client
    paths = http.get("/openapi.json").json()["paths"]
    products = {each["slug"]: each for each in http.get("/.well-known/x402").json()["products"]}
    tools = {each["name"]: each["description"] for each in _list_mcp_tools(served_api)}
    functions = {each["name"]: each for each in http.get("/services?format=anthropic").json()["tools"]}
    for service in all_services():
        price = {"phishing-check": "0.015", "token-risk": "1.00"}.get(service.slug, "0.02")
        units = str(int(Decimal(price) * 10**6))
        entry = http.get(f"/services/{service.slug}").json()
        assert (entry["price"], entry["priceUsd"]) == (f"${price}", float(price))
        assert paths[service.path]["post"]["x-payment-info"]["price"]["amount"] == price
        assert (products[service.slug]["price"], products[service.slug]["accepts"][0]["amount"]) == (
            f"${price}",
            units,
        )
        challenge = http.post(service.path)
        assert decode_header(challenge.headers["PAYMENT-REQUIRED"])["accepts"][0]["amount"] == units
        assert challenge.json()["error"]["details"]["accepts"][0]["amount"] == units
        assert f"Price: ${price}." in tools[service.slug]
        if service.slug in functions:  # those without a configured source cannot be bought
            assert f"Costs ${price} a call." in functions[service.slug]["description"]


def test_overview_texts_name_price_range(served_api: ServedApi) -> None:
    http = served_api.client
    texts = [
        http.get("/").text,
        http.get("/", headers={"Accept": "text/html"}).text,
        http.get("/openapi.json").json()["info"]["summary"],
        http.get("/mcp/server-card").text,
    ]

    assert all("$0.015 to $1.00 a call" in text for text in texts)
    assert not any("one cent" in text for text in texts)


def test_payment_moves_price_of_its_service(served_api: ServedApi, buyer: Buyer) -> None:
    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    assert response.status_code == 200
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["amount"] == "15000"


def test_payment_at_another_price_is_refused_with_fresh_terms(
    served_api: ServedApi, folder: Path, buyer: Buyer
) -> None:
    cheaper = build_terms(phishing_check, build_settings(folder, served_api.facilitator.url))
    calls = served_api.facilitator.settle_calls

    response = pay(served_api.client, encode_header(buyer.payload(cheaper.header, now=int(time.time()))))

    assert response.status_code == 402
    assert decode_header(response.headers["PAYMENT-REQUIRED"])["accepts"][0]["amount"] == "15000"
    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "new_payment"}
    assert served_api.facilitator.settle_calls == calls


async def test_settled_at_old_price_is_redeemed_and_replayed(
    served_api: ServedApi, folder: Path, buyer: Buyer
) -> None:
    before = build_settings(folder, served_api.facilitator.url)
    terms = build_terms(phishing_check, before)
    payment = encode_header(buyer.payload(terms.header, now=int(time.time())))
    await record_payment(before, payment, int(time.time()), transaction=HASH, terms=terms)
    calls = served_api.facilitator.settle_calls

    first, again = (pay(served_api.client, payment) for _ in range(2))

    assert (first.status_code, again.content) == (200, first.content)
    assert decode_header(first.headers["PAYMENT-RESPONSE"])["amount"] == "10000"
    assert served_api.facilitator.settle_calls == calls


async def test_open_at_old_price_is_settled_at_old_price(
    served_api: ServedApi, folder: Path, buyer: Buyer
) -> None:
    before = build_settings(folder, served_api.facilitator.url)
    payload = await record_open_payment(before, buyer, ago=20)

    response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 200, response.text
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["amount"] == "10000"
    assert served_api.facilitator.body["paymentRequirements"]["amount"] == "10000"


@pytest.mark.extended
def test_client_pays_quoted_price_within_caps(served_api: ServedApi) -> None:
    with open_client(served_api) as client:
        answer = client.call("phishing-check", QUESTION)
        assert answer.receipt is not None
        assert answer.receipt.amount == Decimal("0.015")
        with pytest.raises(CapExceeded, match=r"\$0.015, above the cap of \$0.01 "):
            client.call("phishing-check", QUESTION, max_price="0.01")
        with pytest.raises(CapExceeded, match=r"\$1, above the cap of \$0.02 per call"):
            client.call("token-risk", {"chain": "base", "tokenAddress": "0x" + "11" * 20})
    with open_client(served_api, caps=Caps(total=Decimal("0.02"))) as client:
        client.call("phishing-check", QUESTION)
        with pytest.raises(CapExceeded, match="total cap reached"):
            client.call("phishing-check", QUESTION)


def _list_mcp_tools(served_api: ServedApi) -> list[dict[str, Any]]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    return served_api.client.post("/mcp", json=message, headers=headers).json()["result"]["tools"]


def test_price_below_token_unit_is_refused(folder: Path) -> None:
    settings = build_settings(folder, "http://127.0.0.1:1").model_copy(update={"price": Decimal("0.0000001")})

    with pytest.raises(ValueError, match="more than the 6 decimals of USDC"):
        build_terms(phishing_check, settings)


@pytest.mark.extended
def test_unpaid_price_is_that_of_route(served_api: ServedApi) -> None:
    response = served_api.client.post(PHISHING, json=QUESTION)

    assert response.json()["error"]["details"]["accepts"][0]["amount"] == "15000"
