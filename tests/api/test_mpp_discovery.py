"""Discovery of payments by MPP: the OpenAPI document describes them only where MPP is accepted."""

from __future__ import annotations

import json
from typing import Any

from mpp_buyer import MPP_SETTINGS
from openapi_spec_validator import OpenAPIV31SpecValidator

from centgate.api.openapi import openapi_document
from centgate.catalog import all_services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.settings import Settings


def build_document(**settings: Any) -> dict[str, Any]:
    """Build the OpenAPI document of a deployment with these settings, after a round trip through JSON."""
    return json.loads(json.dumps(openapi_document(all_services(), Settings(**settings))))


def test_deployment_with_mpp_offers_both_protocols() -> None:
    document = build_document(pay_to=DEFAULT_PAYEE, **MPP_SETTINGS)
    assert not list(OpenAPIV31SpecValidator(document).iter_errors())
    token = Settings().token.address
    for service in all_services():
        operation = document["paths"][service.path]["post"]
        offer = {"method": "evm", "intent": "charge", "amount": "10000", "currency": token}
        assert operation["x-payment-info"]["offers"] == [offer]
        protocol = {"method": "evm", "intent": "charge", "currency": token}
        protocols: list[dict[str, Any]] = [{"x402": {}}, {"mpp": protocol}]
        assert operation["x-payment-info"]["protocols"] == protocols
        assert operation["security"] == [{}, {"MachinePayments": []}]
        assert "Payment-Receipt" in operation["responses"]["200"]["headers"]
    assert "WWW-Authenticate" in document["components"]["responses"]["PaymentRequired"]["headers"]
    assert document["components"]["securitySchemes"]["MachinePayments"]["scheme"] == "Payment"


def test_deployment_without_mpp_does_not_mention_it() -> None:
    without_payments = build_document(**MPP_SETTINGS)
    for document in (build_document(pay_to=DEFAULT_PAYEE), without_payments):
        text = json.dumps(document)
        for word in ("MachinePayments", "WWW-Authenticate", "Payment-Receipt", "offers", "mpp"):
            assert word not in text, word
