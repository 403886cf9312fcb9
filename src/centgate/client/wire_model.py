"""Base models for untrusted JSON, and base64 decoding."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
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

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _set_fail_fast(schema)
        return schema


class StrictModel(UntrustedModel):
    """Base model for the parts of a payment protocol, whose types are exact."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ApiModel(UntrustedModel):
    """Base model for the API's own JSON, with names in camelCase. Unknown members are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True, extra="ignore")


Timestamp = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
"""Time in UTC, as the API writes it."""


def decode_base64(text: str) -> bytes:
    """Decode base64, with or without padding. Raises ValueError."""
    unpadded = text.rstrip("=")
    return b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True)
