"""Decoding of `PAYMENT-SIGNATURE`, and the checks that need neither network nor journal.

The payload is x402 version 2's, scheme `exact` over EIP-3009: a `TransferWithAuthorization` as EIP-712 typed
data.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Literal, cast

import msgspec
import orjson
from msgspec import Struct

from centgate.errors import UNCHARGED_SIGN_NEW, PaymentRequired
from centgate.payments.idempotency_key import (
    parse_idempotency_key,
    parse_payment_identifier,
)
from centgate.payments.payload import (
    AcceptedTerms,
    ExactPayload,
    PaymentPayload,
    TransferAuthorization,
    decode_payload,
    parse_payload,
)
from centgate.payments.payment_key import PaymentKey
from centgate.payments.settle_request import ResubmissionData, build_resubmission, parse_resubmission
from centgate.payments.terms import SCHEME, X402_VERSION, RouteTerms, TokenTerms
from centgate.signing.assets import NETWORK_ID, USDC, Asset, is_test_network
from centgate.signing.contract_signature import COUNTERFACTUAL_SUFFIX, unwrap_signature
from centgate.signing.eip3009 import recover_signer, transfer_digest

MAX_HEADER = 16 * 1024
"""Maximum size of `PAYMENT-SIGNATURE` in bytes; an ordinary one has one to three thousand."""

MIN_REMAINING_SECONDS = 6
"""Minimum remaining validity of an authorization in seconds, as the official facilitator requires."""

MAX_EXTRA_WINDOW = 600
"""Maximum seconds of validity beyond the offered window; bounds how long a payment can stay open."""

KEY_SIGNATURE_LENGTH = 65
EXPIRED_REASON = "invalid_exact_evm_payload_authorization_valid_before"
"""Reason of the refusal of an expired payment, in x402's vocabulary."""
SIGNATURE_REASON = "invalid_exact_evm_payload_signature"
"""x402's reason for a signature that is not the payer's."""
SignatureForm = Literal["key", "contract", "counterfactual"]
"""Kind of account that could have made a signature, by its length and suffix: `contract` is ERC-1271."""


class Payment(Struct, frozen=True):
    """A decoded payment, checked as far as possible without network or journal."""

    key: PaymentKey
    terms: TokenTerms
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
    """SHA-256 of the signature. If the signer is not verified, a repeated payment must have the same one.

    Empty if the payer has signed in to redeem the payment, which needs no signature.
    """
    identifier: str | None
    """The buyer's idempotency key, if any; only used if the signer is verified.

    None for terms that are not the current ones: the recipient of such a payment has the signature too,
    without being the payer.
    """
    is_on_test_network: bool
    """True if the route's current terms are on a test network, whatever the payment was signed for."""


class PresentedPayment(Struct, frozen=True):
    """A signed transfer as a request presented it, before its checks."""

    payload: ExactPayload
    terms: TokenTerms
    """The terms it was signed for, by its own statement."""
    mismatch: PaymentRequired | None
    """The error if these are not the route's current terms."""
    extensions: dict[str, Any] | None = None
    """Extensions of an x402 payload, if any, as in `PaymentPayload`."""
    expires_at: float | None = None
    """End of the challenge that it answers, in seconds since 1970; x402 has none."""


def read_payment(
    header: str, terms: RouteTerms, now: float, *, idempotency_header: str | None = None
) -> Payment:
    """Decode a payment and compare it with the route's terms in its token.

    `idempotency_header` is the `Idempotency-Key` header.

    Raises `PaymentRequired` with x402's reason for anything that does not match. An authorization is returned
    with a `rejection` if its window is over, its terms are not the current ones, or its idempotency key is
    invalid: it may have been settled before.
    """
    payload = _decode_header(header)
    signed_terms, mismatch = _find_signed_terms(payload, terms)
    presented = PresentedPayment(payload.payload, signed_terms, mismatch, payload.extensions)
    return check_payment(presented, terms, now, idempotency_header=idempotency_header)


