"""Idempotency keys: x402's extension `payment-identifier`, and the header `Idempotency-Key`."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import orjson

PAYMENT_IDENTIFIER = "payment-identifier"
IDENTIFIER_EXTENSION: dict[str, Any] = {
    "info": {"required": False},
    "schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "required": {"type": "boolean"},
            "id": {"type": "string", "minLength": 16, "maxLength": 128, "pattern": "^[a-zA-Z0-9_-]+$"},
        },
        "required": ["required"],
    },
}
"""The extension in an offer: a buyer may send an identifier."""


def parse_idempotency_key(identifier: str | None, header: str | None) -> str | None:
    """Return the buyer's idempotency key: the payment's own identifier, or the `Idempotency-Key` header.

    The header may be quoted, as the IETF's draft has it (draft-ietf-httpapi-idempotency-key-header).
    Raises ValueError for a malformed key, and for two that differ.
    """
    if header is None:
        return identifier
    is_quoted = len(header) > 1 and header[0] == header[-1] == '"'
    header_key = _validate_identifier(header[1:-1] if is_quoted else header, "Idempotency-Key")
    if identifier not in (None, header_key):
        raise ValueError("Idempotency-Key and the payment identifier differ; send one of them")
    return header_key


def parse_payment_identifier(extensions: dict[str, Any] | None) -> str | None:
    """Return the payment identifier of a payload's extensions. Raises ValueError for a malformed one."""
    extension = extensions.get(PAYMENT_IDENTIFIER) if extensions else None
    if isinstance(extension, msgspec.Raw):
        extension = _decode_extension(extension)
    info = cast(dict[str, Any], extension).get("info") if isinstance(extension, dict) else None
    value = cast(dict[str, Any], info).get("id") if isinstance(info, dict) else None
    return None if value is None else _validate_identifier(value, "the payment identifier")


def _decode_extension(text: msgspec.Raw) -> Any:
    try:
        return orjson.loads(bytes(text))
    except orjson.JSONDecodeError as error:  # a number too large, which msgspec does not read
        raise ValueError(f"the extension {PAYMENT_IDENTIFIER} cannot be decoded: {error.msg}") from error


def _validate_identifier(value: Any, name: str) -> str:
    is_valid = (
        isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum() and value.isascii()
    )
    if not is_valid or not 16 <= len(value) <= 128:
        raise ValueError(f"{name} must be 16 to 128 letters, digits, - or _")
    return value
