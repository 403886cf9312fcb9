"""The base of the groups of settings, and types of fields that several of them use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class SettingsGroup(BaseSettings):
    """Settings of one subject: a base of `Settings`, never made by itself.

    Names of validators and methods are unique among all groups: one of the same name would replace another.
    """

    model_config = SettingsConfigDict(defer_build=True)  # a group needs no validator of its own


_ALLOWED_ORIGIN = r"\*|null|file://|[a-z][a-z0-9+.-]*://[^/?#*\s]+"
"""`*`, or an `Origin` header; extensions of browsers have schemes of their own, sandboxed pages send null.

Apps that show pages from their own files in a web view may send file://.
"""


def split_list(value: Any) -> Any:
    """Split a comma-separated string into a tuple; return other values unchanged."""
    if isinstance(value, str):
        return tuple(item for item in (part.strip() for part in value.split(",")) if item)
    return value


def normalize_origin(value: Any) -> Any:
    """Return an origin as browsers and clients write it: in lower case and ASCII, without the scheme's port.

    Raises ValueError for what a parser would leave out: user names, spaces and line ends.
    """
    if not isinstance(value, str) or not value.lower().startswith(("http://", "https://")):
        return value
    if not value.isprintable() or any(character in value for character in " \\@%"):
        raise ValueError("has a character that no scheme, host or port has")
    from ada_url import URL  # takes longer to import than most commands run

    try:
        url = URL(value.rstrip("/"))
    except ValueError:
        raise ValueError("is not the URL of a host") from None
    return url.origin if url.pathname == "/" and not (url.search or url.hash) else value


def _split_origins(value: Any) -> Any:
    """Split and normalise allowed origins. Raises ValueError for one that no browser sends."""
    origins = split_list(value)
    if not isinstance(origins, tuple | list):
        return origins
    normalized = tuple(map(normalize_origin, cast(Sequence[Any], origins)))
    for origin in normalized:
        if isinstance(origin, str) and not re.fullmatch(_ALLOWED_ORIGIN, origin):
            raise ValueError(
                f"{origin!r} is no origin: write * or a URL without a path, such as https://app.example"
            )
    return normalized


CommaList = Annotated[tuple[str, ...], BeforeValidator(split_list)]
"""Texts separated by commas."""
Origin = Annotated[str, Field(pattern=r"^https?://[^/?#]+$"), BeforeValidator(normalize_origin)]
"""A URL without a path, normalised; a slash at its end is removed."""
Origins = Annotated[tuple[str, ...], BeforeValidator(_split_origins)]
"""Origins separated by commas, normalised; also `*`."""
