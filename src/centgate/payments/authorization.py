"""Decoding of `PAYMENT-SIGNATURE`, and the checks that need neither network nor journal.

The payload is x402 version 2's, scheme `exact` over EIP-3009: a `TransferWithAuthorization` as EIP-712 typed
data.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from x402.schemas import PaymentPayload, PaymentRequirements

from centgate.errors import UNCHARGED_SIGN_NEW, PaymentRequired
from centgate.payments.terms import (
    PAYMENT_IDENTIFIER,
    SCHEME,
    X402_VERSION,
    RouteTerms,
    parse_idempotency_key,
    parse_payment_identifier,
)
from centgate.signing.assets import USDC, Asset, is_test_network
from centgate.signing.eip3009 import recover_signer, transfer_digest
from centgate.signing.evm import to_checksum_address

MAX_HEADER = 16 * 1024
"""Maximum size of `PAYMENT-SIGNATURE` in bytes; an ordinary one has one to three thousand."""

MIN_REMAINING_SECONDS = 6
"""Minimum remaining validity of an authorization in seconds, as the official facilitator requires."""

MAX_EXTRA_WINDOW = 600
"""Maximum seconds of validity beyond the offered window; bounds how long a payment can stay open."""

_Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


def _require_uint256(value: str) -> str:
    if int(value) >= 2**256:
        raise ValueError("more than 256 bits")
    return value


_Decimal = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,77})$"), AfterValidator(_require_uint256)]


KEY_SIGNATURE_LENGTH = 65
COUNTERFACTUAL_SUFFIX = bytes.fromhex("6492" * 16)
"""Last 32 bytes of a signature by a wallet that is not deployed yet (ERC-6492)."""
SignatureForm = Literal["key", "contract", "counterfactual"]
"""Kind of account that could have made a signature, by its length and suffix: `contract` is ERC-1271."""


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


class TransferAuthorization(BaseModel):
    """EIP-3009's fields as x402 carries them: numbers are decimal strings."""

    model_config = ConfigDict(strict=True)

    payer: _Address = Field(alias="from")
    to: _Address
    value: _Decimal
    valid_after: _Decimal = Field(alias="validAfter")
    valid_before: _Decimal = Field(alias="validBefore")
    nonce: str = Field(pattern=r"^0x[0-9a-fA-F]{64}$")


class _ExactPayload(BaseModel):
    model_config = ConfigDict(strict=True)

    signature: str = Field(pattern=r"^0x([0-9a-fA-F]{2})+$")
    authorization: TransferAuthorization


@dataclass(frozen=True, slots=True)
class PaymentKey:
    """Identity of a payment. Not the header's text, which can be encoded in many ways."""

    network: str
    asset: str
    payer: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Payment:
    """A decoded payment, checked as far as possible without network or journal."""

    key: PaymentKey
    terms: RouteTerms
    """The terms it was signed for: the current ones, or possible earlier ones if it has a `rejection`."""
    resubmission: ResubmissionData
    """The members from which every request to the facilitator is built."""
    resubmission_json: str
    """`resubmission` as JSON."""
    valid_before: int
    rejection: PaymentRequired | None
    """The error if it cannot be settled now; it can still fetch an answer that it paid for earlier."""
    is_signer_verified: bool
    """True if the payer's own key was recovered from the signature; else only the facilitator can check."""
    signature_form: SignatureForm
    signature_digest: str
    """SHA-256 of the signature. If the signer is not verified, a repeated payment must have the same one."""
    identifier: str | None
    """The buyer's idempotency key, if any; only used if the signer is verified.

    None for terms that are not the current ones: the recipient of such a payment has the signature too,
    without being the payer.
    """
    is_on_test_network: bool
    """True if the route's current terms are on a test network, whatever the payment was signed for."""


