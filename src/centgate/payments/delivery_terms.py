"""Promises to buyers for their money, in a form that programs read.

It is the extension `delivery-terms` of each 402 and of no signature: a buyer's payment stays valid if the
operator changes it. No extension of x402 has these facts; the drafts of a `refund` extension require an
endpoint that pays back, and Centgate holds no key that could.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from centgate.settings import Settings

DELIVERY_TERMS = "delivery-terms"
"""Name of the extension."""
REFUNDS_PAGE = "/pricing#refunds"
"""The website's page that says the same in words."""
DELIVERY_TERMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What a payment buys, and what happens if the answer cannot be delivered.",
    "required": ["settled", "noData", "undelivered", "redeemableHours", "refunds"],
    "properties": {
        "settled": {"const": "before_work", "description": "The money moves before the service runs."},
        "noData": {"const": "charged", "description": "The error `no_data` is an answer, and is charged."},
        "undelivered": {
            "const": "redeemable",
            "description": "The same payment, sent again with the same request, gets the answer.",
        },
        "redeemableHours": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Hours after the settlement for which that works; an answer is kept as long.",
        },
        "refunds": {
            "const": "by_operator",
            "description": "What was not redeemed is paid back by the operator, by hand; nothing automatic.",
        },
        "contact": {"type": "string", "description": "The operator's contact: a URL or a mail address."},
        "policyUrl": {"type": "string", "format": "uri", "description": "The same in words."},
    },
}
"""JSON Schema of the terms, as the OpenAPI document has it."""


def build_delivery_terms(settings: Settings) -> dict[str, Any]:
    """Return the terms of this deployment; contact and page only if the operator has set them."""
    hours = settings.redeem_hours
    terms: dict[str, Any] = {
        "settled": "before_work",
        "noData": "charged",
        "undelivered": "redeemable",
        "redeemableHours": int(hours) if hours == int(hours) else hours,
        "refunds": "by_operator",
    }
    if settings.operator:
        terms["contact"] = settings.operator
    if settings.site_url:
        terms["policyUrl"] = settings.site_url + REFUNDS_PAGE
    return terms


def shorten_delivery_terms(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms without those that are only addresses of more."""
    return {name: value for name, value in terms.items() if name in DELIVERY_TERMS_SCHEMA["required"]}


def build_delivery_extension(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms as an extension of x402; its schema is short, since headers have little room."""
    return {"info": dict(terms), "schema": {"type": "object", "required": ["redeemableHours"]}}
