"""What a buyer signed: decoding `PAYMENT-SIGNATURE`, and the checks that need neither network nor journal.

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

from centgate.dollars import USDC, Asset, is_test_network
from centgate.eip3009 import recover, transfer_digest
from centgate.errors import UNUSED, PaymentRequired
from centgate.evm import checksummed
from centgate.payments.terms import (
    PAYMENT_IDENTIFIER,
    SCHEME,
    X402_VERSION,
    Terms,
    idempotency_key,
    payment_identifier,
)

MAX_HEADER = 16 * 1024
"""Bytes of `PAYMENT-SIGNATURE` that are read; an ordinary one has one to three thousand."""

MARGIN = 6
"""Seconds an authorization must still have, as the official facilitator asks, to be settled in time."""

MAX_EXTRA_WINDOW = 600
"""Seconds that an authorization may be valid beyond the offered window, and so stay open at most."""

_Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


def _uint256(value: str) -> str:
    if int(value) >= 2**256:
        raise ValueError("more than 256 bits")
    return value


_Decimal = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,77})$"), AfterValidator(_uint256)]


KEY_SIGNATURE_LENGTH = 65
COUNTERFACTUAL_SUFFIX = bytes.fromhex("6492" * 16)
"""End of a signature of a wallet that is yet to be deployed (ERC-6492)."""
SignatureForm = Literal["key", "contract", "counterfactual"]
"""By its length and end, the kind of account that could have made a signature: `contract` is ERC-1271."""


class SignedPayment(TypedDict):
    """Parts of a payment beside its key, recipient and amount, kept to present it again byte for byte."""

    signature: str
    validAfter: str
    validBefore: str
    window: int
    """`maxTimeoutSeconds` of the terms, as is their token's EIP-712 domain in the next two."""
    name: str
    version: str
    url: str
    """The address that was paid for."""
    listing: NotRequired[str]
    """Digest of the discovery block that was relayed, if the buyer's client echoed it."""
    identifier: NotRequired[str]
    """The payment identifier that was relayed, if there was one."""


class Authorization(BaseModel):
    """EIP-3009's fields as x402 carries them: numbers are decimal strings."""

    model_config = ConfigDict(strict=True)

    payer: _Address = Field(alias="from")
    to: _Address
    value: _Decimal
    valid_after: _Decimal = Field(alias="validAfter")
    valid_before: _Decimal = Field(alias="validBefore")
    nonce: str = Field(pattern=r"^0x[0-9a-fA-F]{64}$")


class _Signed(BaseModel):
    model_config = ConfigDict(strict=True)

    signature: str = Field(pattern=r"^0x([0-9a-fA-F]{2})+$")
    authorization: Authorization


@dataclass(frozen=True, slots=True)
class PaymentKey:
    """What identifies a payment: never the header's text, which can be spelled in many ways."""

    network: str
    asset: str
    payer: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment as it was signed, checked as far as can be without asking anyone."""

    key: PaymentKey
    terms: Terms
    """What it was signed for: our terms, or others that may have been ours when it was `unfit`."""
    kept: SignedPayment
    """From these members every presentation to the facilitator is built."""
    signed: str
    """The same as JSON."""
    valid_before: int
    unfit: PaymentRequired | None
    """Why it cannot be settled now, if so; it can still redeem what it paid for."""
    signer_known: bool
    """Whether the payer's own key was recovered from the signature; else only the facilitator can tell."""
    signature_form: SignatureForm
    proof: str
    """SHA-256 of the signature: who presents a payment again whose signer is unknown must have it too."""
    identifier: str | None
    """The buyer's idempotency key, if any; only honoured when the signer is known.

    None for terms that are not ours today: who is paid elsewhere has such a signature and is not the payer.
    """
    asks_test_money: bool
    """True where our terms of today are of a test network, whatever the payment was signed for."""


