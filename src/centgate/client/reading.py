"""What models of foreign JSON have in common."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, cast

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema


def _give_up_early(schema: Any) -> None:
    if isinstance(schema, list):
        for each in cast(list[Any], schema):
            _give_up_early(each)
    if isinstance(schema, dict):
        parts = cast(dict[str, Any], schema)
        if parts.get("type") in ("list", "tuple"):
            parts["fail_fast"] = True
        for each in parts.values():
            _give_up_early(each)


class Foreign(BaseModel):
    """What somebody else sent. A list in it is given up at its first wrong element.

    Otherwise each element makes an error of its own, and 8 MB of them take gigabytes and half a minute.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _give_up_early(schema)
        return schema


def from_base64(text: str) -> bytes:
    """What stands in base64, with or without its padding; ValueError when it is none."""
    bare = text.rstrip("=")
    return b64decode(bare + "=" * (-len(bare) % 4), validate=True)