def read_payment(
    header: str, terms: RouteTerms, now: float, *, idempotency_header: str | None = None
) -> Payment:
    """Decode a payment and compare it with the route's terms; `key` is the `Idempotency-Key` header.

    Raises `PaymentRequired` with x402's reason for anything that does not match. An authorization past its
    window, or for terms that are not the current ones, is returned with a `rejection`, since it may have been
    settled before.
    """
    payload, exact_payload = _decode_header(header)
    authorization = exact_payload.authorization
    mismatch = _terms_mismatch(payload.accepted, terms)
    if mismatch and not _may_be_earlier_terms(payload.accepted, authorization):
        raise mismatch
    signed_terms = _accepted_terms(terms, payload.accepted) if mismatch else terms
    _require_matching_transfer(authorization, signed_terms, now)
    signature = bytes.fromhex(exact_payload.signature[2:])
    if _signature_form(signature) == "counterfactual" and not _is_erc6492_wrapper(signature):
        reason = "invalid_exact_evm_failed_to_parse_signature"
        raise _build_rejection("the signature has the ERC-6492 suffix but not its encoding", reason)
    try:
        payload_identifier = parse_payment_identifier(payload.extensions)
        identifier = parse_idempotency_key(payload_identifier, idempotency_header)
    except ValueError as error:
        raise _build_rejection(str(error), "invalid_payload") from error
    resubmission = _build_resubmission(
        exact_payload, signed_terms, payload_identifier, is_listed="bazaar" in (payload.extensions or {})
    )
    return Payment(
        key=PaymentKey(
            signed_terms.network,
            signed_terms.asset.address.lower(),
            authorization.payer.lower(),
            authorization.nonce.lower(),
        ),
        terms=signed_terms,
        resubmission=resubmission,
        resubmission_json=orjson.dumps(resubmission).decode(),
        valid_before=min(int(authorization.valid_before), 2**62),
        rejection=mismatch or _window_problem(authorization, signed_terms, now),
        is_signer_verified=_recover_signer(authorization, signed_terms, signature)
        == authorization.payer.lower(),
        signature_form=_signature_form(signature),
        signature_digest=sha256(signature).hexdigest(),
        identifier=None if mismatch else identifier,
        is_on_test_network=is_test_network(terms.network),
    )


def rebuild_payment(key: PaymentKey, terms: RouteTerms, resubmission_json: str) -> Payment:
    """Rebuild a payment as it was first submitted, from its stored members.

    `terms` are those it was signed for, `signed` is its `Payment.resubmission_json`.
    """
    resubmission = _parse_resubmission(resubmission_json, terms)
    signature = bytes.fromhex(resubmission["signature"][2:])
    return Payment(
        key=key,
        terms=terms,
        resubmission=resubmission,
        resubmission_json=resubmission_json,
        valid_before=min(int(resubmission["validBefore"]), 2**62),
        rejection=None,
        is_signer_verified=False,
        signature_form=_signature_form(signature),
        signature_digest=sha256(signature).hexdigest(),
        identifier=None,
        is_on_test_network=is_test_network(terms.network),
    )


def build_settle_request(payment: Payment) -> bytes:
    """Return the body of `POST /settle`: the same bytes for every submission of a payment.

    Nothing is copied unchecked from the buyer: version, scheme, resource, terms and discovery block are the
    server's own, authorization and signature were validated. Raises TermsChanged if the route's discovery
    block has changed since the first submission.
    """
    key, terms, resubmission = payment.key, payment.terms, payment.resubmission
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
        "resource": _resource_to_relay(resubmission, terms),
        "accepted": requirements,
        "payload": {"signature": resubmission["signature"], "authorization": authorization},
    }
    if extensions := _extensions_to_relay(resubmission, terms):
        payload["extensions"] = extensions
    request = {"x402Version": X402_VERSION, "paymentPayload": payload, "paymentRequirements": requirements}
    return orjson.dumps(request)


class TermsChanged(Exception):
    """The discovery block of a route differs from the one that was relayed with a payment."""


def _resource_to_relay(resubmission: ResubmissionData, terms: RouteTerms) -> dict[str, Any]:
    """Return the resource to relay: in full if the buyer's client echoed the discovery block."""
    if "listing" not in resubmission:
        return {"url": resubmission["url"]}
    if resubmission["listing"] != terms.listing_digest:
        raise TermsChanged
    return terms.resource