def check_payment(
    presented: PresentedPayment, terms: RouteTerms, now: float, *, idempotency_header: str | None
) -> Payment:
    """Check a presented payment against the terms it was signed for; `terms` are the route's current ones.

    Raises PaymentRequired and returns a `rejection` as `read_payment` does.
    """
    authorization, signed_terms = presented.payload.authorization, presented.terms
    _require_matching_transfer(authorization, signed_terms)
    signature = bytes.fromhex(presented.payload.signature[2:])
    try:
        # some facilitators crash on a wrong wrapper, as if the outcome were unknown
        unwrap_signature(signature)
    except ValueError as error:
        reason = "invalid_exact_evm_failed_to_parse_signature"
        raise build_rejection("the signature has the ERC-6492 suffix but not its encoding", reason) from error
    payload_identifier = identifier = key_problem = None
    try:
        payload_identifier = parse_payment_identifier(presented.extensions)
        identifier = parse_idempotency_key(payload_identifier, idempotency_header)
    except ValueError as error:  # not raised: a payment that is settled must not be called unused
        key_problem = build_rejection(str(error), "invalid_payload")
    is_listed = "bazaar" in (presented.extensions or {})
    resubmission = build_resubmission(
        presented.payload, signed_terms, payload_identifier, is_listed=is_listed
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
        rejection=presented.mismatch or key_problem or _window_problem(presented, now),
        is_signer_verified=_recover_signer(authorization, signed_terms, signature)
        == authorization.payer.lower(),
        signature_form=_signature_form(signature),
        signature_digest=sha256(signature).hexdigest(),
        identifier=None if presented.mismatch else identifier,
        is_on_test_network=is_test_network(terms.first.network),
    )


def rebuild_payment(key: PaymentKey, terms: TokenTerms, resubmission_json: str) -> Payment:
    """Rebuild a payment as it was first submitted, from its stored members.

    `terms` are those it was signed for, `resubmission_json` is that of its `Payment`.
    """
    resubmission = parse_resubmission(resubmission_json, terms)
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


def _signature_form(signature: bytes) -> SignatureForm:
    if signature.endswith(COUNTERFACTUAL_SUFFIX):
        return "counterfactual"
    return "key" if len(signature) <= KEY_SIGNATURE_LENGTH else "contract"


def raise_if_rejected(payment: Payment) -> None:
    """Raise the payment's rejection, if it has one."""
    if payment.rejection:
        raise payment.rejection


def signature_rejection() -> PaymentRequired:
    """Return the error for a signature that is not the payer's."""
    return build_rejection("the signature is not the payer's", SIGNATURE_REASON)


def _window_problem(presented: PresentedPayment, now: float) -> PaymentRequired | None:
    """Return the error for a payment that begins or ends too early or too late, None if it does not.

    It is not raised: a payment that was valid before the database's clock was set back may be settled.
    """
    reason = EXPIRED_REASON
    authorization = presented.payload.authorization
    if int(authorization.valid_after) > now:
        not_yet = "invalid_exact_evm_payload_authorization_valid_after"
        return build_rejection("the payment is not valid yet", not_yet)
    end = int(authorization.valid_before)
    if end <= now:
        return build_rejection("the payment has expired", reason)
    if end < now + MIN_REMAINING_SECONDS:
        message = f"the payment expires within {MIN_REMAINING_SECONDS} seconds, too soon to settle it"
        return build_rejection(message, reason)
    if presented.expires_at is not None and presented.expires_at <= now:
        return build_rejection("the challenge has expired: sign a new one", reason)
    limit = presented.terms.route.window + MAX_EXTRA_WINDOW
    if end > now + limit:
        return build_rejection(
            f"the payment is valid for more than {limit} seconds: sign one that ends earlier", reason
        )
    return None


def build_rejection(message: str, reason: str) -> PaymentRequired:
    """Return the error for a payment that cannot be accepted and was not charged."""
    return PaymentRequired(message, reason=reason, payment=UNCHARGED_SIGN_NEW)


def _decode_header(header: str) -> PaymentPayload:
    if len(header) > MAX_HEADER:
        raise build_rejection(f"PAYMENT-SIGNATURE is longer than {MAX_HEADER} bytes", "invalid_payload")
    try:
        # msgspec decodes base64 in a quarter of the time of `binascii`, and as strictly
        decoded = msgspec.convert(header, bytes)
    except ValueError as error:
        raise _format_rejection("it is not standard base64 with padding") from error
    try:
        text = decoded.decode()
        if (payload := decode_payload(text)) and payload.x402_version == X402_VERSION:
            return payload
        raw = orjson.loads(text)
    except ValueError as error:
        raise _format_rejection("the decoded text is not JSON") from error
    if not isinstance(raw, dict):
        raise _format_rejection("the decoded text is not a JSON object")
    content = cast(dict[str, Any], raw)
    if (version := content.get("x402Version", X402_VERSION)) != X402_VERSION:
        named = f" {version!r}"[:19] if isinstance(version, int | str) else ""
        raise build_rejection(
            f"x402 version{named} is not supported; use the number {X402_VERSION}", "invalid_x402_version"
        )
    try:
        return parse_payload(content)
    except ValueError as error:
        raise _format_rejection(str(error)) from error


