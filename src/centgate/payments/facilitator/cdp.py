"""Authentication at Coinbase's hosted facilitator: a new JWT for each request.

Format: https://docs.cdp.coinbase.com/api-reference/v2/authentication (bearer token, `uris` claim).
"""

from __future__ import annotations

import base64
import secrets
import time
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

LIFETIME = 120
"""Lifetime of a token in seconds."""


def create_cdp_token(key_id: str, secret: str, method: str, url: str) -> str:
    """Return a bearer token for one request. Raises ValueError for a secret that is no key of either kind."""
    key = _parse_private_key(secret)
    parts = urlsplit(url)
    now = int(time.time())
    return jwt.encode(
        {
            "sub": key_id,
            "iss": "cdp",
            "nbf": now,
            "exp": now + LIFETIME,
            "uris": [f"{method} {parts.netloc}{parts.path}"],
        },
        key,
        algorithm="EdDSA" if isinstance(key, Ed25519PrivateKey) else "ES256",
        headers={"kid": key_id, "nonce": secrets.token_hex(16)},
    )


def _parse_private_key(secret: str) -> Ed25519PrivateKey | EllipticCurvePrivateKey:
    if "BEGIN" in secret:
        try:
            key = load_pem_private_key(secret.replace("\\n", "\n").encode(), password=None)
        except (ValueError, TypeError) as error:
            raise ValueError("CENTGATE_CDP_API_KEY_SECRET is not a readable PEM key") from error
        if isinstance(key, EllipticCurvePrivateKey) and isinstance(key.curve, SECP256R1):
            return key
    else:
        try:
            raw = base64.b64decode(secret, validate=True)
        except ValueError as error:
            raise ValueError("CENTGATE_CDP_API_KEY_SECRET is neither base64 nor PEM") from error
        if len(raw) == 64:  # seed and public key
            return Ed25519PrivateKey.from_private_bytes(raw[:32])
    raise ValueError(
        "CENTGATE_CDP_API_KEY_SECRET is neither an Ed25519 key in base64 nor an EC key on P-256 as PEM"
    )
