"""What a buyer signed: decoding `PAYMENT-SIGNATURE`, and the checks that need neither network nor journal.

The payload is x402 version 2's, scheme `exact` over EIP-3009: a `TransferWithAuthorization` as EIP-712 typed
data.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from x402.schemas import PaymentPayload

from centgate.eip3009 import recover, transfer_digest
from centgate.errors import UNUSED, PaymentRequired
from centgate.evm import checksummed
from centgate.payments.terms import SCHEME, X402_VERSION, Terms, payment_identifier

MAX_HEADER = 16 * 1024
"""Bytes of `PAYMENT-SIGNATURE` that are read; an ordinary one has one to three thousand."""

MARGIN = 6
"""Seconds an authorization must still have, as the official facilitator asks, to be settled in time."""

_Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


def _uint256(value: str) -> str:
    if int(value) >= 2**256:
        raise ValueError("more than 256 bits")
    return value


_Decimal = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,77})$"), AfterValidator(_uint256)]


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
    """A payment that fits the terms, as far as can be told without asking anyone."""

    key: PaymentKey
    terms: Terms
    payload: dict[str, Any]
    """x402's PaymentPayload for the facilitator, in the spelling that is taken everywhere."""
    valid_before: int
    expired: bool
    """Too late to be settled; it can still redeem what it paid for."""
    signer_known: bool
    """Whether the payer's own key was recovered from the signature; else only the facilitator can tell."""
    proof: str
    """SHA-256 of the signature: who presents a payment again whose signer is unknown must have it too."""
    identifier: str | None
    """The buyer's idempotency key, if any; only honoured when the signer is known."""


def read_payment(header: str, terms: Terms, now: float) -> Payment:
    """Decode a payment and hold it against our own terms.

    Raises `PaymentRequired` with x402's reason for anything that does not fit; an authorization past its
    window is returned as `expired`, since it may have been settled before.
    """
    payload, signed, raw = _decode(header)
    _check_terms(payload, terms)
    authorization = signed.authorization
    if authorization.to.lower() != terms.pay_to.lower():
        raise _unfit("the payment goes to another address", "invalid_exact_evm_payload_recipient_mismatch")
    if int(authorization.value) != terms.amount:
        raise _unfit(
            f"the payment is over {authorization.value}, the price is {terms.amount}",
            "invalid_exact_evm_payload_authorization_value_mismatch",
        )
    if int(authorization.valid_after) > now:
        raise _unfit("the payment is not valid yet", "invalid_exact_evm_payload_authorization_valid_after")
    signature = bytes.fromhex(signed.signature[2:])
    try:
        identifier = payment_identifier(payload.extensions)
    except ValueError as error:
        raise _unfit(str(error), "invalid_payload") from error
    return Payment(
        key=PaymentKey(
            terms.network,
            terms.asset.address.lower(),
            authorization.payer.lower(),
            authorization.nonce.lower(),
        ),
        terms=terms,
        payload=_relayed(raw, signed, terms),
        valid_before=min(int(authorization.valid_before), 2**62),
        expired=int(authorization.valid_before) < now + MARGIN,
        signer_known=_signer(authorization, terms, signature) == authorization.payer.lower(),
        proof=sha256(signature).hexdigest(),
        identifier=identifier,
    )


def needs_contract(payment: Payment) -> bool:
    """Whether only a contract at the payer's address could make this signature good."""
    return not payment.signer_known and len(payment.payload["payload"]["signature"]) <= 2 + 2 * 65


def unexpired(payment: Payment) -> None:
    """Refuse a payment that can no longer be settled and was not settled before."""
    if payment.expired:
        raise _unfit("the payment has expired", "invalid_exact_evm_payload_authorization_valid_before")


def bad_signature() -> PaymentRequired:
    """The signature is not the payer's."""
    return _unfit("the signature is not the payer's", "invalid_exact_evm_payload_signature")


def _unfit(message: str, reason: str) -> PaymentRequired:
    return PaymentRequired(message, reason=reason, payment=UNUSED)


def _decode(header: str) -> tuple[PaymentPayload, _Signed, dict[str, Any]]:
    if len(header) > MAX_HEADER:
        raise _unfit(f"PAYMENT-SIGNATURE is longer than {MAX_HEADER} bytes", "invalid_payload")
    try:
        raw: dict[str, Any] = orjson.loads(b64decode(header, validate=True))
        if (version := raw.get("x402Version", X402_VERSION)) != X402_VERSION:
            raise _unfit(f"x402 version {str(version)[:16]} is not spoken here", "invalid_x402_version")
        payload = PaymentPayload.model_validate(raw)
        orjson.dumps([raw])  # reads deeper nesting than it writes, and the facilitator must be given it
        return payload, _Signed.model_validate(payload.payload), raw
    except (ValueError, AttributeError, orjson.JSONEncodeError) as error:
        raise _unfit(
            "PAYMENT-SIGNATURE is not the base64 of an x402 payment for scheme exact", "invalid_payload"
        ) from error


def _relayed(raw: dict[str, Any], signed: _Signed, terms: Terms) -> dict[str, Any]:
    """The payment with its addresses in checksum case, which some facilitators insist on."""
    authorization = signed.authorization
    return {
        **raw,
        "accepted": terms.requirements,
        "payload": {
            "signature": signed.signature,
            "authorization": {
                **raw["payload"]["authorization"],
                "from": checksummed(authorization.payer.lower()),
                "to": checksummed(authorization.to.lower()),
            },
        },
    }


def _check_terms(payload: PaymentPayload, terms: Terms) -> None:
    accepted = payload.accepted
    if accepted.scheme != SCHEME:
        raise _unfit("only scheme exact is accepted", "unsupported_scheme")
    if accepted.network != terms.network:
        raise _unfit(f"payments are made on {terms.network}", "network_mismatch")
    ours = terms.requirements
    fits = (
        accepted.asset.lower() == ours["asset"].lower()
        and accepted.pay_to.lower() == ours["payTo"].lower()
        and accepted.amount == ours["amount"]
        and accepted.max_timeout_seconds == ours["maxTimeoutSeconds"]
        and all(accepted.extra.get(name) == value for name, value in ours["extra"].items())
    )
    if not fits:
        raise _unfit("the accepted terms are not this service's", "invalid_payment_requirements")


def _signer(authorization: Authorization, terms: Terms, signature: bytes) -> str | None:
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
