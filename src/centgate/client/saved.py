"""Receipts and offers as people save them: a header's value, the headers of a response, or JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

import orjson

from centgate.client.reading import from_base64

Header = Literal["PAYMENT-RESPONSE", "PAYMENT-REQUIRED"]
MOST = 1024 * 1024
"""Bytes of a file that are read; no header comes near."""


def read_saved(content: bytes, header: Header) -> Mapping[str, Any]:
    """The JSON object that a header carries; ValueError says what is wrong with what was saved."""
    if len(content) > MOST:
        raise ValueError(f"it is longer than {MOST // 1024} KiB, which no {header} is")
    text = content.decode("utf-8-sig", errors="replace").strip()
    if not text:
        raise ValueError(f"it is empty: it has to hold the value of {header}")
    if not text.startswith("{"):
        text = _from_header(text, header)
    try:
        read: Any = orjson.loads(text)
    except ValueError as error:
        raise ValueError(f"it is no JSON, and no header in base64 of JSON: {error}") from None
    if not isinstance(read, dict):
        raise ValueError("it is no JSON object")
    return cast(dict[str, Any], read)


def _from_header(text: str, header: Header) -> str:
    """The JSON inside the header's value, which stands alone or in a line `name: value` among others."""
    line = re.search(rf"^{header}:[ \t]*(\S+)[ \t\r]*$", text, re.IGNORECASE | re.MULTILINE)
    value = line[1] if line else "".join(text.split())
    try:
        return from_base64(value).decode()
    except ValueError:
        raise ValueError(f"it is neither the value of {header} nor JSON") from None
