"""Delivery terms: the same in each 402, the OpenAPI document and the discovery document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from buyer import Buyer, decode_header, encode_header, pay
from facilitators import build_settings
from pydantic import SecretStr
from served_api import serve_api

from centgate.catalog import all_services
from centgate.payments.delivery_terms import DELIVERY_TERMS_SCHEMA, build_delivery_terms
from centgate.payments.terms import MAX_OFFER_HEADER, build_terms
from centgate.service import AnyService
from centgate.settings import Settings

PROMISED = {
    "settled": "before_work",
    "noData": "charged",
    "undelivered": "redeemable",
    "redeemableHours": 36,
    "refunds": "by_operator",
    "contact": "mailto:desk@example.com",
    "policyUrl": "https://site.example/pricing#refunds",
}
SAID: dict[str, Any] = {
    "redeem_hours": 36,
    "operator": "mailto:desk@example.com",
    "site_url": "https://site.example",
}


@pytest.mark.extended
def test_terms_are_published_in_three_places(tmp_path: Path) -> None:
    with serve_api(tmp_path, **SAID) as served_api:
        http = served_api.client
        offer = decode_header(http.post("/services/phishing-check").headers["PAYMENT-REQUIRED"])
        openapi, x402 = http.get("/openapi.json").json(), http.get("/.well-known/x402").json()

    extension = offer["extensions"]["delivery-terms"]
    assert extension["info"] == openapi["x-delivery-terms"] == x402["deliveryTerms"] == PROMISED
    jsonschema.validate(extension["info"], extension["schema"])
    jsonschema.validate(extension["info"], openapi["components"]["schemas"]["DeliveryTerms"])


def test_unset_terms_are_left_out() -> None:
    terms = build_delivery_terms(Settings())

    assert set(PROMISED) - set(terms) == {"contact", "policyUrl"}
    assert terms["redeemableHours"] == 24
    jsonschema.validate(terms, DELIVERY_TERMS_SCHEMA)


def test_partial_hours_are_stated() -> None:
    assert build_delivery_terms(Settings(redeem_hours=1.5))["redeemableHours"] == 1.5


@pytest.mark.extended
def test_no_terms_without_payments(tmp_path: Path) -> None:
    with serve_api(tmp_path, pay_to=None) as served_api:
        assert "x-delivery-terms" not in served_api.client.get("/openapi.json").json()
        assert "deliveryTerms" not in served_api.client.get("/.well-known/x402").json()


@pytest.mark.extended
def test_payment_on_earlier_terms_is_accepted(tmp_path: Path, buyer: Buyer) -> None:
    """A client may hold terms from before the operator's change; it does not sign them."""
    import time

    with serve_api(tmp_path, **SAID) as served_api:
        settings = build_settings(tmp_path, served_api.facilitator.url, redeem_hours=1)
        base_url = str(served_api.client.base_url).rstrip("/")
        terms = build_terms(all_services()[4], settings.model_copy(update={"public_url": base_url}))
        payload = buyer.payload(terms.header, now=int(time.time()))
        payload["extensions"] = decode_header(terms.header)["extensions"]
        response = pay(served_api.client, encode_header(payload))

    assert response.status_code == 200, response.text


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_signed_offer_is_short_with_long_contact_and_addresses(service: AnyService) -> None:
    settings = Settings(
        pay_to="0x" + "22" * 20,
        network="eip155:84532",
        receipt_key=SecretStr("0x" + "11" * 32),
        public_url="https://api." + "a" * 50 + ".example",
        operator="https://" + "c" * 190,
        site_url="https://" + "s" * 60 + ".example",
    )

    header = build_terms(service, settings).header

    assert len(header) <= MAX_OFFER_HEADER
    assert decode_header(header)["extensions"]["bazaar"]["info"]["output"]


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_signed_offer_contains_usual_terms(service: AnyService) -> None:
    settings = Settings(
        pay_to="0x" + "22" * 20,
        network="eip155:8453",
        receipt_key=SecretStr("0x" + "11" * 32),
        public_url="https://api.example.com",
        operator="mailto:desk@example.com",
        site_url="https://www.example.com",
    )

    header = build_terms(service, settings).header

    assert len(header) <= MAX_OFFER_HEADER
    assert decode_header(header)["extensions"]["delivery-terms"]["info"]["redeemableHours"] == 24