def _extensions_to_relay(resubmission: ResubmissionData, terms: RouteTerms) -> dict[str, Any]:
    """Return the extensions to relay: the payment identifier, and the discovery block if it was echoed."""
    extensions: dict[str, Any] = {}
    if "identifier" in resubmission:
        extensions[PAYMENT_IDENTIFIER] = {"info": {"required": False, "id": resubmission["identifier"]}}
    if "listing" in resubmission:
        extensions["bazaar"] = terms.listing
    return extensions


def _parse_resubmission(signed: str, terms: RouteTerms) -> ResubmissionData:
    """Parse `Payment.resubmission_json`; members that earlier versions did not store come from the terms."""
    missing = {
        "window": terms.window,
        "name": terms.asset.name,
        "version": terms.asset.version,
        "url": terms.url,
    }
    return cast(ResubmissionData, missing | orjson.loads(signed))


def _build_resubmission(
    exact_payload: _ExactPayload, terms: RouteTerms, identifier: str | None, *, is_listed: bool
) -> ResubmissionData:
    """Return the stored members of a payment; `is_listed` if the client echoed the discovery block."""
    authorization = exact_payload.authorization
    resubmission: ResubmissionData = {
        "signature": exact_payload.signature,
        "validAfter": authorization.valid_after,
        "validBefore": authorization.valid_before,
        "window": terms.window,
        "name": terms.asset.name,
        "version": terms.asset.version,
        "url": terms.url,
    }
    if is_listed:
        resubmission["listing"] = terms.listing_digest
    if identifier:
        resubmission["identifier"] = identifier
    return resubmission


def _signature_form(signature: bytes) -> SignatureForm:
    if signature.endswith(COUNTERFACTUAL_SUFFIX):
        return "counterfactual"
    return "key" if len(signature) <= KEY_SIGNATURE_LENGTH else "contract"