def read_payment(header: str, terms: Terms, now: float, *, key: str | None = None) -> Payment:
    """Decode a payment and hold it against our own terms; `key` is what `Idempotency-Key` said.

    Raises `PaymentRequired` with x402's reason for anything that does not fit. An authorization past its
    window, or over terms that are not ours today, comes as `unfit`, since it may have been settled before.
    """
    payload, signed = _decode(header)
    authorization = signed.authorization
    misfit = _misfit(payload.accepted, terms)
    if misfit and not _may_have_fitted(payload.accepted, authorization):
        raise misfit
    asked = _as_accepted(terms, payload.accepted) if misfit else terms
    _check_transfer(authorization, asked, now)
    signature = bytes.fromhex(signed.signature[2:])
    if _signature_form(signature) == "counterfactual" and not _is_wrapper(signature):
        reason = "invalid_exact_evm_failed_to_parse_signature"
        raise _unfit("the signature ends as one of ERC-6492, and is not in its form", reason)
    try:
        inside = payment_identifier(payload.extensions)
        identifier = idempotency_key(inside, key)
    except ValueError as error:
        raise _unfit(str(error), "invalid_payload") from error
    kept = _kept_members(signed, asked, inside, is_listed="bazaar" in (payload.extensions or {}))
    return Payment(
        key=PaymentKey(
            asked.network,
            asked.asset.address.lower(),
            authorization.payer.lower(),
            authorization.nonce.lower(),
        ),
        terms=asked,
        kept=kept,
        signed=orjson.dumps(kept).decode(),
        valid_before=min(int(authorization.valid_before), 2**62),
        unfit=misfit or _window_problem(authorization, asked, now),
        signer_known=_signer(authorization, asked, signature) == authorization.payer.lower(),
        signature_form=_signature_form(signature),
        proof=sha256(signature).hexdigest(),
        identifier=None if misfit else identifier,
        asks_test_money=is_test_network(terms.network),
    )


def presented_before(key: PaymentKey, terms: Terms, signed: str) -> Payment:
    """Return a payment as it was first presented, from what was kept of it.

    `terms` are those it was made for, `signed` is its `Payment.signed`.
    """
    kept = _signed_members(signed, terms)
    signature = bytes.fromhex(kept["signature"][2:])
    return Payment(
        key=key,
        terms=terms,
        kept=kept,
        signed=signed,
        valid_before=min(int(kept["validBefore"]), 2**62),
        unfit=None,
        signer_known=False,
        signature_form=_signature_form(signature),
        proof=sha256(signature).hexdigest(),
        identifier=None,
        asks_test_money=is_test_network(terms.network),
    )


def build_settle_request(payment: Payment) -> bytes:
    """Return the body of `POST /settle`: the same bytes for every presentation of a payment.

    Nothing in it is the buyer's as it came: the version, scheme, resource, terms and discovery block are
    ours, the authorization and the signature were validated. Raises TermsChanged when what we say of the
    route has changed since the payment was first presented.
    """
    key, terms, kept = payment.key, payment.terms, payment.kept
    requirements = {
        "scheme": SCHEME,
        "network": key.network,
        "asset": checksummed(key.asset),
        "amount": str(terms.amount),
        "payTo": checksummed(terms.pay_to.lower()),
        "maxTimeoutSeconds": kept["window"],
        "extra": {"name": kept["name"], "version": kept["version"], "paymentFlow": "upfront"},
    }
    authorization = {
        "from": checksummed(key.payer),
        "to": requirements["payTo"],
        "value": requirements["amount"],
        "validAfter": kept["validAfter"],
        "validBefore": kept["validBefore"],
        "nonce": key.nonce,
    }
    payload: dict[str, Any] = {
        "x402Version": X402_VERSION,
        "resource": _relayed_resource(kept, terms),
        "accepted": requirements,
        "payload": {"signature": kept["signature"], "authorization": authorization},
    }
    if extensions := _relayed_extensions(kept, terms):
        payload["extensions"] = extensions
    request = {"x402Version": X402_VERSION, "paymentPayload": payload, "paymentRequirements": requirements}
    return orjson.dumps(request)


