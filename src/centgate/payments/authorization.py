"""What a buyer signed: decoding `PAYMENT-SIGNATURE`, and the checks that need neither network nor journal.

The payload is x402 version 2's, scheme `exact` over EIP-3009: a `TransferWithAuthorization` as EIP-712 typed
data.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from x402.schemas import PaymentPayload, PaymentRequirements

from centgate.dollars import USDC, Asset, is_test_network
from centgate.eip3009 import recover, transfer_digest
from centgate.errors import UNUSED, PaymentRequired
from centgate.evm import checksummed
from centgate.payments.terms import SCHEME, X402_VERSION, Terms, idempotency_key

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
    """A payment as it was signed, checked as far as can be without asking anyone."""

    key: PaymentKey
    terms: Terms
    """What it was signed for: our terms, or others that may have been ours when it was `unfit`."""
    payload: dict[str, Any]
    """x402's PaymentPayload for the facilitator, in the spelling that is taken everywhere."""
    signed: str
    """What the payer signed beyond the key and the terms, with the signature: `Signed` as JSON."""
    valid_before: int
    unfit: PaymentRequired | None
    """Why it cannot be settled now, if so; it can still redeem what it paid for."""
    signer_known: bool
    """Whether the payer's own key was recovered from the signature; else only the facilitator can tell."""
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
    payload, signed, raw = _decode(header)
    authorization = signed.authorization
    misfit = _misfit(payload.accepted, terms)
    if misfit and not _may_have_fitted(payload.accepted, authorization):
        raise misfit
    asked = _as_accepted(terms, payload.accepted) if misfit else terms
    _check_transfer(authorization, asked, now)
    signature = bytes.fromhex(signed.signature[2:])
    try:
        identifier = idempotency_key(payload.extensions, key)
    except ValueError as error:
        raise _unfit(str(error), "invalid_payload") from error
    late = int(authorization.valid_before) < now + MARGIN
    return Payment(
        key=PaymentKey(
            asked.network,
            asked.asset.address.lower(),
            authorization.payer.lower(),
            authorization.nonce.lower(),
        ),
        terms=asked,
        payload=_relayed(raw, signed, asked),
        signed=_kept(signed),
        valid_before=min(int(authorization.valid_before), 2**62),
        unfit=misfit or (_expired() if late else None),
        signer_known=_signer(authorization, asked, signature) == authorization.payer.lower(),
        proof=sha256(signature).hexdigest(),
        identifier=None if misfit else identifier,
        asks_test_money=is_test_network(terms.network),
    )


def presented_before(key: PaymentKey, terms: Terms, signed: str) -> Payment:
    """A payment as it was signed, from what was kept of it, to be presented again without its buyer.

    `terms` are those it was made for, `signed` is its `Payment.signed`.
    """
    kept: dict[str, str] = orjson.loads(signed)
    authorization = {
        "from": checksummed(key.payer),
        "to": checksummed(terms.pay_to.lower()),
        "value": str(terms.amount),
        "validAfter": kept["validAfter"],
        "validBefore": kept["validBefore"],
        "nonce": key.nonce,
    }
    return Payment(
        key=key,
        terms=terms,
        payload={
            "x402Version": X402_VERSION,
            "resource": {"url": terms.url},
            "accepted": terms.requirements,
            "payload": {"signature": kept["signature"], "authorization": authorization},
        },
        signed=signed,
        valid_before=min(int(kept["validBefore"]), 2**62),
        unfit=None,
        signer_known=False,
        proof=sha256(bytes.fromhex(kept["signature"][2:])).hexdigest(),
        identifier=None,
        asks_test_money=is_test_network(terms.network),
    )


def needs_contract(payment: Payment) -> bool:
    """Whether only a contract at the payer's address could make this signature good."""
    return not payment.signer_known and len(payment.payload["payload"]["signature"]) <= 2 + 2 * 65


def require_fit(payment: Payment) -> None:
    """Refuse a payment that cannot be settled now and was not settled before."""
    if payment.unfit:
        raise payment.unfit


def bad_signature() -> PaymentRequired:
    """The signature is not the payer's."""
    return _unfit("the signature is not the payer's", "invalid_exact_evm_payload_signature")


def _expired() -> PaymentRequired:
    return _unfit("the payment has expired", "invalid_exact_evm_payload_authorization_valid_before")


def _unfit(message: str, reason: str) -> PaymentRequired:
    return PaymentRequired(message, reason=reason, payment=UNUSED)


def _decode(header: str) -> tuple[PaymentPayload, _Signed, dict[str, Any]]:
    if len(header) > MAX_HEADER:
        raise _unfit(f"PAYMENT-SIGNATURE is longer than {MAX_HEADER} bytes", "invalid_payload")
    try:
        raw: dict[str, Any] = orjson.loads(a2b_base64(header, strict_mode=True))
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


def _kept(signed: _Signed) -> str:
    """What was signed beyond the payment's key, its recipient and its amount, as x402 names it."""
    window = {
        "validAfter": signed.authorization.valid_after,
        "validBefore": signed.authorization.valid_before,
    }
    return orjson.dumps({"signature": signed.signature, **window}).decode()


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
