"""The parts of the OpenAPI document that describe payments by MPP; empty unless it is accepted."""

from __future__ import annotations

from typing import Any

from centgate.payments.mpp.challenge import INTENT, METHOD, build_charge_request
from centgate.payments.terms import TokenTerms, build_terms
from centgate.service import AnyService
from centgate.settings import Settings

SECURITY_SCHEME = "MachinePayments"
"""Name of the security scheme; the website finds it in the document."""
_GUIDANCE = (
    " A 402 also has a challenge of the Machine Payments Protocol in WWW-Authenticate: Payment (method evm, "
    "intent charge). Answer it with Authorization: Payment instead of PAYMENT-SIGNATURE, never with both; "
    "what is said of payments holds for it too."
)
_SECURITY_SCHEMES: dict[str, Any] = {
    SECURITY_SCHEME: {
        "type": "http",
        "scheme": "Payment",
        "description": "No account: a signed payment that answers the challenge in WWW-Authenticate of a 402 "
        "(Machine Payments Protocol, method evm, intent charge). An alternative to PAYMENT-SIGNATURE.",
    }
}
_CHALLENGE, _RECEIPT = "WWW-Authenticate", "Payment-Receipt"
_HEADERS: dict[str, Any] = {
    _CHALLENGE: {
        "description": "A challenge of the Machine Payments Protocol: `Payment` with its parameters.",
        "schema": {"type": "string"},
    },
    _RECEIPT: {
        "description": "The receipt of a payment by `Authorization: Payment`, base64url of JSON.",
        "schema": {"type": "string"},
    },
}


def accepts_mpp(settings: Settings) -> bool:
    """Return True if the deployment accepts payments by MPP."""
    return settings.mpp_enabled and settings.pay_to is not None


def mpp_guidance(settings: Settings) -> str:
    """Return the sentences on MPP that follow the guidance on x402."""
    return _GUIDANCE if accepts_mpp(settings) else ""


def mpp_security_schemes(settings: Settings) -> dict[str, Any]:
    """Return the entries of `components.securitySchemes`."""
    return _SECURITY_SCHEMES if accepts_mpp(settings) else {}


def mpp_headers(settings: Settings) -> dict[str, Any]:
    """Return the headers of responses, by name."""
    return _HEADERS if accepts_mpp(settings) else {}


def challenge_headers(settings: Settings) -> tuple[str, ...]:
    """Return the names of the headers of a 402."""
    return (_CHALLENGE,) if accepts_mpp(settings) else ()


def receipt_headers(settings: Settings) -> tuple[str, ...]:
    """Return the names of the headers of a paid answer."""
    return (_RECEIPT,) if accepts_mpp(settings) else ()


def mpp_security(settings: Settings) -> list[dict[str, Any]]:
    """Return `security` of a paid operation: it may be called without a payment, for the terms."""
    return [{}, {SECURITY_SCHEME: []}] if accepts_mpp(settings) else []


def build_payment_info(service: AnyService, settings: Settings, *, price: str) -> dict[str, Any]:
    """Return `x-payment-info` of a paid operation; `price` is in dollars.

    `protocols` are read by directories of x402, `offers` by those of MPP.
    """
    info: dict[str, Any] = {
        "price": {"mode": "fixed", "currency": "USD", "amount": price},
        "protocols": [{"x402": {}}],
    }
    if accepts_mpp(settings):
        offer = _build_offer(build_terms(service, settings).first)
        info["protocols"].append({"mpp": {name: offer[name] for name in ("method", "intent", "currency")}})
        info["offers"] = [offer]
    return info


def _build_offer(terms: TokenTerms) -> dict[str, str]:
    request = build_charge_request(terms)
    return {
        "method": METHOD,
        "intent": INTENT,
        "amount": request["amount"],
        "currency": request["currency"],
    }