class TermsChanged(Exception):
    """The discovery block of a route is not the one that was relayed with a payment."""


def _relayed_resource(kept: SignedPayment, terms: Terms) -> dict[str, Any]:
    """Return our resource: in full where the buyer's client echoed the discovery block."""
    if "listing" not in kept:
        return {"url": kept["url"]}
    if kept["listing"] != terms.listing_digest:
        raise TermsChanged
    return terms.resource


def _relayed_extensions(kept: SignedPayment, terms: Terms) -> dict[str, Any]:
    """Return the known extensions: the payment identifier, and our discovery block if it was echoed."""
    extensions: dict[str, Any] = {}
    if "identifier" in kept:
        extensions[PAYMENT_IDENTIFIER] = {"info": {"required": False, "id": kept["identifier"]}}
    if "listing" in kept:
        extensions["bazaar"] = terms.listing
    return extensions


def _signed_members(signed: str, terms: Terms) -> SignedPayment:
    """Read `Payment.signed`; what an earlier version did not keep is as in the terms."""
    missing = {
        "window": terms.window,
        "name": terms.asset.name,
        "version": terms.asset.version,
        "url": terms.url,
    }
    return cast(SignedPayment, missing | orjson.loads(signed))


def _kept_members(signed: _Signed, terms: Terms, identifier: str | None, *, is_listed: bool) -> SignedPayment:
    """Return what is kept of a payment; `is_listed` if the buyer's client echoed the discovery block."""
    authorization = signed.authorization
    kept: SignedPayment = {
        "signature": signed.signature,
        "validAfter": authorization.valid_after,
        "validBefore": authorization.valid_before,
        "window": terms.window,
        "name": terms.asset.name,
        "version": terms.asset.version,
        "url": terms.url,
    }
    if is_listed:
        kept["listing"] = terms.listing_digest
    if identifier:
        kept["identifier"] = identifier
    return kept


def _signature_form(signature: bytes) -> SignatureForm:
    if signature.endswith(COUNTERFACTUAL_SUFFIX):
        return "counterfactual"
    return "key" if len(signature) <= KEY_SIGNATURE_LENGTH else "contract"


