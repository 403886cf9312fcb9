"""Body of `POST /settle`, and the members of a payment that are stored to send the same bytes again."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict, cast

import orjson
from msgspec.structs import replace

from centgate.payments.idempotency_key import PAYMENT_IDENTIFIER
from centgate.payments.paid_route import PaidRoute
from centgate.payments.payload import ExactPayload
from centgate.payments.payment_key import PaymentKey
from centgate.payments.terms import SCHEME, X402_VERSION, TokenTerms
from centgate.signing.evm import to_checksum_address


class ResubmissionData(TypedDict):
    """Parts of a payment besides key, recipient and amount, stored to submit it again byte for byte."""

    signature: str
    validAfter: str
    validBefore: str
    window: int
    """`maxTimeoutSeconds` of the terms; the next two fields are the EIP-712 domain of their token."""
    name: str
    version: str
    url: str
    """The URL that was paid for."""
    listing: NotRequired[str]
    """Digest of the relayed discovery block, if the buyer's client echoed it."""
    identifier: NotRequired[str]
    """The relayed payment identifier, if any."""


class TermsChanged(Exception):
    """The discovery block of a route differs from the one that was relayed with a payment."""


def build_resubmission(
    exact_payload: ExactPayload, terms: TokenTerms, identifier: str | None, *, is_listed: bool
) -> ResubmissionData:
    """Return the stored members of a payment; `is_listed` if the client echoed the discovery block."""
    authorization = exact_payload.authorization
    resubmission: ResubmissionData = {
        "signature": exact_payload.signature,
        "validAfter": authorization.valid_after,
        "validBefore": authorization.valid_before,
        "window": terms.route.window,
        "name": terms.asset.name,
        "version": terms.asset.version,
        "url": terms.route.url,
    }
    if is_listed:
        resubmission["listing"] = terms.route.listing_digest
    if identifier:
        resubmission["identifier"] = identifier
    return resubmission


def parse_resubmission(signed: str, terms: TokenTerms) -> ResubmissionData:
    """Parse `Payment.resubmission_json`; members that earlier versions did not store come from the terms."""
    missing = {
        "window": terms.route.window,
        "name": terms.asset.name,
        "version": terms.asset.version,
        "url": terms.route.url,
    }
    return cast(ResubmissionData, missing | orjson.loads(signed))


def build_settle_request(key: PaymentKey, terms: TokenTerms, resubmission: ResubmissionData) -> bytes:
    """Return the body of `POST /settle`: the same bytes for every submission of a payment.

    Nothing is copied unchecked from the buyer: version, scheme, resource, terms and discovery block are the
    server's own, authorization and signature were validated. Raises TermsChanged if the route's discovery
    block has changed since the first submission.
    """
    requirements = {
        "scheme": SCHEME,
        "network": key.network,
        "asset": to_checksum_address(key.asset),
        "amount": str(terms.amount),
        "payTo": to_checksum_address(terms.pay_to.lower()),
        "maxTimeoutSeconds": resubmission["window"],
        "extra": {"name": resubmission["name"], "version": resubmission["version"], "paymentFlow": "upfront"},
    }
    authorization = {
        "from": to_checksum_address(key.payer),
        "to": requirements["payTo"],
        "value": requirements["amount"],
        "validAfter": resubmission["validAfter"],
        "validBefore": resubmission["validBefore"],
        "nonce": key.nonce,
    }
    payload: dict[str, Any] = {
        "x402Version": X402_VERSION,
        "resource": _resource_to_relay(resubmission, terms.route),
        "accepted": requirements,
        "payload": {"signature": resubmission["signature"], "authorization": authorization},
    }
    if extensions := _extensions_to_relay(resubmission, terms.route):
        payload["extensions"] = extensions
    request = {"x402Version": X402_VERSION, "paymentPayload": payload, "paymentRequirements": requirements}
    return orjson.dumps(request)


def _resource_to_relay(resubmission: ResubmissionData, route: PaidRoute) -> dict[str, Any]:
    """Return the resource to relay: in full if the buyer's client echoed the discovery block."""
    if "listing" not in resubmission:
        return {"url": resubmission["url"]}
    if route.url != resubmission["url"]:  # the public address was changed since
        route = replace(route, url=resubmission["url"])
    if resubmission["listing"] != route.listing_digest:
        raise TermsChanged
    return route.resource


def _extensions_to_relay(resubmission: ResubmissionData, route: PaidRoute) -> dict[str, Any]:
    """Return the extensions to relay: the payment identifier, and the discovery block if it was echoed."""
    extensions: dict[str, Any] = {}
    if "identifier" in resubmission:
        extensions[PAYMENT_IDENTIFIER] = {"info": {"required": False, "id": resubmission["identifier"]}}
    if "listing" in resubmission:
        extensions["bazaar"] = route.listing
    return extensions
