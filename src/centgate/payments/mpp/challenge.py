"""Challenges of the Machine Payments Protocol (MPP): `WWW-Authenticate: Payment`.

The scheme is draft-ietf-httpauth-payment's, with method `evm` and intent `charge`; the reference clients are
mppx (npm) and pympp (PyPI). No challenge is stored: its id is a keyed hash of its content, so that every
server with the same secret recognises it.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import Any

import orjson

from centgate.payments.mpp.base64url import encode_base64url, encode_json
from centgate.payments.terms import TokenTerms
from centgate.settings import Settings
from centgate.signing.assets import parse_chain_id
from centgate.signing.evm import keccak, to_checksum_address
from centgate.timestamps import format_unix_time

METHOD, INTENT = "evm", "charge"
CREDENTIAL_TYPE = "authorization"
"""The accepted type of credential: an EIP-3009 authorization, as in x402's scheme `exact`."""


def build_charge_request(terms: TokenTerms) -> dict[str, Any]:
    """Build the request of a challenge: amount, token, payee and chain."""
    return {
        "amount": str(terms.amount),
        "currency": to_checksum_address(terms.asset.address),
        "recipient": to_checksum_address(terms.pay_to),
        "methodDetails": {
            "chainId": parse_chain_id(terms.network),
            "credentialTypes": [CREDENTIAL_TYPE],
            "decimals": terms.asset.decimals,
        },
    }


def derive_nonces(challenge_id: str, realm: str) -> tuple[str, str]:
    """Return the nonces that bind an authorization to a challenge, in hex.

    The clients hash different texts: pympp the JSON of id and realm, mppx the two in a row. Both name exactly
    one challenge of this server, because all of its ids have the same length, so both are accepted.
    """
    as_json = orjson.dumps([challenge_id, realm])
    return (f"0x{keccak(as_json).hex()}", f"0x{keccak((challenge_id + realm).encode()).hex()}")


@dataclass(frozen=True, slots=True)
class ChallengeIssuer:
    """Issues challenges of one deployment and recognises them."""

    realm: str
    """Host of the API's public URL."""
    secret: bytes = field(repr=False)
    is_enabled: bool = True
    """False if the operator accepts no new payments by MPP: earlier ones are still recognised."""

    def issue(self, terms: TokenTerms, now: float) -> str:
        """Return a new challenge for a route, as the value of `WWW-Authenticate`; `now` is in seconds.

        It expires with the window of the terms. Each is unique, since the payment's nonce is made from it.
        """
        request = encode_json(build_charge_request(terms))
        expires = format_unix_time(int(now) + terms.route.window)
        opaque = encode_json({"nonce": secrets.token_urlsafe(16), "resource": terms.route.url})
        challenge_id = self.compute_id(request, expires, opaque)
        return (
            f'Payment id="{challenge_id}", realm="{self.realm}", method="{METHOD}", intent="{INTENT}", '
            f'request="{request}", expires="{expires}", opaque="{opaque}"'
        )

    def compute_id(self, request: str, expires: str, opaque: str) -> str:
        """Return the id of a challenge with this content: base64url of its HMAC-SHA256.

        The text has the protocol's slots. The sixth, a digest of the body, stays empty: the journal binds a
        payment to its body when it is first presented.
        """
        text = "|".join((self.realm, METHOD, INTENT, request, expires, "", opaque))
        return encode_base64url(hmac.digest(self.secret, text.encode(), "sha256"))


def create_issuer(settings: Settings) -> ChallengeIssuer | None:
    """Create the issuer of a deployment; None if it has no secret."""
    if settings.mpp_secret is None:
        return None
    secret = settings.mpp_secret.get_secret_value().encode()
    return ChallengeIssuer(settings.public_host, secret, is_enabled=settings.mpp_enabled)