def _is_wrapper(signature: bytes) -> bool:
    """True for a factory's address, its call data and a signature, as ERC-6492 encodes them.

    Some facilitators fail over anything else, which looks like a settlement whose outcome is unknown.
    """
    content = signature[: -len(COUNTERFACTUAL_SUFFIX)]
    words = [int.from_bytes(content[at : at + 32]) for at in (0, 32, 64)]
    return words[0] < 2**160 and all(
        96 <= at <= len(content) - 32
        and at + 32 + -(-int.from_bytes(content[at : at + 32]) // 32) * 32 <= len(content)
        for at in words[1:]
    )


def require_fit(payment: Payment) -> None:
    """Refuse a payment that cannot be settled now and was not settled before."""
    if payment.unfit:
        raise payment.unfit


def bad_signature() -> PaymentRequired:
    """The signature is not the payer's."""
    return _unfit("the signature is not the payer's", "invalid_exact_evm_payload_signature")


def _window_problem(authorization: Authorization, terms: Terms, now: float) -> PaymentRequired | None:
    """Return why an authorization ends too early or too late to be settled now, None if it does not."""
    reason = "invalid_exact_evm_payload_authorization_valid_before"
    end = int(authorization.valid_before)
    if end < now + MARGIN:
        return _unfit("the payment has expired", reason)
    if end > now + terms.window + MAX_EXTRA_WINDOW:
        limit = terms.window + MAX_EXTRA_WINDOW
        return _unfit(
            f"the payment is valid for more than {limit} seconds: sign one that ends earlier", reason
        )
    return None


def _unfit(message: str, reason: str) -> PaymentRequired:
    return PaymentRequired(message, reason=reason, payment=UNUSED)


def _decode(header: str) -> tuple[PaymentPayload, _Signed]:
    if len(header) > MAX_HEADER:
        raise _unfit(f"PAYMENT-SIGNATURE is longer than {MAX_HEADER} bytes", "invalid_payload")
    try:
        raw: dict[str, Any] = orjson.loads(a2b_base64(header, strict_mode=True))
        if (version := raw.get("x402Version", X402_VERSION)) != X402_VERSION:
            raise _unfit(f"x402 version {str(version)[:16]} is not spoken here", "invalid_x402_version")
        payload = PaymentPayload.model_validate(raw)
        return payload, _Signed.model_validate(payload.payload)
    except (ValueError, AttributeError) as error:
        raise _unfit(
            "PAYMENT-SIGNATURE is not the base64 of an x402 payment for scheme exact", "invalid_payload"
        ) from error


def _misfit(accepted: PaymentRequirements, terms: Terms) -> PaymentRequired | None:
    """Why the terms that were accepted are not ours, if so."""
    if accepted.scheme != SCHEME:
        return _unfit("only scheme exact is accepted", "unsupported_scheme")
    if accepted.network != terms.network:
        return _unfit(f"payments are made on {terms.network}", "network_mismatch")
    ours = terms.requirements
    fits = (
        accepted.asset.lower() == ours["asset"].lower()
        and accepted.pay_to.lower() == ours["payTo"].lower()
        and accepted.amount == ours["amount"]
        and accepted.max_timeout_seconds == ours["maxTimeoutSeconds"]
        and all(accepted.extra.get(name) == value for name, value in ours["extra"].items())
    )
    return (
        None if fits else _unfit("the accepted terms are not this service's", "invalid_payment_requirements")
    )


def _may_have_fitted(accepted: PaymentRequirements, authorization: Authorization) -> bool:
    """Whether these may have been our terms before the operator changed them, and are what was signed."""
    return (
        accepted.scheme == SCHEME
        and re.fullmatch(r"eip155:[1-9][0-9]{0,18}", accepted.network) is not None
        and re.fullmatch(r"0x[0-9a-fA-F]{40}", accepted.asset) is not None
        and accepted.pay_to.lower() == authorization.to.lower()
        and accepted.amount == authorization.value
    )


def _as_accepted(terms: Terms, accepted: PaymentRequirements) -> Terms:
    return earlier_terms(
        terms,
        network=accepted.network,
        asset=accepted.asset,
        pay_to=accepted.pay_to,
        amount=int(accepted.amount),
    )


def earlier_terms(terms: Terms, *, network: str, asset: str, pay_to: str, amount: int) -> Terms:
    """What may have been a route's terms before they were these; a token that is not known has no name."""
    ours = terms.asset if network == terms.network else None
    known = (token for token in (ours, USDC.get(network)) if token and token.address.lower() == asset.lower())
    return replace(
        terms,
        network=network,
        asset=next(known, Asset(asset, name="", version="")),
        pay_to=pay_to,
        amount=amount,
    )


def _check_transfer(authorization: Authorization, terms: Terms, now: float) -> None:
    """That what was signed is what was asked."""
    if authorization.to.lower() != terms.pay_to.lower():
        raise _unfit("the payment goes to another address", "invalid_exact_evm_payload_recipient_mismatch")
    if int(authorization.value) != terms.amount:
        raise _unfit(
            f"the payment is over {authorization.value}, the price is {terms.amount}",
            "invalid_exact_evm_payload_authorization_value_mismatch",
        )
    if int(authorization.valid_after) > now:
        raise _unfit("the payment is not valid yet", "invalid_exact_evm_payload_authorization_valid_after")


def _signer(authorization: Authorization, terms: Terms, signature: bytes) -> str | None:
    """Who signed, where it can be known: under a token that is not ours today it cannot."""
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
    return recover(digest, signature)