def _format_rejection(problem: str) -> PaymentRequired:
    """Return the error for a header that is not a payment; `problem` says what is wrong with it."""
    return build_rejection(
        f"PAYMENT-SIGNATURE is not the base64 of an x402 payment for scheme exact: {problem}",
        "invalid_payload",
    )


def _find_signed_terms(
    payload: PaymentPayload, terms: RouteTerms
) -> tuple[TokenTerms, PaymentRequired | None]:
    """Return the terms that a payment was signed for, and the error if they are not current ones.

    Raises that error if they cannot be earlier ones either.
    """
    accepted = payload.accepted
    matched = _match_terms(accepted, terms)
    if not isinstance(matched, PaymentRequired):
        return matched, None
    if not _may_be_earlier_terms(accepted, payload.payload.authorization):
        raise matched
    earlier = terms_when_signed(
        terms,
        network=accepted.network,
        asset=accepted.asset,
        pay_to=accepted.pay_to,
        amount=int(accepted.amount),
    )
    return earlier, matched


def _match_terms(accepted: AcceptedTerms, terms: RouteTerms) -> TokenTerms | PaymentRequired:
    """Return the route's terms that a payment accepted, or the error if they are not among them."""
    if accepted.scheme != SCHEME:
        return build_rejection("only scheme exact is accepted", "unsupported_scheme")
    current = terms.find_token(accepted.network, accepted.asset)
    differing = _list_differences(accepted, current.requirements) if current else ["asset"]
    if current and not differing:
        return current
    networks = list(dict.fromkeys(each.network for each in terms.tokens))
    if accepted.network not in networks:
        return build_rejection(f"the payment must be on {' or '.join(networks)}", "network_mismatch")
    return build_rejection(
        f"the accepted terms are not this service's terms: {', '.join(differing)}",
        "invalid_payment_requirements",
    )


def _list_differences(accepted: AcceptedTerms, expected: dict[str, Any]) -> list[str]:
    """Return the members in which accepted terms differ from an entry of `accepts` in the same token."""
    is_same = {
        "payTo": accepted.pay_to.lower() == expected["payTo"].lower(),
        "amount": accepted.amount == expected["amount"],
        "maxTimeoutSeconds": accepted.max_timeout_seconds == expected["maxTimeoutSeconds"],
        "extra": all(accepted.extra.get(name) == value for name, value in expected["extra"].items()),
    }
    return [name for name, same in is_same.items() if not same]


def _may_be_earlier_terms(accepted: AcceptedTerms, authorization: TransferAuthorization) -> bool:
    """Return True if these may be terms from before the operator changed them and match the signature."""
    return (
        accepted.scheme == SCHEME
        and re.fullmatch(NETWORK_ID, accepted.network) is not None
        and re.fullmatch(r"0x[0-9a-fA-F]{40}", accepted.asset) is not None
        and accepted.pay_to.lower() == authorization.to.lower()
        and accepted.amount == authorization.value
    )


def terms_when_signed(terms: RouteTerms, *, network: str, asset: str, pay_to: str, amount: int) -> TokenTerms:
    """Return a route's possible earlier terms; an unknown token has an empty name."""
    current = terms.find_token(network, asset)
    known_assets = (
        token
        for token in (current and current.asset, USDC.get(network))
        if token and token.address.lower() == asset.lower()
    )
    known_asset = next(known_assets, Asset(asset, name="", version=""))
    return TokenTerms(terms.route, network, known_asset, pay_to, amount)


def _require_matching_transfer(authorization: TransferAuthorization, terms: TokenTerms) -> None:
    """Raise PaymentRequired unless the signed transfer matches the terms."""
    if authorization.to.lower() != terms.pay_to.lower():
        raise build_rejection(
            "the payment goes to another address", "invalid_exact_evm_payload_recipient_mismatch"
        )
    if int(authorization.value) != terms.amount:
        raise build_rejection(
            f"the payment is over {authorization.value}, the price is {terms.amount}",
            "invalid_exact_evm_payload_authorization_value_mismatch",
        )


def _recover_signer(authorization: TransferAuthorization, terms: TokenTerms, signature: bytes) -> str | None:
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
