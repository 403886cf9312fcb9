"""Parse saved receipts and offers: a header's value, the headers of a response, or JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

import orjson

from centgate.client.wire_model import decode_base64

Header = Literal["PAYMENT-RESPONSE", "PAYMENT-REQUIRED"]
MAX_FILE_BYTES = 1024 * 1024
"""Maximum bytes of a file; headers are far smaller."""


def parse_saved_header(content: bytes, header: Header) -> Mapping[str, Any]:
    """Parse the JSON object of a saved header. Raises ValueError with the problem."""
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it is longer than {MAX_FILE_BYTES // 1024} KiB, too long for {header}")
    text = content.decode("utf-8-sig", errors="replace").strip()
    if not text:
        raise ValueError(f"it is empty: it must hold the value of {header}")
    if not text.startswith("{"):
        text = _decode_header(text, header)
    try:
        decoded: Any = orjson.loads(text)
    except ValueError as error:
        raise ValueError(f"it is neither JSON nor a header of base64-encoded JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise ValueError("it is not a JSON object")
    return cast(dict[str, Any], decoded)


def _decode_header(text: str, header: Header) -> str:
    """Decode the header's value, which is the whole text or one line `name: value` of it."""
    line = re.search(rf"^{header}:[ \t]*(\S+)[ \t\r]*$", text, re.IGNORECASE | re.MULTILINE)
    value = line[1] if line else "".join(text.split())
    try:
        return decode_base64(value).decode()
    except ValueError:
        raise ValueError(f"it is neither the value of {header} nor JSON") from None
