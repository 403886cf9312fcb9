"""The x402 discovery document under `/.well-known/`, generated from the same terms as the 402."""

from __future__ import annotations

from typing import Any

from centgate.payments.delivery_terms import build_delivery_terms
from centgate.payments.terms import list_requirements
from centgate.prices import format_price
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.receipts.signer import create_signer


def x402_document(catalog: tuple[AnyService, ...], settings: Settings) -> dict[str, Any]:
    """Return `/.well-known/x402`: every paid route, with its terms if payments are enabled."""
    return {
        "version": 1,
        "resources": [settings.base_url + service.path for service in catalog],
        "products": [_product_entry(service, settings) for service in catalog],
        "ownershipProofs": list(settings.ownership_proofs),
        **({"deliveryTerms": build_delivery_terms(settings)} if settings.pay_to else {}),
        **receipt_signer_field(settings),
    }


def receipt_signer_field(settings: Settings) -> dict[str, Any]:
    """Return the address that signs offers and receipts; empty if nothing is signed."""
    signer = create_signer(settings.receipt_key)
    return {"receiptSigner": signer.address} if signer else {}


def _product_entry(service: AnyService, settings: Settings) -> dict[str, Any]:
    return {
        "slug": service.slug,
        "endpoint": settings.base_url + service.path,
        "method": "POST",
        "price": format_price(settings.price_of(service.slug)),
        "description": service.summary,
        "accepts": list_requirements(service, settings),
    }