def _is_erc6492_wrapper(signature: bytes) -> bool:
    """Return True for an ERC-6492 encoding: factory address, its call data and a signature.

    Some facilitators crash on anything else, which looks like a settlement with an unknown outcome.
    """
    content = signature[: -len(COUNTERFACTUAL_SUFFIX)]
    words = [int.from_bytes(content[at : at + 32]) for at in (0, 32, 64)]
    return words[0] < 2**160 and all(
        96 <= at <= len(content) - 32
        and at + 32 + -(-int.from_bytes(content[at : at + 32]) // 32) * 32 <= len(content)
        for at in words[1:]
    )


def raise_if_rejected(payment: Payment) -> None:
    """Raise the payment's rejection, if it has one."""
    if payment.rejection:
        raise payment.rejection


def signature_rejection() -> PaymentRequired:
    """Return the error for a signature that is not the payer's."""
    return _build_rejection("the signature is not the payer's", "invalid_exact_evm_payload_signature")


def _window_problem(
    authorization: TransferAuthorization, terms: RouteTerms, now: float
) -> PaymentRequired | None:
    """Return the error for an authorization that ends too early or too late, None if it does neither."""
    reason = "invalid_exact_evm_payload_authorization_valid_before"
    end = int(authorization.valid_before)
    if end < now + MIN_REMAINING_SECONDS:
        return _build_rejection("the payment has expired", reason)
    if end > now + terms.window + MAX_EXTRA_WINDOW:
        limit = terms.window + MAX_EXTRA_WINDOW
        return _build_rejection(
            f"the payment is valid for more than {limit} seconds: sign one that ends earlier", reason
        )
    return None


def _build_rejection(message: str, reason: str) -> PaymentRequired:
    return PaymentRequired(message, reason=reason, payment=UNCHARGED_SIGN_NEW)


def _decode_header(header: str) -> tuple[PaymentPayload, _ExactPayload]:
    if len(header) > MAX_HEADER:
        raise _build_rejection(f"PAYMENT-SIGNATURE is longer than {MAX_HEADER} bytes", "invalid_payload")
    try:
        raw: dict[str, Any] = orjson.loads(a2b_base64(header, strict_mode=True))
        if (version := raw.get("x402Version", X402_VERSION)) != X402_VERSION:
            raise _build_rejection(
                f"x402 version {str(version)[:16]} is not supported; use version {X402_VERSION}",
                "invalid_x402_version",
            )
        payload = PaymentPayload.model_validate(raw)
        return payload, _ExactPayload.model_validate(payload.payload)
    except (ValueError, AttributeError) as error:
        raise _build_rejection(
            "PAYMENT-SIGNATURE is not the base64 of an x402 payment for scheme exact", "invalid_payload"
        ) from error


def _terms_mismatch(accepted: PaymentRequirements, terms: RouteTerms) -> PaymentRequired | None:
    """Return the error for accepted terms that are not the route's, None if they are."""
    if accepted.scheme != SCHEME:
        return _build_rejection("only scheme exact is accepted", "unsupported_scheme")
    if accepted.network != terms.network:
        return _build_rejection(f"the payment must be on {terms.network}", "network_mismatch")
    expected = terms.requirements
    is_match = (
        accepted.asset.lower() == expected["asset"].lower()
        and accepted.pay_to.lower() == expected["payTo"].lower()
        and accepted.amount == expected["amount"]
        and accepted.max_timeout_seconds == expected["maxTimeoutSeconds"]
        and all(accepted.extra.get(name) == value for name, value in expected["extra"].items())
    )
    return (
        None
        if is_match
        else _build_rejection(
            "the accepted terms are not this service's terms", "invalid_payment_requirements"
        )
    )


def _may_be_earlier_terms(accepted: PaymentRequirements, authorization: TransferAuthorization) -> bool:
    """Return True if these may be terms from before the operator changed them and match the signature."""
    return (
        accepted.scheme == SCHEME
        and re.fullmatch(r"eip155:[1-9][0-9]{0,18}", accepted.network) is not None
        and re.fullmatch(r"0x[0-9a-fA-F]{40}", accepted.asset) is not None
        and accepted.pay_to.lower() == authorization.to.lower()
        and accepted.amount == authorization.value
    )


def _accepted_terms(terms: RouteTerms, accepted: PaymentRequirements) -> RouteTerms:
    return terms_when_signed(
        terms,
        network=accepted.network,
        asset=accepted.asset,
        pay_to=accepted.pay_to,
        amount=int(accepted.amount),
    )


def terms_when_signed(terms: RouteTerms, *, network: str, asset: str, pay_to: str, amount: int) -> RouteTerms:
    """Return a route's possible earlier terms; an unknown token has an empty name."""
    current_asset = terms.asset if network == terms.network else None
    known_assets = (
        token
        for token in (current_asset, USDC.get(network))
        if token and token.address.lower() == asset.lower()
    )
    return replace(
        terms,
        network=network,
        asset=next(known_assets, Asset(asset, name="", version="")),
        pay_to=pay_to,
        amount=amount,
    )


def _require_matching_transfer(authorization: TransferAuthorization, terms: RouteTerms, now: float) -> None:
    """Raise PaymentRequired unless the signed transfer matches the terms and is valid already."""
    if authorization.to.lower() != terms.pay_to.lower():
        raise _build_rejection(
            "the payment goes to another address", "invalid_exact_evm_payload_recipient_mismatch"
        )
    if int(authorization.value) != terms.amount:
        raise _build_rejection(
            f"the payment is over {authorization.value}, the price is {terms.amount}",
            "invalid_exact_evm_payload_authorization_value_mismatch",
        )
    if int(authorization.valid_after) > now:
        raise _build_rejection(
            "the payment is not valid yet", "invalid_exact_evm_payload_authorization_valid_after"
        )


def _recover_signer(authorization: TransferAuthorization, terms: RouteTerms, signature: bytes) -> str | None:
    """Recover the signer's address; None for a token whose EIP-712 domain is unknown."""
    if not terms.asset.name:
        return None
    digest = transfer_digest(
        terms.domain,
        payer=authorization.payer,
        to=authorization.to,
        value=int(authorization.value),
        valid_after=int(authorization.valid_after),
        valid_before=int(authorization.valid_before),
        nonce=authorization.nonce,
    )
    return recover_signer(digest, signature)
