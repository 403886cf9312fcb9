"""Base model for untrusted JSON, and base64 decoding."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, cast

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema


def _set_fail_fast(schema: Any) -> None:
    if isinstance(schema, list):
        for each in cast(list[Any], schema):
            _set_fail_fast(each)
    if isinstance(schema, dict):
        parts = cast(dict[str, Any], schema)
        if parts.get("type") in ("list", "tuple"):
            parts["fail_fast"] = True
        for each in parts.values():
            _set_fail_fast(each)


class UntrustedModel(BaseModel):
    """Base model for untrusted JSON. Validation of a list stops at its first invalid element.

    Otherwise each element adds an error, and 8 MB of invalid elements take gigabytes and half a minute.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _set_fail_fast(schema)
        return schema


def decode_base64(text: str) -> bytes:
    """Decode base64, with or without padding. Raises ValueError."""
    unpadded = text.rstrip("=")
    return b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True)
