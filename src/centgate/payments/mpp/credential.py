"""Decoding of `Authorization: Payment`, the credential that answers a challenge of MPP.

Its payment is the same as that of `PAYMENT-SIGNATURE`, with a nonce that is made from the challenge.
"""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import Any, Literal

import msgspec
import orjson
from msgspec import Struct

from centgate.errors import PaymentRequired
from centgate.payments.authorization import (
    MAX_HEADER,
    Payment,
    PresentedPayment,
    build_rejection,
    check_payment,
    terms_when_signed,
)
from centgate.payments.mpp.base64url import decode_base64url
from centgate.payments.mpp.challenge import INTENT, METHOD, ChallengeIssuer, derive_nonces
from centgate.payments.payload import (
    Address,
    ExactPayload,
    Signature,
    TransferAuthorization,
    Uint256,
    require_256_bits,
)
from centgate.payments.terms import RouteTerms, TokenTerms

SCHEME = "payment"
"""Name of the authentication scheme, in lower case: it is compared without case (RFC 9110, section 11.1)."""
INVALID_CHALLENGE = "invalid_challenge"
"""Reason for a credential whose challenge is not one of this route; MPP's name of the problem."""
_FORMAT_ERROR = "Authorization: Payment is not the base64url of an MPP credential (method evm, intent charge)"


class _ChallengeEcho(Struct, frozen=True):
    """A challenge as its credential repeats it."""

    id: str
    realm: str
    method: str
    intent: str
    request: str
    expires: str
    opaque: str
    digest: str | None = None
    header: str | None = None
    """Members of MPP that no challenge of this server has."""


class _AuthorizationPayload(TransferAuthorization, frozen=True, kw_only=True):
    type: Literal["authorization"]
    signature: Signature


class _Credential(Struct, frozen=True):
    challenge: _ChallengeEcho
    payload: _AuthorizationPayload
    source: str | None = None


class _MethodDetails(Struct, frozen=True, rename="camel"):
    chain_id: int

    def __post_init__(self) -> None:
        if not 1 <= self.chain_id < 10**19:
            raise ValueError("not the id of a chain")


class _ChargeRequest(Struct, frozen=True, rename="camel"):
    amount: Uint256
    currency: Address
    recipient: Address
    method_details: _MethodDetails

    def __post_init__(self) -> None:
        require_256_bits(self.amount)


class _Opaque(Struct, frozen=True):
    resource: str


def find_credential(header: str | None) -> str | None:
    """Return the payment credential of an `Authorization` header, None if it has none.

    The header may list other schemes. Several payment credentials are joined, and so are invalid.
    """
    parts = [part.strip().partition(" ") for part in header.split(",")] if header else []
    credentials = [value.strip() for scheme, _, value in parts if scheme.lower() == SCHEME]
    return ", ".join(credentials) if credentials else None


def read_credential(
    credential: str,
    issuer: ChallengeIssuer,
    terms: RouteTerms,
    now: float,
    *,
    idempotency_header: str | None = None,
) -> Payment:
    """Decode a credential and compare it with its challenge and the route's terms.

    Raises PaymentRequired for a malformed one and for a transfer that is not the challenge's. A credential
    whose challenge has expired, has other terms or is not of this server is returned with a `rejection`,
    since its payment may have been settled before.
    """
    content, request, resource, expires_at = _decode_credential(credential)
    authorization = content.payload
    if content.source is not None and content.source.lower() != _payer_did(request, authorization):
        raise build_rejection(
            "the credential's source is not the payer of its authorization", "invalid_payload"
        )
    signed_terms, is_current = _signed_terms(terms, request)
    mismatch = _challenge_problem(content, issuer, resource=resource, url=terms.route.url)
    if mismatch is None and not is_current:
        mismatch = build_rejection(
            "the challenge's terms are not this service's terms any more", "invalid_payment_requirements"
        )
    payload = ExactPayload(signature=authorization.signature, authorization=authorization)
    presented = PresentedPayment(payload, signed_terms, mismatch, expires_at=expires_at)
    return check_payment(presented, terms, now, idempotency_header=idempotency_header)


def _decode_credential(credential: str) -> tuple[_Credential, _ChargeRequest, str, float]:
    """Return credential, request and resource of its challenge, and the challenge's end in seconds."""
    if len(credential) > MAX_HEADER:
        raise build_rejection(f"Authorization: Payment is longer than {MAX_HEADER} bytes", "invalid_payload")
    try:
        content = msgspec.convert(_decode_json(credential), _Credential)
        request = msgspec.convert(_decode_json(content.challenge.request), _ChargeRequest)
        resource = msgspec.convert(_decode_json(content.challenge.opaque), _Opaque).resource
        expires = datetime.fromisoformat(content.challenge.expires)
        if expires.tzinfo is None:
            raise ValueError("a time without its zone")
        return content, request, resource, expires.timestamp()
    except ValueError as error:
        raise build_rejection(_FORMAT_ERROR, "invalid_payload") from error


def _decode_json(text: str) -> Any:
    return orjson.loads(decode_base64url(text))


def _payer_did(request: _ChargeRequest, authorization: TransferAuthorization) -> str:
    """Return the payer's identifier (did:pkh), in lower case."""
    return f"did:pkh:eip155:{request.method_details.chain_id}:{authorization.payer.lower()}"


def _signed_terms(terms: RouteTerms, request: _ChargeRequest) -> tuple[TokenTerms, bool]:
    """Return the terms of a challenge, and True if they are the route's current ones."""
    network = f"eip155:{request.method_details.chain_id}"
    signed = (network, request.currency.lower(), request.recipient.lower(), request.amount)
    first = terms.first
    current = (first.network, first.asset.address.lower(), first.pay_to.lower(), str(first.amount))
    if signed == current:
        return first, True
    earlier = terms_when_signed(
        terms,
        network=network,
        asset=request.currency,
        pay_to=request.recipient,
        amount=int(request.amount),
    )
    return earlier, False


def _challenge_problem(
    content: _Credential, issuer: ChallengeIssuer, *, resource: str, url: str
) -> PaymentRequired | None:
    """Return the error for a challenge that is not this server's for this route, None if it is.

    The authorization must be bound to the challenge by its nonce.
    """
    echo = content.challenge
    if (echo.realm, echo.method, echo.intent) != (issuer.realm, METHOD, INTENT):
        return build_rejection(
            f"the challenge must be of realm {issuer.realm}, method {METHOD} and intent {INTENT}",
            INVALID_CHALLENGE,
        )
    if echo.digest is not None or echo.header is not None:
        return build_rejection("the challenge had no digest and no header", INVALID_CHALLENGE)
    expected_id = issuer.compute_id(echo.request, echo.expires, echo.opaque)
    if not hmac.compare_digest(echo.id.encode(), expected_id.encode()):
        return build_rejection("the challenge was not issued by this server", INVALID_CHALLENGE)
    if resource != url:
        return build_rejection("the challenge was issued for another route", INVALID_CHALLENGE)
    if content.payload.nonce.lower() not in derive_nonces(echo.id, echo.realm):
        return build_rejection("the authorization's nonce is not made from the challenge", INVALID_CHALLENGE)
    return None
