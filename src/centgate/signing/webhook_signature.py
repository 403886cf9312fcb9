"""Signatures of webhooks by Standard Webhooks, scheme `v1`: HMAC-SHA256 over id, time and body.

Source of the rules: the specification at standardwebhooks.com. Its libraries verify these signatures.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"
SECRET_BYTES = (24, 64)
"""Minimum and maximum length of a secret, before base64."""
MAX_SECRETS = 2
"""The current secret, and the one before it during a rotation."""


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """Parse comma-separated secrets, each `whsec_` and base64. Raises ValueError that does not quote them."""
    secrets = tuple(_parse_secret(part.strip()) for part in text.split(",") if part.strip())
    if not 1 <= len(secrets) <= MAX_SECRETS:
        raise ValueError(f"needs one secret, or {MAX_SECRETS} during a rotation")
    return secrets


def sign_webhook(secrets: Sequence[bytes], event_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature per secret; a receiver accepts any of them.

    `timestamp` is the time of sending, in seconds since 1970.
    """
    content = f"{event_id}.{timestamp}.".encode() + body
    digests = (hmac.digest(secret, content, "sha256") for secret in secrets)
    return " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests)


def _parse_secret(text: str) -> bytes:
    lowest, highest = SECRET_BYTES
    try:
        secret = b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        secret = b""
    if not text.startswith(SECRET_PREFIX) or not lowest <= len(secret) <= highest:
        raise ValueError(f"needs {SECRET_PREFIX} and {lowest} to {highest} bytes in base64")
    return secret
