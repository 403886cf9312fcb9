"""JSON in headers of the Machine Payments Protocol: base64url without padding."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any

import orjson

_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def encode_json(content: Mapping[str, Any]) -> str:
    """Encode JSON with sorted keys.

    Strings must be ASCII and numbers integers: then this is RFC 8785's canonical form, in which clients may
    write the content of a challenge again.
    """
    return encode_base64url(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def encode_base64url(data: bytes) -> str:
    """Encode bytes without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Decode base64url with or without padding. Raises ValueError."""
    standard = text.rstrip("=").translate(_STANDARD_ALPHABET)
    return a2b_base64(standard + "=" * (-len(standard) % 4), strict_mode=True)
